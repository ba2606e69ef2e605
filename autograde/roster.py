"""The list of students that an LMS gives out: whose id is whose, and where its grades go.

Three kinds of CSV file are known, by their first row:

    Canvas   Student,ID,SIS User ID,SIS Login ID,Section,...     Grades > Export
    Moodle   Identifier,Full name,Email address,...              "Download grading worksheet"
    own      id,student,submitted                                the last column may be missing

Canvas's columns are those of lib/gradebook_importer.rb in its source, Moodle's those of
mod/assign/gradingtable.php and feedback/offline/importgradeslib.php, in English.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dateutil import parser

from autograde.course import CourseError

# the column of the LMS's own id, and where a readable one may be, the best first
COLUMNS = {
    "canvas": ("ID", ("SIS Login ID", "SIS User ID", "Student")),
    "moodle": ("Identifier", ("Username", "ID number", "Email address", "Full name")),
    "own": ("id", ("student",)),
}
SUBMITTED = {"moodle": "Last modified (submission)", "own": "submitted"}
NAME = {"canvas": "Student", "moodle": "Full name"}
NEEDED = {"canvas": "Section", "moodle": "Grade", "own": "student"}


@dataclass(frozen=True)
class Listed:
    """A student on the list; `submitted` is in UTC, where the list says when."""

    id: str
    student: str
    name: str = ""
    submitted: datetime | None = None


@dataclass(frozen=True)
class Roster:
    """A list of students: its rows as they are in the file, and who they are, by the LMS's id."""

    kind: str
    header: list[str]
    rows: list[list[str]]
    students: Mapping[str, Listed]

    def find(self, lms: str, person: str) -> Listed | None:
        """The student with this id in this LMS, if they are on the list."""
        return self.students.get(person) if self.kind in (lms, "own") else None

    def id_of(self, row: list[str]) -> str:
        """The LMS's id of the student in a row; empty for a row that is not about a student."""
        column, _ = COLUMNS[self.kind]
        value = row[self.header.index(column)].strip()
        if self.kind == "moodle":
            number = re.search(r"[0-9]+$", value)
            return number[0] if number else ""
        return value


def read_roster(path: Path) -> Roster:
    """The list in a CSV file of any of the three kinds; raises CourseError if it is none."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"The roster {path} can't be read: {error}.") from None
    first = text.partition("\n")[0]
    mark = ";" if first.count(";") > first.count(",") else ","
    header, *rows = [row for row in csv.reader(io.StringIO(text), delimiter=mark) if row] or [[]]
    kind = next((k for k, (c, _) in COLUMNS.items() if {c, NEEDED[k]} <= set(header)), None)
    if kind is None:
        raise CourseError(
            f"The roster {path} has the columns {', '.join(header)[:200] or 'of an empty file'}: "
            "give a gradebook that Canvas exported, a grading worksheet that Moodle made in "
            "English, or a CSV file with the columns id,student."
        )
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    roster = Roster(kind, header, rows, {})
    listed = [_listed(roster, row, path) for row in rows if roster.id_of(row)]
    names = [one.student for one in listed]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise CourseError(f"The roster {path} has two students {twice!r}: give each an id.")
    return Roster(kind, header, rows, {one.id: one for one in listed})


def _listed(roster: Roster, row: list[str], path: Path) -> Listed:
    fields = dict(zip(roster.header, (field.strip() for field in row), strict=False))
    _, names = COLUMNS[roster.kind]
    student = next((fields[name] for name in names if fields.get(name)), "")
    name = fields.get(NAME.get(roster.kind, ""), "")
    when = fields.get(SUBMITTED.get(roster.kind, ""), "")
    return Listed(roster.id_of(row), student, name, _time(when, path) if when.strip("-") else None)


def _time(text: str, path: Path) -> datetime:
    """A time in UTC; without a time zone it is by this machine's clock."""
    try:
        time: datetime = parser.parse(text)
        return time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise CourseError(
            f"The roster {path} has {text!r} for a time: give it in English, "
            "or as 2026-12-01 17:00 UTC."
        ) from None
