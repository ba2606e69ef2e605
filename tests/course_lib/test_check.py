import json
import random

import numpy as np
import pytest
import torch

from course_lib.teaching import check as module
from course_lib.teaching.check import (
    NotAttempted,
    Wrong,
    check,
    demand,
    diagnose,
    each,
    hint,
    observe,
    predict,
    raises,
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    for name in ("recorded", "_tried", "_opened"):
        monkeypatch.setattr(module, name, {})


@pytest.fixture
def declared():
    """A check that the hidden tests of a level have declared."""
    diagnose(
        2.0, right=2.0, public="L9.1 half", wrong={"You forgot to halve.": 4.0, "Twice halved.": 1}
    )


@pytest.mark.usefixtures("declared")
class TestCheck:
    def test_says_that_a_right_answer_is_right(self, capsys):
        check("L9.1 half", 2.0005)
        assert capsys.readouterr().out == "✓ L9.1 half: right\n"

    def test_names_the_misunderstanding(self):
        with pytest.raises(Wrong, match=r"L9\.1 half: you have 4\. You forgot to halve\."):
            check("L9.1 half", 4)

    def test_says_what_type_was_expected(self):
        with pytest.raises(Wrong, match="expected a number, got text: '2'"):
            check("L9.1 half", "2")

    def test_sends_an_unrecognised_answer_to_the_hints(self):
        with pytest.raises(Wrong, match=r'3 is not right\. Stuck\? Run hint\("L9\.1"\)'):
            check("L9.1 half", 3)

    @pytest.mark.parametrize("placeholder", [..., None])
    def test_an_untouched_answer_is_not_attempted(self, placeholder):
        with pytest.raises(NotAttempted):
            check("L9.1 half", placeholder)

    def test_calls_a_function_with_the_arguments(self):
        check("L9.1 half", lambda x: x / 2, 4)

    def test_lets_the_students_own_exception_through(self):
        with pytest.raises(ZeroDivisionError):
            check("L9.1 half", lambda x: x / 0, 4)

    def test_does_not_know_a_name_that_nobody_declared(self):
        with pytest.raises(LookupError, match="has this cell been edited"):
            check("L9.2 other", 1)

    def test_what_is_stored_does_not_show_the_answer(self):
        diagnose("marginal", right="marginal", public="L9.2 word", wrong={"No.": "uniform"})
        text = json.dumps(module.recorded)
        assert "marginal" not in text
        assert "uniform" not in text
        assert "2.0" not in text


class TestHints:
    @pytest.fixture(autouse=True)
    def hints(self, monkeypatch, declared):
        monkeypatch.setattr(module, "_hints", lambda: {"L9.1": ["idea", "example", "outline"]})

    def miss(self, answer):
        with pytest.raises(Wrong):
            check("L9.1 half", answer)

    def test_none_opens_before_a_try(self, capsys):
        hint("L9.1")
        assert "try first" in capsys.readouterr().out

    def test_each_new_wrong_answer_opens_one(self, capsys):
        self.miss(4)
        hint("L9.1")
        assert "idea" in capsys.readouterr().out
        hint("L9.1")
        assert "example" not in capsys.readouterr().out
        self.miss(4)  # the same answer again is no new attempt
        hint("L9.1")
        assert "example" not in capsys.readouterr().out
        self.miss(7)
        hint("L9.1")
        assert "example" in capsys.readouterr().out
        self.miss(8)
        self.miss(9)
        hint("L9.1")
        out = capsys.readouterr().out
        assert "outline" in out
        assert "Try something new" not in out

    def test_a_function_that_raises_is_an_attempt_too(self, capsys):
        with pytest.raises(ZeroDivisionError):
            check("L9.1 half", lambda: 1 / 0)
        hint("L9.1")
        assert "idea" in capsys.readouterr().out

    def test_an_unknown_question_lists_the_known_ones(self):
        with pytest.raises(LookupError, match=r"L9\.1"):
            hint("L7")


def test_every_question_has_three_hints_and_none_gives_a_number_away_twice():
    for question, hints in module._hints().items():
        assert len(hints) == 3 == len(set(hints)), question


class TestPredict:
    def test_shows_nothing_before_a_prediction(self, capsys):
        ran = []
        with pytest.raises(NotAttempted, match="prediction in the cell above first"):
            predict("L9.1", ..., lambda: ran.append(1))
        assert not ran
        assert capsys.readouterr().out == ""

    def test_shows_both_and_returns_the_outcome(self, capsys):
        assert predict("L9.1", torch.tensor(3), lambda: 5.0) == 5.0
        assert capsys.readouterr().out == "L9.1: you predicted 3; it came out as 5.\n"


class TestDiagnose:
    def test_the_first_matching_misunderstanding_wins(self):
        with pytest.raises(Wrong, match="first"):
            diagnose(3, right=1, wrong={"first": 3, "second": 3})

    def test_a_lure_that_equals_the_right_answer_does_no_harm(self):
        diagnose(1.0, right=1.0, wrong={"sum instead of mean": 1.0})

    def test_does_not_show_the_right_answer(self):
        with pytest.raises(Wrong) as caught:
            diagnose(3.25, right=1.125, what="a hidden case")
        assert str(caught.value) == "a hidden case: 3.25 is not right."

    def test_a_nan_is_never_right(self):
        with pytest.raises(Wrong):
            diagnose(float("nan"), right=float("nan"))

    def test_the_tolerance_can_be_tightened(self):
        diagnose(1.0005, right=1.0)
        with pytest.raises(Wrong):
            diagnose(1.0005, right=1.0, rel=1e-5)


def test_demand_shows_its_sentence_and_nothing_else():
    demand(True, "unused")
    with pytest.raises(Wrong, match=r"^Say so\.$"):
        demand(False, "Say so.")


def test_each_keeps_the_order_and_unpacks_the_arguments():
    assert each(lambda a, b=0: a - b, [(3, 1), (1, 3), (7,)]) == [2, -2, 7]


class TestObserve:
    def test_sees_a_changed_argument_but_changes_none_of_ours(self):
        ours = [1, 2]
        seen = observe(lambda xs: xs.append(3), ours)
        assert seen.args == ([1, 2, 3],)
        assert ours == [1, 2]

    def test_sees_what_was_printed(self):
        assert observe(lambda: print("hello")).printed == "hello\n"

    @pytest.mark.parametrize(
        "draw",
        [random.random, np.random.rand, lambda: torch.rand(1)],
        ids=["random", "np", "torch"],
    )
    def test_sees_that_a_global_generator_moved(self, draw):
        assert observe(draw).moved_random
        assert not observe(lambda: torch.rand(1, generator=torch.Generator())).moved_random


class TestRaises:
    def test_accepts_the_expected_error_and_refuses_none(self):
        with raises(ValueError, "must refuse"):
            raise ValueError
        with pytest.raises(Wrong, match="must refuse"), raises(ValueError, "must refuse"):
            pass

    def test_lets_any_other_error_through(self):
        with pytest.raises(KeyError), raises(ValueError, "must refuse"):
            raise KeyError
