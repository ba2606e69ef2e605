"""What an instructor reads in the terminal after grading: a table, and one line about it."""

from statistics import median

from rich.table import Table
from rich.text import Text

from autograde.verdict import Outcome, Status, Verdict

SIGNS = {
    Outcome.CORRECT: ("✓", "green"),
    Outcome.WRONG: ("✗", "red"),
    Outcome.NOT_ATTEMPTED: ("·", "dim"),
    Outcome.ERROR: ("!", "magenta"),
    Outcome.TIMED_OUT: ("T", "magenta"),
    Outcome.OUT_OF_MEMORY: ("M", "magenta"),
    Outcome.CRASHED: ("C", "magenta"),
    Outcome.NEEDS_PERSON: ("?", "yellow"),
    Outcome.MARKED: ("+", "blue"),
}
UNTROUBLED = (Outcome.CORRECT, Outcome.NEEDS_PERSON, Outcome.MARKED)
UNCONFINED = "graded WITHOUT a sandbox: student code could do anything, also to these results"


def table(verdicts: list[Verdict], level: str) -> Table:
    """One row a student: points, a sign for each item in order, the first thing that went wrong.

    Below that what was put right in the file, since it can be an accident or an attempt.
    """
    key = "   ".join(f"{sign} {outcome}" for outcome, (sign, _) in SIGNS.items())
    how_many = f"{len(verdicts)} submission{'s'[: len(verdicts) != 1]}"
    result = Table(title=f"{level}: {how_many}", caption=key)
    if not all(verdict.confined for verdict in verdicts):
        result.caption = f"{key}\n{UNCONFINED}"
    result.add_column("student", no_wrap=True)
    result.add_column("points", justify="right", no_wrap=True)
    result.add_column("items", no_wrap=True)
    result.add_column("first trouble", overflow="fold")
    for verdict in verdicts:
        known = verdict.points is not None
        points = f"{verdict.points:g} / {verdict.max_points:g}" if known else "–"
        trouble = Text(first_trouble(verdict))
        if verdict.notes:
            more = f" (and {len(verdict.notes) - 1} more)" if len(verdict.notes) > 1 else ""
            start = "\n" if trouble else ""
            trouble.append(f"{start}note: {verdict.notes[0]}{more}", "dim")
        result.add_row(Text(verdict.student), points, _signs(verdict), trouble)
    return result


def summary(verdicts: list[Verdict]) -> str:
    """How many were graded, and how well, in one line."""
    counts = {status: sum(v.status == status for v in verdicts) for status in Status}
    known = [verdict.points for verdict in verdicts if verdict.points is not None]
    line = ", ".join(f"{count} {status}" for status, count in counts.items())
    if known:
        line += f"; median {median(known):g} points"
    return line if all(verdict.confined for verdict in verdicts) else f"{line}; {UNCONFINED}"


def first_trouble(verdict: Verdict) -> str:
    """The first item that went wrong, in words; the reason if nothing could be graded."""
    if verdict.reason:
        return f"{Status.UNGRADABLE}: {verdict.reason}"
    for item in verdict.items:
        if item.outcome not in UNTROUBLED or item.message:
            return f"{item.item} {item.outcome}" + (f": {item.message}" if item.message else "")
    return ""


def _signs(verdict: Verdict) -> Text:
    signs = (SIGNS[item.outcome] for item in verdict.items)
    return Text.assemble(*signs)
