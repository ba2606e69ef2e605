"""From whatever arrived to a notebook that is safe and fair to grade.

Everything but the answers comes from the release: a submission can't change a test, a tag or a
number of points. Nothing here runs a student's code, and the only error is Unreadable.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

from nbformat import NotebookNode

from autograde.align import MAX_SOURCE, Alignment, Found, Release, align, defining
from autograde.decode import CellKind, Note, StudentCell, decode
from autograde.master import settings
from autograde.notebook import node
from autograde.slim import Unreadable, read_submission

__all__ = [
    "Note",
    "Prepared",
    "PreparedCell",
    "Unreadable",
    "as_notebook",
    "belongs_to",
    "preflight",
    "read_submission",
]

Origin = Literal["release", "answer", "extra"]
State = Literal["answered", "untouched", "missing"]


@dataclass(frozen=True)
class PreparedCell:
    """A cell to grade. Source of an `answer` or `extra` cell is the student's, all else is not.

    `name` is the grade_id, or the cell id of a cell without. `state` is set for answers only; the
    source of one that is untouched or missing is the release's.
    """

    name: str
    kind: CellKind
    source: str
    origin: Origin
    metadata: dict[str, Any] = field(default_factory=dict)
    state: State | None = None


@dataclass(frozen=True)
class Prepared:
    """A submission ready to be graded, and what was put right in it."""

    cells: tuple[PreparedCell, ...]
    notes: tuple[Note, ...]

    @property
    def states(self) -> dict[str, State]:
        """The state of each answer, by grade_id."""
        return {cell.name: cell.state for cell in self.cells if cell.state}


def preflight(data: bytes, release: NotebookNode) -> Prepared:
    """Rebuild a submission on its release: instructor's cells from there, answers from the student.

    The student's own code cells stay between the cells where they stood. Every repair is a Note.
    Raises Unreadable, with a sentence for the student, where there is nothing to grade: no cells,
    or none that the release knows. Takes time in proportion to the size of the data.

    >>> about = {"nbgrader": {"grade_id": "A", "solution": True, "grade": False}}
    >>> cell = {"cell_type": "code", "id": "A", "source": "x = ...", "metadata": about}
    >>> release = node({"cells": [cell]})
    >>> preflight(b'{"cells": [{"source": ["x = 1"]}]}', release).states
    {'A': 'answered'}
    """
    cells, notes = decode(data)
    index = Release(release)
    found, free = align(cells, index)
    if not any(settings(index.cells[number]) for number in found):
        raise Unreadable(
            "No cell of this file belongs to the assignment; "
            "hand in the notebook that you were given, with your answers in it."
        )
    slots: list[list[PreparedCell]] = [[] for _ in range(len(index.cells) + 1)]
    for slot, position in _extra_places(cells, found, free, index):
        slots[slot] += _extra(cells[position], position, notes)
    for number in range(len(index.cells)):
        if number in index.answers:
            rebuilt, about = _answer(number, found.get(number, []), index)
        else:
            rebuilt, about = _released(number, index), list(_restored(number, found, index))
        slots[number].append(rebuilt)
        notes += about
    notes += _about_prose(found, index)
    return Prepared(tuple(cell for slot in slots for cell in slot), tuple(notes))


def belongs_to(data: bytes, releases: Mapping[str, NotebookNode]) -> str | None:
    """The name of the release that a file of any name was made from; None if that is unclear."""
    try:
        cells, _ = decode(data)
    except Unreadable:
        return None
    scores = {}
    for name, release in releases.items():
        index = Release(release)
        found, _ = align(cells, index)
        sure = [n for n, matches in found.items() if matches[0].how not in ("similar", "place")]
        scores[name] = len([n for n in sure if settings(index.cells[n])])
    best = max(scores.values(), default=0)
    names = [name for name, score in scores.items() if score == best]
    return names[0] if best and len(names) == 1 else None


def as_notebook(prepared: Prepared) -> NotebookNode:
    """The prepared cells as a valid notebook, for nbgrader and nbclient."""
    cells = []
    for cell in prepared.cells:
        plain: dict[str, Any] = {"cell_type": cell.kind, "id": cell.name, "source": cell.source}
        plain["metadata"] = cell.metadata
        if cell.kind == "code":
            plain |= {"execution_count": None, "outputs": []}
        cells.append(plain)
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": python, "language_info": {"name": "python"}}
    return node({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _released(
    number: int, index: Release, origin: Origin = "release", state: State | None = None
) -> PreparedCell:
    cell = index.cells[number]
    metadata = deepcopy(dict(cell.metadata))
    return PreparedCell(index.names[number], cell.cell_type, cell.source, origin, metadata, state)


def _extra(cell: StudentCell, position: int, notes: list[Note]) -> list[PreparedCell]:
    """The student's own cell, if there is something in it and not too much."""
    if len(cell.source) > MAX_SOURCE:
        notes.append(Note("limit", f"Cell {position + 1} is too long; it was left out."))
        return []
    extra = PreparedCell(f"student-{position + 1:03}", "code", cell.source, "extra")
    return [extra] if cell.source.strip() else []


def _answer(number: int, matches: list[Found], index: Release) -> tuple[PreparedCell, list[Note]]:
    """An answer cell with the student's source, and what was done to get it."""
    name = index.names[number]
    stub = _released(number, index, "answer", "untouched" if matches else "missing")
    if not matches:
        return stub, [Note("missing", f"No answer was found for {name}.", name)]
    notes = []
    short = [match for match in matches if len(match.cell.source) <= MAX_SOURCE]
    if len(short) < len(matches):
        text = f"The answer {name} is longer than {MAX_SOURCE:,} characters; it was left out."
        notes.append(Note("limit", text, name))
    changed = [match for match in short if index.changed(number, match.cell)]
    kept = list(defining(changed, index.defines[number]))
    if len(matches) > 1:
        text = f"{len(matches)} cells hold the answer {name}; " + (
            "they were joined." if len(kept) > 1 else "the last that says something was taken."
        )
        notes.append(Note("duplicate", text, name))
    notes += _about_match((kept or matches)[-1], number, index)
    if not kept:
        return stub, notes
    source = "\n".join(match.cell.source for match in kept)
    answer = PreparedCell(name, stub.kind, source, "answer", stub.metadata, "answered")
    return answer, notes


def _about_match(match: Found, number: int, index: Release) -> Iterator[Note]:
    """What a student should know of how an answer was recognised."""
    name, how = index.names[number], match.how
    signs = {
        "id": "its cell id, for want of its grading metadata",
        "source": "its unchanged text, for want of its grading metadata",
        "names": f"the names that it defines (confidence {match.confidence} %)",
        "inside": "the names that it defines, inside another cell",
        "similar": f"its likeness to the original (confidence {match.confidence} %)",
        "place": "its place alone (low confidence)",
    }
    if how in signs:
        yield Note("matched", f"The answer {name} was recognised by {signs[how]}.", name)
    if match.cell.kind != index.cells[number].cell_type:
        kind = index.cells[number].cell_type
        text = f"The answer {name} had become a {match.cell.kind} cell; it is {kind} again."
        yield Note("restored", text, name)
    if how == "grade_id" and _metadata_differ(match.cell, number, index):
        yield Note("restored", f"The grading metadata of {name} had been changed.", name)


def _metadata_differ(cell: StudentCell, number: int, index: Release) -> bool:
    original = settings(index.cells[number])
    # nbgrader adds keys of its own; which ones depends on its version
    changed = any(cell.nbgrader.get(key) != value for key, value in original.items())
    return changed or cell.tags != bool(index.cells[number].metadata.get("tags"))


def _restored(number: int, found: Alignment, index: Release) -> Iterator[Note]:
    """What was not as released in a cell that only the instructor may change."""
    if not settings(index.cells[number]):
        return
    name, matches = index.names[number], found.get(number, [])
    copies = [match.cell for match in matches]
    if not copies:
        yield Note("restored", f"The cell {name} was missing; it was put back.", name)
    elif any(index.changed(number, cell) or not cell.source.strip() for cell in copies):
        text = f"The cell {name} had been changed; it is graded as it was given out."
        yield Note("restored", text, name)
    elif any(cell.kind != index.cells[number].cell_type for cell in copies):
        yield Note("restored", f"The type of the cell {name} had been changed.", name)
    elif any(m.how == "grade_id" and _metadata_differ(m.cell, number, index) for m in matches):
        yield Note("restored", f"The metadata of the cell {name} had been changed.", name)
    if len(copies) > 1:
        yield Note("duplicate", f"The cell {name} was there {len(copies)} times.", name)


def _about_prose(found: Alignment, index: Release) -> Iterator[Note]:
    plain = [n for n, cell in enumerate(index.cells) if not settings(cell)]
    if lost := [n for n in plain if n not in found]:
        text = f"Text cells of the assignment that were changed or missing: {len(lost)}."
        yield Note("restored", text)


def _extra_places(
    cells: list[StudentCell], found: Alignment, free: set[int], index: Release
) -> Iterator[tuple[int, int]]:
    """The student's own code cells: before which release cell each goes, and its position.

    After the release's cell that it followed; but where cells were moved, after every cell whose
    code it may need, and before every answer that may need it. A changed copy of an instructor's
    cell runs before the original: a student may have added an import there.
    """
    last = len(index.cells)
    code: list[int | None] = [None] * len(cells)  # the release's code cell at each position
    answers = [last] * len(cells)  # the answer cell that is first met at each position
    for number, matches in found.items():
        own = [match.position for match in matches if match.how != "inside"]
        if index.cells[number].cell_type == "code" and own:
            for position in own:
                code[position] = number
            answers[own[0]] = number if number in index.answers else last
    earliest_answer = list(accumulate(reversed(answers), min, initial=last))[::-1]
    slot = needed = 0
    for position, at in enumerate(code):
        if position in free and cells[position].kind == "code":
            yield min(max(slot, needed), earliest_answer[position]), position
        if at is None:
            continue
        slot = at + 1
        if not settings(index.cells[at]).get("grade"):
            needed = max(needed, slot)
        mine = cells[position].kind == "code" and index.changed(at, cells[position])
        if mine and at not in index.answers:
            yield at, position
