"""What grading says about one submission: typed, plain, and apart from how it was found out."""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Self

MESSAGE_LENGTH = 500


class Outcome(StrEnum):
    """How one item came out."""

    CORRECT = "correct"
    WRONG = "wrong"
    NOT_ATTEMPTED = "not attempted"
    ERROR = "error"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"
    NEEDS_PERSON = "needs a person"
    MARKED = "marked by a person"  # in a gradebook's `Marks`, never in a verdict that is kept


class Status(StrEnum):
    """How far a submission was graded."""

    GRADED = "graded"
    PARTLY = "partly graded"  # some items need a person
    UNGRADABLE = "ungradable"


@dataclass(frozen=True)
class ItemResult:
    """One item of one submission; `points` is None as long as nobody knows them.

    `misconception` is the id of the misunderstanding that a wrong answer shows, where it is known.
    """

    item: str
    outcome: Outcome
    points: float | None
    max_points: float
    message: str = ""
    misconception: str = ""


@dataclass(frozen=True)
class Verdict:
    """One submission. `reason` says why an ungradable one is; it then has no items.

    `notes` tells what was put right in the file; `confined` is False where the student's code ran
    without a sandbox, and `seconds` is how long grading took. `key` is the digest of all that the
    verdict follows from: while it stays the same, so does the verdict.

    >>> items = (ItemResult("a", Outcome.CORRECT, 2, 2), ItemResult("b", Outcome.WRONG, 0, 3))
    >>> verdict = Verdict("mueller-07", "level2", items)
    >>> verdict.status.value, verdict.points, verdict.max_points
    ('graded', 2, 5)
    >>> Verdict.from_json(verdict.to_json()) == verdict
    True
    """

    student: str
    level: str
    items: tuple[ItemResult, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    confined: bool = True
    seconds: float = field(default=0.0, compare=False)
    key: str = field(default="", compare=False)

    def to_json(self) -> str:
        """The verdict as text to keep."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The verdict that `to_json` wrote."""
        fields = json.loads(text)
        items = (item | {"outcome": Outcome(item["outcome"])} for item in fields["items"])
        fields["items"] = tuple(ItemResult(**item) for item in items)
        return cls(**fields | {"notes": tuple(fields["notes"])})

    @property
    def status(self) -> Status:
        """Graded only if the points of every item are known."""
        if self.reason:
            return Status.UNGRADABLE
        known = all(item.points is not None for item in self.items)
        return Status.GRADED if known else Status.PARTLY

    @property
    def points(self) -> float | None:
        """The points known so far; None, not zero, for an ungradable submission."""
        return None if self.reason else sum(item.points or 0 for item in self.items)

    @property
    def max_points(self) -> float:
        """The points to be had."""
        return sum(item.max_points for item in self.items)


def one_line(text: str) -> str:
    """A message on one line, printable and short."""
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if len(line) <= MESSAGE_LENGTH else line[: MESSAGE_LENGTH - 1] + "…"
