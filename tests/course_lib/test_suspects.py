"""The suspects of Level 5: one of them pays the chain rule's price, each of the others another."""

import math

import pytest
import torch

from course_lib.oracle import MarkovWorld
from course_lib.teaching.suspects import SUSPECTS

WORLD = MarkovWorld.random(8, generator=torch.Generator().manual_seed(7), sharpness=2.0)
TEXTS_BT = WORLD.sample(4_000, 8, generator=torch.Generator().manual_seed(0))


def estimates(suspect, *, mask=0.0, runs=10):
    """What a suspect says of an oracle that knows no visible letter and has a logit for [MASK]."""

    def model(ids_BT, hidden_BT):
        log_probs_BTV = WORLD.masked_log_probs(ids_BT, hidden_BT)
        logits_BTV = log_probs_BTV.masked_fill(~hidden_BT.unsqueeze(-1), 0.0)
        return torch.nn.functional.pad(logits_BTV, (0, 1), value=mask)

    seeds = (torch.Generator().manual_seed(seed) for seed in range(runs))
    return torch.stack([suspect(model, TEXTS_BT, generator) for generator in seeds])


def errors_of(suspect):
    """How far a suspect is from the chain rule, in standard errors."""
    runs = estimates(suspect)
    exact = -WORLD.log_prob(TEXTS_BT).mean() / TEXTS_BT.shape[1]
    return float((runs.mean() - exact).abs() / (runs.std() / math.sqrt(len(runs))))


def test_the_right_one_estimates_the_chain_rule():
    assert errors_of(SUSPECTS["right"]) < 5


@pytest.mark.parametrize("name", [name for name in SUSPECTS if name != "right"])
def test_each_bug_moves_the_estimate(name):
    assert errors_of(SUSPECTS[name]) > 20


def test_the_right_one_does_not_care_what_a_model_says_of_the_mask():
    right = SUSPECTS["right"]
    assert torch.equal(estimates(right, mask=9.0, runs=2), estimates(right, runs=2))


def test_the_mask_bug_stays_hidden_from_a_model_that_never_says_mask():
    right = estimates(SUSPECTS["right"], mask=-math.inf, runs=2)
    assert torch.allclose(estimates(SUSPECTS["mask allowed"], mask=-math.inf, runs=2), right)
