"""T5 span corruption: noise leaves the text for the target, sentinels stand in its place.

Shapes: B rows, T positions of the text, S and T' of inputs and targets, K spans of a row.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from course_lib.corruption import rows
from course_lib.corruption.randomness import LARGEST, Randomness
from course_lib.corruption.spans import random_spans


class Denoising(NamedTuple):
    """What an encoder reads (B, S) and a decoder must write (B, T'); rows end in EOS and padding.

    `input_lengths` and `target_lengths` (B,) count each row's tokens, EOS included.
    """

    inputs: Tensor
    targets: Tensor
    input_lengths: Tensor
    target_lengths: Tensor


def span_corrupt(
    ids_BT: Tensor,
    *,
    first_sentinel: int,
    eos_id: int,
    pad_id: int,
    lengths: Tensor | None = None,
    density: float = 0.15,
    mean_span: float = 3.0,
    num_sentinels: int = 100,
    final_sentinel: bool = False,
    generator: Randomness = None,
) -> Denoising:
    """T5 span corruption: random spans leave the text for the target, sentinels in their place.

    Inputs are the text with sentinel i for span i, then EOS; targets are sentinel i and the tokens
    of span i, for all i, then EOS. With n noise tokens in s spans of a text of L, these have
    L - n + s + 1 and n + s + 1 tokens. Equal to `apply_spans` on `random_spans_mask`, but faster.

    first_sentinel: the id of T5's <extra_id_0>, its highest; sentinel i is `first_sentinel - i`.
    final_sentinel: True ends every target in one more sentinel, as the paper words it. T5's code
      gives one only to a text that ends in kept tokens, here one without noise.

    Raises ValueError for texts that need more than `num_sentinels` (from 2010 tokens on with T5's
    settings) and, on CPU, for a text that holds a sentinel or a length that cannot be right.
    Source: Raffel et al. 2020, section 3.1.4; `random_spans_noise_mask` in T5's preprocessors.

    >>> pair = span_corrupt(torch.tensor([[5, 6]]), first_sentinel=999, eos_id=1, pad_id=0)
    >>> pair.inputs, pair.targets
    (tensor([[  5, 999,   1]]), tensor([[999,   6,   1]]))
    """
    lengths_B1 = _text_lengths(ids_BT, lengths, first_sentinel, num_sentinels)
    longest = rows.width(lengths_B1, ids_BT.shape[1])
    spans = random_spans(lengths_B1, longest, density, mean_span, generator)
    kept, noise, count_B1, most_kept, most_noise = spans
    most = kept.shape[1] - 1
    _check_sentinels(most + final_sentinel, num_sentinels, longest)
    # slots of missing spans, and of sentinel `count` in a target, lie behind the row's last token
    rank_K = torch.arange(most + 1, device=ids_BT.device)
    sentinel_K = (first_sentinel - rank_K).to(ids_BT.dtype)
    inputs_BS = _fill(
        ids_BT, kept[:, 1:] + rank_K[:-1], noise.diff(), sentinel_K[:-1], most_kept + most + 1
    )
    closing_B1 = (count_B1 == 0) | final_sentinel
    targets_BT = _fill(
        ids_BT,
        noise + rank_K,
        kept.diff(append=kept[:, -1:]),
        sentinel_K,
        most_noise + most + 1 + final_sentinel,
    )
    input_ends_B1, target_ends_B1 = kept[:, -1:] + count_B1, noise[:, -1:] + count_B1 + closing_B1
    return _denoising(inputs_BS, targets_BT, input_ends_B1, target_ends_B1, eos_id, pad_id)


def _fill(ids_BT: Tensor, slot_BK: Tensor, jump_BK: Tensor, fill_K: Tensor, width: int) -> Tensor:
    """Walk through the ids; at slot k put `fill_K[k]` and skip `jump_BK[:, k]` ids: (B, width)."""
    step_BW = torch.ones(len(ids_BT), width, dtype=torch.int64, device=ids_BT.device)
    step_BW.scatter_(1, slot_BK, jump_BK)[:, 0].sub_(1)
    out_BW = ids_BT.gather(1, step_BW.cumsum(1).clamp_(0, ids_BT.shape[1] - 1))
    return out_BW.scatter_(1, slot_BK, fill_K.expand_as(slot_BK))


def apply_spans(
    ids_BT: Tensor,
    noise_mask_BT: Tensor,
    *,
    first_sentinel: int,
    eos_id: int,
    pad_id: int,
    lengths: Tensor | None = None,
    num_sentinels: int = 100,
    final_sentinel: bool = False,
) -> Denoising:
    """T5's inputs and targets for any noise mask (B, T): each run of noise becomes a sentinel.

    The sentinel stands before its run in the target, also where a mask starts with noise; T5's own
    functions number inputs and targets differently there, and agree with these everywhere else.
    Parameters and errors as in `span_corrupt`; too many runs are noticed on CPU only.

    >>> mask = torch.tensor([[True, True, False, False, True, False]])
    >>> pair = apply_spans(torch.arange(10, 16)[None], mask, first_sentinel=999, eos_id=1, pad_id=0)
    >>> pair.inputs, pair.targets
    (tensor([[999,  12,  13, 998,  15,   1]]), tensor([[999,  10,  11, 998,  14, 997,   1]]))
    """
    lengths_B1 = _text_lengths(ids_BT, lengths, first_sentinel, num_sentinels)
    columns = ids_BT.shape[1]
    real_BT = torch.arange(columns, device=ids_BT.device) < lengths_B1
    noise_BT = noise_mask_BT & real_BT
    start_BT = noise_BT & ~pad(noise_BT, (1, 0))[:, :-1]
    run_BT = start_BT.cumsum(1)
    runs_B1, ends_in_noise_B1 = run_BT[:, -1:], noise_BT.gather(1, (lengths_B1 - 1).clamp(min=0))
    closing_B1 = ~ends_in_noise_B1 | final_sentinel
    _check_sentinels(rows.width(runs_B1 + closing_B1, num_sentinels), num_sentinels, columns)
    sentinel_BT = (first_sentinel + 1 - run_BT).to(ids_BT.dtype)

    stays_BT = (real_BT & ~noise_BT) | start_BT
    input_ends_B1 = stays_BT.sum(1, keepdim=True)
    inputs_BS = rows.compact(torch.where(start_BT, sentinel_BT, ids_BT), stays_BT, columns + 1)

    width = columns + min((columns + 1) // 2, num_sentinels) + 2
    slot_BT = noise_BT.cumsum(1) + run_BT - 1  # of a noise token; its sentinel stands before it
    target_ends_B1 = noise_BT.sum(1, keepdim=True) + runs_B1
    targets_BT = ids_BT.new_zeros(len(ids_BT), width + 1)  # the last column takes what is dropped
    targets_BT.scatter_(1, torch.where(noise_BT, slot_BT, width), ids_BT)
    targets_BT.scatter_(1, torch.where(start_BT, slot_BT - 1, width), sentinel_BT)
    targets_BT.scatter_(1, target_ends_B1, sentinel_BT[:, -1:] - 1)
    target_ends_B1 = target_ends_B1 + closing_B1
    return _denoising(inputs_BS, targets_BT[:, :-1], input_ends_B1, target_ends_B1, eos_id, pad_id)


def restore(
    pair: Denoising, *, first_sentinel: int, num_sentinels: int = 100, pad_id: int = 0
) -> tuple[Tensor, Tensor]:
    """The text a pair was made from, `(ids_BT, lengths)`: each span goes back to its sentinel.

    >>> mask = torch.tensor([[True, False, True]])
    >>> ids = torch.tensor([[5, 6, 7]])
    >>> restore(apply_spans(ids, mask, first_sentinel=999, eos_id=1, pad_id=0), first_sentinel=999)
    (tensor([[5, 6, 7]]), tensor([3]))
    """
    ids, keys = [], []
    for ids_BT, lengths, turn in (
        (pair.inputs, pair.input_lengths, 0),
        (pair.targets, pair.target_lengths, -1),
    ):
        sentinel_BT = (ids_BT <= first_sentinel) & (ids_BT > first_sentinel - num_sentinels)
        token_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device) < lengths[:, None] - 1
        # text before sentinel 0 has key 0, its span 1, the text after it 2, its next span 3, ...
        key_BT = 2 * sentinel_BT.cumsum(1) + turn
        ids.append(ids_BT)
        keys.append(key_BT.masked_fill(sentinel_BT | ~token_BT, LARGEST))
    key_BT, order_BT = torch.cat(keys, 1).sort(stable=True)
    lengths = (key_BT < LARGEST).sum(1)
    text_BT = torch.cat(ids, 1).gather(1, order_BT).masked_fill(key_BT == LARGEST, pad_id)
    return text_BT[:, : rows.width(lengths, text_BT.shape[1])], lengths


def _denoising(
    inputs_BS: Tensor,
    targets_BT: Tensor,
    input_ends_B1: Tensor,
    target_ends_B1: Tensor,
    eos_id: int,
    pad_id: int,
) -> Denoising:
    """Put EOS at the end of each row and padding after it."""
    ended: list[Tensor] = []
    for ids_BW, end_B1 in ((inputs_BS, input_ends_B1), (targets_BT, target_ends_B1)):
        ids_BW = ids_BW[:, : rows.width(end_B1 + 1, ids_BW.shape[1])]
        column_W = torch.arange(ids_BW.shape[1], device=ids_BW.device)
        if rows.any_seen(end_B1 + 1 < len(column_W)):
            ids_BW = ids_BW.masked_fill(column_W > end_B1, pad_id)
        ended.append(ids_BW.scatter(1, end_B1, eos_id))
    inputs_BS, targets_BT = ended
    lengths = [ends_B1.squeeze(1) + 1 for ends_B1 in (input_ends_B1, target_ends_B1)]
    return Denoising(inputs_BS, targets_BT, *lengths)


def _check_sentinels(needed: int, available: int, columns: int) -> None:
    if needed > available:
        raise ValueError(
            f"rows of up to {columns} tokens may need {needed} sentinels and there are "
            f"{available}: cut the text, lower the density or reserve more ids"
        )


def _text_lengths(
    ids_BT: Tensor, lengths: Tensor | None, first_sentinel: int, num_sentinels: int
) -> Tensor:
    """The rows' lengths as a column, after a look for sentinels in the text, on CPU only."""
    lengths_B1 = rows.text_lengths(ids_BT, lengths)
    lowest = first_sentinel - num_sentinels + 1
    if ids_BT.is_cpu and ids_BT.numel() and int(ids_BT.max()) >= lowest:
        held_BT = (ids_BT <= first_sentinel) & (ids_BT >= lowest)
        held_BT &= torch.arange(ids_BT.shape[1]) < lengths_B1
        if held_BT.any():
            raise ValueError(
                f"the text contains id {int(ids_BT[held_BT][0])}, one of the {num_sentinels} "
                f"sentinels that end at {first_sentinel}: keep these ids out of the text"
            )
    return lengths_B1
