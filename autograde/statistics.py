"""What the verdicts on a class add up to: pure numbers, from which reports are made."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import correlation, fmean, median

from autograde.verdict import ItemResult, Outcome, Status, Verdict

MAX_BINS = 31
SLOW, SLOW_S = 3, 1.0  # times the class's median, but no less than so many seconds


@dataclass(frozen=True)
class Bin:
    """Students with at least `low` points and less than `high`."""

    low: float
    high: float
    students: int


@dataclass(frozen=True)
class Scores:
    """The points known so far of every submission that could be graded."""

    students: int
    max_points: float
    mean: float | None
    median: float | None
    lowest: float | None
    highest: float | None
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class ItemStatistics:
    """One item over the class.

    `difficulty` is the mean share of its points: 1 if everybody has them all, 0 if nobody has any.
    `discrimination` is the item-rest correlation: of the share of this item's points with the share
    of all other points that are known. Both are None where undefined, as while answers wait for a
    person: until then only those left blank have points.
    """

    item: str
    max_points: float
    difficulty: float | None
    discrimination: float | None
    outcomes: dict[Outcome, int]


@dataclass(frozen=True)
class MisconceptionCount:
    """How many answers showed a misconception, whose, and in which items."""

    misconception: str
    answers: int
    students: tuple[str, ...]
    items: tuple[str, ...]


@dataclass(frozen=True)
class Ungradable:
    """A submission that a person must look at, and why."""

    student: str
    reason: str


@dataclass(frozen=True)
class ToMark:
    """The students whose answer to an item is to be marked by hand."""

    item: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Slow:
    """A submission that took much longer to grade than the others."""

    student: str
    seconds: float


@dataclass(frozen=True)
class Repaired:
    """A submission in which something was put right, and what."""

    student: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ClassStatistics:
    """Everything that a report says about a class in numbers."""

    level: str
    submissions: int
    statuses: dict[Status, int]
    ungradable: tuple[Ungradable, ...]
    to_mark: tuple[ToMark, ...]
    scores: Scores
    outcomes: dict[Outcome, int]
    items: tuple[ItemStatistics, ...]
    misconceptions: tuple[MisconceptionCount, ...]
    median_seconds: float
    slow_above: float
    slow: tuple[Slow, ...]
    repaired: tuple[Repaired, ...]
    unconfined: tuple[str, ...]  # graded without a sandbox


def class_statistics(verdicts: Iterable[Verdict], level: str) -> ClassStatistics:
    """The statistics of a class; the order of the verdicts does not matter.

    >>> right = ItemResult("a", Outcome.CORRECT, 2, 2)
    >>> wrong = ItemResult("a", Outcome.WRONG, 0, 2, "That is in bits.", "M6")
    >>> found = class_statistics([Verdict("ada", "x", (right,)), Verdict("bo", "x", (wrong,))], "x")
    >>> found.scores.mean, found.items[0].difficulty, found.misconceptions[0].students
    (1.0, 0.5, ('bo',))
    """
    ordered = sorted(verdicts, key=lambda verdict: verdict.student)
    graded = [verdict for verdict in ordered if not verdict.reason]
    results = _by_item(graded)
    usual = median(verdict.seconds for verdict in graded) if graded else 0
    slow_above = max(SLOW_S, SLOW * usual)
    statuses = Counter(verdict.status for verdict in ordered)
    return ClassStatistics(
        level=level,
        submissions=len(ordered),
        statuses={status: statuses[status] for status in Status},
        ungradable=tuple(Ungradable(v.student, v.reason) for v in ordered if v.reason),
        to_mark=tuple(_to_mark(results)),
        scores=_scores(graded),
        outcomes=_count(item.outcome for verdict in graded for item in verdict.items),
        items=tuple(_item(name, found) for name, found in results.items()),
        misconceptions=tuple(_misconceptions(graded)),
        median_seconds=usual,
        slow_above=slow_above,
        slow=tuple(_slow(graded, slow_above)),
        repaired=tuple(Repaired(v.student, v.notes) for v in ordered if v.notes),
        unconfined=tuple(v.student for v in ordered if not v.confined),
    )


def _by_item(graded: Sequence[Verdict]) -> dict[str, list[tuple[ItemResult, Verdict]]]:
    """The results of each item, with the verdicts they are from, in the order of the notebook."""
    results = defaultdict(list)
    for verdict in graded:
        for item in verdict.items:
            results[item.item].append((item, verdict))
    return results


def _count(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    counts = Counter(outcomes)
    return {outcome: counts[outcome] for outcome in Outcome}


def _scores(graded: Sequence[Verdict]) -> Scores:
    points = sorted(verdict.points or 0 for verdict in graded)
    most = max((verdict.max_points for verdict in graded), default=0)
    return Scores(
        students=len(points),
        max_points=most,
        mean=round(fmean(points), 6) if points else None,
        median=median(points) if points else None,
        lowest=points[0] if points else None,
        highest=points[-1] if points else None,
        bins=_bins(points, most),
    )


def _bins(points: Sequence[float], most: float) -> tuple[Bin, ...]:
    """Bins as wide as 1, 2, 5, 10, … points, few enough to draw; full marks are in the last."""
    steps = (factor * 10**power for power in count() for factor in (1, 2, 5))
    width = next(step for step in steps if most / step < MAX_BINS)
    last = math.floor(most / width)
    students = Counter(min(math.floor(value / width), last) for value in points)
    return tuple(Bin(i * width, (i + 1) * width, students[i]) for i in range(last + 1))


def _item(name: str, found: Sequence[tuple[ItemResult, Verdict]]) -> ItemStatistics:
    known = all(item.points is not None and item.max_points > 0 for item, _ in found)
    pairs = [
        ((item.points or 0) / item.max_points, _rest(item, verdict))
        for item, verdict in (found if known else ())
    ]
    return ItemStatistics(
        item=name,
        max_points=max(item.max_points for item, _ in found),
        difficulty=round(fmean(share for share, _ in pairs), 6) if pairs else None,
        discrimination=_correlation([(share, rest) for share, rest in pairs if rest is not None]),
        outcomes=_count(item.outcome for item, _ in found),
    )


def _rest(item: ItemResult, verdict: Verdict) -> float | None:
    """The share of the other points that are known."""
    others = [
        (other.points, other.max_points)
        for other in verdict.items
        if other.points is not None and other is not item
    ]
    most = sum(max_points for _, max_points in others)
    return sum(points for points, _ in others) / most if most > 0 else None


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's, or None where either side is the same for everybody."""
    own, rest = ([round(pair[side], 9) for pair in pairs] for side in (0, 1))
    if len(set(own)) < 2 or len(set(rest)) < 2:
        return None
    return round(correlation(own, rest), 6)


def _to_mark(results: dict[str, list[tuple[ItemResult, Verdict]]]) -> Iterator[ToMark]:
    for name, found in results.items():
        students = tuple(verdict.student for item, verdict in found if item.points is None)
        if students:
            yield ToMark(name, students)


def _misconceptions(graded: Sequence[Verdict]) -> list[MisconceptionCount]:
    """The one that most students show comes first."""
    shown = defaultdict(list)
    for verdict in graded:
        for item in verdict.items:
            if item.misconception:
                shown[item.misconception].append((verdict.student, item.item))
    counts = [
        MisconceptionCount(
            misconception=id,
            answers=len(answers),
            students=tuple(dict.fromkeys(student for student, _ in answers)),
            items=tuple(sorted({item for _, item in answers})),
        )
        for id, answers in shown.items()
    ]
    return sorted(counts, key=lambda m: (-len(m.students), -m.answers, m.misconception))


def _slow(graded: Sequence[Verdict], above: float) -> list[Slow]:
    """The slowest first."""
    slow = [Slow(verdict.student, verdict.seconds) for verdict in graded if verdict.seconds > above]
    return sorted(slow, key=lambda one: (-one.seconds, one.student))
