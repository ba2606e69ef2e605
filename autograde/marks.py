"""What every student has on a level: the verdict, a person's marks, the late penalty."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from nbgrader.api import BaseCell, Student
from sqlalchemy import func, select

from autograde.course import Course, CourseError
from autograde.gradebook import COMMENT, GRADE, NOTEBOOK, SUBMISSION, Scores
from autograde.identity import Origin, origins
from autograde.store import kept_verdicts
from autograde.verdict import ItemResult, Outcome, Verdict

CELL, STUDENT = BaseCell.__table__, Student.__table__


@dataclass(frozen=True)
class Marks:
    """The marks of one student: the verdict with a person's marks in it.

    `comments` are a person's, by the name of the answer. `origin` is None for a submission that
    `autograde collect` did not bring.
    """

    verdict: Verdict
    name: str
    comments: dict[str, str]
    penalty: float
    submitted: datetime | None
    origin: Origin | None

    @property
    def student(self) -> str:
        """The student's id."""
        return self.verdict.student

    @property
    def points(self) -> float:
        """The points known so far, before the penalty."""
        return self.verdict.points or 0

    @property
    def final(self) -> float | None:
        """The points after the penalty; None as long as some are missing."""
        return None if self.missing else max(self.points - self.penalty, 0.0)

    @property
    def missing(self) -> str:
        """Why the final points are not known; empty if they are."""
        if self.verdict.reason:
            return self.verdict.reason
        waiting = [item.item for item in self.verdict.items if item.points is None]
        return f"to be marked by hand: {', '.join(waiting)}" if waiting else ""


def read_marks(
    course: Course, level: str, verdicts: Sequence[Verdict] | None = None
) -> list[Marks]:
    """The marks that go with these verdicts on a level; with all that are kept, if none are given.

    A person's marks count before automatic ones, as in nbgrader. The late penalty is taken anew,
    for it depends on them. Raises CourseError if there are no verdicts, or if the gradebook is not
    made from them.
    """
    verdicts = kept_verdicts(course, level) if verdicts is None else verdicts
    known = origins(course, level)
    with Scores(course, level) as scores:
        scores.write_late(verdict.student for verdict in verdicts)
        students, grades, comments = _students(scores), _grades(scores), _comments(scores)
    marks = []
    for verdict in verdicts:
        row, origin = students.get(verdict.student), known.get(verdict.student)
        mine = grades.get(verdict.student, {})
        if row is None or any(_behind(item, mine.get(item.item)) for item in verdict.items):
            gone = not course.folder("submitted", verdict.student, level).is_dir()
            path = course.verdict(level, verdict.student)
            instead = f", or delete {path}, for the submission is gone" if gone else ""
            raise CourseError(
                f"The gradebook is behind the verdict on {verdict.student}: "
                f"run `autograde gradebook {level}`{instead}."
            )
        name = " ".join(filter(None, (row.first_name, row.last_name)))
        name = name or (origin.person.name if origin else "")
        items = tuple(_marked(item, mine[item.item].points) for item in verdict.items)
        verdict, said = replace(verdict, items=items), comments.get(verdict.student, {})
        marks.append(Marks(verdict, name, said, row.penalty, row.timestamp, origin))
    return marks


def _marked(item: ItemResult, points: float | None) -> ItemResult:
    """The item with the points that count; what was wrong is not said of full ones."""
    if points != item.points:
        item = replace(item, outcome=Outcome.MARKED)
        if points is not None and points >= item.max_points:
            item = replace(item, message="", misconception="")
    return replace(item, points=points)


def _behind(item: ItemResult, grade: Any) -> bool:
    return grade is None or grade.auto_score != item.points


def _students(scores: Scores) -> dict[str, Any]:
    """Who each student is, when they handed in, the penalty: a row by student."""
    penalty = func.coalesce(func.sum(NOTEBOOK.c.late_submission_penalty), 0.0).label("penalty")
    about = (STUDENT.c.id, STUDENT.c.first_name, STUDENT.c.last_name, SUBMISSION.c.timestamp)
    query = (
        select(*about, penalty)
        .join_from(SUBMISSION, STUDENT)
        .join(NOTEBOOK, NOTEBOOK.c.assignment_id == SUBMISSION.c.id)
        .where(SUBMISSION.c.assignment_id == scores.assignment)
        .group_by(*about)
    )
    with scores.gradebook.engine.connect() as db:
        return {row.id: row for row in db.execute(query)}


def _comments(scores: Scores) -> dict[str, dict[str, str]]:
    """A person's comments by student and answer."""
    query = (
        select(SUBMISSION.c.student_id, CELL.c.name, COMMENT.c.manual_comment)
        .join_from(COMMENT, NOTEBOOK, COMMENT.c.notebook_id == NOTEBOOK.c.id)
        .join(SUBMISSION, NOTEBOOK.c.assignment_id == SUBMISSION.c.id)
        .join(CELL, COMMENT.c.cell_id == CELL.c.id)
        .where(SUBMISSION.c.assignment_id == scores.assignment)
        .where(COMMENT.c.manual_comment.isnot(None))
    )
    comments: dict[str, dict[str, str]] = {}
    with scores.gradebook.engine.connect() as db:
        for row in db.execute(query):
            comments.setdefault(row.student_id, {})[row.name] = row.manual_comment
    return comments


def _grades(scores: Scores) -> dict[str, dict[str, Any]]:
    """The automatic score and the points that count: a row by student and item."""
    score = func.coalesce(GRADE.c.manual_score, GRADE.c.auto_score)
    points = (score + func.coalesce(GRADE.c.extra_credit, 0.0)).label("points")
    query = (
        select(SUBMISSION.c.student_id, CELL.c.name, GRADE.c.auto_score, points)
        .join_from(GRADE, NOTEBOOK, GRADE.c.notebook_id == NOTEBOOK.c.id)
        .join(SUBMISSION, NOTEBOOK.c.assignment_id == SUBMISSION.c.id)
        .join(CELL, GRADE.c.cell_id == CELL.c.id)
        .where(SUBMISSION.c.assignment_id == scores.assignment)
    )
    grades: dict[str, dict[str, Any]] = {}
    with scores.gradebook.engine.connect() as db:
        for row in db.execute(query):
            grades.setdefault(row.student_id, {})[row.name.removeprefix("test_")] = row
    return grades
