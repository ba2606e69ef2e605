"""Marks as the files that Canvas and Moodle import, and who can't be in them.

With the LMS's own list of students these are its rows and its columns, so that it knows every
student again; without it the ids come from where the submissions were collected.
"""

import re

from autograde.course import CourseError
from autograde.marks import Marks
from autograde.roster import Roster
from autograde.sheet import Field

MOODLE = ("Identifier", "Full name", "Grade", "Last modified (grade)")
LeftOut = list[tuple[str, str]]  # students, and why
POINTS_POSSIBLE = "    Points Possible"  # Canvas's own words, blanks included


def canvas(
    marks: list[Marks], title: str, roster: Roster | None
) -> tuple[list[list[Field]], LeftOut]:
    """Rows for Canvas's Grades > Import, and who is left out and why.

    Students without final points have no row: Canvas would take an empty field for a deletion.
    """
    found, left_out = _match(marks, "canvas", roster)
    if roster is None:
        header = ["Student", "ID", "SIS Login ID", "Section"]
        rows: list[list[Field]] = [[m.name, who, "", "", m.final] for who, m in found.items()]
        return [[*header, title], [POINTS_POSSIBLE, "", "", "", _most(marks)], *rows], left_out
    columns = roster.header[: roster.header.index("Section") + 1]
    own = re.compile(re.escape(title) + r"( \([0-9]+\))?")
    column = next((name for name in roster.header if own.fullmatch(name)), title)
    rows = [[*columns, column], [POINTS_POSSIBLE, *[""] * (len(columns) - 1), _most(marks)]]
    for row in roster.rows:
        if m := found.get(roster.id_of(row)):
            rows.append([*row[: len(columns)], m.final])
        elif "Points Possible" in row[0] and column in roster.header:
            rows[1][-1] = row[roster.header.index(column)]  # whatever it is, it stays so
    return rows, left_out


def moodle(marks: list[Marks], roster: Roster | None) -> tuple[list[list[Field]], LeftOut]:
    """Rows for Moodle's "Upload grading worksheet", and who is left out and why.

    Moodle needs the time of the last grade: it passes over what was changed there since then.
    """
    found, left_out = _match(marks, "moodle", roster)
    rows: list[list[Field]] = [list(MOODLE)]
    if roster is None:
        rows += [[f"Participant {who}", m.name, m.final, "-"] for who, m in found.items()]
        return rows, left_out
    for row in roster.rows:
        if m := found.get(roster.id_of(row)):
            fields = dict(zip(roster.header, row, strict=False)) | {"Grade": m.final}
            rows.append([fields.get(name, "") for name in MOODLE])
    return rows, left_out


def _match(marks: list[Marks], lms: str, roster: Roster | None) -> tuple[dict[str, Marks], LeftOut]:
    """The marks to write, by the LMS's id of a student, and who is left out and why."""
    if roster and roster.kind != lms:
        raise CourseError(f"That roster is not {lms.title()}'s: give the list that it exports.")
    listed = {one.student: one.id for one in roster.students.values()} if roster else {}
    found: dict[str, Marks] = {}
    left_out: LeftOut = []
    for m in marks:
        person = m.origin.person.id if m.origin and m.origin.person.lms == lms else None
        person = person or listed.get(m.student)
        if m.missing:
            left_out.append((m.student, m.missing))
        elif person is None or (roster and person not in roster.students):
            left_out.append((m.student, f"not known to {lms.title()}"))
        else:
            found[person] = m
    if not found and roster is None:
        raise CourseError(
            f"No submission with final points was collected from {lms.title()}: "
            "give its list of students with --roster."
        )
    return found, left_out


def _most(marks: list[Marks]) -> float:
    return max((m.verdict.max_points for m in marks), default=0)
