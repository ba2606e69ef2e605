"""Where the files of a course are, and nbgrader set up for them.

A course is a folder with an nbgrader_config.py; its directories are nbgrader's settings. A level
is one assignment of one notebook: `level2` has the master autograde/source/level2.py.
"""

import copy
import os
import re
import sysconfig
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle
from traitlets.config.loader import Config, PyFileConfigLoader

CONFIG_FILE = "nbgrader_config.py"


class CourseError(Exception):
    """Something a person must put right; the message says what, in one sentence."""


@dataclass(frozen=True)
class Course:
    """The folders of one course, as its nbgrader_config.py lays them out."""

    root: Path
    config: Config

    def __reduce__(self) -> tuple[Any, ...]:
        # by value, since a configuration may hold classes of its own, as a plugin for late work
        return _unpickled, (cloudpickle.dumps((self.root, self.config)),)

    @cached_property
    def nbgrader(self) -> Any:
        """nbgrader's own CourseDirectory."""
        from nbgrader.coursedir import CourseDirectory  # takes a second: not for `--help`

        return CourseDirectory(config=self.config)

    def folder(self, step: str, student: str = ".", level: str = ".") -> Path:
        """The folder of a step (source, release, solution, submitted, autograded, feedback)."""
        directories = self.nbgrader
        name = getattr(directories, f"{step}_directory")
        return Path(os.path.normpath(directories.format_path(name, student, level)))

    def notebook(self, step: str, level: str, student: str = ".") -> Path:
        """The notebook of a level at a step."""
        return self.folder(step, student, level) / f"{level}.ipynb"

    @property
    def masters(self) -> Path:
        """The folder of the masters."""
        return self.root / "autograde" / "source"

    @property
    def classroom(self) -> Path:
        """The instructor's working data."""
        return self.folder("submitted").parent

    def verdict(self, level: str, student: str) -> Path:
        """The verdict on a submission: what the gradebook and the reports are made from."""
        return self.classroom / "verdicts" / level / f"{student}.json"

    def entered(self, level: str) -> Path:
        """The keys of the verdicts that the gradebook was last made from."""
        return self.classroom / "verdicts" / f"{level}.entered.json"

    def report(self, level: str) -> Path:
        """The table of a graded level."""
        return self.classroom / "report" / f"{level}.csv"

    def log(self, level: str) -> Path:
        """What was graded when, for programs: a line of JSON for each event."""
        return self.classroom / "log" / f"{level}.jsonl"

    def levels(self) -> list[str]:
        """The levels that have a master, in order."""
        names = sorted(path.stem for path in self.masters.glob("*.py"))
        return [name for name in names if not name.endswith("_answers")]

    def level(self, name: str) -> str:
        """The name itself if the course has that level; CourseError otherwise."""
        if name not in self.levels():
            known = ", ".join(self.levels()) or f"none: put a master into {self.masters}"
            raise CourseError(f"There is no level {name!r}; this course has {known}.")
        return name

    def has_points(self, level: str) -> bool:
        """Whether there is anything to grade: the primer has no points."""
        text = (self.masters / f"{level}.py").read_text("utf-8")
        return re.search(r"^# %%.* points=", text, re.MULTILINE) is not None

    def submitted_students(self, level: str) -> list[str]:
        """The students with a folder for this level among the submissions."""
        if not self.has_points(level):
            raise CourseError(f"There is nothing to grade in {level}: it has no points.")
        if not self.folder("submitted").is_dir():
            raise CourseError(
                f"There is no folder {self.folder('submitted')}: put the submissions there as "
                f"STUDENT/{level}/{level}.ipynb, or make a sample class with `autograde demo`."
            )
        students = sorted(
            folder.name
            for folder in self.folder("submitted").iterdir()
            if _may_be_folder(self.folder("submitted", folder.name, level))
        )
        if not students:
            raise CourseError(
                f"Nobody has submitted {level}: {self.folder('submitted')} has no folder "
                f"STUDENT/{level}. Put submissions there, or make a class with `autograde demo`."
            )
        return students


def _unpickled(fields: bytes) -> Course:
    return Course(*cloudpickle.loads(fields))


def _may_be_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:  # a folder above it is locked: a row of its own will say so
        return True


def is_storable(student: str) -> bool:
    """Whether a folder's name will do as a student's in files, tables and the gradebook.

    >>> is_storable("Müller, A. (07)"), is_storable("two\\nlines"), is_storable("long" * 60)
    (True, False, False)
    """
    # 128 characters is what the gradebook holds; PostgreSQL, unlike SQLite, insists
    return student.isprintable() and len(student) <= 128 and len(student.encode()) <= 200


def find_course(start: Path | None = None) -> Course:
    """The course whose root is `start`, or else the first one from the working directory upward."""
    folders = [start] if start else [Path.cwd(), *Path.cwd().parents]
    for folder in folders:
        if (folder / CONFIG_FILE).is_file():
            root = folder.resolve()
            return Course(root, PyFileConfigLoader(CONFIG_FILE, path=str(root)).load_config())
    raise CourseError(
        f"{folders[0]} is no course: it has no {CONFIG_FILE}. "
        "Run this in the course repository, or say --course DIR."
    )


def find_alembic() -> None:
    """Put this environment's programs on PATH: nbgrader runs `alembic` by name."""
    scripts = sysconfig.get_path("scripts")
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = scripts + os.pathsep + os.environ.get("PATH", "")


def run_nbgrader(
    converter: type[Any], course: Course, level: str, student: str = "*", **settings: Config
) -> tuple[bool, str]:
    """Run one of nbgrader's converters as its own commands do; return success and its log.

    `settings` overrides the course's configuration by class name.
    """
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log

    find_alembic()
    config = copy.deepcopy(course.config)
    config.merge(Config(settings))
    config.CourseDirectory.assignment_id = level
    config.CourseDirectory.student_id = student
    app = converter(coursedir=CourseDirectory(config=config), config=config)
    app.force = True
    app.log.propagate = False
    with warnings.catch_warnings():  # SQLAlchemy's and nbformat's, about nbgrader's own code
        warnings.simplefilter("ignore")
        result = capture_log(app)
    return result["success"], result.get("log", "") + result.get("error", "")
