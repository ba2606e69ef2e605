"""Perplexity: conversions between nats, bits and perplexity, and its measurement over a text.

Shapes: T tokens, N predictions (pairs of input and label), K windows of W tokens, V vocabulary,
C rows of a block; `logits_V` stands for any leading shape, which the labels share.

The unit is always one *token*, so perplexities compare only under one tokenizer; bits per byte
compares across tokenizers.
"""

import math
from collections.abc import Callable, Iterator
from typing import Self

import torch
from torch import Tensor

from course_lib.losses import IGNORE_INDEX, check_labels, checked_nll

__all__ = [
    "Perplexity",
    "bits_to_nats",
    "nats_to_bits",
    "nats_to_perplexity",
    "perplexity_to_nats",
    "sliding_windows",
    "strided_perplexity",
]

# Logits turned into losses at a time: what stays in a CPU's cache is read from memory once; a GPU
# wants few large kernels.
_CPU_BLOCK = 2**19
_GPU_BLOCK = 2**26


def nats_to_perplexity(nats: float) -> float:
    """e^nats: the number of equally likely choices that surprise as much; inf where it overflows.

    >>> round(nats_to_perplexity(1.6094), 3), nats_to_perplexity(1000.0)
    (5.0, inf)
    """
    try:
        return math.exp(nats)
    except OverflowError:  # above 709.78; the nats themselves are still worth reporting
        return math.inf


def perplexity_to_nats(perplexity: float) -> float:
    """ln(perplexity). Raises ValueError below 1, which no distribution over tokens reaches.

    >>> round(perplexity_to_nats(40) - perplexity_to_nats(10), 4)  # ln 4
    1.3863
    """
    if perplexity < 1:
        raise ValueError(f"perplexity {perplexity} is below 1, which is a perfect prediction")
    return math.log(perplexity)


def nats_to_bits(nats: float) -> float:
    """Nats counted in units of ln 2, so that 2^bits = e^nats.

    >>> nats_to_bits(math.log(8))
    3.0
    """
    return nats / math.log(2)


def bits_to_nats(bits: float) -> float:
    """Bits times ln 2.

    >>> nats_to_perplexity(bits_to_nats(1.5))  # 2^1.5
    2.82842712474619
    """
    return bits * math.log(2)


class Perplexity:
    """Mean surprise over any number of batches, weighted by token: exp(sum of nats / tokens).

    It keeps sums (float64 nats, int64 tokens, bytes) and divides once, on reading, so batches of
    any sizes in any order give one answer, as do the parts of several workers: `a + b`, or
    `sum(parts, Perplexity())`. On a GPU the sums stay on the device and nothing waits for it
    until a number is read. Reading before any token was scored raises ValueError.

    >>> short, long = Perplexity(), Perplexity()
    >>> short.add(nll_sum=8 * 2.0, tokens=8)
    >>> long.add(nll_sum=512 * 4.0, tokens=512)
    >>> round((short + long).perplexity, 2), round((short.perplexity + long.perplexity) / 2, 2)
    (52.94, 30.99)
    """

    def __init__(self) -> None:
        self._nll_sum = torch.zeros((), dtype=torch.float64)
        self._tokens = torch.zeros((), dtype=torch.int64)
        self._n_bytes: int | None = 0  # None: some tokens came without their bytes

    @torch.no_grad()
    def update(self, logits_V: Tensor, labels: Tensor, n_bytes: int | None = None) -> None:
        """Score `logits_V` (..., V) against `labels` (...), already shifted to match.

        Labels of `IGNORE_INDEX` are not scored. `n_bytes` is the UTF-8 length of the text that the
        scored tokens stand for; special tokens stand for no bytes. Errors are `check_labels`'.
        Blocks of rows are scored one after the other: no temporary has the size of the logits.
        """
        check_labels(labels, logits_V.shape, vocab_size=logits_V.shape[-1])
        for block_CV, labels_C in _blocks(logits_V, labels):
            nats = checked_nll(block_CV, labels_C).sum(dtype=torch.float64)
            self._nll_sum = self._nll_sum + nats
        self._tokens = self._tokens + (labels != IGNORE_INDEX).sum()
        self._n_bytes = _both(self._n_bytes, n_bytes)

    @torch.no_grad()
    def add(
        self, nll_sum: float | Tensor, tokens: int | Tensor, n_bytes: int | None = None
    ) -> None:
        """Add nats summed elsewhere, and the number of tokens in them: `add(*summed_nll(...))`."""
        if isinstance(tokens, int) and tokens < 0:
            raise ValueError(f"tokens is {tokens}: give the number of scored tokens, 0 or more")
        self._nll_sum = self._nll_sum + torch.as_tensor(nll_sum, dtype=torch.float64)
        self._tokens = self._tokens + torch.as_tensor(tokens, dtype=torch.int64)
        self._n_bytes = _both(self._n_bytes, n_bytes)

    def __add__(self, other: Self) -> Self:
        """The measurement over both texts; commutative, associative, `Perplexity()` is zero."""
        total = type(self)()
        for part in (self, other):
            total.add(part._nll_sum, part._tokens, part._n_bytes)
        return total

    @property
    def tokens(self) -> int:
        """How many tokens were scored."""
        return int(self._tokens)

    @property
    def nats(self) -> float:
        """Mean nats per scored token: the cross-entropy."""
        if self.tokens == 0:
            raise ValueError("no token was scored: update with labels that are not all ignored")
        return float(self._nll_sum) / self.tokens

    @property
    def bits(self) -> float:
        """Mean bits per scored token."""
        return nats_to_bits(self.nats)

    @property
    def perplexity(self) -> float:
        """e^nats per token; inf, not an error, where that overflows (read `nats` then)."""
        return nats_to_perplexity(self.nats)

    @property
    def bits_per_byte(self) -> float:
        """All bits over all bytes. Raises ValueError unless every update came with its bytes."""
        if not self._n_bytes:
            raise ValueError(
                "the scored text has no known bytes: give n_bytes with every update or add"
            )
        return self.bits * self.tokens / self._n_bytes


def sliding_windows(
    ids_T: Tensor, window: int, stride: int, bos_id: int | None = None
) -> tuple[Tensor, Tensor]:
    """A long text as overlapping windows in which every token is scored exactly once.

    Returns inputs and labels, both (K, W): the label beside an input is the token after it, or
    `IGNORE_INDEX` where an earlier window has scored that token.

    BOS rule: without `bos_id` the first token only conditions, T-1 tokens are scored; with it
    `bos_id` goes in front of the text and all T are scored.
    W, `window`, is the number of tokens a model sees; a shorter text is one shorter window. The
    first window scores all its labels. Each later one starts `stride` (S, 1 <= S <= W) further and
    scores the S new labels, so each was predicted from at least W-S+1 tokens. The last window is
    shifted left to end with the text, not shortened. S = 1 gives every token the longest context
    the window allows; S = W is cheapest, and gives some tokens a context of one.
    Report W, S and the BOS rule beside every perplexity. Raises ValueError for S outside 1..W and
    for ids that are not one text.

    >>> inputs, labels = sliding_windows(torch.arange(6), window=3, stride=2)
    >>> inputs.tolist(), labels.tolist()
    ([[0, 1, 2], [2, 3, 4]], [[1, 2, 3], [-100, 4, 5]])
    """
    if ids_T.ndim != 1:
        raise ValueError(
            f"ids have shape {tuple(ids_T.shape)}: give one text at a time, shape (T,)"
        )
    if not 1 <= stride <= window:
        raise ValueError(
            f"stride {stride} with window {window}: a stride is at least 1, and at most the "
            "window, beyond which tokens would be left out"
        )
    if bos_id is not None:
        ids_T = torch.cat([ids_T.new_tensor([bos_id]), ids_T])
    inputs_N, labels_N = ids_T[:-1], ids_T[1:]
    n = len(labels_N)
    width = min(window, n)
    # where windows end: the first after W predictions, then every S, and the last with the text
    ends_K = torch.arange(width, n + stride, stride, device=ids_T.device).clamp(max=n)
    index_KW = (ends_K - width).unsqueeze(1) + torch.arange(width, device=ids_T.device)
    seen_K = torch.cat([ends_K.new_zeros(1), ends_K])[:-1]  # how many are scored already
    return inputs_N[index_KW], labels_N[index_KW].masked_fill(
        index_KW < seen_K.unsqueeze(1), IGNORE_INDEX
    )


@torch.no_grad()
def strided_perplexity(
    model: Callable[[Tensor], Tensor],
    ids_T: Tensor,
    window: int,
    stride: int,
    bos_id: int | None = None,
    batch_size: int = 8,
) -> Perplexity:
    """The perplexity of a text longer than a model's window; `sliding_windows` has the rules.

    `model` maps inputs (B, W) to logits (B, W, V), at most `batch_size` windows at a time.

    >>> uniform = lambda ids_BW: torch.zeros(*ids_BW.shape, 50)
    >>> result = strided_perplexity(uniform, torch.arange(20), window=8, stride=3)
    >>> result.tokens, round(result.perplexity, 4)
    (19, 50.0)
    """
    inputs_KW, labels_KW = sliding_windows(ids_T, window, stride, bos_id)
    total = Perplexity()
    for start in range(0, len(inputs_KW), batch_size):
        rows = slice(start, start + batch_size)
        total.update(model(inputs_KW[rows]), labels_KW[rows])
    return total


def _blocks(logits_V: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The same rows in blocks (C, V) and (C,), all of them views."""
    if logits_V.ndim > 2 and not logits_V.is_contiguous():  # reshaping `logits[:, :-1]` would copy
        for part, part_labels in zip(logits_V, labels, strict=True):
            yield from _blocks(part, part_labels)
        return
    vocab_size = logits_V.shape[-1]
    rows = max(8, (_CPU_BLOCK if logits_V.is_cpu else _GPU_BLOCK) // vocab_size)
    logits_NV, labels_N = logits_V.reshape(-1, vocab_size), labels.reshape(-1)
    for start in range(0, len(labels_N), rows):
        yield logits_NV[start : start + rows], labels_N[start : start + rows]


def _both(n_bytes: int | None, more: int | None) -> int | None:
    return None if n_bytes is None or more is None else n_bytes + more
