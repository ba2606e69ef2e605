"""Any mutation of a submission ends as a row: points for every item, or a reason.

Set FUZZ to the number of mutated submissions, for example `FUZZ=2000 pytest tests/corpus`.
"""

import copy
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from classes import ITEMS, LEVEL, Row, answered, check_good_ones, grade, once, verdict

from autograde.course import find_course
from autograde.notebook import read_notebook

COUNT = int(os.environ.get("FUZZ", "60"))
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1e308, "", "\0", "\ud800", "x" * 10_000, [], {}, [[]], [None],
    {"": {}},
    "code", "markdown", "W_choices", "test_W_choices", "assert False", "choices = 8", ["a\n", 7],
    "<<<<<<< HEAD\n", "import os; os._exit(3)", "raise SystemExit", "def f(", "%%bash\nexit 1",
)  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys or positions."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys if isinstance(value, dict | list) else ():
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def mutated(notebook: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The notebook with one place in it changed, removed, doubled, or swapped with another."""
    container, key = draw.choice(list(places(notebook)))
    other, at = draw.choice(list(places(notebook)))
    match draw.randrange(6):
        case 0 | 1:
            container[key] = copy.deepcopy(draw.choice(STRANGE))
        case 2:
            del container[key]
        case 3 if isinstance(container, list):
            container.insert(draw.randrange(len(container) + 1), copy.deepcopy(container[key]))
        case 4 if isinstance(container[key], str):
            text = container[key]
            cut = draw.randrange(len(text) + 1)
            container[key] = (
                text[:cut] + draw.choice(("", "\n", "(", "'", " ", "é")) + text[cut + 1 :]
            )
        case _:
            value = copy.deepcopy(container[key])
            container[key], other[at] = copy.deepcopy(other[at]), value
    return notebook


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Now and then the bytes are cut, changed, doubled or in another encoding."""
    changes: list[Callable[[bytes], bytes]] = [
        lambda d: d[: draw.randrange(len(d) + 1)],
        lambda d: d[draw.randrange(len(d) + 1) :],
        lambda d: d + d,
        lambda d: d.decode("utf-8", "replace").encode("utf-16"),
        lambda d: bytes(b if draw.random() > 0.001 else draw.randrange(256) for b in d),
        lambda d: d.replace(b"}", draw.choice((b"", b"]", b"}}", b"},")), draw.randrange(1, 9)),
    ]
    return draw.choice(changes)(data) if draw.random() < 0.25 else data


def submission(release: dict[str, Any], number: int) -> bytes:
    """The mutated submission of that number, always the same."""
    draw = random.Random(number)
    for _ in range(draw.choice((1, 1, 2, 3, 8, 30))):
        release = mutated(release, draw) if release else release
    return damaged(json.dumps(release).encode(), draw)


@pytest.fixture(scope="module")
def fuzzed(walls: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(root: Path) -> None:
        shutil.copytree(walls, root, ignore=shutil.ignore_patterns("made"))
        course = find_course(root)
        release = answered(read_notebook(course.notebook("release", LEVEL)), course, {})
        text = json.dumps(release)

        def row(number: int) -> Row:
            return Row(f"fuzz-{number:04}", data=lambda _: submission(json.loads(text), number))

        grade(root, map(row, range(COUNT)))

    return once(tmp_path_factory, "fuzzed", make)


def test_every_mutation_is_a_row_with_points_or_a_reason(fuzzed: Path) -> None:
    ends: Counter[str] = Counter()
    for number in range(COUNT):
        found = verdict(fuzzed, f"fuzz-{number:04}")
        assert "grader" not in found.reason, (number, found.reason)
        if found.reason:
            ends[found.reason] += 1
            continue
        assert [item.item for item in found.items] == list(ITEMS.values())
        for item in found.items:
            assert item.points == (item.max_points if item.outcome == "correct" else 0), number
        ends[f"{found.points:g} points"] += 1
    assert sum(ends.values()) == COUNT
    assert ends["8 points"] > COUNT // 20, ends  # most mutations hurt no answer
    print(*ends.most_common(), sep="\n")


def test_the_good_submissions_of_the_class_have_full_marks(fuzzed: Path) -> None:
    check_good_ones(fuzzed)
