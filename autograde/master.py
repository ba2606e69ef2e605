"""Masters: one level's text as an nbgrader source notebook, and the answers planted in tests.

A master is py:percent text (jupytext). The header of a cell says what the cell is:

    # %% [markdown]                                  prose
    # %% answer="L2_1_clm"                           the student's; holds a solution region
    # %% test="L2_1_clm" points=3                    tests that answer; may hold hidden tests
    # %% test="L2_1_clm__bos" points=1               tests another side of the same answer
    # %% locked="L2_3_experiment"                    the instructor's; students can't edit it
    # %% [markdown] written="L2_3_why" points=2      a person marks it; may hold a mark scheme
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from autograde.course import CourseError
from autograde.notebook import node

REGIONS = ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# role -> nbgrader's grade, solution, locked
ROLES = {
    "answer": (False, True, False),
    "test": (True, False, True),
    "locked": (False, False, True),
    "written": (True, True, False),
}


@dataclass(frozen=True)
class Item:
    """One thing with points: a test cell, or a written answer (`by_hand`) that a person marks."""

    name: str
    points: float
    by_hand: bool

    @property
    def answer(self) -> str:
        """The grade_id of the cell that a student fills in."""
        return self.name.split("__")[0]

    @property
    def graded(self) -> str:
        """The grade_id of the cell that carries the points."""
        return self.name if self.by_hand else f"test_{self.name}"


@dataclass(frozen=True)
class Answer:
    """An answer written to try the tests: right in another style, or a mutant with its message."""

    item: str
    source: str
    style: str = ""
    mutant: str = ""
    message: str = ""


def read_master(path: Path) -> NotebookNode:
    """The source notebook of a master: the same text gives the same notebook, byte for byte."""
    notebook: NotebookNode = jupytext.reads(path.read_text("utf-8"), fmt="py:percent")
    notebook.metadata = node(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5  # the first with cell ids
    for position, cell in enumerate(notebook.cells):
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's note to itself
        _mark(cell, position, path)
    return notebook


def _mark(cell: NotebookNode, position: int, path: Path) -> None:
    """Turn a cell's header into nbgrader's metadata and an id that no rebuild changes."""
    roles = [role for role in ROLES if role in cell.metadata]
    if len(roles) > 1:
        raise CourseError(f"{path}: a cell is both {' and '.join(roles)}; make it two cells.")
    points = cell.metadata.pop("points", None)
    if not roles:
        cell.id = f"{cell.cell_type}-{position:03}"
        return
    role = roles[0]
    name = str(cell.metadata.pop(role))
    grade, solution, locked = ROLES[role]
    grade_id = f"test_{name}" if role == "test" else name
    if grade and not (isinstance(points, int | float) and points > 0):
        raise CourseError(f"{path}: {role}={name!r} has points={points!r}; say points=NUMBER.")
    if (role == "written") != (cell.cell_type == "markdown"):
        kind = "markdown" if role == "written" else "code"
        raise CourseError(f"{path}: {role}={name!r} is a {cell.cell_type} cell; make it {kind}.")
    if role == "written":  # nbgrader replaces a whole cell if it has no region, else only that
        cell.source = _without(cell.source, "SOLUTION")
    cell.id = grade_id
    marks = {"grade": grade, "solution": solution, "locked": locked, "task": False}
    cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": grade_id, **marks}
    if grade:
        cell.metadata["nbgrader"]["points"] = points


def read_answers(path: Path) -> list[Answer]:
    """The answers file that belongs to a master; empty if there is none."""
    if not path.is_file():
        return []
    notebook = jupytext.reads(path.read_text("utf-8"), fmt="py:percent")
    answers = []
    for cell in notebook.cells:
        if "answer" not in cell.metadata:
            continue
        given = {key: str(cell.metadata.get(key, "")) for key in ("style", "mutant", "message")}
        answer = Answer(item=str(cell.metadata["answer"]), source=cell.source, **given)
        if bool(answer.style) == bool(answer.mutant) or bool(answer.mutant) != bool(answer.message):
            raise CourseError(
                f'{path}: an answer to {answer.item} needs either style="..." '
                'or mutant="..." message="...".'
            )
        answers.append(answer)
    return answers


def settings(cell: NotebookNode) -> dict[str, Any]:
    """nbgrader's metadata of a cell; empty for prose and plain code."""
    return dict(cell.metadata.get("nbgrader", {}))


def cells_by_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that nbgrader knows, by grade_id."""
    named = (cell for cell in notebook.cells if "grade_id" in settings(cell))
    return {settings(cell)["grade_id"]: cell for cell in named}


def items(notebook: NotebookNode) -> list[Item]:
    """What a notebook grades, in order."""
    graded = [settings(cell) for cell in notebook.cells if settings(cell).get("grade")]
    return [
        Item(cell["grade_id"].removeprefix("test_"), float(cell["points"]), cell["solution"])
        for cell in graded
    ]


def without_markers(source: str) -> str:
    """The text of a cell without the lines that begin and end a region."""
    return _without(source, *REGIONS)


def without_region(source: str, region: str) -> str:
    """The text of a cell without a region's lines and markers."""
    return "\n".join(line for line, inside in _walk(source) if inside != region).strip("\n")


def secret_lines(source: str, regions: tuple[str, ...] = REGIONS) -> tuple[list[str], list[str]]:
    """The lines of a cell inside and outside the regions; markers are neither."""
    walked = [(line, inside) for line, inside in _walk(source) if _marker(line) is None]
    inside = [line for line, region in walked if region in regions]
    return inside, [line for line, region in walked if region not in regions]


def _without(source: str, *regions: str) -> str:
    """The text without these regions' markers."""
    lines = ((line, _marker(line)) for line in source.split("\n"))
    return "\n".join(line for line, mark in lines if mark is None or mark[1] not in regions)


def _marker(line: str) -> tuple[str, str] | None:
    for region in REGIONS:
        for edge in ("BEGIN", "END"):
            if f"{edge} {region}" in line:
                return edge, region
    return None


def _walk(source: str) -> list[tuple[str, str]]:
    """Each line with the region it is in ("" for none); a marker belongs to its region."""
    walked, current = [], ""
    for line in source.split("\n"):
        marker = _marker(line)
        if marker and marker[0] == "BEGIN":
            current = marker[1]
        walked.append((line, current))
        if marker and marker[0] == "END":
            current = ""
    return walked
