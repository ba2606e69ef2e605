"""BART text infilling: spans of Poisson length become one [MASK] each.

Shapes: B rows, T positions, S of the result; N draws, K spans and I inserted masks of a row; `_B1`
is a column.
"""

import math
from functools import cache
from typing import Literal

import torch
from torch import Tensor

from course_lib.corruption import rows
from course_lib.corruption.randomness import Randomness, draws, sorted_rows, subsets_, threshold


def text_infill(
    ids_BT: Tensor,
    *,
    mask_id: int,
    pad_id: int,
    lengths: Tensor | None = None,
    rate: float = 0.3,
    mean_span: float = 3.0,
    overlap: Literal["merge", "disjoint"] = "merge",
    generator: Randomness = None,
) -> tuple[Tensor, Tensor]:
    """BART's noise: spans of Poisson(mean_span) tokens, each replaced by one [MASK].

    Returns `(inputs_BS, lengths)`; the target is the text itself. The first and the last token
    (BOS, EOS) always stay. A row may remove ceil(rate * n) of its other n tokens: lengths are drawn
    until they reach that budget, the last one is cut to meet it. Spans of length 0 insert a [MASK]
    at a random place. Lengths beyond a probability of 1e-7 do not occur.

    overlap: "merge" lets spans start anywhere, as fairseq does: one whose start lies within another
      vanishes, spans stop at the last token, and less is removed than the budget (26.7% of tokens
      for a rate of 30% at 512 tokens). "disjoint" spreads them without overlap and removes exactly
      the budget. Either way two spans that touch keep two masks.

    Raises ValueError for a rate outside [0, 1] or a mean_span that is not positive.
    Source: Lewis et al. 2020, section 2.2; fairseq's `DenoisingDataset` for the number of spans.

    >>> text_infill(torch.tensor([[0, 7, 7, 2]]), mask_id=9, pad_id=1, rate=0.0)
    (tensor([[0, 7, 7, 2]]), tensor([4]))
    """
    rows.check_share("rate", rate)
    if overlap not in ("merge", "disjoint"):
        raise ValueError(f"overlap is {overlap!r}: give 'merge' or 'disjoint'")
    lengths_B1 = rows.text_lengths(ids_BT, lengths)
    columns, words_B1 = ids_BT.shape[1], (lengths_B1 - 2).clamp(min=0)
    most = int(_budget(torch.tensor(max(columns - 2, 0)), rate))
    span_BK, empty_BN = _poisson_spans(_budget(words_B1, rate), most, mean_span, generator)
    bits_BT = draws(ids_BT, max(columns - 2, 0), generator, stream=1)
    count_B1 = (span_BK > 0).sum(1, keepdim=True)
    if overlap == "disjoint":
        span_BK, start_BK = _disjoint_starts(span_BK, count_B1, words_B1, bits_BT)
    else:
        start_BK = subsets_(bits_BT, words_B1, count_B1, span_BK.shape[1])

    last_B1 = (lengths_B1 - 1).clamp(min=0)
    start_BK = torch.where(span_BK > 0, start_BK + 1, last_B1)
    slot_BK, gone_BK, stands_BK = _merged(start_BK, span_BK, last_B1)

    inserts_B1 = empty_BN.sum(1, keepdim=True)
    total_B1 = lengths_B1 - (gone_BK - stands_BK.long()).sum(1, keepdim=True) + inserts_B1
    width = max(rows.width(total_B1, columns + empty_BN.shape[1]), 1)
    place_BI = _insert_places(total_B1, inserts_B1, empty_BN.shape[1], width, ids_BT, generator)
    free_BI = place_BI - torch.arange(place_BI.shape[1], device=ids_BT.device)
    earlier_BK = torch.searchsorted(free_BI, slot_BK, right=True)  # inserted before each mask
    slot_BK = torch.where(slot_BK < 0, width, slot_BK + earlier_BK)
    place_BI = place_BI.clamp(max=width)  # the last column takes what is no mask

    # walk through the ids: a mask steps over what is gone, an inserted one stays where it is
    step_BS = torch.ones(len(ids_BT), width + 1, dtype=torch.int64, device=ids_BT.device)
    step_BS.scatter_add_(1, slot_BK, gone_BK - stands_BK.long()).scatter_(1, place_BI, 0)
    step_BS[:, 0] -= 1
    out_BS = ids_BT.gather(1, step_BS.cumsum(1).clamp_(max=columns - 1))
    out_BS.scatter_(1, slot_BK, mask_id).scatter_(1, place_BI, mask_id)
    padding_BS = torch.arange(width + 1, device=ids_BT.device) >= total_B1
    return out_BS.masked_fill_(padding_BS, pad_id)[:, :width], total_B1.squeeze(1)


def _merged(start_BK: Tensor, span_BK: Tensor, last_B1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Spans from left to right: the column of each one's mask, what it adds, whether it stands.

    A span that starts within an earlier one has no mask: what it takes away beyond that counts for
    the mask before it. Columns are those of the text with one mask in the place of each span; -1
    where there is no mask yet.
    """
    pair_BK = sorted_rows((start_BK << 32) | span_BK)
    start_BK, span_BK = pair_BK >> 32, pair_BK & (2**32 - 1)
    reach_BK = (start_BK + span_BK).minimum(last_B1).cummax(1).values
    before_BK = torch.cat([torch.zeros_like(reach_BK[:, :1]), reach_BK], 1)[:, :-1]
    stands_BK = (span_BK > 0) & (start_BK >= before_BK)
    gone_BK = reach_BK - before_BK.maximum(start_BK)
    slot_BK = start_BK - (gone_BK.cumsum(1) - gone_BK) + stands_BK.cumsum(1) - 1
    return slot_BK.masked_fill_(~stands_BK, -1).cummax(1).values, gone_BK, stands_BK


def _insert_places(
    total_B1: Tensor,
    inserts_B1: Tensor,
    most: int,
    width: int,
    like: Tensor,
    generator: Randomness,
) -> Tensor:
    """Uniformly random places for the inserted masks, never first or last; then far outside."""
    most = min(rows.width(inserts_B1, most), max(width - 2, 0))
    bits_BN = draws(like, max(width - 2, 0), generator, stream=2)
    place_BI = subsets_(bits_BN, (total_B1 - 2).clamp(min=0), inserts_B1, most) + 1
    live_BI = torch.arange(most, device=like.device) < inserts_B1
    return sorted_rows(place_BI.masked_fill_(~live_BI, width + most))


def _budget(words: Tensor, rate: float) -> Tensor:
    return (words.float() * rate).ceil().long()  # float32, as in fairseq


def _poisson_spans(
    budget_B1: Tensor, most: int, mean_span: float, generator: Randomness
) -> tuple[Tensor, Tensor]:
    """Positive lengths (B, K) that sum to the budget, then 0; and which draws (B, N) were empty."""
    if not mean_span > 0:
        raise ValueError(f"mean_span is {mean_span}: give the positive mean of a Poisson law")
    # enough columns to reach the budget 8 standard deviations out
    columns = math.ceil((4 + math.sqrt(16 + most)) ** 2 / mean_span)
    bits_BN = draws(budget_B1, columns, generator, stream=0)
    drawn_BN = torch.bucketize(bits_BN, _poisson_steps(mean_span, bits_BN.device), right=True)
    before_BN = drawn_BN.cumsum(1) - drawn_BN
    live_BN = before_BN < budget_B1
    span_BN = drawn_BN.minimum(budget_B1 - before_BN).masked_fill_(~live_BN, 0)
    return rows.compact(span_BN, span_BN > 0, min(columns, most)), live_BN & (drawn_BN == 0)


@cache
def _poisson_steps(mean: float, device: torch.device) -> Tensor:
    """The distribution function of Poisson(mean), cut where its tail falls below 1e-7, as draws."""
    mode = int(mean)
    pmf: list[float] = []
    while len(pmf) <= mode or pmf[-1] >= 1e-7:
        k = len(pmf)
        pmf.append(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)))
    cdf = torch.tensor(pmf[:-1], dtype=torch.float64).cumsum(0)
    return torch.tensor([threshold(p) for p in (cdf / cdf[-1])[:-1].tolist()], device=device)


def _disjoint_starts(
    span_BK: Tensor, count_B1: Tensor, words_B1: Tensor, bits_BN: Tensor
) -> tuple[Tensor, Tensor]:
    """Spans in a random order, and starts without overlap; all arrangements equally likely."""
    # a row of places, one for each word that stays and one for each span: draw the spans' places
    places_B1 = words_B1 - span_BK.sum(1, keepdim=True) + count_B1
    place_BK, order_BK = subsets_(bits_BN, places_B1, count_B1, span_BK.shape[1]).sort(1)
    span_BK = span_BK.gather(1, order_BK)
    return span_BK, place_BK + (span_BK - 1).cumsum(1) - (span_BK - 1)
