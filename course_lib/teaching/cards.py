"""Flashcards: five from earlier levels open a notebook, each coming back later when it was known.

A card that was known comes back after 1, 2, 4, 8, ... days, one that was not the next time. The
schedule is a file beside the notebooks, `.cards.json`: card -> [times known in a row, day due].
Nothing is graded, and no trouble with that file ever reaches a student.
"""

import contextlib
import functools
import json
import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from course_lib.teaching.live import Live, Page, folded, prose

if TYPE_CHECKING:
    from ipywidgets import Widget

__all__ = ["LEVELS", "Card", "cards", "deck"]

LEVELS = ("primer", "level1", "level2", "level3", "level4", "level5", "level6_frontier")
HAND = 5
DOUBLINGS = 9  # a card never rests for longer than 2**9 days

Schedule = dict[str, tuple[int, int]]  # card -> times known in a row, day (an ordinal) when due


class Card(NamedTuple):
    """A question, its answer, and the level after which it can be asked."""

    id: str
    level: str
    question: str
    answer: str


def cards(level: str) -> Live:
    """Five cards of the levels before `level`, those due first; the primer's own in the primer.

    Without a live front end: the five that everybody starts with, as lines that unfold.
    Raises ValueError for a level that is none.

    >>> print(cards("level2").page.text.splitlines()[0])
    Five flashcards from what came before:
    """
    known = deck(level)
    first = draw(known, {}, today=0)
    static = "".join(folded(card.question, card.answer) for card in first)
    text = "\n".join(["Five flashcards from what came before:", *(c.question for c in first)])
    return Live(lambda: _widget(known, _path()), Page(static, text))


def deck(level: str) -> list[Card]:
    """The cards that may come up in `level`, one of each level in turn, the latest level first."""
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}: say one of {', '.join(LEVELS)}")
    earlier = LEVELS[: max(1, LEVELS.index(level))]
    places = {
        card.id: (place, -earlier.index(name))
        for name in earlier
        for place, card in enumerate(card for card in _all() if card.level == name)
    }
    return sorted((card for card in _all() if card.id in places), key=lambda c: places[c.id])


def draw(known: list[Card], schedule: Schedule, today: int) -> list[Card]:
    """The next five: those due, longest due first; then new ones; then those due soonest."""
    seen = sorted((c for c in known if c.id in schedule), key=lambda c: schedule[c.id][1])
    due = [card for card in seen if schedule[card.id][1] <= today]
    new = [card for card in known if card.id not in schedule]
    return [*due, *new, *seen[len(due) :]][:HAND]


def after(known: bool, times: int, today: int) -> tuple[int, int]:
    """A card's new entry in the schedule, once it was known for the `times + 1`st time, or not.

    >>> after(True, times=3, today=100), after(False, times=3, today=100)
    ((4, 108), (0, 100))
    """
    return (times + 1, today + 2 ** min(times, DOUBLINGS)) if known else (0, today)


@functools.cache
def _all() -> tuple[Card, ...]:
    entries = tomllib.loads((files("course_lib.teaching") / "cards.toml").read_text("utf-8"))
    return tuple(Card(id, **entry) for id, entry in entries.items())


def _path() -> Path:
    """One file for all levels, which lie side by side in folders of their names."""
    here = Path.cwd()
    return (here.parent if here.name in LEVELS else here) / ".cards.json"


def _load(path: Path) -> Schedule:
    """What the file says; what it says wrongly, or where there is none, starts afresh."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        entries = json.loads(path.read_text("utf-8"))
        return {
            str(card): (times, day)
            for card, (times, day) in entries.items()
            if type(times) is int and type(day) is int and times >= 0
        }
    return {}


def _save(path: Path, schedule: Schedule) -> None:
    with contextlib.suppress(OSError):
        path.write_text(json.dumps(schedule, indent=1) + "\n", "utf-8")


def _widget(known: list[Card], path: Path) -> "Widget":
    """One card after the other: the question, on request the answer, then known or not."""
    from ipywidgets import HTML, Button, HBox, VBox

    today = date.today().toordinal()
    hand = draw(known, _load(path), today)
    face, back = HTML(), HTML()
    show = Button(description="Show the answer")
    knew = Button(description="I knew it", button_style="success")
    not_yet = Button(description="Not yet")
    buttons = HBox()

    def ask() -> None:
        back.value = ""
        if not hand:
            face.value = "<p>That was all for now. The rest of the notebook is below.</p>"
            buttons.children = ()
            return
        face.value = f"<p><b>{prose(hand[0].question)}</b></p>"
        buttons.children = (show,)

    def reveal(_: object) -> None:
        back.value = f"<p>{prose(hand[0].answer)}</p>"
        buttons.children = (knew, not_yet)

    def note(button: object) -> None:
        card = hand.pop(0)
        schedule = _load(path)  # anew: another notebook may have written it meanwhile
        times, _ = schedule.get(card.id, (0, 0))
        _save(path, schedule | {card.id: after(button is knew, times, today)})
        ask()

    show.on_click(reveal)
    for button in (knew, not_yet):
        button.on_click(note)
    ask()
    return VBox([face, back, buttons])
