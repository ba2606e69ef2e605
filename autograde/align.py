"""Find, for each cell of a release, the student's cells that belong to it.

The surest sign decides: nbgrader's name, the cell id, an unchanged source; then, for answers that
none of these finds, the names that a cell defines, likeness to the release, and the place.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from nbformat import NotebookNode
from rapidfuzz.fuzz import ratio

from autograde.decode import StudentCell
from autograde.master import settings

MAX_SOURCE = 200_000  # characters of one cell; a longer one is left out
SAMPLE = 2_000  # characters of a cell that are compared: the cost of a comparison is bounded
LIKE = 60  # per cent of likeness from which a cell without other signs is taken for an answer

How = Literal["grade_id", "id", "source", "continues", "names", "inside", "similar", "place"]
# Names bound at the left margin. Not ast: a cell with a syntax error or a magic has names too.
_DEFINED = re.compile(
    r"^(?:(?:async[ \t]++def|def|class)[ \t]++(\w++)"
    r"|([^\W\d]\w*+(?:[ \t]*+,[ \t]*+\w++)*+)[ \t]*+(?::[^=\n]*+)?=(?!=))",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Found:
    """A student's cell (or a part of it, `inside`) that belongs to a cell of the release."""

    cell: StudentCell
    position: int
    how: How
    confidence: int  # per cent


def squeezed(source: str) -> str:
    """A source without white space: equal for two cells that differ in nothing else."""
    return "".join(source.split())


def names_defined(source: str) -> frozenset[str]:
    """The names that a cell binds at the left margin.

    >>> sorted(names_defined("a, b = 1, 2\\ndef f(x):\\n    c = 3"))
    ['a', 'b', 'f']
    """
    bound = (found[1] or found[2] for found in _DEFINED.finditer(source))
    return frozenset(name.strip() for names in bound for name in names.split(","))


class Release:
    """A release, indexed by what a student's cell may still show of it."""

    def __init__(self, notebook: NotebookNode) -> None:
        self.cells: list[NotebookNode] = list(notebook.cells)
        self.names = [settings(cell).get("grade_id") or cell.get("id", "") for cell in self.cells]
        known = [n for n, cell in enumerate(self.cells) if settings(cell)]
        self.answers = [n for n in known if settings(self.cells[n]).get("solution")]
        self.by_grade_id = {self.names[n]: n for n in known}
        self.by_id = {self.cells[n].get("id"): n for n in known}
        sources = [squeezed(cell.source) for cell in self.cells]
        self.by_source = {s: n for n, s in enumerate(sources) if s and sources.count(s) == 1}
        self.defines = {
            n: names_defined(self.cells[n].source if self.cells[n].cell_type == "code" else "")
            for n in self.answers
        }
        every = [name for names in self.defines.values() for name in names]
        self.owner = {
            name: n for n, names in self.defines.items() for name in names if every.count(name) == 1
        }

    def recognise(self, cell: StudentCell) -> tuple[int, How] | None:
        """The release's cell that a student's cell says it is, or is the unchanged copy of."""
        if cell.grade_id in self.by_grade_id:
            return self.by_grade_id[cell.grade_id], "grade_id"
        if cell.id in self.by_id:
            return self.by_id[cell.id], "id"
        if (source := squeezed(cell.source)) in self.by_source:
            return self.by_source[source], "source"
        return None

    def changed(self, number: int, cell: StudentCell) -> bool:
        """Whether a student's cell holds something, and not the release's text."""
        source = squeezed(cell.source)
        return bool(source) and source != squeezed(self.cells[number].source)

    def likeness(self, number: int, cell: StudentCell) -> int:
        """How alike a student's cell and a release's cell are, in per cent."""
        return round(ratio(cell.source[:SAMPLE], self.cells[number].source[:SAMPLE]))

    def confidence(self, number: int, cell: StudentCell, names: frozenset[str]) -> int:
        """How surely a cell that defines `names` is an answer: the mean of likeness and names."""
        share = 100 * len(names & self.defines[number]) / len(self.defines[number])
        return round((share + self.likeness(number, cell)) / 2)


Alignment = dict[int, list[Found]]


def align(cells: list[StudentCell], release: Release) -> tuple[Alignment, set[int]]:
    """The student's cells for each release cell, in their order, and the positions of the rest."""
    found: Alignment = defaultdict(list)
    free = set()
    before = -1  # the release's cell that the student's cell before this one is
    for position, cell in enumerate(cells):
        known = release.recognise(cell)
        if known is None and before in release.answers and _continues(cell):
            known = before, "continues"
        if known:
            found[known[0]].append(Found(cell, position, known[1], 100))
        else:
            free.add(position)
        before = known[0] if known else -1
    _by_names(cells, release, found, free)
    _by_likeness(cells, release, found, free)
    _by_place(cells, release, found, free)
    for matches in found.values():
        matches.sort(key=lambda match: match.position)
    return dict(found), free


def _continues(cell: StudentCell) -> bool:
    """Whether a code cell begins inside a block: the second piece of a cell that was split."""
    return cell.kind == "code" and cell.source.lstrip("\n")[:1] in (" ", "\t")


def _unanswered(release: Release, found: Alignment) -> list[int]:
    """The answers that have no cell, or no cell that was changed."""
    return [
        n for n in release.answers if not any(release.changed(n, m.cell) for m in found.get(n, ()))
    ]


def _by_names(cells: list[StudentCell], release: Release, found: Alignment, free: set[int]) -> None:
    """Give unanswered answers the cells that define their names, the surest first.

    Not only missing ones: some students leave the cell as it is, and answer in one of their own. A
    cell that holds several answers is the first one's; the others get the part that is theirs.
    """
    wanting = set(_unanswered(release, found))
    wanted = {name: n for name, n in release.owner.items() if n in wanting}
    defined = [
        names_defined(cell.source) if len(cell.source) <= MAX_SOURCE else frozenset()
        for cell in cells
    ]
    pairs = [
        (release.confidence(number, cell, defined[position]), position, number)
        for position, cell in enumerate(cells)
        for number in _owners(defined[position], wanted)
        if (cell.kind == "code" or position in free) and release.changed(number, cell)
    ]
    covered: set[str] = set()
    for confidence, position, number in sorted(pairs, reverse=True):
        names = defined[position] & release.defines[number]
        if names <= covered:
            continue
        covered |= names
        cell = cells[position]
        if position in free and number == min(_owners(defined[position], wanted)):
            free.remove(position)
            found[number].append(Found(cell, position, "names", confidence))
        else:
            part = replace(cell, source=_part(cell.source, number, release))
            found[number].append(Found(part, position, "inside", confidence))


def _owners(names: frozenset[str], wanted: dict[str, int]) -> set[int]:
    return {wanted[name] for name in names & wanted.keys()}


def _part(source: str, number: int, release: Release) -> str:
    """The lines of a cell from where it defines an answer's names to the next answer's."""
    part: list[str] = []
    decorators: list[str] = []
    owner = -1
    for line in source.split("\n"):
        if line.startswith("@"):
            decorators.append(line)
            continue
        owner = next((release.owner[n] for n in names_defined(line) if n in release.owner), owner)
        part += [*decorators, line] if owner == number else []
        decorators = []
    return "\n".join(part)


def _by_likeness(
    cells: list[StudentCell], release: Release, found: Alignment, free: set[int]
) -> None:
    """Give answers without a cell those that look like them: a function may be renamed."""
    missing = [n for n in release.answers if n not in found]
    pairs = [
        (release.likeness(number, cells[position]), position, number)
        for number in missing
        for position in free
        if cells[position].kind == release.cells[number].cell_type
        and release.changed(number, cells[position])
    ]
    for likeness, position, number in sorted(pairs, reverse=True):
        if likeness >= LIKE and position in free and number not in found:
            free.remove(position)
            found[number].append(Found(cells[position], position, "similar", likeness))


def _by_place(cells: list[StudentCell], release: Release, found: Alignment, free: set[int]) -> None:
    """Give unanswered answers what stands in their place: one code cell, or all of the text.

    Only in a notebook that is mostly the release's; in another one a place says nothing.
    """
    if 2 * len(found) < len(release.cells):
        return
    for number in _unanswered(release, found):
        kind = release.cells[number].cell_type
        first, last = _gap(number, len(cells), found)
        here = [p for p in sorted(free) if first < p < last and cells[p].kind == kind]
        if here and (kind == "markdown" or (len(here) == 1 and number not in found)):
            text = "\n\n".join(cells[position].source for position in here)
            free.difference_update(here)
            found[number].append(Found(replace(cells[here[0]], source=text), here[0], "place", 0))


def _gap(number: int, end: int, found: Alignment) -> tuple[int, int]:
    """The positions of the nearest found cells before and after a release's cell."""
    before = max((n for n in found if n <= number), default=None)
    after = min((n for n in found if n > number), default=None)
    return (
        -1 if before is None else found[before][-1].position,
        end if after is None else found[after][0].position,
    )


def defining(matches: list[Found], names: frozenset[str]) -> Iterator[Found]:
    """Of several cells for one answer, those that count: the last that define its names.

    Pieces of a split cell together define what the cell did; of copies the last does alone. Cells
    that define none of the names are pieces too, or harmless.
    """
    covered: set[str] = set()
    kept = []
    for match in reversed(matches):
        defines = names & names_defined(match.cell.source)
        if not defines or defines - covered:
            covered |= defines
            kept.append(match)
    # without names to tell by, nothing says that there is more than one version
    yield from reversed(kept if covered else kept[:1])
