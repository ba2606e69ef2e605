"""Every level against its own answers file: right answers pass, each mutant gets its message."""

import contextlib
import functools
import io
import os
from pathlib import Path

import pytest

from autograde.master import cells_by_id, read_answers, read_master, settings, without_markers
from autograde.notebook import read_notebook
from course_lib.teaching import check

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SOURCE = Path(__file__).parents[1] / "autograde" / "source"
REPEAT = int(os.environ.get("REPEAT", "1"))  # every test has new draws each time
LEVELS = sorted(path.stem.removesuffix("_answers") for path in SOURCE.glob("*_answers.py"))


@functools.cache
def master(level):
    return read_master(SOURCE / f"{level}.py")


@functools.cache
def answers(level):
    return read_answers(SOURCE / f"{level}_answers.py")


@functools.cache
def reference(level):
    """The names after a run of the reference, to start every other answer from."""
    namespace = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in master(level).cells:
            if cell.cell_type == "code" and not settings(cell).get("grade"):
                exec(without_markers(cell.source), namespace)
    return namespace


def grade(level, item, source):
    """What each test of `item` raises, None for a pass, when its answer cell holds `source`."""
    namespace, outcomes = dict(reference(level)), {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(without_markers(source), namespace)
        for name, cell in cells_by_id(master(level)).items():
            if name.startswith("test_") and name.removeprefix("test_").split("__")[0] == item:
                try:
                    exec(without_markers(cell.source), dict(namespace))
                    outcomes[name] = None
                except Exception as error:
                    outcomes[name] = error
    assert outcomes, f"{item} has no test"
    return outcomes


def planted(kind):
    return [
        pytest.param(level, answer, id=f"{level}-{answer.item}-{getattr(answer, kind)}")
        for level in LEVELS
        for answer in answers(level)
        if getattr(answer, kind)
        for _ in range(REPEAT)
    ]


@pytest.mark.parametrize(("level", "answer"), planted("style"))
def test_a_right_answer_in_any_style_passes(level, answer):
    outcomes = grade(level, answer.item, answer.source)
    assert not any(outcomes.values()), outcomes


@pytest.mark.parametrize(("level", "answer"), planted("mutant"))
def test_a_mutant_fails_and_is_told_its_misunderstanding(level, answer):
    errors = [error for error in grade(level, answer.item, answer.source).values() if error]
    assert errors, "the mutant survives"
    assert any(answer.message in str(error) for error in errors), errors
    assert all(isinstance(error, check.Wrong) for error in errors), errors


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("run", range(20 * REPEAT))
def test_the_reference_passes_whatever_the_draws(level, run):
    for item, cell in cells_by_id(master(level)).items():
        kind = settings(cell)
        if kind["solution"] and not kind["grade"]:
            outcomes = grade(level, item, cell.source)
            assert not any(outcomes.values()), (run, outcomes)


@pytest.mark.parametrize("level", LEVELS)
def test_every_code_item_has_four_mutants_and_three_styles(level):
    for item, cell in cells_by_id(master(level)).items():
        if not settings(cell)["solution"] or "def " not in cell.source:
            continue
        mine = [answer for answer in answers(level) if answer.item == item]
        assert sum(bool(answer.mutant) for answer in mine) >= 4, f"{item} has too few mutants"
        assert 1 + sum(bool(answer.style) for answer in mine) >= 3, f"{item} has too few styles"


def test_every_level_with_points_has_an_answers_file():
    graded = {path.stem for path in SOURCE.glob("*.py") if "points=" in path.read_text("utf-8")}
    assert graded == set(LEVELS)


def solutions(level):
    cells = cells_by_id(master(level)).items()
    return {
        item: cell.source
        for item, cell in cells
        if settings(cell)["solution"] and not settings(cell)["grade"]
    }


def test_the_committed_digests_are_current(monkeypatch):
    monkeypatch.setattr(check, "recorded", {})
    for level in LEVELS:
        for item, source in solutions(level).items():
            grade(level, item, source)
    assert check.recorded == check._answers(), "run `make build` and commit"


@pytest.mark.parametrize("level", LEVELS)
def test_an_untouched_answer_passes_no_test(level):
    release = cells_by_id(read_notebook(NOTEBOOKS / level / f"{level}.ipynb"))
    for item in solutions(level):
        errors = grade(level, item, release[item].source)
        assert all(isinstance(error, check.Wrong) for error in errors.values()), errors
