"""Verdicts and marks as files for other programs."""

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograde.course import Course, CourseError
from autograde.files import remove_tree, write_whole
from autograde.formats import Format
from autograde.lms import LeftOut, canvas, moodle
from autograde.marks import Marks, read_marks
from autograde.roster import Roster
from autograde.sheet import Field, csv_text
from autograde.sources import source_files
from autograde.verdict import Verdict

COLUMNS = (
    "student",
    "level",
    "status",
    "item",
    "outcome",
    "points",
    "max_points",
    "message",
    "misconception",
    "notes",
    "confined",
)


def write_csv(verdicts: list[Verdict], path: Path) -> None:
    """A row for each student and item, then the student's total as the item `total`, with notes.

    The file appears whole or not at all. Text that a spreadsheet would run as a formula is
    prefixed with an apostrophe.
    """
    rows: list[tuple[Field, ...]] = [COLUMNS]
    for verdict in verdicts:
        items = [
            (i.item, i.outcome, i.points, i.max_points, i.message, i.misconception, "")
            for i in verdict.items
        ]
        known = verdict.max_points if verdict.items else None
        total = ("total", "", verdict.points, known, verdict.reason, "", " ".join(verdict.notes))
        confined = "yes" if verdict.confined else "no"
        head = (verdict.student, verdict.level, verdict.status)
        rows += [(*head, *row, confined) for row in (*items, total)]
    write_whole(csv_text(rows), path)


def export(
    course: Course, level: str, form: Format, roster: Roster | None = None, title: str = ""
) -> tuple[Path, list[str]]:
    """Write a level's marks to classroom/export/; return where, and who is not in it and why.

    `title` is what the LMS calls the level, `roster` its own list of students. Raises CourseError
    if there is nothing to export.
    """
    folder = course.classroom / "export"
    if form == Format.SOURCES:
        return _write_folder(source_files(course, level), folder / f"{level}.sources"), []
    marks = read_marks(course, level)
    if form == Format.GRADESCOPE:
        results = {f"{m.student}/results.json": _json(_results(m)) for m in marks if not m.missing}
        left_out = [(m.student, m.missing) for m in marks if m.missing]
        return _write_folder(results.items(), folder / f"{level}.gradescope"), _by_reason(left_out)
    if form in (Format.CANVAS, Format.MOODLE):
        if form == Format.CANVAS:
            rows, left_out = canvas(marks, title or level, roster)
        else:
            rows, left_out = moodle(marks, roster)
        path = folder / f"{level}.{form}.csv"
        write_whole(csv_text(rows), path)
        return path, _by_reason(left_out)
    path = folder / f"{level}.{form}"
    write_whole(csv_text(table_of(marks)) if form == Format.CSV else _json(_plain(marks)), path)
    return path, []


def table_of(marks: list[Marks]) -> list[list[Field]]:
    """A row a student: who, the points for each item, the sum, the penalty, what is left."""
    items = list(dict.fromkeys(i.item for m in marks for i in m.verdict.items))
    start, end = ["student", "name", "status", "submitted"], ["points", "penalty", "final"]
    rows: list[list[Field]] = [[*start, *items, *end, "max_points", "missing"]]
    for m in marks:
        submitted = f"{m.submitted:%Y-%m-%d %H:%M:%S} UTC" if m.submitted else None
        who = [m.student, m.name, m.verdict.status, submitted]
        points = [None] * 3 if m.verdict.reason else [m.points, m.penalty, m.final]
        most = m.verdict.max_points if m.verdict.items else None
        by_item = {item.item: item.points for item in m.verdict.items}
        rows.append([*who, *map(by_item.get, items), *points, most, m.missing])
    return rows


def _plain(marks: list[Marks]) -> list[dict[str, Any]]:
    return [
        {
            "student": m.student,
            "name": m.name,
            "lms": {"name": m.origin.person.lms, "id": m.origin.person.id} if m.origin else None,
            "level": m.verdict.level,
            "status": m.verdict.status,
            "submitted": m.submitted.isoformat() + "Z" if m.submitted else None,
            "points": None if m.verdict.reason else m.points,
            "penalty": m.penalty,
            "final": m.final,
            "max_points": m.verdict.max_points,
            "missing": m.missing,
            "items": [
                {
                    "item": item.item,
                    "outcome": item.outcome,
                    "points": item.points,
                    "max_points": item.max_points,
                    "message": item.message,
                    "misconception": item.misconception,
                }
                for item in m.verdict.items
            ],
        }
        for m in marks
    ]


def _results(m: Marks) -> dict[str, Any]:
    """What an autograder gives Gradescope, in the fields of its documentation."""
    tests = [
        {
            "name": item.item,
            "score": item.points,
            "max_score": item.max_points,
            "output": f"{item.outcome}: {item.message}" if item.message else item.outcome,
            "output_format": "text",
        }
        for item in m.verdict.items
    ]
    late = f"late: {m.penalty:g} points were taken off" if m.penalty else ""
    return {"score": m.final, "output": late, "output_format": "text", "tests": tests}


def _by_reason(left_out: LeftOut) -> list[str]:
    """A line for each reason, with the students it concerns."""
    students: dict[str, list[str]] = {}
    for student, why in left_out:
        students.setdefault(why, []).append(student)
    return [
        f"{whose[0]}: {why}" if len(whose) == 1 else f"{len(whose)}: {why}: {', '.join(whose)}"
        for why, whose in students.items()
    ]


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _write_folder(files: Iterable[tuple[str, str]], folder: Path) -> Path:
    """Write a folder of text files in place of the one before; whole, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, text in files:
            write_whole(text, half / "new" / name)
        if not (half / "new").is_dir():
            raise CourseError(f"There is nothing to write to {folder}: grade the level first.")
        if folder.exists():
            folder.rename(half / "old")
        return (half / "new").rename(folder)
    finally:
        remove_tree(half)
