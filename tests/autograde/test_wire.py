"""Plain data across the wall: what is sent arrives, and nothing that is sent can do harm."""

import datetime
import enum
import json
import math
import socket
import struct
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograde import wire
from autograde.wire import Malformed, decode, encode
from course_lib.teaching.plain import Opaque

some = settings(max_examples=60, deadline=None)
many = settings(max_examples=400, deadline=None)

INTEGERS = st.integers(-(2**wire.MAX_BITS) + 1, 2**wire.MAX_BITS - 1)
EQUAL = st.one_of(  # to themselves, unlike NaN, so that sets of them can be compared
    st.floats(allow_nan=False), st.complex_numbers(allow_nan=False), st.booleans(), INTEGERS
)
HASHABLE = st.recursive(
    st.one_of(st.none(), EQUAL, st.text(), st.binary()),
    lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=4)),
    max_leaves=5,
)
PLAIN = st.recursive(
    st.one_of(HASHABLE, st.just(...), st.floats(), st.complex_numbers()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(HASHABLE, inner, max_size=4),
        st.sets(HASHABLE, max_size=4),
    ),
    max_leaves=20,
)
ARRAYS = hnp.arrays(
    st.sampled_from(wire.NUMPY).map(np.dtype), hnp.array_shapes(min_dims=0, min_side=0, max_side=4)
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=10,
)
TAGS = [
    "tuple",
    "set",
    "frozenset",
    "dict",
    "complex",
    "bytes",
    "array",
    "scalar",
    "tensor",
    "other",
    "callable",
    "ellipsis",
]
# what an attacker would send: known tags, names and places, with anything in the wrong position
TAGGED = st.recursive(
    st.one_of(JSON, st.sampled_from(wire.NUMPY), st.integers(-1, 40), st.lists(st.integers(0, 9))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.builds(lambda tag, body: {tag: body}, st.sampled_from(TAGS), inner),
        st.builds(
            lambda tag, *body: {tag: list(body)},
            st.sampled_from(("array", "scalar", "tensor")),
            st.sampled_from((*wire.TORCH, "object", "V8")),
            st.one_of(st.lists(st.integers(-1, 5), max_size=3), inner),
            st.one_of(st.integers(-1, 9), inner),
            st.one_of(st.integers(-1, 40), inner),
        ),
    ),
    max_leaves=10,
)


def across(value):
    """What arrives of a value, by way of JSON text, as between two processes."""
    blob = bytearray()
    tree = json.loads(json.dumps(encode(value, blob)))
    return decode(tree, bytes(blob))


def alike(a, b):
    """Equal in type and value; NaN is like NaN, and 0.0 is not like -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return alike(a.real, b.real) and alike(a.imag, b.imag)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return alike(list(a.items()), list(b.items()))
    return a == b


# --- what is sent arrives -------------------------------------------------------------------------


@given(PLAIN)
@some
def test_plain_data_arrives_as_it_was_sent(value):
    assert alike(across(value), value)


@given(ARRAYS)
@some
def test_numpy_arrays_keep_dtype_shape_and_every_bit(array):
    arrived = across(array)
    assert type(arrived) is np.ndarray
    assert (arrived.dtype, arrived.shape) == (array.dtype, array.shape)
    assert arrived.tobytes() == array.tobytes()


@given(ARRAYS.filter(lambda array: array.size))
@some
def test_numpy_scalars_stay_numpy_scalars(array):
    scalar = array.reshape(-1)[0]
    arrived = across(scalar)
    assert type(arrived) is type(scalar)
    assert arrived.tobytes() == scalar.tobytes()


@pytest.mark.parametrize("name", wire.TORCH)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_tensors_keep_dtype_and_shape(name, shape):
    tensor = (torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 9).to(
        wire.TORCH[name]
    )
    arrived = across(tensor)
    assert type(arrived) is torch.Tensor
    assert arrived.dtype == tensor.dtype
    assert torch.equal(arrived, tensor)
    assert arrived.shape == tensor.shape


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3).T,
        torch.arange(6.0)[::2],
        torch.ones(1).expand(4),
        torch.ones(2, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.tensor([1 + 2j]).conj(),
        torch.tensor([1 + 2j]).conj().imag,
        torch.arange(6)[3:],
    ],
    ids=repr,
)
def test_tensors_of_every_layout_arrive_as_plain_ones(tensor):
    arrived = across(tensor)
    assert type(arrived) is torch.Tensor
    assert not arrived.requires_grad
    assert torch.equal(arrived, tensor.detach())


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(6)[::-2],
        np.asfortranarray(np.ones((2, 3))),
        np.arange(3, dtype=">i4"),
    ],
    ids=["transposed", "backwards", "fortran", "big endian"],
)
def test_arrays_of_every_layout_arrive(array):
    assert np.array_equal(across(array), array)


def test_what_arrives_can_be_written_to():
    array, tensor = across((np.zeros(2), torch.zeros(2)))
    array[0] = tensor[0] = 1
    assert (array.sum(), tensor.sum()) == (1, 1)


def test_arrays_of_words_and_dates_arrive_as_lists():
    assert across(np.array(["a", "b"])) == ["a", "b"]
    assert across(np.array([1, "b"], dtype=object)) == [1, "b"]
    assert across(np.array(["2024-01-01"], dtype="datetime64[D]")) == [Opaque("datetime.date")]


class Liar(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "name", "is_callable"),
    [
        (print, "builtin_function_or_method", True),
        (Liar, "type", True),
        (Liar(3), f"{__name__}.Liar", False),
        (Colour.RED, f"{__name__}.Colour", False),
        (datetime.date(2024, 1, 1), "datetime.date", False),
        (range(3), "range", False),
        (torch.ones(2).to_sparse(), "tensor of float32", False),
        (torch.ones(2, device="meta"), "tensor of float32", False),
        (np.longdouble(1), np.dtype(np.longdouble).name, False),
        (2**wire.MAX_BITS, "very large int", False),
    ],
    ids=repr,
)
def test_everything_else_arrives_as_the_name_of_its_type(value, name, is_callable):
    assert across([value]) == [Opaque(name, is_callable)]


# --- what cannot be sent says so ------------------------------------------------------------------


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def cyclic():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        nested(wire.MAX_DEPTH + 1),
        cyclic(),
        [0] * (wire.MAX_NODES + 1),
        set(range(wire.MAX_KEYS + 1)),
        dict.fromkeys(range(wire.MAX_KEYS + 1)),
        torch.zeros(wire.MAX_ELEMENTS + 1, dtype=torch.bool),
        np.zeros(wire.MAX_BLOB // 8 + 1),
        bytes(wire.MAX_BLOB + 1),
    ],
    ids=["deep", "cyclic", "long", "set", "dict", "elements", "array bytes", "bytes"],
)
def test_what_is_too_large_is_refused_before_it_is_sent(value):
    with pytest.raises(ValueError, match="the value"):
        encode(value, bytearray())


def test_what_may_be_sent_may_also_arrive():
    largest = [
        nested(wire.MAX_DEPTH),
        set(range(wire.MAX_KEYS)),
        torch.zeros(wire.MAX_ELEMENTS),
        2**wire.MAX_BITS - 1,
    ]
    for value in largest:
        across(value)


# --- nothing that arrives can do harm -------------------------------------------------------------


@given(st.one_of(JSON, TAGGED), st.binary(max_size=40))
@many
def test_any_json_is_plain_data_or_malformed(tree, blob):
    try:
        value = decode(tree, blob)
    except Malformed:
        return
    check_plain(value)


def check_plain(value):
    exact = {bool, int, float, complex, str, bytes, type(None), type(...), Opaque}
    if type(value) in (list, tuple, set, frozenset):
        for part in value:
            check_plain(part)
    elif type(value) is dict:
        for pair in value.items():
            check_plain(pair)
    elif isinstance(value, np.ndarray | np.generic):
        assert value.dtype.name in wire.NUMPY
    else:
        assert type(value) in exact | {torch.Tensor}, type(value)


@pytest.mark.parametrize(
    "tree",
    [
        {"tensor": ["float32", [10**30, 0], 0, 0]},
        {"tensor": ["float32", [2**40, 0], 0, 0]},  # empty, but a list of it is long
        {"array": ["float32", [0, 2**62], 0, 0]},
        {"array": ["float32", [2**32, 2**32], 0, 0]},  # 2**64 wraps to 0
        {"array": ["float32", [1] * 40, 0, 4]},
        {"array": ["float32", [-1], 0, 4]},
        {"array": ["float32", [True], 0, 4]},
        {"array": ["float32", [1], -4, 4]},
        {"array": ["float32", [1], 4, 4]},
        {"array": ["float32", [2], 0, 4]},
        {"array": ["object", [1], 0, 4]},
        {"array": ["float32"]},
        {"bytes": [0, 5]},
        {"bytes": [3, -1]},
        {"set": [[]]},
        {"dict": [[[], 1]]},
        {"dict": [1]},
        {"set": list(range(wire.MAX_KEYS + 1))},
        {"complex": ["x", 1]},
        {"pickle": "gASVAAAA"},
        {"tuple": 1, "list": 2},
        {},
        2**wire.MAX_BITS,
        nested(wire.MAX_DEPTH + 1),
        [0] * (wire.MAX_NODES + 1),
        [{"bytes": [0, 4]}, {"bytes": [0, 4]}],  # the same bytes twice: few become many
    ],
    ids=lambda tree: repr(tree)[:40],
)
def test_what_no_honest_process_sends_is_malformed(tree):
    with pytest.raises(Malformed):
        decode(tree, b"abcd")


def test_a_bool_is_0_or_1_whatever_its_byte():
    (array,) = decode([{"array": ["bool", [2], 0, 2]}], b"\x00\x07")
    assert array.view(np.uint8).tolist() == [0, 1]


# --- frames ---------------------------------------------------------------------------------------


def received(data):
    ours, theirs = socket.socketpair()
    sender = threading.Thread(target=lambda: (theirs.sendall(data), theirs.close()))
    sender.start()
    try:
        return wire.receive(ours)
    finally:
        ours.close()
        sender.join()


@given(PLAIN, st.binary(max_size=100))
@some
def test_a_frame_arrives_whole(value, blob):
    ours, theirs = socket.socketpair()
    message = encode(value, bytearray())
    with ours, theirs:
        wire.send(theirs, message, blob)
        wire.send(theirs, "next")
        assert alike(wire.receive(ours), (json.loads(json.dumps(message)), blob))
        assert wire.receive(ours) == ("next", b"")


@given(st.binary(max_size=60))
@many
def test_any_bytes_are_a_frame_or_malformed_or_the_end(data):
    try:
        received(data)
    except (Malformed, EOFError):
        return


@pytest.mark.parametrize(
    "data",
    [
        wire.HEADER.pack(wire.MAX_JSON + 1, 0),
        wire.HEADER.pack(2, wire.MAX_BLOB + 1),
        wire.HEADER.pack(3, 0) + b"{]}",
        wire.HEADER.pack(2, 0) + b"\xff\xff",
        wire.HEADER.pack(200_000, 0) + b"[" * 200_000,
        wire.HEADER.pack(100_000, 0) + b"9" * 100_000,
        wire.HEADER.pack(15_000_001, 0) + b"[" + b"{}," * 4_999_999 + b"{}]",
        wire.HEADER.pack(16_000_000, 0) + b"[" + b'{"":0},' * 2_285_713 + b"{     }]",
    ],
    ids=["much JSON", "large blob", "no JSON", "no text", "deep", "long number", "maze", "dicts"],
)
def test_a_bad_frame_is_malformed(data):
    with pytest.raises(Malformed):
        received(data)


def test_a_frame_that_would_not_be_received_is_not_sent():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(ValueError, match="too large"):
            wire.send(theirs, {"output": "x" * wire.MAX_JSON})
        with pytest.raises(ValueError, match="too large"):
            wire.send(theirs, [[]] * wire.MAX_MARKS)
        with pytest.raises(ValueError, match="too large"):
            wire.send(theirs, {}, bytes(wire.MAX_BLOB + 1))
        wire.send(theirs, "nothing of it went out")
        assert wire.receive(ours)[0] == "nothing of it went out"
