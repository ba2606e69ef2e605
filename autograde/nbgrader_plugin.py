"""nbgrader's commands and formgrader's buttons do here what `autograde` does.

nbgrader converts a submission in two passes: it reads the file and writes a sanitized notebook,
then runs that and takes the scores from its outputs. Its exporter does both, and its class is a
setting: here the first pass grades, and the second is left with the late penalty. The feedback's
exporter is a setting too. nbgrader_config.py sets them.
"""

import atexit
import copy
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter, NotebookExporter
from traitlets import Bool, Float
from traitlets.config import Config

from autograde.assignment import Assignment, load_assignment
from autograde.course import Course, CourseError
from autograde.feedback import feedback_page
from autograde.grade import Graded, grade
from autograde.gradebook import Scores
from autograde.kernel import Nursery
from autograde.limits import Limits
from autograde.marks import Marks, read_marks
from autograde.notebook import notebook_text, read_notebook
from autograde.preflight import Unreadable
from autograde.store import keep
from autograde.submission import handed_in
from autograde.verdict import Verdict


class GradingExporter(NotebookExporter):
    """Turns a submitted notebook into the graded one; keeps the verdict, writes the gradebook.

    A submission that can't be graded raises CourseError with the reason, which nbgrader logs
    before it goes on to the next.
    """

    timeout = Float(30.0, help="Seconds of computing that a cell or a call may take.").tag(
        config=True
    )
    unsafe_no_sandbox = Bool(False, help="Run student code as yourself, unconfined.").tag(
        config=True
    )
    _assignment: Assignment | None = None

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[Any, dict[str, Any]]:
        """What nbgrader calls, once for each pass, with the file to read."""
        assert resources is not None  # nbgrader always says whose notebook it is
        student, level = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        course = _course(self.parent)
        if Path(os.path.normpath(filename)) != course.notebook("submitted", level, student):
            return super().from_filename(filename, resources, **kw)
        if self._assignment is None:
            self._assignment = load_assignment(course, level)
        limits = Limits(cpu_s=self.timeout, wall_s=3 * self.timeout)
        nursery = _nursery(confine=not self.unsafe_no_sandbox)
        try:
            data, notes = handed_in(course, self._assignment, student)
            graded = grade(
                data, self._assignment, nursery, student=student, limits=limits, notes=notes
            )
        except Unreadable as error:
            graded = Graded(Verdict(student, level, reason=str(error)))
        ran = graded.notebook
        keep(course, graded.verdict, None if ran is None else notebook_text(ran))
        with Scores(course, level) as scores:
            scores.write(graded.verdict)
        if graded.notebook is None:
            raise CourseError(f"{student}: {graded.verdict.reason}")
        convert: Any = self.from_notebook_node  # it comes without types
        converted: tuple[Any, dict[str, Any]] = convert(graded.notebook, resources)
        return converted


class FeedbackExporter(Exporter):
    """Turns a graded notebook into the page of `autograde feedback`.

    nbgrader's own page would show the tests that students were not given the messages of, and
    whatever HTML a submission put out. Raises CourseError, which nbgrader logs, if the gradebook is
    behind the verdicts.
    """

    file_extension = ".html"
    _marks: dict[str, Marks] | None = None

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[Any, dict[str, Any]]:
        """What nbgrader calls, with the graded notebook."""
        assert resources is not None  # nbgrader always says whose notebook it is
        student, level = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        if self._marks is None:
            everybody = read_marks(_course(self.parent), level)
            self._marks = {marks.student: marks for marks in everybody}
        page = feedback_page(self._marks[student], read_notebook(Path(filename)))
        return page, resources | {"output_extension": self.file_extension}


def expect_the_notebook(assignment: str, student: str, notebooks: list[str]) -> None:
    """A hook of nbgrader's: have it convert LEVEL.ipynb, whatever the files are called.

    nbgrader would refuse a folder with a `level2 (1).ipynb` only; the grader finds it.
    """
    notebooks[:] = [str(Path(notebooks[0]).with_name(f"{assignment}.ipynb"))]


def _course(converter: Any) -> Course:
    """The course that nbgrader is at work on, command line options included."""
    directories = converter.coursedir
    config = copy.deepcopy(converter.config)
    names = directories.trait_names(config=True)
    config.CourseDirectory = Config({name: getattr(directories, name) for name in names})
    return Course(Path(directories.root), config)


_warm: dict[bool, Nursery] = {}  # by whether it confines
_open = ExitStack()
atexit.register(_open.close)


def _nursery(confine: bool) -> Nursery:
    """The warm parent of this process, kept for the next submission; a new one if it has ended."""
    nursery = _warm.get(confine)
    if nursery is None or nursery.process.poll() is not None:
        nursery = Nursery(Path(tempfile.gettempdir()), confine=confine)
        _warm[confine] = _open.enter_context(nursery)
    return nursery
