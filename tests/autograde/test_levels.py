"""Every level through the trusted grader: untouched it is worth nothing, solved everything."""

from pathlib import Path

import pytest

from autograde.assignment import Assignment
from autograde.course import find_course
from autograde.grade import grade
from autograde.master import items, read_master
from autograde.notebook import read_notebook
from autograde.verdict import Outcome

COURSE = find_course(Path(__file__).parents[2])
LEVELS = [level for level in COURSE.levels() if COURSE.has_points(level)]


@pytest.fixture(params=LEVELS)
def level(request):
    return request.param


@pytest.fixture
def graded(level, nursery):
    """The items of a file at a step, `release` or `solution`, handed in as it is."""
    release = read_notebook(COURSE.notebook("release", level))
    assignment = Assignment(level, release, read_master(COURSE.masters / f"{level}.py"))

    def graded(step):
        verdict = grade(COURSE.notebook(step, level).read_bytes(), assignment, nursery).verdict
        assert not verdict.reason
        return verdict.items

    return graded


def test_an_untouched_level_scores_nothing_and_nothing_is_attempted(graded):
    found = graded("release")
    assert {item.outcome for item in found} == {Outcome.NOT_ATTEMPTED}
    assert {item.points for item in found} == {0}


def test_the_solution_gets_every_point_that_no_person_gives(graded, level):
    found = {item.item: item for item in graded("solution")}
    for item in items(read_master(COURSE.masters / f"{level}.py")):
        result = found[item.name]
        expected = Outcome.NEEDS_PERSON if item.by_hand else Outcome.CORRECT
        assert result.outcome == expected, result
        assert result.points == (None if item.by_hand else item.points)


def test_the_course_has_a_hundred_points_and_a_bonus():
    points = {}
    for level in LEVELS:
        found = items(read_master(COURSE.masters / f"{level}.py"))
        points[level] = sum(item.points for item in found)
    assert points.pop("level6_frontier") == 12
    assert points == {"level1": 10, "level2": 15, "level3": 22, "level4": 25, "level5": 28}
