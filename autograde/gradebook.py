"""Verdicts into nbgrader's gradebook, which can be made anew from them at any time.

nbgrader's own calls take a query or a commit for every cell. Here the rows are the same, written
by a few statements in one transaction a submission, to any database that SQLAlchemy knows.
"""

import json
import logging
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)
from nbgrader.converters import GenerateAssignment
from sqlalchemy import (
    Boolean,
    Connection,
    Table,
    bindparam,
    case,
    create_engine,
    insert,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from traitlets.config import Config

from autograde.course import Course, CourseError, find_alembic, run_nbgrader
from autograde.files import write_whole
from autograde.late import LatePolicy, submitted_at
from autograde.verdict import Outcome, Verdict

# nbgrader logs a traceback there before it raises; by default that would end up on the terminal
logging.getLogger("tornado.application").addHandler(logging.NullHandler())

NO_RESPONSE = "No response."  # nbgrader's own comment on an untouched answer
GRADED, COMMENTED = ("GradeCell", "TaskCell"), ("SolutionCell", "TaskCell")

STUDENT: Table = Student.__table__
SUBMISSION: Table = SubmittedAssignment.__table__
NOTEBOOK: Table = SubmittedNotebook.__table__
GRADE: Table = Grade.__table__
COMMENT: Table = Comment.__table__

_score = (
    update(GRADE)
    .where(GRADE.c.cell_id == bindparam("cell"), GRADE.c.notebook_id == bindparam("notebook"))
    .values(
        auto_score=bindparam("points"),
        needs_manual_grade=case(
            (GRADE.c.manual_score.is_(None), bindparam("unknown", type_=Boolean)),
            (bindparam("fresh", type_=Boolean), True),
            else_=GRADE.c.needs_manual_grade,
        ),
    )
)
_comment = (
    update(COMMENT)
    .where(COMMENT.c.cell_id == bindparam("cell"), COMMENT.c.notebook_id == bindparam("notebook"))
    .values(auto_comment=bindparam("text"))
)


def fill_gradebook(course: Course, level: str, verdicts: Iterable[Verdict]) -> None:
    """Enter a built level and the verdicts on it; a person's marks stay as they are.

    Raises CourseError, with the way to go on, if the gradebook can't take them.
    """
    enter_level(course, level)
    entered = _entered(course, level)
    with Scores(course, level) as scores:
        for verdict in verdicts:
            known = entered.get(verdict.student)
            scores.write(verdict, fresh=not verdict.key or verdict.key != known)
            entered[verdict.student] = verdict.key
    write_whole(json.dumps(entered, indent=1) + "\n", course.entered(level))


def _entered(course: Course, level: str) -> dict[str, str]:
    """The key of each student's verdict that was entered last."""
    try:
        return dict(json.loads(course.entered(level).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}  # then all are taken for fresh


def enter_level(course: Course, level: str) -> None:
    """Enter a built level's cells and points into the gradebook."""
    try:
        create_engine(course.nbgrader.db_url).dispose()
    except (ImportError, ArgumentError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise CourseError(
            f"CourseDirectory.db_url in nbgrader_config.py can't be used: {why}. "
            'For PostgreSQL run `pip install --editable ".[postgres]"`.'
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        release = Config(release_directory=folder)
        success, log = run_nbgrader(GenerateAssignment, course, level, CourseDirectory=release)
    if "Cannot add or remove cells" in log:
        file = make_url(course.nbgrader.db_url)
        old = f"move {file.database} away" if file.drivername == "sqlite" else "take an empty one"
        raise CourseError(
            f"The gradebook holds submissions of another version of {level}: {old}, "
            f"then run `autograde gradebook {level}`."
        )
    if reason := re.search(r"\(\w+\.\w+Error\) (.+)", log):  # as SQLAlchemy words them
        raise _unwritable(course, level, reason[1])
    if not success:
        raise CourseError(f"nbgrader can't enter {level} into the gradebook:\n{log}")


class Scores:
    """The gradebook of a course, to write the verdicts on one level to. A context manager."""

    def __init__(self, course: Course, level: str) -> None:
        find_alembic()
        self.course, self.level = course, level
        self.policy = LatePolicy(course)
        with self._plain_errors():
            self.gradebook = Gradebook(course.nbgrader.db_url, course.nbgrader.course_id)
            with self.gradebook.engine.connect() as db:
                self._read_level(db)

    def write(self, verdict: Verdict, *, fresh: bool = True) -> None:
        """Enter one verdict, in one transaction; a person's marks stay as they are.

        If it is fresh, a person is asked to look again at what they have marked: as nbgrader does,
        for the answer may be another. An ungradable submission keeps no automatic score from an
        earlier run.
        """
        points = {item.item: item.points for item in verdict.items}
        blank = {
            item.item.split("__")[0]
            for item in verdict.items
            if item.outcome == Outcome.NOT_ATTEMPTED
        }
        with self._plain_errors(), self.gradebook.engine.begin() as db:
            notebooks = self._submission(db, verdict.student)
            scores, comments = [], []
            for cell in self.cells:
                where = {"cell": cell.id, "notebook": notebooks[cell.notebook_id]}
                if cell.type in GRADED:
                    known = points.get(cell.name.removeprefix("test_"))
                    scores.append(
                        where | {"points": known, "unknown": known is None, "fresh": fresh}
                    )
                if cell.type in COMMENTED:
                    text = NO_RESPONSE if cell.name in blank else None
                    comments.append(where | {"text": text})
            _execute(db, _score, scores)
            _execute(db, _comment, comments)
            self._write_late(db, verdict.student)

    def write_late(self, students: Iterable[str]) -> None:
        """Enter when students handed in, and the penalties for it on the marks as they are now."""
        with self._plain_errors(), self.gradebook.engine.begin() as db:
            for student in students:
                self._write_late(db, student)

    def _write_late(self, db: Connection, student: str) -> None:
        """As nbgrader's Autograde and AssignLatePenalties do; but what has no time is in time."""
        time = submitted_at(self.course.folder("submitted", student, self.level))
        mine = (SUBMISSION.c.assignment_id == self.assignment, SUBMISSION.c.student_id == student)
        db.execute(update(SUBMISSION).where(*mine).values(timestamp=time))
        query = select(NOTEBOOK.c.id, SUBMISSION.c.extension).join(SUBMISSION).where(*mine)
        for notebook, extension in db.execute(query).all():
            penalty = None
            if time and self.due and (late := time - self.due - (extension or timedelta())):
                which = SubmittedNotebook.id == notebook
                score = db.execute(select(SubmittedNotebook.score).where(which)).scalar_one()
                penalty = self.policy.penalty(student, score, late.total_seconds())
            values = {"late_submission_penalty": penalty}
            db.execute(update(NOTEBOOK).where(NOTEBOOK.c.id == notebook).values(**values))

    def _read_level(self, db: Connection) -> None:
        """What every submission of the level has rows for."""
        this = Assignment.name == self.level
        found = db.execute(select(Assignment.id, Assignment.duedate).where(this)).first()
        if found is None:
            raise CourseError(
                f"The gradebook does not know {self.level}: run `autograde gradebook {self.level}`."
            )
        self.assignment: str = found.id
        self.due: datetime | None = found.duedate
        query = select(Notebook.id).where(Notebook.assignment_id == self.assignment)
        self.notebooks = list(db.scalars(query))
        table = BaseCell.__table__
        columns = (table.c.id, table.c.name, table.c.type, table.c.notebook_id)
        cells = db.execute(select(*columns).where(table.c.notebook_id.in_(self.notebooks)))
        self.cells = cells.all()

    def _submission(self, db: Connection, student: str) -> dict[str, str]:
        """The id of a student's copy of each notebook, by the notebook's; made if need be."""
        mine = (SUBMISSION.c.assignment_id == self.assignment, SUBMISSION.c.student_id == student)
        query = select(NOTEBOOK.c.notebook_id, NOTEBOOK.c.id).join(SUBMISSION).where(*mine)
        if found := db.execute(query).all():
            return {row.notebook_id: row.id for row in found}
        if db.scalar(select(STUDENT.c.id).where(STUDENT.c.id == student)) is None:
            db.execute(insert(STUDENT), {"id": student})
        submission = {"id": new_uuid(), "assignment_id": self.assignment, "student_id": student}
        db.execute(insert(SUBMISSION), submission)
        copies = {notebook: new_uuid() for notebook in self.notebooks}
        rows = [
            {"id": copy, "notebook_id": notebook, "assignment_id": submission["id"]}
            for notebook, copy in copies.items()
        ]
        _execute(db, insert(NOTEBOOK), rows)
        for table, types in ((GRADE, GRADED), (COMMENT, COMMENTED)):
            cells = [cell for cell in self.cells if cell.type in types]
            rows = [{"cell_id": c.id, "notebook_id": copies[c.notebook_id]} for c in cells]
            _execute(db, insert(table), rows)
        return copies

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            reason = str(error.orig).splitlines()[0]
            raise _unwritable(self.course, self.level, reason) from None

    def __enter__(self) -> "Scores":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.gradebook.close()


def _execute(db: Connection, statement: Any, rows: list[dict[str, Any]]) -> None:
    if rows:  # given none, SQLAlchemy would run the statement once, without values
        db.execute(statement, rows)


def _unwritable(course: Course, level: str, reason: str) -> CourseError:
    verdicts = course.verdict(level, "any").parent
    return CourseError(
        f"The gradebook can't be written: {reason}. No verdict is lost, they are in {verdicts}; "
        f"once it can be written, run `autograde gradebook {level}`."
    )
