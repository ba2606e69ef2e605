"""Put a student's notebook into classroom/submitted/, and lose nothing that is there."""

import hashlib
from datetime import datetime
from enum import StrEnum
from itertools import count
from pathlib import Path

from autograde.archive import Refused
from autograde.course import Course
from autograde.files import open_no_link, write_whole
from autograde.identity import Origin, alike, keep_origin, origins
from autograde.late import TIMESTAMP, as_timestamp

FOREIGN = "something that was not collected is there; --force replaces it, and keeps it aside"


class State(StrEnum):
    """What became of a student's files."""

    TAKEN = "taken"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    PASSED_OVER = "passed over"


class Placer:
    """The submissions to a level: `known` says what was collected so far, by student."""

    def __init__(self, course: Course, level: str, scratch: Path, force: bool) -> None:
        self.course, self.level, self.scratch, self.force = course, level, scratch, force
        self.known = origins(course, level)
        folder = course.folder("submitted")
        names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
        self.folders = {alike(name): name for name in names}

    def place(
        self, student: str, notebook: Path, origin: Origin, submitted: datetime | None
    ) -> tuple[State, str]:
        """Put a notebook where it belongs, and say what is to be said of it.

        Raises Refused where something is there that may be replaced with `force` alone.
        """
        place = self.course.folder("submitted", student, self.level)
        self._check(student, place)
        before, there = self.known.get(student), _digest(place / f"{self.level}.ipynb")
        if there == origin.digest:
            if submitted or before is None or before.order <= origin.order:
                _date(place, submitted)
                keep_origin(self.course, self.level, student, origin)
            return State.UNCHANGED, ""
        empty = not place.is_dir() or not any(place.iterdir())
        if not empty and not self.force:
            if before is None or before.digest != there:
                raise Refused(FOREIGN)
            if origin.order <= before.order:
                return State.UNCHANGED, f"what is there, from {before.archive}, is newer"
        folder = self.scratch / "new"
        folder.mkdir()
        notebook.rename(folder / f"{self.level}.ipynb")
        _date(folder, submitted)
        aside = None if empty else self._set_aside(student, place)
        place.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(place)  # over an empty folder, if there is one
        keep_origin(self.course, self.level, student, origin)
        self.folders[alike(student)] = student
        if aside is None:
            return State.TAKEN, ""
        return State.REPLACED, f"the one before is in {aside.relative_to(self.course.root)}"

    def _check(self, student: str, place: Path) -> None:
        if place.is_symlink() or place.parent.is_symlink():
            raise Refused(f"{place} is, or is in, a link; remove that")
        other = self.folders.get(alike(student), student)
        if other != student:
            raise Refused(f"the classroom has a folder {other!r}; rename it to {student!r}")

    def _set_aside(self, student: str, place: Path) -> Path:
        folder = self.course.classroom / "replaced" / self.level / student
        folder.mkdir(parents=True, exist_ok=True)
        aside = next(path for n in count(1) if not (path := folder / str(n)).exists())
        return place.rename(aside)


def _date(folder: Path, submitted: datetime | None) -> None:
    """Write down when a notebook was handed in, if that is known."""
    if submitted:
        write_whole(as_timestamp(submitted), folder / TIMESTAMP)


def _digest(path: Path) -> str | None:
    """The SHA-256 of a file that is no link; None if there is none."""
    try:
        with open(path, "rb", opener=open_no_link) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
