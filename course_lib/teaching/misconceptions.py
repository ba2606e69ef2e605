"""The catalogue of misunderstandings: what is believed, what refutes it, where to read on.

A sentence of a check names the misunderstanding behind a wrong answer by beginning with its id,
as in "M6: You used bits; the course measures in nats."
"""

import functools
import re
import tomllib
from importlib.resources import files
from typing import NamedTuple

from course_lib.teaching.live import Page, folded

__all__ = ["Misconception", "catalogue", "listed", "named"]

_NAMED = re.compile(r"(M\d+): ")


class Misconception(NamedTuple):
    """`name` as somebody says it who has it, one counter-example, and a section of the primer."""

    name: str
    refuted: str
    read_on: str


@functools.cache
def catalogue() -> dict[str, Misconception]:
    """All of misconceptions.toml, by id.

    >>> catalogue()["M4"].name
    "The mean loss is the mean of the batches' mean losses."
    """
    text = (files("course_lib.teaching") / "misconceptions.toml").read_text("utf-8")
    return {id: Misconception(**entry) for id, entry in tomllib.loads(text).items()}


def named(sentence: str) -> tuple[str, str]:
    """What a student reads for a sentence of a check, and the id that it begins with, if any.

    Raises LookupError for an id that the catalogue lacks.

    >>> named("M6: That is in bits.")
    ('That is in bits. (misconception M6; read on: Primer, Perplexity)', 'M6')
    >>> named("Try again.")
    ('Try again.', '')
    """
    match = _NAMED.match(sentence)
    if match is None:
        return sentence, ""
    id = match[1]
    if id not in catalogue():
        known = ", ".join(catalogue())
        raise LookupError(f"{id} is no misconception of the course: it has {known}")
    read_on = catalogue()[id].read_on
    return f"{sentence[match.end() :]} (misconception {id}; read on: Primer, {read_on})", id


def listed() -> Page:
    """The whole catalogue, each entry folded over what refutes it."""
    entries = catalogue().items()
    html = [folded(f"{id} · {m.name}", f"{m.refuted} Read on: {m.read_on}.") for id, m in entries]
    return Page("".join(html), "\n".join(f"{id} · {m.name}" for id, m in entries))
