"""The statistics of a class agree with theory, and with counting."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograde.statistics import MAX_BINS, class_statistics
from autograde.verdict import ItemResult, Outcome, Status, Verdict

# --- classes that are made to have one property ---------------------------------------------------


def class_of(*rows, points=1):
    """A class from each student's marks, as "110" for two items right and one wrong."""
    outcomes = {"1": Outcome.CORRECT, "0": Outcome.WRONG, "-": Outcome.NOT_ATTEMPTED}
    return [
        Verdict(
            f"student-{number}",
            "tiny",
            tuple(
                ItemResult(f"I{i}", outcomes[sign], points * (sign == "1"), points)
                for i, sign in enumerate(row)
            ),
        )
        for number, row in enumerate(rows)
    ]


def items_of(verdicts):
    return class_statistics(verdicts, "tiny").items


def test_the_difficulty_of_an_item_is_the_mean_share_of_its_points():
    verdicts = class_of("11", "10", "10", "0-", points=4)
    assert [item.difficulty for item in items_of(verdicts)] == [0.75, 0.25]


def test_items_that_order_the_class_alike_discriminate_perfectly():
    assert [item.discrimination for item in items_of(class_of("11", "11", "00"))] == [1, 1]


def test_in_a_perfectly_ordered_class_every_item_discriminates():
    guttman = ["0000", "1000", "1100", "1110", "1111"]
    assert all(item.discrimination > 0.5 for item in items_of(class_of(*guttman)))


def test_an_item_that_only_the_others_get_right_discriminates_backwards():
    found = [item.discrimination for item in items_of(class_of("110", "110", "001", "001"))]
    assert found[2] == -1
    assert items_of(class_of("10", "01"))[0].discrimination == -1


def test_an_item_answered_by_chance_discriminates_hardly():
    draw = random.Random(0)
    rows = [f"{draw.choice('01')}" + ("1111" if n % 2 else "0000") for n in range(2000)]
    assert abs(items_of(class_of(*rows))[0].discrimination) < 0.1


def test_discrimination_is_that_of_the_textbook():
    # 1 1 0 0 1 against 2 1 1 0 1: means 0.6 and 1, variances 0.24 and 0.4, covariance 0.2
    found = items_of(class_of("111", "110", "010", "000", "101"))
    assert found[0].discrimination == pytest.approx(0.2 / (0.24 * 0.4) ** 0.5, abs=1e-6)


@pytest.mark.parametrize("rows", [["11"], ["11", "11"], ["1", "0"], ["10", "00"]])
def test_discrimination_is_undefined_where_nothing_varies(rows):
    assert items_of(class_of(*rows))[0].discrimination is None


def test_an_item_that_waits_for_a_person_has_no_difficulty_yet():
    blank = ItemResult("words", Outcome.NOT_ATTEMPTED, 0, 1)
    waiting = ItemResult("words", Outcome.NEEDS_PERSON, None, 1)
    verdicts = [Verdict("a", "tiny", (blank,)), Verdict("b", "tiny", (waiting,))]
    (item,) = items_of(verdicts)
    assert (item.difficulty, item.discrimination) == (None, None)
    found = class_statistics(verdicts, "tiny")
    assert [(one.item, one.students) for one in found.to_mark] == [("words", ("b",))]


def test_misconceptions_are_ranked_by_how_many_students_show_them():
    def shows(student, *ids):
        wrong = [ItemResult(f"I{i}", Outcome.WRONG, 0, 1, "no", id) for i, id in enumerate(ids)]
        return Verdict(student, "tiny", tuple(wrong))

    found = class_statistics(
        [shows("b", "M6", "M4"), shows("a", "M4", ""), shows("c", "M5", "M5")], "tiny"
    ).misconceptions
    assert [(m.misconception, m.answers, m.students, m.items) for m in found] == [
        ("M4", 2, ("a", "b"), ("I0", "I1")),
        ("M5", 2, ("c",), ("I0", "I1")),
        ("M6", 1, ("b",), ("I0",)),
    ]


def test_slow_is_what_takes_much_longer_than_the_others_and_long_enough_to_matter():
    def slow(*seconds):
        verdicts = [
            replace(verdict, seconds=one)
            for verdict, one in zip(class_of(*["1"] * len(seconds)), seconds, strict=True)
        ]
        return [one.seconds for one in class_statistics(verdicts, "tiny").slow]

    assert slow(1, 1, 1, 3.5, 9) == [9, 3.5]
    assert slow(0.01, 0.01, 0.9) == []
    assert slow(20, 20, 30) == []


def test_full_marks_have_a_bin_of_their_own():
    bins = class_statistics(class_of("111", "111", "110", "000"), "tiny").scores.bins
    assert [(one.low, one.students) for one in bins] == [(0, 1), (1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize("verdicts", [[], [Verdict("a", "tiny", reason="It is damaged.")] * 3])
def test_a_class_without_a_graded_submission_has_no_numbers_and_no_errors(verdicts):
    found = class_statistics(verdicts, "tiny")
    assert (found.submissions, len(found.ungradable)) == (len(verdicts), len(verdicts))
    assert (found.items, found.misconceptions, found.slow) == ((), (), ())
    assert (found.scores.students, found.scores.mean, found.scores.median) == (0, None, None)


# --- any class ------------------------------------------------------------------------------------


@st.composite
def classes(draw):
    """Verdicts on the same items, some ungradable."""
    worth = draw(st.lists(st.sampled_from([0.5, 1, 2, 3, 10]), min_size=1, max_size=5))
    verdicts = []
    for number in range(draw(st.integers(0, 8))):
        if draw(st.booleans()) and draw(st.booleans()):
            verdicts.append(Verdict(f"student-{number}", "tiny", reason="It is damaged."))
            continue
        items = []
        for i, most in enumerate(worth):
            outcome = draw(st.sampled_from(Outcome))
            points = {Outcome.CORRECT: most, Outcome.NEEDS_PERSON: None}.get(outcome, 0)
            id = draw(st.sampled_from(["", "M1", "M6"])) if outcome == Outcome.WRONG else ""
            items.append(ItemResult(f"I{i}", outcome, points, most, "", id))
        seconds = draw(st.floats(0, 100))
        verdicts.append(Verdict(f"student-{number}", "tiny", tuple(items), seconds=seconds))
    return verdicts


@given(classes())
def test_counts_add_up_to_students_times_items(verdicts):
    found = class_statistics(verdicts, "tiny")
    graded = sum(verdict.status != Status.UNGRADABLE for verdict in verdicts)
    assert sum(found.statuses.values()) == found.submissions == len(verdicts)
    assert sum(found.outcomes.values()) == graded * len(found.items)
    for outcome in Outcome:
        assert found.outcomes[outcome] == sum(item.outcomes[outcome] for item in found.items)
    assert all(sum(item.outcomes.values()) == graded for item in found.items)
    assert sum(one.students for one in found.scores.bins) == found.scores.students == graded
    assert len(found.scores.bins) <= MAX_BINS
    waiting = sum(len(one.students) for one in found.to_mark)
    assert waiting == found.outcomes[Outcome.NEEDS_PERSON]


@given(classes(), st.randoms())
def test_the_order_of_the_students_changes_nothing(verdicts, draw):
    shuffled = list(verdicts)
    draw.shuffle(shuffled)
    assert class_statistics(shuffled, "tiny") == class_statistics(verdicts, "tiny")


@given(classes())
def test_ratios_stay_in_their_range_and_scores_among_the_points(verdicts):
    found = class_statistics(verdicts, "tiny")
    for item in found.items:
        assert item.difficulty is None or 0 <= item.difficulty <= 1
        assert item.discrimination is None or -1 <= item.discrimination <= 1
    scores = found.scores
    if scores.students:
        assert 0 <= scores.lowest <= scores.median <= scores.highest <= scores.max_points
        assert scores.lowest <= scores.mean <= scores.highest
