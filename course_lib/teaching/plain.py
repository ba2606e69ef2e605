"""Plain values: what agrees with what, what a value is called, and its digest.

An answer is plain data: None, bool, numbers, text, lists, tuples, sets and dictionaries of those.
Arrays and tensors count as nested lists, their scalars as numbers.
"""

import hashlib
import json
import math
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

__all__ = ["REL", "Opaque", "digest", "digests", "is_placeholder", "kind", "plain", "same", "short"]

REL = 1e-3  # three significant digits are enough for an answer worked out by hand
STEP = 1e-4  # numbers are digested on a logarithmic grid this fine

_KINDS: dict[type, str] = {
    bool: "True or False",
    int: "a number",
    float: "a number",
    complex: "a complex number",
    str: "text",
    list: "a list",
    tuple: "a list",
    set: "a set",
    frozenset: "a set",
    dict: "a dictionary",
    type(None): "nothing",
}


@dataclass(frozen=True)
class Opaque:
    """Something that is not plain data, known by the name of its type alone."""

    type_name: str
    callable: bool = False

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


class _Short(reprlib.Repr):
    def repr_float(self, value: float, level: int) -> str:
        return f"{value:.6g}"


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 60


def plain(value: Any) -> Any:
    """Arrays and tensors as nested lists, their scalars as Python numbers; the rest unchanged.

    >>> plain((np.float32(0.5), torch.tensor([1, 2])))
    (0.5, [1, 2])
    """
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().tolist()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(plain(item) for item in value)
    if type(value) is dict:
        return {plain(key): plain(item) for key, item in value.items()}
    if type(value) is int and value.bit_length() > 1000:  # no float holds it
        return math.copysign(math.inf, value.bit_length() if value > 0 else -1)
    return value


def same(answer: Any, right: Any, rel: float = REL) -> bool:
    """Whether two plain values agree: numbers within `rel`, text but for case and outer blanks.

    A NaN agrees with nothing, a bool is not a number, a tuple agrees with a list.

    >>> same(1.04, 1.0397), same(True, 1), same((1, "B "), [1.0, "b"]), same(math.nan, math.nan)
    (True, False, True, False)
    """
    if _is_number(right):
        return _is_number(answer) and math.isclose(answer, right, rel_tol=rel, abs_tol=1e-9)
    if kind(answer) != kind(right):
        return False
    if isinstance(right, list | tuple):
        return len(answer) == len(right) and all(
            same(a, r, rel) for a, r in zip(answer, right, strict=True)
        )
    if isinstance(right, dict):
        return answer.keys() == right.keys() and all(
            same(answer[key], right[key], rel) for key in right
        )
    if isinstance(right, str):
        return bool(answer.strip().casefold() == right.strip().casefold())
    return bool(answer == right)


def is_placeholder(value: Any) -> bool:
    """Whether an answer still is what the release put there (`...`), or nothing at all."""
    return value is None or value is ...


def kind(value: Any) -> str:
    """What a student would call the type of a value.

    >>> kind(1.5), kind([1]), kind(print)
    ('a number', 'a list', 'a `builtin_function_or_method`')
    """
    name = value.type_name if isinstance(value, Opaque) else type(value).__name__
    return _KINDS.get(type(value), f"a `{name}`")


def short(value: Any) -> str:
    """A value on one short line.

    >>> short([1.0397207708]), short(list(range(100)))
    ('[1.03972]', '[0, 1, 2, 3, 4, 5, ...]')
    """
    return _SHORT.repr(value)


def digest(name: str, value: Any, shift: int = 0) -> str:
    """A name for a value that does not show it; `shift` names a number's neighbour on the grid."""
    canonical = _canonical(value)
    if _is_number(value) and value and math.isfinite(value):
        canonical = [value > 0, round(math.log(abs(value)) / STEP) + shift]
    text = json.dumps([name, kind(value), canonical])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digests(name: str, value: Any) -> Iterator[str]:
    """The digests of every value that agrees with `value`: a number's neighbours within REL too."""
    reach = round(REL / STEP) if _is_number(value) else 0
    return (digest(name, value, shift) for shift in range(-reach, reach + 1))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _canonical(value: Any) -> Any:
    """A value as JSON, the same for answers that agree; numbers inside it to three digits."""
    if _is_number(value):
        return f"{value:.3g}"
    if isinstance(value, str):
        return value.strip().casefold()
    if isinstance(value, set | frozenset):
        return sorted(str(_canonical(item)) for item in value)
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return sorted([str(_canonical(key)), _canonical(item)] for key, item in value.items())
    return repr(value)
