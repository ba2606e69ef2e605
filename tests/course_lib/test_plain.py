import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.teaching.plain import REL, digest, digests, kind, plain, same, short

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
scalars = st.none() | st.booleans() | st.integers() | finite | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_every_plain_value_without_nan_agrees_with_itself(value):
    assert same(plain(value), plain(value))


@given(values)
def test_every_value_has_a_kind_a_short_form_and_a_digest(value):
    value = plain(value)
    assert kind(value)
    assert len(short(value)) < 2000
    assert digest("x", value) in set(digests("x", value))


@given(st.floats(1e-6, 1e6), st.floats(-2 * REL, 2 * REL))
def test_a_digest_finds_the_numbers_that_agree_and_no_others(right, error):
    close = digest("x", right) in set(digests("x", right * (1 + error)))
    if abs(error) < 0.9 * REL:
        assert close
    if abs(error) > 1.2 * REL:
        assert not close


def test_a_digest_of_one_question_is_none_of_another():
    assert digest("L1 a", 1.0) != digest("L1 b", 1.0)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (np.float32(1.5), 1.5),
        (torch.tensor(1.5, dtype=torch.float16), 1.5),
        (torch.tensor(1.5, requires_grad=True), 1.5),
        (np.array([1, 2]), [1.0, 2.0]),
        (torch.tensor([[1], [2]]), [[1], [2]]),
        ((1, 2), [1, 2]),
        (np.bool_(True), True),
        ({"a": np.int64(1)}, {"a": 1}),
        (" b\n", "B"),
        (50_000, 50_000.0),
        (0.1 + 0.2, 0.3),
        (math.inf, math.inf),
    ],
)
def test_the_same_answer_in_another_type_agrees(answer, right):
    assert same(plain(answer), right)
    assert digest("x", right) in set(digests("x", plain(answer)))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (math.nan, 1.0),
        (True, 1),
        (1, True),
        ("1.5", 1.5),
        ([1.5], 1.5),
        ([1, 2, 3], [1, 2]),
        ([[1, 2]], [1, 2]),
        (10**400, 1.0),
        (-1.5, 1.5),
        ({"a": 1, "b": 2}, {"a": 1}),
        (math.inf, -math.inf),
    ],
)
def test_another_answer_does_not_agree(answer, right):
    assert not same(plain(answer), right)
    assert digest("x", right) not in set(digests("x", plain(answer)))


def test_a_nan_agrees_with_nothing_not_even_itself():
    assert not same(math.nan, math.nan)
    assert not same([math.nan], [math.nan])


def test_an_object_that_claims_to_equal_everything_agrees_with_nothing():
    class Always:
        def __eq__(self, other):
            return True

        __hash__ = None

    assert not same(plain(Always()), 1.0)
    assert not same(plain([Always()]), [1.0])
    assert kind(plain(Always())) == "a `Always`"


def test_a_huge_answer_is_shown_on_one_short_line():
    assert len(short(list(range(10**5)))) < 100
    assert len(short("x" * 10**6)) < 100
    assert len(short(plain(10**5000))) < 100
