"""Verdicts into nbgrader's gradebook."""

import tempfile
import warnings
from types import TracebackType

from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from traitlets.config import Config

from autograde.course import Course, CourseError, find_alembic, run_nbgrader
from autograde.verdict import Verdict


def enter_level(course: Course, level: str) -> None:
    """Enter a built level's cells and points into the gradebook."""
    with tempfile.TemporaryDirectory() as folder:
        release = Config(release_directory=folder)
        success, log = run_nbgrader(GenerateAssignment, course, level, CourseDirectory=release)
    if "Cannot add or remove cells" in log:
        raise CourseError(
            f"The gradebook holds submissions of another version of {level}: "
            f"move {course.classroom / 'gradebook.db'} away, then grade again."
        )
    if not success:
        raise CourseError(f"nbgrader can't enter {level} into the gradebook:\n{log}")


class Scores:
    """The gradebook of a course, to write verdicts to. A context manager."""

    def __init__(self, course: Course) -> None:
        find_alembic()
        self.gradebook = Gradebook(course.nbgrader.db_url, course.nbgrader.course_id)

    def write(self, verdict: Verdict) -> None:
        """Enter one verdict, in one transaction; a person's marks stay as they are.

        An ungradable submission keeps no automatic score from an earlier run.
        """
        book = self.gradebook
        with warnings.catch_warnings():  # SQLAlchemy's, about nbgrader's own code
            warnings.simplefilter("ignore")
            book.update_or_create_student(verdict.student)
            book.update_or_create_submission(verdict.level, verdict.student)
        points = {item.item: item.points for item in verdict.items}
        notebook = book.find_submission_notebook(verdict.level, verdict.level, verdict.student)
        for grade in notebook.grades:
            grade.auto_score = points.get(grade.name.removeprefix("test_"))
            unknown = grade.auto_score is None
            grade.needs_manual_grade = unknown or grade.manual_score is not None
        book.db.commit()

    def __enter__(self) -> "Scores":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.gradebook.close()
