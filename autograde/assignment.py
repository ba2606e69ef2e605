"""A built level as the grader needs it: what students were given, and the tests they were not."""

from dataclasses import dataclass

from nbformat import NotebookNode

from autograde.course import Course, CourseError
from autograde.master import cells_by_id, items, read_master
from autograde.notebook import read_notebook


@dataclass(frozen=True)
class Assignment:
    """A level: its release, and its source with solutions and hidden tests."""

    level: str
    release: NotebookNode
    source: NotebookNode

    @property
    def tests(self) -> dict[str, str]:
        """The source of each test cell, hidden tests included, by grade_id."""
        cells = cells_by_id(self.source)
        return {item.graded: cells[item.graded].source for item in items(self.source)}


def load_assignment(course: Course, level: str) -> Assignment:
    """A built level, ready to grade. Raises CourseError if its build is not current."""
    path = course.notebook("source", level)
    if not path.is_file():
        raise CourseError(f"{level} has not been built: run `autograde build {level}` first.")
    source = read_notebook(path)
    if source != read_master(course.masters / f"{level}.py"):
        raise CourseError(
            f"The master of {level} has changed: run `autograde build {level}` first."
        )
    return Assignment(level, read_notebook(course.notebook("release", level)), source)
