"""The question bank: traps to test oneself on; every option opens to what to say about it."""

import functools
import tomllib
from importlib.resources import files
from typing import NamedTuple

from course_lib.teaching.live import Page, folded, prose

__all__ = ["Trap", "question_bank", "traps"]

LETTERS = "abcd"


class Trap(NamedTuple):
    """A question, its options with what is to be said about each, and the right one's letter."""

    question: str
    options: list[tuple[str, str]]
    right: str
    misconception: str


@functools.cache
def traps() -> list[Trap]:
    """All of traps.toml, in order."""
    text = (files("course_lib.teaching") / "traps.toml").read_text("utf-8")
    entries = tomllib.loads(text)["trap"]
    return [
        Trap(**{**entry, "options": [(says, why) for says, why in entry["options"]]})
        for entry in entries
    ]


def question_bank() -> Page:
    """Every question with its options folded; works without a kernel too.

    >>> print(question_bank().text.splitlines()[0][:40])
    1. A masked LM reads 100 tokens, of whic
    """
    html = [
        f"<p><b>{number}.</b> {prose(trap.question)}</p>{_options(trap)}"
        for number, trap in enumerate(traps(), start=1)
    ]
    text = [f"{number}. {trap.question}" for number, trap in enumerate(traps(), start=1)]
    return Page("".join(html), "\n".join(text))


def _options(trap: Trap) -> str:
    rows = [
        folded(f"{letter} · {says}", f"{'✓ Right.' if letter == trap.right else '✗'} {why}")
        for letter, (says, why) in zip(LETTERS, trap.options, strict=False)
    ]
    return f'<div style="margin-left:1.5em">{"".join(rows)}</div>'
