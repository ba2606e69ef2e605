"""Every number of the exercises and notes the course grew from, computed by the library.

Where the text claims what an experiment refutes, the refutation is the test.
"""

import math
from typing import Literal

import pytest
import torch
from torch import Tensor

from course_lib.corruption import bert_corrupt
from course_lib.losses import IGNORE_INDEX, cross_entropy, summed_nll, token_nll
from course_lib.oracle import MarkovWorld
from course_lib.perplexity import (
    Perplexity,
    bits_to_nats,
    nats_to_bits,
    nats_to_perplexity,
    perplexity_to_nats,
)


def giving(*probabilities: float, vocab: int = 4) -> tuple[Tensor, Tensor]:
    """Log-probabilities of a model that gives its labels these probabilities, and the labels."""
    p = torch.tensor(probabilities, dtype=torch.float64)
    logits = ((1 - p) / (vocab - 1)).log().unsqueeze(-1).repeat(1, vocab)
    logits[:, 0] = p.log()
    return logits, torch.zeros(len(p), dtype=torch.int64)


def uniform(vocab: int, tokens: int = 3) -> tuple[Tensor, Tensor]:
    return torch.zeros(tokens, vocab), torch.arange(tokens)


def world() -> MarkovWorld:
    return MarkovWorld.random(8, generator=torch.Generator().manual_seed(0))


class TestLevel1:
    def test_l1_2_the_masked_loss_averages_over_the_masked_positions_only(self) -> None:
        logits, labels = giving(0.9, 0.2, 0.8, 0.7)
        labels[[0, 2, 3]] = IGNORE_INDEX
        assert cross_entropy(logits, labels).item() == pytest.approx(-math.log(0.2))

    def test_l1_2_refined_averaging_over_all_positions_may_be_higher_or_lower(self) -> None:
        for visible, relation in [(0.9, float.__lt__), (0.01, float.__gt__)]:
            logits, labels = giving(0.2, visible)
            masked_only = labels.clone()
            masked_only[1] = IGNORE_INDEX
            everywhere = cross_entropy(logits, labels).item()
            assert relation(everywhere, cross_entropy(logits, masked_only).item())


class TestLevel2:
    def test_l2_1_the_cat_sat_costs_1_0397_nats_and_perplexity_2_828(self) -> None:
        logits, labels = giving(0.5, 0.25)
        surprises = token_nll(logits, labels)
        assert surprises.tolist() == pytest.approx([0.6931, 1.3863], abs=5e-5)
        loss = cross_entropy(logits, labels).item()
        assert loss == pytest.approx(1.0397, abs=5e-5)
        assert nats_to_perplexity(loss) == pytest.approx(2.828, abs=5e-4)
        assert nats_to_perplexity(loss) == pytest.approx(2**1.5)
        assert nats_to_bits(loss) == pytest.approx(1.5)

    def test_l2_1_refined_dividing_by_all_t_tokens_needs_a_scored_first_token(self) -> None:
        # "the" has no prediction: over T - 1 positions, or over T with a BOS that predicts it
        logits, labels = giving(0.1, 0.5, 0.25)
        with_bos = cross_entropy(logits, labels).item()
        assert with_bos == pytest.approx(-math.log(0.1 * 0.5 * 0.25) / 3)
        labels[0] = IGNORE_INDEX
        assert cross_entropy(logits, labels).item() == pytest.approx(1.0397, abs=5e-5)

    def test_l2_2_a_masked_token_at_probability_0_2_costs_1_6094_nats(self) -> None:
        loss = cross_entropy(*giving(0.2)).item()
        assert loss == pytest.approx(1.6094, abs=5e-5)
        assert loss > cross_entropy(*giving(0.5, 0.25)).item()

    def test_l2_3_a_uniform_model_has_perplexity_50000_and_loss_10_8198(self) -> None:
        result = Perplexity()
        result.update(*uniform(50_000))
        assert result.nats == pytest.approx(10.8198, abs=5e-5)
        assert result.perplexity == pytest.approx(50_000, rel=1e-5)


class TestLevel3:
    def test_l3_1_a_loss_of_1_6094_is_perplexity_5(self) -> None:
        assert nats_to_perplexity(1.6094) == pytest.approx(5.0, abs=5e-4)

    @pytest.mark.parametrize(
        ("nats", "perplexity", "digits"), [(1.04, 2.83, 2), (1.61, 5.0, 1), (2.5, 12.2, 1)]
    )
    def test_l3_1_the_three_dots_lie_on_the_curve(
        self, nats: float, perplexity: float, digits: int
    ) -> None:
        assert round(nats_to_perplexity(nats), digits) == perplexity

    def test_l3_1_from_the_first_dot_to_the_last_perplexity_roughly_quadruples(self) -> None:
        assert nats_to_perplexity(2.5) / nats_to_perplexity(1.04) == pytest.approx(4, abs=0.5)

    def test_l3_2_a_beats_b_by_1_3863_nats_which_are_2_bits(self) -> None:
        a, b = perplexity_to_nats(10), perplexity_to_nats(40)
        assert (a, b) == pytest.approx((2.3026, 3.6889), abs=5e-5)
        assert b - a == pytest.approx(1.3863, abs=5e-5)
        assert nats_to_bits(b - a) == pytest.approx(2)
        assert bits_to_nats(2) == pytest.approx(b - a)

    def test_l3_3_the_chain_rule_is_exact(self) -> None:
        chain = world()
        ids = chain.sample(50, 12, generator=torch.Generator().manual_seed(1))
        after_bos = torch.cat([torch.full((50, 1), chain.n_states), ids[:, :-1]], 1)
        nats = summed_nll(chain.next_token_log_probs(after_bos), ids).nats
        assert nats.item() == pytest.approx(float(-chain.log_prob(ids).sum()))

    def test_l3_3_refined_a_model_that_sees_everything_still_cannot_see_the_last_target(
        self,
    ) -> None:
        # inputs x_1..x_(T-1), labels x_2..x_T: all but the last label stand in the inputs
        chain = world()
        ids = chain.sample(4000, 32, generator=torch.Generator().manual_seed(2))
        copied = torch.nn.functional.one_hot(ids[:, 1:], chain.n_states).double().log()
        copied[:, -1] = chain.next_token_log_probs(ids[:, -2])
        loss = cross_entropy(copied, ids[:, 1:]).item()
        assert loss == pytest.approx(chain.entropy_rate / 31, rel=0.05)
        assert loss > 0


class TestLevel4:
    @pytest.mark.parametrize("select", ["bernoulli", "exact", "exact_split"])
    def test_l4_1_of_200_tokens_30_are_chosen_and_split_24_3_3_on_average(
        self, select: Literal["bernoulli", "exact", "exact_split"]
    ) -> None:
        rows, mask_id = 4000, 1000
        ids = torch.arange(200).repeat(rows, 1)
        inputs, labels = bert_corrupt(
            ids,
            vocab_size=mask_id + 1,
            mask_id=mask_id,
            special_ids=[mask_id],
            select=select,
            generator=torch.Generator().manual_seed(0),
        )
        chosen, kept = labels != IGNORE_INDEX, inputs == ids
        fates = [
            (30.0, chosen),
            (24.0, inputs == mask_id),
            (3 - 3 / 1000, chosen & ~kept & (inputs != mask_id)),  # a random token
            (3 + 3 / 1000, chosen & kept),  # unchanged, or drawn at random and the same
        ]
        for expected, which in fates:
            share = expected / 200
            standard_error = math.sqrt(200 * share * (1 - share) / rows)
            assert abs(which.sum().item() / rows - expected) < 5 * standard_error
        if select != "bernoulli":
            assert (chosen.sum(1) == 30).all()

    def test_l4_1_refined_exactly_30_is_rare_under_independent_choices(self) -> None:
        exactly = math.comb(200, 30) * 0.15**30 * 0.85**170
        assert exactly == pytest.approx(0.079, abs=5e-4)
        assert math.sqrt(200 * 0.15 * 0.85) == pytest.approx(5.05, abs=5e-3)
        split = math.factorial(30) // math.factorial(24) // 36 * 0.8**24 * 0.1**6
        assert split == pytest.approx(0.056, abs=5e-4)

    def test_l4_3_masks_pay_two_ln_2_for_a_two_word_name_and_a_span_decoder_ln_2(self) -> None:
        new, york, los, angeles = range(4)
        names = MarkovWorld(
            torch.tensor([[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1], [0.5, 0, 0.5, 0]])
        )
        ids = torch.tensor([[angeles, new, york, los]])
        hidden = torch.tensor([[False, True, True, False]])
        labels = ids.masked_fill(~hidden, IGNORE_INDEX)
        independent = summed_nll(names.masked_log_probs(ids, hidden), labels).nats.item()
        assert independent == pytest.approx(2 * math.log(2))
        assert -names.hidden_log_prob(ids, hidden).item() == pytest.approx(math.log(2))


class TestLevel5:
    def test_l5_2_a_perfect_model_has_perplexity_1(self) -> None:
        result = Perplexity()
        result.update(*giving(1.0, 1.0))
        assert (result.nats, result.perplexity) == (0.0, 1.0)

    def test_l5_2_a_uniform_model_has_perplexity_32000(self) -> None:
        result = Perplexity()
        result.update(*uniform(32_000))
        assert result.perplexity == pytest.approx(32_000, rel=1e-5)

    def test_l5_2_a_loss_of_2_5_is_perplexity_12_182(self) -> None:
        assert nats_to_perplexity(2.5) == pytest.approx(12.182, abs=5e-4)
        assert 1 < nats_to_perplexity(2.5) < 32_000

    @pytest.mark.parametrize("factor", [2, 10, 1e6])
    def test_l5_2_refuted_perplexity_can_exceed_the_vocabulary(self, factor: float) -> None:
        vocab = 32_000
        result = Perplexity()
        result.update(*giving(1 / (factor * vocab), vocab=vocab))
        assert result.perplexity == pytest.approx(factor * vocab)

    def test_l5_3_refuted_masking_everything_reaches_the_unigram_entropy_not_ln_v(self) -> None:
        chain = world()
        assert chain.mlm_loss(1.0) == pytest.approx(chain.entropy)
        assert nats_to_perplexity(chain.mlm_loss(1.0)) < chain.n_states - 1

    def test_l5_3_refuted_masking_at_every_rate_learns_as_much_as_the_chain_rule(self) -> None:
        chain = world()
        assert chain.diffusion_loss(32) == pytest.approx(chain.clm_loss(32))

    def test_l5_3_fifteen_percent_leaves_context_that_everything_hidden_does_not(self) -> None:
        chain = world()
        losses = [chain.mlm_loss(rate) for rate in (0.02, 0.15, 0.5, 0.9, 1.0)]
        assert losses == sorted(losses)
        assert losses[1] < chain.entropy_rate < losses[-1]  # two sides, one side, none


class TestNotes:
    def test_the_random_and_the_perfect_model_bound_nothing_but_themselves(self) -> None:
        assert perplexity_to_nats(1) == 0
        assert perplexity_to_nats(50_000) == pytest.approx(math.log(50_000))

    def test_the_masked_loss_is_not_a_perplexity_of_text(self) -> None:
        # the same true model: a smaller loss, only because it is given more to see
        chain = world()
        assert chain.mlm_loss(0.15) < chain.clm_loss(1000, score_first=False)
