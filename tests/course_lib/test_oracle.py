"""The Markov world: every closed form against enumeration of all texts and all masks."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from course_lib.losses import IGNORE_INDEX, cross_entropy, summed_nll, token_nll
from course_lib.oracle import MarkovWorld

few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 10**6)
LN2 = math.log(2)

# New York, Los Angeles: the second word follows from the first, the next name is anyone's guess
NEW, YORK, LOS, ANGELES = range(4)
TWO_NAMES = MarkovWorld(
    torch.tensor([[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1], [0.5, 0, 0.5, 0]])
)


def world(seed: int, n_states: int = 3, sharpness: float = 1.5) -> MarkovWorld:
    return MarkovWorld.random(
        n_states, generator=torch.Generator().manual_seed(seed), sharpness=sharpness
    )


def texts(n_states: int, length: int) -> Tensor:
    """All V^T texts."""
    return torch.tensor(list(itertools.product(range(n_states), repeat=length)))


def masks(length: int) -> list[Tensor]:
    """All masks but the empty one."""
    patterns = itertools.product([False, True], repeat=length)
    return [torch.tensor(pattern) for pattern in patterns if any(pattern)]


def probabilities(chain: MarkovWorld, ids: Tensor) -> Tensor:
    """p(text), by multiplication."""
    steps = chain.transition[ids[:, :-1], ids[:, 1:]]
    return chain.stationary[ids[:, 0]] * steps.prod(-1)


def cost_of_mask(chain: MarkovWorld, hidden: Tensor) -> float:
    """Expected nats of all hidden tokens, each given the visible ones, by enumeration."""
    ids = texts(chain.n_states, len(hidden))
    p = probabilities(chain, ids)
    total = 0.0
    for t in hidden.nonzero().flatten().tolist():
        same_view = (ids[:, None, ~hidden] == ids[None, :, ~hidden]).all(-1)
        same_token = same_view & (ids[:, None, t] == ids[None, :, t])
        posterior = (same_token * p).sum(-1) / (same_view * p).sum(-1)
        total -= float((p * posterior.log()).sum())
    return total


class TestWorld:
    @few
    @given(seeds, st.integers(1, 9), st.floats(0, 5))
    def test_the_stationary_distribution_is_kept_by_a_step(
        self, seed: int, n_states: int, sharpness: float
    ) -> None:
        chain = world(seed, n_states, sharpness)
        pi = chain.stationary
        assert pi.dtype == torch.float64
        assert float(pi.sum()) == pytest.approx(1)
        torch.testing.assert_close(pi @ chain.transition, pi, rtol=0, atol=1e-12)

    @few
    @given(seeds, st.integers(2, 9))
    def test_what_a_token_can_cost_is_ordered(self, seed: int, n_states: int) -> None:
        chain = world(seed, n_states)
        assert 0 < chain.entropy_rate < chain.entropy < math.log(n_states)

    def test_at_sharpness_zero_nothing_is_predictable(self) -> None:
        chain = world(0, 5, sharpness=0)
        for loss in (chain.entropy_rate, chain.entropy, chain.mlm_loss(0.15)):
            assert loss == pytest.approx(math.log(5))

    def test_in_a_cycle_only_the_first_token_is_a_surprise(self) -> None:
        cycle = MarkovWorld.cycle(6)
        assert cycle.entropy == pytest.approx(math.log(6))
        assert cycle.clm_loss(10) == pytest.approx(math.log(6) / 10)
        assert cycle.clm_loss(10, score_first=False) == 0
        assert cycle.mlm_loss(0.9) == pytest.approx(0, abs=1e-12)
        assert cycle.mlm_loss(0.9, length=4) == pytest.approx(0.9**3 * math.log(6))

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            ([[0.5, 0.4], [0.5, 0.5]], "sum to"),
            ([[1.5, -0.5], [0.5, 0.5]], "sum to"),
            ([[math.nan, 1.0], [0.5, 0.5]], "sum to"),
            ([[0.5, 0.5]], r"shape \(1, 2\)"),
            ([[1.0, 0.0], [0.0, 1.0]], "never meet"),
        ],
    )
    def test_what_is_not_a_chain_is_refused(self, matrix: list[list[float]], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            MarkovWorld(torch.tensor(matrix))

    def test_the_generator_decides_the_world_and_global_randomness_is_left_alone(self) -> None:
        before = torch.random.get_rng_state()
        assert torch.equal(world(1).transition, world(1).transition)
        assert not torch.equal(world(1).transition, world(2).transition)
        g = torch.Generator().manual_seed(0)
        first, second = (world(1).sample(9, 9, generator=g) for _ in range(2))
        assert not torch.equal(first, second)
        assert torch.equal(torch.random.get_rng_state(), before)


class TestExpectedLosses:
    @few
    @given(seeds, st.integers(1, 5))
    def test_the_causal_loss_is_the_mean_surprise_of_all_texts(
        self, seed: int, length: int
    ) -> None:
        chain = world(seed)
        p = probabilities(chain, texts(3, length))
        assert chain.clm_loss(length) * length == pytest.approx(float(-(p * p.log()).sum()))
        assert chain.clm_loss(9, score_first=False) == chain.entropy_rate

    @few
    @given(seeds, st.integers(1, 4), st.floats(0.01, 1))
    def test_the_masked_loss_is_the_mean_over_all_texts_and_masks(
        self, seed: int, length: int, rate: float
    ) -> None:
        chain = world(seed)
        nats = masked = 0.0
        for hidden in masks(length):
            n = int(hidden.sum())
            chance = rate**n * (1 - rate) ** (length - n)
            nats += chance * cost_of_mask(chain, hidden)
            masked += chance * n
        assert chain.mlm_loss(rate, length) == pytest.approx(nats / masked)

    @few
    @given(seeds, st.integers(1, 4))
    def test_so_is_the_masked_loss_with_an_exact_number_of_masks(
        self, seed: int, length: int
    ) -> None:
        chain = world(seed)
        for n in range(1, length + 1):
            costs = [cost_of_mask(chain, m) for m in masks(length) if m.sum() == n]
            assert chain.mlm_loss_exact(n, length) == pytest.approx(sum(costs) / len(costs) / n)

    def test_an_endless_text_is_the_limit_of_long_ones(self) -> None:
        chain = world(3, 8)
        for rate in (0, 0.15, 0.5, 0.9, 0.99):
            gap = [abs(chain.mlm_loss(rate, n) - chain.mlm_loss(rate)) for n in (10, 100, 10_000)]
            assert gap[0] > gap[1] > gap[2]
            assert gap[2] < 2e-3

    @few
    @given(seeds, st.sampled_from([None, 5, 64]))
    def test_the_masked_loss_rises_with_the_rate(self, seed: int, length: int | None) -> None:
        chain = world(seed, 8)
        losses = [chain.mlm_loss(rate / 20, length) for rate in range(21)]
        assert all(low < high for low, high in itertools.pairwise(losses))

    def test_a_single_mask_is_seen_from_both_sides(self) -> None:
        chain = world(4, 5)
        joint = chain.stationary[:, None, None] * chain.transition[:, :, None] * chain.transition
        middle_given_sides = joint / joint.sum(1, keepdim=True)
        assert chain.mlm_loss(0) == pytest.approx(float(-(joint * middle_given_sides.log()).sum()))
        assert chain.mlm_loss(1e-9) == pytest.approx(chain.mlm_loss(0))
        assert chain.mlm_loss(0) < chain.entropy_rate  # which is seen from one side

    @pytest.mark.parametrize("length", [None, 1, 7])
    def test_masking_everything_leaves_the_unigram_distribution_not_the_uniform_one(
        self, length: int | None
    ) -> None:
        chain = world(5, 8)
        assert chain.mlm_loss(1, length) == pytest.approx(chain.entropy)
        assert chain.mlm_loss(1, length) < math.log(8) - 0.05

    @few
    @given(seeds, st.integers(1, 40))
    def test_diffusion_over_all_rates_is_the_chain_rule(self, seed: int, length: int) -> None:
        chain = world(seed, 4)
        assert chain.diffusion_loss(length) == pytest.approx(chain.clm_loss(length), rel=1e-10)
        assert chain.any_order_loss(length) == pytest.approx(chain.clm_loss(length), rel=1e-10)

    def test_diffusion_weights_each_masked_token_by_one_over_the_rate(self) -> None:
        # the integral over the rate of (expected masked nats) / rate / T, by the midpoint rule
        chain, length, steps = world(6), 3, 400
        nats = dict.fromkeys(range(1, length + 1), 0.0)
        for hidden in masks(length):
            nats[int(hidden.sum())] += cost_of_mask(chain, hidden)
        integral = sum(
            rate**n * (1 - rate) ** (length - n) * cost / rate / length / steps
            for n, cost in nats.items()
            for rate in [(i + 0.5) / steps for i in range(steps)]
        )
        assert integral == pytest.approx(chain.clm_loss(length), rel=1e-4)

    def test_diffusion_at_one_fixed_rate_is_not_the_chain_rule(self) -> None:
        chain = world(7, 8)
        assert chain.mlm_loss(0.15, 32) < chain.clm_loss(32) - 0.05
        assert chain.mlm_loss(0.9, 32) > chain.clm_loss(32) + 0.05

    @few
    @given(seeds, st.integers(1, 3))
    def test_a_span_costs_its_joint_surprise_given_both_sides(self, seed: int, span: int) -> None:
        chain = world(seed)
        ids = texts(3, span + 2)
        p = probabilities(chain, ids)
        hidden = torch.tensor([False] + [True] * span + [False])
        same_sides = (ids[:, None, ~hidden] == ids[None, :, ~hidden]).all(-1)
        joint = float(-(p * (p / (same_sides * p).sum(-1)).log()).sum())
        assert chain.span_loss(span) * span == pytest.approx(joint)
        independent = chain.span_loss(span, independent=True) * span
        assert independent == pytest.approx(cost_of_mask(chain, hidden))

    @few
    @given(seeds, st.integers(2, 30))
    def test_tokens_of_a_span_tell_about_each_other(self, seed: int, span: int) -> None:
        chain = world(seed, 5)
        assert chain.span_loss(span) < chain.span_loss(span, independent=True)
        assert chain.span_loss(1) == chain.span_loss(1, independent=True)
        assert chain.span_loss(span) < chain.entropy_rate  # the right side helps the last token

    def test_arguments_out_of_range_are_named(self) -> None:
        chain = world(0)
        for call, message in [
            (lambda: chain.mlm_loss(1.5), "rate is 1.5"),
            (lambda: chain.mlm_loss(0.5, 0), "length is 0"),
            (lambda: chain.mlm_loss_exact(5, 4), "n_masked is 5"),
            (lambda: chain.mlm_loss_exact(0, 4), "n_masked is 0"),
            (lambda: chain.clm_loss(1, score_first=False), "length is 1: give at least 2"),
            (lambda: chain.span_loss(0), "length is 0"),
        ]:
            with pytest.raises(ValueError, match=message):
                call()


class TestGivenSequences:
    def test_samples_follow_the_chain(self) -> None:
        chain = world(8, 4)
        ids = chain.sample(20_000, 4, generator=torch.Generator().manual_seed(0))
        assert ids.shape == (20_000, 4)
        for t in range(3):
            pairs = ids[:, t] * 4 + ids[:, t + 1]
            observed = torch.bincount(pairs, minlength=16).double()
            p = (chain.stationary[:, None] * chain.transition).flatten()
            z = (observed - 20_000 * p) / (20_000 * p * (1 - p)).sqrt()
            assert z.abs().max() < 5

    @few
    @given(seeds)
    def test_the_probability_of_a_text_is_its_chain_rule_product(self, seed: int) -> None:
        chain = world(seed)
        ids = texts(3, 4)
        torch.testing.assert_close(chain.log_prob(ids).exp(), probabilities(chain, ids))

    @few
    @given(seeds)
    def test_posteriors_match_enumeration_for_every_mask(self, seed: int) -> None:
        chain, ids = world(seed), texts(3, 4)
        p = probabilities(chain, ids)
        for hidden in masks(4):
            hidden_BT = hidden.expand(len(ids), -1)
            posterior = chain.masked_log_probs(ids.masked_fill(hidden, 77), hidden_BT).exp()
            assert posterior.sum(-1).allclose(torch.ones((), dtype=torch.float64))
            labels = ids.masked_fill(~hidden, IGNORE_INDEX)
            nats = token_nll(posterior.log(), labels).sum(-1)
            assert float(p @ nats) == pytest.approx(cost_of_mask(chain, hidden))
            torch.testing.assert_close(
                posterior[:, ~hidden], torch.nn.functional.one_hot(ids[:, ~hidden], 3).double()
            )

    @few
    @given(seeds, st.integers(0, 15))
    def test_hidden_tokens_cost_the_text_minus_what_is_visible(self, seed: int, pick: int) -> None:
        chain, ids = world(seed), texts(3, 4)
        hidden = torch.tensor([bool(pick >> t & 1) for t in range(4)])
        p = probabilities(chain, ids)
        same_view = (ids[:, None, ~hidden] == ids[None, :, ~hidden]).all(-1)
        expected = (p / (same_view * p).sum(-1)).log()
        ours = chain.hidden_log_prob(ids, hidden.expand(len(ids), -1))
        torch.testing.assert_close(ours, expected)

    def test_rows_of_a_batch_do_not_see_each_other(self) -> None:
        chain, g = world(9, 6), torch.Generator().manual_seed(0)
        ids = chain.sample(5, 12, generator=g)
        hidden = torch.rand(ids.shape, generator=g) < 0.5
        together = chain.masked_log_probs(ids, hidden)
        for row in range(5):
            alone = chain.masked_log_probs(ids[row : row + 1], hidden[row : row + 1])
            torch.testing.assert_close(alone[0], together[row])

    def test_a_thousand_tokens_do_not_underflow(self) -> None:
        chain, g = world(10, 8), torch.Generator().manual_seed(0)
        ids = chain.sample(4, 1000, generator=g)
        hidden = torch.rand(ids.shape, generator=g) < 0.5
        assert chain.masked_log_probs(ids, hidden).exp().isfinite().all()
        assert chain.log_prob(ids).isfinite().all()

    def test_oracle_logits_reach_the_exact_losses(self) -> None:
        chain, g = world(11, 8), torch.Generator().manual_seed(0)
        ids = chain.sample(400, 64, generator=g)
        with_bos = torch.cat([torch.full((400, 1), chain.n_states), ids], 1)
        clm = cross_entropy(chain.next_token_log_probs(with_bos[:, :-1]), ids).item()
        assert clm == pytest.approx(float(-chain.log_prob(ids).mean()) / 64)
        assert clm == pytest.approx(chain.clm_loss(64), abs=0.03)
        hidden = torch.rand(ids.shape, generator=g) < 0.5
        labels = ids.masked_fill(~hidden, IGNORE_INDEX)
        mlm = cross_entropy(chain.masked_log_probs(ids, hidden), labels).item()
        assert mlm == pytest.approx(chain.mlm_loss(0.5, 64), abs=0.03)

    def test_visible_tokens_that_cannot_occur_are_named(self) -> None:
        ids = torch.tensor([[0, 1, 2, 3], [0, 9, 2, 2]])
        hidden = torch.tensor([[False] * 4, [False, True, False, False]])
        with pytest.raises(ValueError, match="row 1: the tokens up to position 3 cannot"):
            MarkovWorld.cycle(5).masked_log_probs(ids, hidden)

    def test_unknown_tokens_are_named(self) -> None:
        chain, nothing_hidden = world(0), torch.zeros(1, 2, dtype=torch.bool)
        with pytest.raises(ValueError, match=r"token 3 is not one of 0\.\.2"):
            chain.masked_log_probs(torch.tensor([[0, 3]]), nothing_hidden)
        with pytest.raises(ValueError, match=r"token 4 is not one of 0\.\.3"):
            chain.next_token_log_probs(torch.tensor([[0, 4]]))


class TestTwoNames:
    """A hidden name costs independent masks twice what it costs a decoder."""

    ids = torch.tensor([[YORK, NEW, YORK, LOS], [YORK, LOS, ANGELES, LOS]])
    hidden = torch.tensor([[False, True, True, False]] * 2)

    def test_independent_masks_pay_two_ln_2(self) -> None:
        labels = self.ids.masked_fill(~self.hidden, IGNORE_INDEX)
        for q, y in zip(TWO_NAMES.masked_log_probs(self.ids, self.hidden), labels, strict=True):
            assert summed_nll(q, y).nats.item() == pytest.approx(2 * LN2)

    def test_a_span_decoder_pays_ln_2(self) -> None:
        cost = -TWO_NAMES.hidden_log_prob(self.ids, self.hidden)
        assert cost.tolist() == pytest.approx([LN2, LN2])

    def test_independent_masks_believe_in_new_angeles_which_does_not_exist(self) -> None:
        belief = TWO_NAMES.masked_log_probs(self.ids, self.hidden)[0].exp()
        assert float(belief[1, NEW] * belief[2, ANGELES]) == pytest.approx(0.25)
        with pytest.raises(ValueError, match="cannot occur"):
            TWO_NAMES.log_prob(torch.tensor([[YORK, NEW, ANGELES, LOS]]))

    def test_on_average_too_masks_pay_twice_the_decoder(self) -> None:
        # half of all spans of two begin a name; the other half is read off its neighbours
        assert 2 * TWO_NAMES.span_loss(2) == pytest.approx(LN2 / 2)
        assert 2 * TWO_NAMES.span_loss(2, independent=True) == pytest.approx(LN2)
