"""The class report: one HTML page about a graded level, for instructors."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from autograde.course import Course
from autograde.files import write_whole
from autograde.page import part, render
from autograde.statistics import Bin, class_statistics
from autograde.table import SIGNS, UNCONFINED, UNTROUBLED
from autograde.verdict import Outcome, Verdict
from course_lib.teaching.misconceptions import catalogue

# the class of an outcome in the style: one letter, for there may be 40,000 cells
KINDS = {
    Outcome.CORRECT: "c",
    Outcome.WRONG: "w",
    Outcome.NOT_ATTEMPTED: "n",
    Outcome.ERROR: "e",
    Outcome.TIMED_OUT: "e",
    Outcome.OUT_OF_MEMORY: "e",
    Outcome.CRASHED: "e",
    Outcome.NEEDS_PERSON: "p",
    Outcome.MARKED: "m",
}
NO_TROUBLE = (*UNTROUBLED, Outcome.NOT_ATTEMPTED)
RANKED = "✓+?·✗!TMC"  # how students are sorted by an item
WIDTH, BAR, FLOOR, HEIGHT = 740, 140, 165, 190  # the chart's, and the highest bar's, in pixels


@dataclass(frozen=True)
class Bar:
    """A bar of the chart, in pixels; `tick` stands below it, `range` says the same in words."""

    left: float
    width: float
    height: float
    students: int
    tick: str
    range: str

    @property
    def middle(self) -> float:
        """Where its labels are centred."""
        return self.left + self.width / 2


@dataclass(frozen=True)
class Row:
    """A student in the heat map: a class and a sign for each item, and what went wrong in words."""

    student: str
    page: str
    points: float | None
    cells: list[tuple[str, str]]
    troubles: list[str]


def write_report(verdicts: list[Verdict], course: Course, level: str) -> Path:
    """Write the class report of a level; return where. The file appears whole or not at all."""
    path = course.report(level).with_suffix(".html")
    pages = {}
    for verdict in verdicts:
        page = course.notebook("feedback", level, verdict.student).with_suffix(".html")
        if page.is_file():
            pages[verdict.student] = quote(os.path.relpath(page, path.parent))
    write_whole(report_page(verdicts, level, pages), path)
    return path


def report_page(
    verdicts: Iterable[Verdict], level: str, feedback: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The class report as HTML; `feedback` has the addresses of students' feedback pages."""
    ordered = sorted(verdicts, key=lambda verdict: verdict.student)
    numbers = class_statistics(ordered, level)
    items = [item.item for item in numbers.items]
    return render(
        "report.html",
        style=f"{part('style.css')}{part('report.css')}.heat {{ --items: {len(items) or 1}; }}\n",
        script=part("report.js"),
        numbers=numbers,
        bars=_bars(numbers.scores.bins) if numbers.scores.students else [],
        chart={"width": WIDTH, "floor": FLOOR, "height": HEIGHT},
        rows=[_row(verdict, items, feedback.get(verdict.student, "")) for verdict in ordered],
        signs={outcome: sign for outcome, (sign, _) in SIGNS.items()},
        kinds=KINDS,
        ranked=RANKED,
        catalogue=catalogue(),
        unconfined=UNCONFINED,
    )


def _bars(bins: Sequence[Bin]) -> list[Bar]:
    step, most = WIDTH / len(bins), max(one.students for one in bins)
    return [
        Bar(
            left=round((number + 0.1) * step, 1),
            width=round(0.8 * step, 1),
            height=round(BAR * one.students / most, 1),
            students=one.students,
            tick=f"{one.low:g}",
            range=f"{one.low:g} to below {one.high:g} points",
        )
        for number, one in enumerate(bins)
    ]


def _row(verdict: Verdict, items: Sequence[str], page: str) -> Row:
    outcomes = {item.item: item.outcome for item in verdict.items}
    found = [outcomes.get(item) for item in items]
    cells = [(KINDS[outcome], SIGNS[outcome][0]) if outcome else ("o", "") for outcome in found]
    troubles = [
        f"{item.item} {item.outcome}: {item.message}"
        for item in verdict.items
        if item.outcome not in NO_TROUBLE
    ]
    if verdict.reason:
        troubles = [f"{verdict.status}: {verdict.reason}"]
    return Row(verdict.student, page, verdict.points, cells, troubles)
