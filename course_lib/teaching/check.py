"""The help in a notebook: compare an answer with the right one and name the misunderstanding.

Students call `check`, `predict` and `hint`. Test cells also call `diagnose`, `each`, `observe` and
`raises`. What a test cell knows and a student should find out alone is never written in the
notebook: `diagnose(..., public="L2.1 loss")` leaves digests of the right and the recognisably wrong
answers, `autograde build` collects them in answers.json, and `check("L2.1 loss", answer)` looks an
answer up there. (A digest is no secret from somebody who tries every number; `check` answers
unlimited questions anyway.)
"""

import abc
import contextlib
import copy
import functools
import io
import json
import random
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch

from course_lib.teaching.misconceptions import named
from course_lib.teaching.plain import REL, digest, digests, is_placeholder, kind, plain, same, short

__all__ = ["check", "demand", "diagnose", "each", "hint", "observe", "predict", "raises"]


WIDTH = 90  # characters of a line of a message in a notebook


class Wrong(AssertionError):
    """An answer that is not right. The message is for the student.

    A `sentence` may begin with the id of a misconception, "M6: ..."; it is kept in `misconception`.

    >>> error = Wrong("M6: That is in bits.", "you have 1.5.")
    >>> error.misconception, str(error)[:34]
    ('M6', 'you have 1.5. That is in bits. (mi')
    """

    def __init__(self, sentence: str, before: str = "") -> None:
        text, self.misconception = named(sentence)
        super().__init__(f"{before} {text}" if before else text)

    def _render_traceback_(self) -> list[str]:  # what IPython shows: the sentence, not our stack
        return textwrap.wrap(f"✗ {self}", WIDTH)


class NotAttempted(Wrong):
    """An answer that still is the placeholder of the release."""


class Key(TypedDict):
    """What `check` knows of an answer: its kind, and digests of the right and of wrong ones."""

    kind: str
    right: str
    wrong: dict[str, str]


recorded: dict[str, Key] = {}  # filled by `diagnose(public=...)`; `autograde build` reads it
_tried: dict[str, set[str]] = {}  # question -> digests of the distinct wrong answers so far
_opened: dict[str, int] = {}  # question -> hints opened


# --- for students ---------------------------------------------------------------------------------


def check(name: str, answer: Any, *args: Any) -> None:
    """Say at once whether `answer` is right or, if recognised, which misunderstanding it shows.

    A function is called with `args` and what it returns is checked. Numbers need three significant
    digits. Raises `Wrong` (an AssertionError) with a sentence, `NotAttempted` for a placeholder.
    """
    question = name.split()[0]
    key = recorded.get(name) or _answers().get(name)
    if key is None:
        raise LookupError(f"there is no check called {name!r}: has this cell been edited?")
    if callable(answer):
        try:
            answer = answer(*args)
        except Exception:
            _tried.setdefault(question, set()).add("raised")
            raise
    value = plain(answer)
    _refuse_placeholder(name, value)
    near = set(digests(name, value))
    if key["right"] in near:
        print(f"✓ {name}: right")
        return
    _tried.setdefault(question, set()).add(digest(name, value))
    for lure, message in key["wrong"].items():
        if lure in near:
            raise Wrong(message, f"{name}: you have {short(value)}.")
    _refuse_kind(name, value, key["kind"])
    raise Wrong(f'{name}: {short(value)} is not right. Stuck? Run hint("{question}").')


def predict(question: str, guess: Any, outcome: Callable[[], Any]) -> Any:
    """Run the experiment `outcome` once a prediction is written; show both, return the outcome.

    >>> predict("L2.3", 7, lambda: 9)
    L2.3: you predicted 7; it came out as 9.
    9
    """
    guess = plain(guess)
    if is_placeholder(guess):
        raise NotAttempted(
            f"{question}: write your prediction in the cell above first, then run this one again. "
            "A wrong prediction costs nothing, and you will remember the result better for it."
        )
    result = outcome()
    print(f"{question}: you predicted {short(guess)}; it came out as {short(plain(result))}.")
    return result


def hint(question: str) -> None:
    """Print the hints opened so far: idea, example, outline; each new attempt opens one."""
    hints = _hints().get(question)
    if hints is None:
        known = ", ".join(_hints())
        raise LookupError(f"there are no hints for {question!r}; there are some for {known}")
    tries = len(_tried.get(question, ()))
    if tries == 0:
        print(f"{question}: try first. Write an answer, run its check, then ask again.")
        return
    opened = _opened.get(question, 0)
    _opened[question] = max(opened, min(opened + 1, tries, len(hints)))
    for number, text in enumerate(hints[: _opened[question]], start=1):
        print(f"{question}, hint {number}: {text}")
    if _opened[question] == opened < len(hints):
        print("Try something new and run the check; then the next hint opens.")


# --- for test cells -------------------------------------------------------------------------------


def diagnose(
    answer: Any,
    *,
    right: Any,
    wrong: Mapping[str, Any] | None = None,
    what: str = "your answer",
    public: str | None = None,
    rel: float = REL,
) -> None:
    """Pass if `answer` equals `right`; else raise `Wrong`, naming the misunderstanding if known.

    `wrong` maps a sentence about a misunderstanding to the answer it leads to; the first match
    counts, and one that begins "M6: " names that misconception of the course. `what` begins the
    message; it must not show a hidden draw. `public` is the name under which `check` may tell
    students the same at once. Numbers agree within `rel` and NaN never does; int, float, numpy and
    torch numbers are one kind, and arrays compare as nested lists.

    >>> diagnose(2.0, right=2.0)
    >>> diagnose(4.0, right=2.0, wrong={"You forgot to halve.": 4.0}, what="half of 4")
    Traceback (most recent call last):
    ...
    course_lib.teaching.check.Wrong: half of 4: you have 4. You forgot to halve.
    """
    wrong = wrong or {}
    if public is not None:
        what = public
        recorded[public] = Key(
            kind=kind(plain(right)),
            right=digest(public, plain(right)),
            wrong={digest(public, plain(value)): text for text, value in wrong.items()},
        )
    value, target = plain(answer), plain(right)
    _refuse_placeholder(what, value)
    if same(value, target, rel):
        return
    for text, lure in wrong.items():
        if same(value, plain(lure), rel):
            raise Wrong(text, f"{what}: you have {short(value)}.")
    _refuse_kind(what, value, kind(target))
    raise Wrong(f"{what}: {short(value)} is not right.")


def demand(condition: bool, otherwise: str) -> None:
    """Raise `Wrong(otherwise)` unless `condition` holds: an assert whose message is all one sees.

    >>> demand(1 + 1 == 2, "Arithmetic is broken.")
    """
    if not condition:
        raise Wrong(otherwise)


def each(function: Callable[..., Any], inputs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call `function` once for each tuple of arguments; return the results in order.

    >>> each(pow, [(2, 3), (3, 2)])
    [8, 9]
    """
    if isinstance(function, Remote):
        return function.each(inputs)
    return [function(*args) for args in inputs]


class Observation(NamedTuple):
    """What a call did: its result, its arguments afterwards, its print, whether RNGs moved."""

    result: Any
    args: tuple[Any, ...]
    printed: str
    moved_random: bool


class Remote(abc.ABC):
    """A student's function in another process, as a grader hands it to a test cell."""

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    @abc.abstractmethod
    def each(self, inputs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The results of all calls, in one round trip."""

    @abc.abstractmethod
    def observe(self, *args: Any) -> Observation:
        """What a call over there did."""


def observe(function: Callable[..., Any], *args: Any) -> Observation:
    """Call `function` on copies of `args`; report what else it did than return.

    >>> observe(lambda xs: xs.append(3), [1, 2]).args
    ([1, 2, 3],)
    """
    if isinstance(function, Remote):
        return function.observe(*args)
    args = copy.deepcopy(args)
    before = random_state()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        result = function(*args)
    return Observation(result, args, out.getvalue(), random_state() != before)


@contextlib.contextmanager
def raises(expected: type[BaseException], otherwise: str) -> Iterator[None]:
    """Demand that the block raises `expected`; if it raises nothing, raise `Wrong(otherwise)`.

    >>> with raises(ZeroDivisionError, "1/0 must fail."):
    ...     _ = 1 / 0
    """
    try:
        yield
    except expected:
        return
    raise Wrong(otherwise)


# --- shared -------------------------------------------------------------------------------


def _refuse_placeholder(what: str, value: Any) -> None:
    if value is ...:
        raise NotAttempted(f"{what}: not attempted yet. Put your answer where the `...` is.")
    if value is None:
        raise NotAttempted(f"{what}: got nothing. Still to be written, or a `return` forgotten?")


def _refuse_kind(what: str, value: Any, expected: str) -> None:
    if kind(value) != expected:
        raise Wrong(f"{what}: expected {expected}, got {kind(value)}: {short(value)}.")


def random_state() -> tuple[Any, ...]:
    """The state of the global random generators: Python's, numpy's and torch's."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the global state is the point
    numpy_state = (name, np.asarray(keys).tobytes(), *rest)
    return random.getstate(), numpy_state, torch.get_rng_state().numpy().tobytes()


@functools.cache
def _answers() -> dict[str, Key]:
    path = files("course_lib.teaching") / "answers.json"
    answers: dict[str, Key] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return answers


@functools.cache
def _hints() -> dict[str, list[str]]:
    hints: dict[str, list[str]] = tomllib.loads(
        (files("course_lib.teaching") / "hints.toml").read_text("utf-8")
    )
    return hints
