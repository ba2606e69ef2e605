"""Plain data across the wall: what a student's process may send, as bytes that cannot run code.

A frame is a JSON text and one blob for the bytes of arrays. Scalars and lists stand for themselves
in the JSON; everything else is `{tag: ...}`. `encode` runs in the student's process and is a
courtesy; `decode` runs in the grader and believes nothing: only exact built-in types, numpy arrays
and torch tensors come out of it, whatever the bytes say.
"""

import json
import math
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from course_lib.teaching.plain import Opaque

MAX_JSON = 16 << 20  # bytes of JSON in a frame
MAX_BLOB = 32 << 20  # bytes of arrays in a frame
MAX_ELEMENTS = 4_000_000  # of an array; an empty one must not be long in another direction either
MAX_DEPTH = 50
MAX_NODES = 1_000_000
MAX_MARKS = 1_500_000  # of `,`, `[` and `{` in a frame: objects take 30 times their text in memory
MAX_KEYS = 10_000  # of a set or dictionary with all their parts, and of several of them by the root
# of the sum of squares: filling one whose keys' hashes collide compares each part of each key with
# those of every other, which takes time with the square, here about a second
MAX_BITS = 4096  # of an integer
HEADER = struct.Struct("!II")
NUMPY = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip
TORCH: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (*(n for n in NUMPY if n not in ("uint16", "uint32", "uint64")), "bfloat16")
}


class Malformed(ValueError):
    """Bytes that no honest student's process sends."""


# --- frames ---------------------------------------------------------------------------------------


def send(channel: socket.socket, message: Any, blob: bytes = b"") -> None:
    """Write one frame. Raises ValueError if it is larger than `receive` takes."""
    text = json.dumps(message).encode()
    if len(text) > MAX_JSON or _marks(text) > MAX_MARKS or len(blob) > MAX_BLOB:
        raise ValueError("the value is too large")
    channel.sendall(HEADER.pack(len(text), len(blob)) + text + blob)


def receive(channel: socket.socket, wait: Callable[[], None] = lambda: None) -> tuple[Any, bytes]:
    """Read one frame. Raises EOFError at the end, `Malformed` for what is too large or no JSON.

    `wait` is called before each read: it returns when there is something to read, or raises.
    """
    n_json, n_blob = HEADER.unpack(_read(channel, HEADER.size, wait))
    if n_json > MAX_JSON or n_blob > MAX_BLOB:
        raise Malformed(f"a frame of {n_json + n_blob:,} bytes")
    text, blob = _read(channel, n_json, wait), _read(channel, n_blob, wait)
    if _marks(text) > MAX_MARKS:
        raise Malformed("a maze of brackets")
    try:
        return json.loads(text), blob
    except (ValueError, RecursionError) as error:
        raise Malformed(f"no JSON: {error}") from None


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _read(channel: socket.socket, n: int, wait: Callable[[], None]) -> bytes:
    data = bytearray()
    while len(data) < n:
        wait()
        piece = channel.recv(min(n - len(data), 1 << 20))
        if not piece:
            raise EOFError("the other side closed the channel")
        data += piece
    return bytes(data)


# --- values ---------------------------------------------------------------------------------------


def encode(value: Any, blob: bytearray) -> Any:
    """A value as JSON, its arrays' bytes appended to `blob`. Raises ValueError if too large."""
    return _Encoder(blob).tree(value, 0)


class _Encoder:
    def __init__(self, blob: bytearray) -> None:
        self.blob = blob
        self.nodes = 0
        self.squares = 0

    def tree(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise ValueError("the value is nested too deeply or has too many parts")
        kind = type(value)
        if value is None or kind in (bool, str, float):
            return value
        if kind is int:
            return value if value.bit_length() <= MAX_BITS else {"other": "very large int"}
        if kind is list:
            return [self.tree(item, depth + 1) for item in value]
        if value is ...:  # what a release has where an answer belongs
            return {"ellipsis": None}
        if kind is tuple:
            return {"tuple": [self.tree(item, depth + 1) for item in value]}
        if kind in (set, frozenset):
            return {kind.__name__: self.keys(value, depth)}
        if kind is dict:
            values = [self.tree(item, depth + 1) for item in value.values()]
            return {"dict": list(zip(self.keys(value, depth), values, strict=True))}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if kind is bytes:
            return {"bytes": self.put(value)}
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, np.ndarray | np.generic):
            return self.array(value, depth)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        return {"callable" if callable(value) else "other": name}

    def keys(self, keys: Iterable[Any], depth: int) -> list[Any]:
        before = self.nodes
        trees = [self.tree(key, depth + 1) for key in keys]
        self.squares += (self.nodes - before) ** 2
        if self.squares > MAX_KEYS**2:
            raise ValueError(f"the value's sets have more than {MAX_KEYS:,} parts")
        return trees

    def put(self, data: bytes, elements: int = 0) -> list[int]:
        start = len(self.blob)
        if start + len(data) > MAX_BLOB or elements > MAX_ELEMENTS:
            raise ValueError("the value is too large")
        self.blob += data
        return [start, len(data)]

    def tensor(self, value: torch.Tensor) -> Any:
        name = str(value.dtype).removeprefix("torch.")
        if name not in TORCH or value.layout != torch.strided or value.device.type == "meta":
            return {"other": f"tensor of {name}"}
        # a copy, on the CPU, without strides (also of one element), conjugate or negative bits
        data = torch.empty(value.shape, dtype=value.dtype).copy_(value.detach())
        raw = data.reshape(-1).view(torch.uint8).numpy().tobytes() if data.numel() else b""
        return {"tensor": [name, list(data.shape), *self.put(raw, data.numel())]}

    def array(self, value: Any, depth: int) -> Any:
        if value.dtype.name not in NUMPY:
            plain = value.tolist()
            wide = isinstance(plain, np.generic)  # a longdouble is its own `tolist`
            return {"other": value.dtype.name} if wide else self.tree(plain, depth + 1)
        tag = "array" if isinstance(value, np.ndarray) else "scalar"
        data = np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")
        return {tag: [value.dtype.name, list(data.shape), *self.put(data.tobytes(), data.size)]}


def decode(tree: Any, blob: bytes) -> Any:
    """The value that a tree and a frame's blob stand for. Runs no code of the other side.

    Raises `Malformed`. What comes out holds no more bytes of arrays than the blob has.

    >>> decode({"tuple": [1, {"bytes": [0, 2]}]}, b"ab")
    (1, b'ab')
    """
    return _Decoder(blob).value(tree, 0)


class _Decoder:
    def __init__(self, blob: bytes) -> None:
        self.blob = blob
        self.left = len(blob)  # each byte is used once, or few bytes could become many arrays
        self.nodes = 0
        self.squares = 0

    def value(self, tree: Any, depth: int) -> Any:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise Malformed("nested too deeply, or too many parts")
        if tree is None or type(tree) in (bool, str, float):
            return tree
        if type(tree) is int:
            if tree.bit_length() > MAX_BITS:
                raise Malformed("an integer too large")
            return tree
        if type(tree) is list:
            return [self.value(item, depth + 1) for item in tree]
        if len(tree) != 1:  # the JSON decoder gives nothing else than a dict here
            raise Malformed("an object with other than one tag")
        ((tag, body),) = tree.items()
        try:
            return self.tagged(tag, body, depth)
        except (TypeError, ValueError, OverflowError, KeyError) as error:
            raise Malformed(f"a bad {tag}: {error}") from None

    def tagged(self, tag: str, body: Any, depth: int) -> Any:
        match tag:
            case "ellipsis":
                return ...
            case "tuple":
                return tuple(self.items(body, depth))
            case "set" | "frozenset":
                return (set if tag == "set" else frozenset)(self.keys(body, depth))
            case "dict":
                keys = self.keys([key for key, _ in body], depth)
                return dict(zip(keys, self.items([item for _, item in body], depth), strict=True))
            case "complex":
                real, imag = body
                return complex(float(real), float(imag))
            case "bytes":
                return self.bytes(*body)
            case "array" | "scalar" | "tensor":
                return self.array(tag, *body)
            case "other" | "callable":
                if type(body) is not str:
                    raise Malformed("a name that is no text")
                return Opaque(body[:80], tag == "callable")
        raise Malformed(f"an unknown tag {tag[:20]!r}")

    def items(self, body: Any, depth: int) -> list[Any]:
        if type(body) is not list:
            raise Malformed("no list")
        return [self.value(item, depth + 1) for item in body]

    def keys(self, body: Any, depth: int) -> list[Any]:
        before = self.nodes
        keys = self.items(body, depth)
        self.squares += (self.nodes - before) ** 2
        if self.squares > MAX_KEYS**2:
            raise Malformed(f"sets or dictionaries of more than {MAX_KEYS:,} parts")
        return keys

    def bytes(self, start: int, size: int) -> bytes:
        if type(start) is not int or type(size) is not int:
            raise Malformed("a place that is no integer")
        if not 0 <= start <= start + size <= len(self.blob):
            raise Malformed("a place outside the blob")
        self.left -= size
        if self.left < 0:
            raise Malformed("more arrays than bytes")
        return self.blob[start : start + size]

    def array(self, tag: str, name: str, shape: list[int], start: int, size: int) -> Any:
        if name not in (TORCH if tag == "tensor" else NUMPY):
            raise Malformed(f"an array of {name[:20]!r}")
        if not all(type(n) is int and n >= 0 for n in shape) or len(shape) > 16:
            raise Malformed("a bad shape")
        if math.prod(max(n, 1) for n in shape) > MAX_ELEMENTS:
            raise Malformed("too many elements")
        data = bytearray(self.bytes(start, size))
        width = TORCH[name].itemsize if tag == "tensor" else np.dtype(name).itemsize
        if math.prod(shape) * width != size:
            raise Malformed("a shape that does not fit its bytes")
        if name == "bool":  # a bool that is neither 0 nor 1 makes comparisons undefined
            data = bytearray(byte != 0 for byte in data)
        if tag == "tensor":
            if not size:
                return torch.empty(shape, dtype=TORCH[name])
            return torch.frombuffer(data, dtype=TORCH[name]).reshape(shape)
        array = np.frombuffer(data, dtype=name).reshape(shape)
        return array[()] if tag == "scalar" else array
