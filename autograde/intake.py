"""Whose files are in the ZIP that a learning management system (LMS) gives out.

Four layouts are known, each by what only the LMS can have written, the first part of every path:

    Canvas      smithjohn_LATE_4711_98765_level2-1.ipynb         name, late?, user, file
    Moodle      John Smith_4711_assignsubmission_file_/level2.ipynb
    Gradescope  assignment_1_export/submission_4711/level2.ipynb, with submission_metadata.yml
    folders     smithjohn/level2.ipynb, smithjohn/level2/level2.ipynb, also below one more folder

Canvas's names are those of lib/content_zipper.rb in its source, Moodle's of
mod/assign/classes/downloader.php. Only Gradescope says when a file was handed in. Canvas and Moodle
stamp every entry with the time of the download, so there the time is not taken from the ZIP; that
of a `_LATE_` file is, as the latest that it can be.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import yaml

from autograde.archive import DAMAGE, Entry
from autograde.course import CourseError

# A student chooses the rest alone: the LMS keeps what would look like a number out of the name.
CANVAS = re.compile(
    r"(?:(?P<name>(?!(?:LATE_)?anon_).+?)_)?(?:(?P<late>LATE)_)?"
    r"(?P<id>[0-9]+|anon_[^_]+)_(?:(?P<file>[0-9]+)_(?P<rest>.+)|(?P<typed>(?:text|link)\.html))",
    re.DOTALL,
)
MOODLE = re.compile(
    r"(?P<name>[^_]+)_(?P<id>[0-9]+)_assignsubmission_[a-z]+(?:_(?P<rest>.+)|_?)",
    re.DOTALL,
)
GRADESCOPE = re.compile(r"(assignment_[0-9]+_export/)?submission_metadata\.yml")
MAX_METADATA = 50_000_000  # bytes; with 1,000 submissions and all their results about 5,000,000


@dataclass(frozen=True)
class Person:
    """A student as an LMS knows them; `student` is what can best be read of its ids."""

    lms: str
    id: str
    name: str
    student: str


@dataclass(frozen=True)
class Handed:
    """A file that a person handed in; `number` grows with each upload, where an LMS counts them."""

    person: Person
    entry: Entry
    file: str
    number: int = 0
    submitted: datetime | None = None

    @property
    def order(self) -> tuple[int, datetime]:
        """What grows from a person's older to newer files."""
        return self.number, self.submitted or self.entry.time or datetime.min


def whose(archive: zipfile.ZipFile, found: Sequence[Entry], levels: list[str]) -> list[Handed]:
    """Whose each file in a ZIP is; files that are nobody's are not listed."""
    for entry in found:
        top = entry.parts[:-1]
        if GRADESCOPE.fullmatch(entry.name) and all(e.parts[: len(top)] == top for e in found):
            return list(_gradescope(archive, entry, found))
    if any(MOODLE.fullmatch(entry.parts[0]) for entry in found):
        return list(_moodle(found))
    flat = all(len(entry.parts) == 1 for entry in found)
    if flat and any(CANVAS.fullmatch(entry.parts[0]) for entry in found):
        return list(_canvas(found))
    return list(_folders(found, levels))


def _canvas(found: Sequence[Entry]) -> Iterator[Handed]:
    for entry in found:
        if match := CANVAS.fullmatch(entry.parts[0]):
            name = match["name"] or ""
            person = Person("canvas", match["id"], name, f"{name}_{match['id']}".lstrip("_"))
            late = entry.time if match["late"] else None
            number = int((match["file"] or "0")[:30])
            yield Handed(person, entry, match["rest"] or match["typed"], number, late)


def _moodle(found: Sequence[Entry]) -> Iterator[Handed]:
    for entry in found:
        if match := MOODLE.fullmatch(entry.parts[0]):
            person = Person("moodle", match["id"], match["name"], match["name"])
            yield Handed(person, entry, match["rest"] or entry.parts[-1])


def _gradescope(
    archive: zipfile.ZipFile, metadata: Entry, found: Sequence[Entry]
) -> Iterator[Handed]:
    about = _read_metadata(archive, metadata)
    depth = len(metadata.parts)
    for entry in found:
        if len(entry.parts) <= depth:
            continue
        submission = about.get(entry.parts[depth - 1])
        for who in _submitters(submission):
            sid, email = (str(who.get(key) or "") for key in (":sid", ":email"))
            name = str(who.get(":name") or "")
            person = Person("gradescope", sid or email or name, name, sid or email or name)
            time = _created(submission)
            yield Handed(person, entry, entry.parts[-1], submitted=time)


def _submitters(submission: Any) -> list[dict[str, Any]]:
    values = submission.get(":submitters") if isinstance(submission, dict) else None
    return [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []


def _created(submission: Any) -> datetime | None:
    time = submission.get(":created_at")
    if not isinstance(time, datetime):
        return None
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def _read_metadata(archive: zipfile.ZipFile, metadata: Entry) -> dict[str, Any]:
    try:
        if metadata.info.file_size > MAX_METADATA:
            raise ValueError(f"it has more than {MAX_METADATA / 1e6:g} MB")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        about = yaml.load(archive.read(metadata.info), loader)
    except (*DAMAGE, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise CourseError(f"{archive.filename}: {metadata.name} can't be read: {reason}") from None
    return about if isinstance(about, dict) else {}


def _folders(found: Sequence[Entry], levels: list[str]) -> Iterator[Handed]:
    """Files below a folder a student; a folder around all of the notebooks says nothing."""
    notebooks = [e.parts[:-1] for e in found if e.parts[-1].endswith(".ipynb") and e.parts[:-1]]
    around = 0
    while notebooks and all(
        len(f) > around + 1 and f[around] == notebooks[0][around] for f in notebooks
    ):
        if any(folder[around + 1] in levels for folder in notebooks):
            break  # STUDENT/level2/level2.ipynb
        around += 1
    for entry in found:
        if len(entry.parts) > around + 1:
            student = entry.parts[around]
            person = Person("folder", student, student, student)
            yield Handed(person, entry, entry.parts[-1], submitted=entry.time)
