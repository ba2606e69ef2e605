"""A Markov world: text whose best possible loss is known exactly, under every objective.

Shapes: V states (the vocabulary), B sequences, T positions, K distances. All in nats, in float64
on the CPU.

One function carries all expected losses: h_k, the entropy of a token when the token k steps before
it is known. In a stationary chain a token hidden between visible ones at distances a (left) and
b (right) costs h_a + h_b - h_(a+b), because H(X | L, R) = H(X | L) + H(R | X) - H(R | L).
With nothing visible on one side its distance is infinite, and h_inf = H(stationary).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

__all__ = ["MarkovWorld"]


@dataclass(frozen=True, eq=False)
class MarkovWorld:
    """A stationary Markov chain: row i of `transition` (V, V) is p(next token | token i).

    Raises ValueError unless each row is a distribution, and where the chain falls into parts that
    never meet, so that its stationary distribution is not unique.

    >>> coin = MarkovWorld(torch.tensor([[0.9, 0.1], [0.1, 0.9]]))
    >>> round(coin.entropy, 4), round(coin.entropy_rate, 4)  # ln 2; what is left knowing the past
    (0.6931, 0.3251)
    """

    transition: Tensor

    def __post_init__(self) -> None:
        matrix = self.transition.to("cpu", torch.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"transition has shape {tuple(matrix.shape)}: give a square matrix")
        if (matrix < 0).any() or not torch.allclose(matrix.sum(1), matrix.new_ones(()), atol=1e-6):
            raise ValueError(
                f"rows of transition sum to {matrix.sum(1).tolist()}: "
                "each must hold probabilities that sum to 1"
            )
        object.__setattr__(self, "transition", matrix / matrix.sum(1, keepdim=True))
        if torch.linalg.matrix_rank(self._balance) < len(matrix):
            raise ValueError("the chain falls into parts that never meet: connect its states")

    @classmethod
    def random(cls, n_states: int, *, generator: torch.Generator, sharpness: float = 1.5) -> Self:
        """Every transition possible; at `sharpness` 0 all alike, the larger the more predictable.

        >>> world = MarkovWorld.random(8, generator=torch.Generator().manual_seed(0))
        >>> world.entropy_rate < world.entropy < math.log(8)
        True
        """
        scores_VV = torch.randn(n_states, n_states, generator=generator, dtype=torch.float64)
        return cls((sharpness * scores_VV).softmax(-1))

    @classmethod
    def cycle(cls, n_states: int) -> Self:
        """0, 1, ..., V-1, 0, ...: only the first token is a surprise.

        >>> MarkovWorld.cycle(4).entropy_rate
        0.0
        """
        return cls(torch.eye(n_states).roll(1, dims=1))

    @property
    def n_states(self) -> int:
        """V."""
        return len(self.transition)

    @property
    def _balance(self) -> Tensor:
        # x = x P with sum 1, as one system: x (I - P + 1) = 1
        return torch.eye(self.n_states, dtype=torch.float64) - self.transition + 1

    @cached_property
    def stationary(self) -> Tensor:
        """pi = pi P, (V,): the share of each token in a long text, its unigram distribution."""
        pi_V: Tensor = torch.linalg.solve(self._balance.T, self._balance.new_ones(self.n_states))
        return pi_V.clamp(min=0)

    # --- exact expected losses, nats per scored token -------------------------------------------

    @cached_property
    def entropy(self) -> float:
        """H(pi): the loss of the best model that sees nothing, hence of masking 100 %."""
        return float(torch.special.entr(self.stationary).sum())

    @property
    def entropy_rate(self) -> float:
        """h_1: the loss of the best causal model per token that has a predecessor."""
        return float(self._step_entropies(1)[0])

    def clm_loss(self, length: int, *, score_first: bool = True) -> float:
        """The causal loss per scored token of sequences of `length`, by the chain rule.

        With `score_first` (a BOS in front) T tokens are scored, the first at H(pi); without it
        T-1 are, all at the entropy rate, and `length` must be at least 2.
        """
        _check_length(length, least=1 if score_first else 2)
        if not score_first:
            return self.entropy_rate
        return (self.entropy + (length - 1) * self.entropy_rate) / length

    def mlm_loss(self, rate: float, length: int | None = None) -> float:
        """The masked loss per masked token, each position masked independently with `rate`.

        Of sequences of `length`, or of an endless text where that is None. It rises with `rate`
        from the cost of a single mask (rate 0) to H(pi) (rate 1): not to ln V.

        >>> world = MarkovWorld.random(8, generator=torch.Generator().manual_seed(0))
        >>> [round(world.mlm_loss(rate) / world.entropy, 2) for rate in (0.15, 0.5, 1.0)]
        [0.52, 0.66, 1.0]
        """
        if not 0 <= rate <= 1:
            raise ValueError(f"rate is {rate}: give a probability, 0 to 1")
        if length is not None:
            _check_length(length)
        hidden_K = torch.arange(_horizon(rate) if length is None else length, dtype=torch.float64)
        run_K = rate**hidden_K
        return self._expected_nll((1 - rate) * run_K, (1 - rate) ** 2 * run_K, length)

    def mlm_loss_exact(self, n_masked: int, length: int) -> float:
        """The masked loss per masked token, `n_masked` of `length` positions drawn at random."""
        _check_length(length)
        if not 1 <= n_masked <= length:
            raise ValueError(f"n_masked is {n_masked}: give 1 to length = {length}")
        one_K, two_K = (
            torch.tensor(
                [_share(hidden, visible, n_masked - 1, length - 1) for hidden in range(length)],
                dtype=torch.float64,
            )
            for visible in (1, 2)
        )
        return self._expected_nll(one_K, two_K, length)

    def diffusion_loss(self, length: int) -> float:
        """The masked-diffusion objective, nats per token: rate ~ U(0, 1), each loss over the rate.

        Every masked token costs 1/rate of its nats, and the total is divided by all T tokens: the
        integral of `mlm_loss` over the rate. It equals `clm_loss(length)`: masking at every rate
        is one more way to write the chain rule (MDLM, arXiv 2406.07524; LLaDA, arXiv 2502.09992).

        >>> world = MarkovWorld.random(8, generator=torch.Generator().manual_seed(0))
        >>> math.isclose(world.diffusion_loss(16), world.clm_loss(16))
        True
        """
        _check_length(length)
        # mlm_loss is a polynomial in the rate, of degree below T: this quadrature is exact
        nodes, weights = np.polynomial.legendre.leggauss(length // 2 + 1)
        losses = [self.mlm_loss((1 + node) / 2, length) for node in nodes]
        return float(np.dot(weights, losses)) / 2

    def any_order_loss(self, length: int) -> float:
        """The same objective with the number of masks drawn uniformly from 1 to T.

        It is the mean chain-rule loss over all T! orders in which the tokens can be predicted, so
        it too equals `clm_loss(length)` (arXiv 2110.02037).
        """
        _check_length(length)
        return sum(self.mlm_loss_exact(n, length) for n in range(1, length + 1)) / length

    def span_loss(self, span: int, *, independent: bool = False) -> float:
        """Nats per token of a hidden run of `span` tokens between visible neighbours.

        As a decoder writes them, each seeing those before it and both sides; or, `independent`,
        as masks fill them, each seeing both sides only. The difference is what the tokens of a
        span tell about each other.
        """
        _check_length(span)
        h_K = self._step_entropies(span + 1)
        if independent:
            return float(2 * h_K[:-1].sum() / span - h_K[-1])
        return float((span + 1) * h_K[0] - h_K[-1]) / span

    def _step_entropies(self, n_steps: int) -> Tensor:
        """h_1 ... h_K: the entropy of a token when the one k steps before it is known."""
        h_K = torch.empty(n_steps, dtype=torch.float64)
        power_VV = torch.eye(self.n_states, dtype=torch.float64)
        for k in range(n_steps):
            previous_VV, power_VV = power_VV, power_VV @ self.transition
            h_K[k] = self.stationary @ torch.special.entr(power_VV).sum(-1)
            if (power_VV - previous_VV).abs().max() < 1e-15:  # forgotten: later ones are the same
                h_K[k:] = h_K[k].clone()
                break
        return h_K

    def _expected_nll(self, one_K: Tensor, two_K: Tensor, length: int | None) -> float:
        """Nats per hidden token, from the laws of its nearest visible neighbours.

        one_K[m] is the chance that m given other positions are hidden and one more is visible,
        two_K[m] that two more are. h_d is paid for a neighbour d away on either side, and refunded
        for a visible pair d apart around the token: it can stand in d - 1 places between them.
        """
        distance_K = torch.arange(1, len(one_K), dtype=torch.float64)
        weight_K = 2 * one_K[:-1]
        weight_K[1:] -= distance_K[:-1] * two_K[:-2]
        if length is not None:  # a pair d apart fits T - d times
            weight_K *= (length - distance_K) / length
        h_K = self._step_entropies(len(weight_K))
        # what is left of the weight had no such neighbour
        return float(weight_K @ h_K + (1 - weight_K.sum()) * self.entropy)

    # --- the same on given sequences ------------------------------------------------------------

    def sample(self, n_sequences: int, length: int, *, generator: torch.Generator) -> Tensor:
        """Token ids (B, T), each sequence from the stationary chain.

        >>> MarkovWorld.cycle(3).sample(1, 5, generator=torch.Generator().manual_seed(0)).tolist()
        [[2, 0, 1, 2, 0]]
        """
        _check_length(length)
        ids_BT = torch.empty(n_sequences, length, dtype=torch.int64)
        probs_BV = self.stationary.expand(n_sequences, -1)
        for t in range(length):
            ids_BT[:, t] = torch.multinomial(probs_BV, 1, generator=generator).squeeze(1)
            probs_BV = self.transition[ids_BT[:, t]]
        return ids_BT

    def next_token_log_probs(self, ids_BT: Tensor) -> Tensor:
        """The best causal model's log p(next token | ids so far), (B, T, V): usable as logits.

        The id V stands for BOS: what follows it is distributed as the stationary distribution.
        """
        rows_SV = torch.cat([self.transition, self.stationary.unsqueeze(0)])
        self._check_ids(ids_BT, n_ids=self.n_states + 1)
        return rows_SV.log()[ids_BT]

    def masked_log_probs(self, ids_BT: Tensor, hidden_BT: Tensor) -> Tensor:
        """The best masked model's log p(token at t | visible tokens), (B, T, V): usable as logits.

        `hidden_BT` is True where a token may not be seen; the id there is ignored, so it may be
        that of [MASK]. Forward-backward (Rabiner 1989), exact for any pattern. Raises ValueError
        where the visible tokens cannot occur together.

        >>> three = MarkovWorld.cycle(3)
        >>> hidden = torch.tensor([[False, True, False]])
        >>> three.masked_log_probs(torch.tensor([[0, 9, 2]]), hidden)[0, 1].exp().tolist()
        [0.0, 1.0, 0.0]
        """
        evidence_BTV = self._evidence(ids_BT, hidden_BT)
        forward_BTV, _ = self._forward(evidence_BTV)
        backward_BTV = torch.ones_like(evidence_BTV)
        for t in range(ids_BT.shape[1] - 2, -1, -1):
            message_BV = (evidence_BTV[:, t + 1] * backward_BTV[:, t + 1]) @ self.transition.T
            backward_BTV[:, t] = message_BV / message_BV.sum(-1, keepdim=True)
        joint_BTV = forward_BTV * backward_BTV
        return (joint_BTV / joint_BTV.sum(-1, keepdim=True)).log()

    def log_prob(self, ids_BT: Tensor) -> Tensor:
        """log p(sequence), (B,): the chain rule with the first token at log pi."""
        return self._visible_log_prob(ids_BT, torch.zeros_like(ids_BT, dtype=torch.bool))

    def hidden_log_prob(self, ids_BT: Tensor, hidden_BT: Tensor) -> Tensor:
        """log p(all hidden tokens together | visible tokens), (B,).

        What a span decoder pays that writes the hidden tokens one after the other; independent
        masks pay the sum of `masked_log_probs` at the hidden tokens instead.

        >>> tied = MarkovWorld(torch.tensor([[0.999, 0.001], [0.001, 0.999]]))
        >>> ids, all_hidden = torch.tensor([[0, 0]]), torch.tensor([[True, True]])
        >>> -tied.hidden_log_prob(ids, all_hidden)  # about ln 2: the first tells the second
        tensor([0.6941], dtype=torch.float64)
        >>> -tied.masked_log_probs(ids, all_hidden)[:, :, 0].sum(-1)  # 2 ln 2: neither does
        tensor([1.3863], dtype=torch.float64)
        """
        return self.log_prob(ids_BT) - self._visible_log_prob(ids_BT, hidden_BT)

    def _visible_log_prob(self, ids_BT: Tensor, hidden_BT: Tensor) -> Tensor:
        return self._forward(self._evidence(ids_BT, hidden_BT))[1]

    def _forward(self, evidence_BTV: Tensor) -> tuple[Tensor, Tensor]:
        """p(token at t | visible up to t), (B, T, V), and log p(visible tokens), (B,)."""
        forward_BTV = torch.empty_like(evidence_BTV)
        log_prob_B = evidence_BTV.new_zeros(len(evidence_BTV))
        prior_BV = self.stationary.expand(len(evidence_BTV), -1)
        for t in range(evidence_BTV.shape[1]):
            joint_BV = prior_BV * evidence_BTV[:, t]
            scale_B1 = joint_BV.sum(-1, keepdim=True)
            if not scale_B1.all():
                row = int((scale_B1 == 0).nonzero()[0, 0])
                raise ValueError(f"row {row}: the tokens up to position {t} cannot occur together")
            forward_BTV[:, t] = joint_BV / scale_B1
            log_prob_B += scale_B1.squeeze(1).log()
            prior_BV = forward_BTV[:, t] @ self.transition
        return forward_BTV, log_prob_B

    def _evidence(self, ids_BT: Tensor, hidden_BT: Tensor) -> Tensor:
        """1 where a state is compatible with what is visible, (B, T, V)."""
        visible_BT = ids_BT.masked_fill(hidden_BT, 0)
        self._check_ids(visible_BT, n_ids=self.n_states)
        return one_hot(visible_BT, self.n_states).masked_fill(hidden_BT.unsqueeze(-1), 1).double()

    def _check_ids(self, ids_BT: Tensor, n_ids: int) -> None:
        outside = ids_BT[(ids_BT < 0) | (ids_BT >= n_ids)]
        if len(outside):
            raise ValueError(f"token {outside[0].item()} is not one of 0..{n_ids - 1}")


def _share(hidden: int, visible: int, n_hidden: int, n: int) -> float:
    """The chance, with n_hidden of n positions hidden, that these are hidden and those visible."""
    if hidden > n_hidden or hidden + visible > n:
        return 0.0
    return math.comb(n - hidden - visible, n_hidden - hidden) / math.comb(n, n_hidden)


def _horizon(rate: float) -> int:
    """How far away the nearest visible token can be, up to a chance of 1e-18."""
    return 3 if rate in (0, 1) else 3 + math.ceil(math.log(1e-18) / math.log(rate))


def _check_length(length: int, least: int = 1) -> None:
    if length < least:
        raise ValueError(f"length is {length}: give at least {least}")
