"""Find what a student handed in, under its own name or another, and read it."""

import contextlib
import os
from pathlib import Path

from autograde.assignment import Assignment
from autograde.course import Course
from autograde.preflight import Unreadable, belongs_to, read_submission
from autograde.verdict import one_line

MAX_OTHERS = 20  # files in a folder that are looked at for the notebook under another name
SUFFIXES = (".ipynb", ".py", ".json", ".txt")  # of files that may be a renamed notebook


def handed_in(course: Course, assignment: Assignment, student: str) -> tuple[bytes, list[str]]:
    """The bytes of a student's notebook, found by name or else by what it holds, and notes.

    Raises Unreadable if there is none.
    """
    try:
        return _found(course.notebook("submitted", assignment.level, student), assignment)
    except PermissionError:
        raise Unreadable(
            "The folder can't be opened; give yourself the right to read it."
        ) from None


def _found(path: Path, assignment: Assignment) -> tuple[bytes, list[str]]:
    if path.parent.is_symlink() or path.parent.parent.is_symlink():
        raise Unreadable("The folder is a link to another one; hand in the notebook itself.")
    if os.path.lexists(path):
        return read_submission(path), []
    others = sorted(p for p in path.parent.iterdir() if p.suffix.lower() in SUFFIXES)[:MAX_OTHERS]
    for other in others:
        with contextlib.suppress(Unreadable):
            data = read_submission(other)
            if belongs_to(data, {assignment.level: assignment.release}):
                name = one_line(other.name)
                return data, [f"The file is called {name}; it was taken for {path.name}."]
    found = ", ".join(other.name for other in others) or "nothing that could be one"
    raise Unreadable(f"There is no {path.name}; the folder has {found}.")
