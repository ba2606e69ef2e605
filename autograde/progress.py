"""What an instructor sees while a class is graded, and the log of it for programs."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from autograde.classroom import ClassRun, Row
from autograde.verdict import Status, Verdict

EVERY = 10.0  # seconds between lines where there is no terminal to draw a bar on
LONG = 5.0  # seconds under way after which a submission is named


@dataclass
class Watch:
    """Passes the rows of a run on, drawing its progress and writing a line of JSON for each.

    On a terminal a bar with what it knows so far; elsewhere a line now and then; `quiet`: nothing.
    """

    run: ClassRun
    console: Console
    log: Path
    quiet: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    slowest: Verdict | None = None
    fresh: int = 0

    def rows(self) -> Iterator[Row]:
        """The rows of the run, as they come."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as log, self._bar() as bar:
            task = bar.add_task(self.run.assignment.level, total=len(self.run.students), speed="")
            started = spoken = time.monotonic()
            _write(log, event="start", level=self.run.assignment.level, students=bar.tasks[0].total)
            for row in self.run:
                self._count(row)
                _write(log, event="verdict", **_about(row))
                elapsed = time.monotonic() - started
                speed = f"{self.fresh / elapsed:.1f}/s" if self.fresh and elapsed else ""
                bar.update(task, advance=1, speed=speed)
                silent = self.quiet or self.console.is_terminal
                if not silent and time.monotonic() - spoken >= EVERY:
                    spoken = time.monotonic()
                    self.console.print(self._line(elapsed), highlight=False, soft_wrap=True)
                yield row
            _write(log, event="end", graded=self.fresh, left=len(self.run.left))

    def _count(self, row: Row) -> None:
        self.counts[row.verdict.status] += 1
        if row.fresh:
            self.fresh += 1
            if self.slowest is None or row.verdict.seconds > self.slowest.seconds:
                self.slowest = row.verdict
        else:
            self.counts["unchanged"] += 1

    def _bar(self) -> "_Bar":
        return _Bar(
            self._status,
            TextColumn("grading {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("time left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=self.quiet or not self.console.is_terminal,
        )

    def _line(self, elapsed: float) -> Text:
        done, total = self.counts.total() - self.counts["unchanged"], len(self.run.students)
        left = elapsed / done * (total - done)
        start = f"{self.run.assignment.level}: {done:,} of {total:,}, about {left:,.0f} s left; "
        return Text(start) + self._status()

    def _status(self) -> Text:
        """Counts by outcome, the slowest so far, and who is long under way."""
        parts = [
            f"{self.counts[key]:,} {key}" for key in (*Status, "unchanged") if self.counts[key]
        ]
        if self.slowest and self.slowest.seconds > 0:
            parts.append(f"slowest {self.slowest.student} {self.slowest.seconds:.1f} s")
        now, under_way = time.monotonic(), self.run.under_way.copy()
        for student, since in sorted(under_way.items(), key=itemgetter(1))[:2]:
            if now - since > LONG:
                parts.append(f"waiting for {student} ({now - since:.0f} s)")
        return Text(" · ".join(parts), "dim")


class _Bar(Progress):
    """A bar with a line of text below it."""

    def __init__(self, below: Callable[[], Text], *columns: ProgressColumn, **options: Any) -> None:
        self.below = below
        super().__init__(*columns, **options)

    def get_renderable(self) -> RenderableType:
        return Group(super().get_renderable(), self.below())


def changes(rows: list[Row]) -> Iterator[str]:
    """Who has other points than last time, and by which items; a line each."""
    for row in rows:
        old, new = row.before, row.verdict
        if old is None or (old.points, old.items) == (new.points, new.items):
            continue
        before = {item.item: item for item in old.items}
        items = [
            f"{item.item} {before[item.item].outcome} → {item.outcome}"
            for item in new.items
            if item.item in before and before[item.item].outcome != item.outcome
        ]
        why = f": {', '.join(items)}" if items else ""
        yield f"{new.student} {_points(old)} → {_points(new)}{why}"


def _points(verdict: Verdict) -> str:
    return "–" if verdict.points is None else f"{verdict.points:g}"


def _about(row: Row) -> dict[str, object]:
    verdict = row.verdict
    return {
        "student": verdict.student,
        "status": verdict.status,
        "points": verdict.points,
        "max_points": verdict.max_points,
        "seconds": verdict.seconds,
        "fresh": row.fresh,
        "before": row.before.points if row.before else None,
        "reason": verdict.reason,
    }


def _write(log: TextIO, **event: object) -> None:
    """A line for programs; on disk at once, so that a run that is stopped has its log."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    log.write(json.dumps({"time": now, **event}, ensure_ascii=False) + "\n")
    log.flush()
