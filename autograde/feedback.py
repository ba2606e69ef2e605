"""Feedback: one HTML page for a student and a level, in nbgrader's place for it.

What it says of an item is the verdict's own sentence and a person's comment. Test cells are never
on it, whether they passed or not.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from autograde.course import Course
from autograde.files import write_whole
from autograde.marks import Marks, read_marks
from autograde.master import settings
from autograde.notebook import read_notebook
from autograde.page import part, render
from autograde.report import KINDS
from autograde.shown import Room, Shown, outputs, text
from autograde.table import SIGNS, UNCONFINED, UNTROUBLED
from autograde.verdict import ItemResult, Outcome
from course_lib.teaching.misconceptions import Misconception, catalogue

# what nbgrader's release_feedback wants to find beside a page, from the submission
BESIDE = ("timestamp.txt", "submission_secret.txt")


@dataclass(frozen=True)
class Row:
    """One item as its student reads it."""

    item: ItemResult
    misconception: Misconception | None

    @property
    def message(self) -> str:
        """The verdict's sentence, less the number of a misconception that is told beside it."""
        before, sign, _ = self.item.message.rpartition(" (misconception ")
        return before if self.misconception and sign else self.item.message


@dataclass
class Answer:
    """An answer with the items that hang on it: the student's cell, what it put out, comments."""

    name: str
    rows: list[Row] = field(default_factory=list)
    source: Shown | None = None
    shown: list[Shown] = field(default_factory=list)
    comment: Shown | None = None


def write_feedback(course: Course, level: str, students: list[str]) -> Iterator[Path]:
    """Write the pages of these students, of all with a verdict if none is named; yield each path.

    Raises CourseError if the gradebook is behind the verdicts, or there are none.
    """
    for marks in read_marks(course, level):
        if students and marks.student not in students:
            continue
        ran = course.notebook("autograded", level, marks.student)
        notebook = read_notebook(ran) if ran.is_file() else None
        path = course.notebook("feedback", level, marks.student).with_suffix(".html")
        write_whole(feedback_page(marks, notebook), path)
        for name in BESIDE:
            source = course.folder("submitted", marks.student, level) / name
            if source.is_file() and not source.is_symlink():
                shutil.copyfile(source, path.with_name(name))
        yield path


def feedback_page(marks: Marks, notebook: NotebookNode | None) -> str:
    """The page as HTML, of a verdict and the notebook as it ran."""
    verdict = marks.verdict
    rows = [Row(item, catalogue().get(item.misconception)) for item in verdict.items]
    answers = list(_answers(rows, marks, notebook)) if notebook else []
    return render(
        "feedback.html",
        part("style.css") + part("feedback.css"),
        images=True,
        marks=marks,
        verdict=verdict,
        rows=rows,
        answers=answers,
        to_do=[row for row in rows if _to_do(row.item)],
        waiting=[row for row in rows if row.item.points is None],
        signs={outcome: sign for outcome, (sign, _) in SIGNS.items()},
        kinds=KINDS,
        unconfined=None if verdict.confined else UNCONFINED,
    )


def _to_do(item: ItemResult) -> bool:
    if item.outcome == Outcome.MARKED:
        return item.points is not None and item.points < item.max_points
    return item.outcome not in UNTROUBLED


def _answers(rows: list[Row], marks: Marks, notebook: NotebookNode) -> Iterator[Answer]:
    """Answers in the notebook's order, each with its items; code of the student's own between."""
    items: dict[str, list[Row]] = {}
    for row in rows:
        items.setdefault(row.item.item.split("__")[0], []).append(row)
    room = Room()
    for cell in notebook.cells:
        about = settings(cell)
        own = cell.cell_type == "code" and cell.id.startswith("student-")
        if about.get("grade") and not about.get("solution"):
            continue  # a test
        shown = list(outputs(cell, room))
        if about.get("solution") or own:
            name = "" if own else about["grade_id"]
            comment = marks.comments.get(name)
            yield Answer(
                name,
                items.get(name, []),
                text(cell.source, "prose" if cell.cell_type == "markdown" else "text"),
                shown,
                text(comment) if comment else None,
            )
        elif figures := [one for one in shown if one.is_figure]:
            yield Answer("", shown=figures)
