"""BERT: masks that choose single tokens, and the 80/10/10 corruption of what they choose.

Shapes: B rows, T positions, K chosen positions of a row, V ids; `_B1` is a column.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from course_lib.corruption import rows
from course_lib.corruption.randomness import LARGEST, Randomness, draws, smallest_, threshold
from course_lib.losses import IGNORE_INDEX


def iid_mask(eligible_BT: Tensor, rate: float, *, generator: Randomness = None) -> Tensor:
    """Choose each eligible position independently with probability `rate`: bool (B, T).

    Of rows with L eligible positions a share of (1 - rate)^L ends up with none.
    Raises ValueError unless 0 <= rate <= 1.

    >>> iid_mask(torch.tensor([[True, True, False]]), 1.0)
    tensor([[ True,  True, False]])
    """
    rows.check_share("rate", rate)
    return (draws(eligible_BT, eligible_BT.shape[1], generator) < threshold(rate)) & eligible_BT


def exact_mask(eligible_BT: Tensor, rate: float, *, generator: Randomness = None) -> Tensor:
    """Choose max(1, round(rate * L)) of a row's L eligible positions: bool (B, T).

    Halves are rounded to the even number, as in BERT's script; a row without eligible positions
    gets none. All subsets of that size are equally likely.
    Raises ValueError unless 0 <= rate <= 1.

    >>> exact_mask(torch.ones(2, 200, dtype=torch.bool), 0.15).sum(1)
    tensor([30, 30])
    """
    order_BK, live_BK = _exact_choice(~eligible_BT, rate, generator)
    return torch.zeros_like(eligible_BT).scatter_(1, order_BK, live_BK)


def _exact_choice(special_BT: Tensor, rate: float, generator: Randomness) -> tuple[Tensor, Tensor]:
    """Positions in random order (B, K), and which of these columns the row's count reaches."""
    rows.check_share("rate", rate)
    columns = special_BT.shape[1]
    most = min(max(1, round(columns * rate)), columns)
    size_B1 = columns - special_BT.sum(1, keepdim=True)
    count_B1 = (size_B1.double() * rate).round().clamp(min=1).minimum(size_B1)
    bits_BT = draws(special_BT, columns, generator).masked_fill_(special_BT, LARGEST)
    order_BK = smallest_(bits_BT, most)
    return order_BK, torch.arange(most, device=special_BT.device) < count_B1


def bert_corrupt(
    ids_BT: Tensor,
    *,
    vocab_size: int,
    mask_id: int,
    special_ids: Sequence[int] = (),
    special_mask: Tensor | None = None,
    rate: float = 0.15,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
    select: Literal["bernoulli", "exact", "exact_split"] = "bernoulli",
    at_least_one: bool = True,
    generator: Randomness = None,
) -> tuple[Tensor, Tensor]:
    """BERT's corruption: of the chosen tokens 80% become [MASK], 10% random, 10% stay.

    Returns `(inputs, labels)`, both (B, T) and of the dtype of the ids, which are not changed.
    Labels hold the original token where one was chosen and `IGNORE_INDEX` elsewhere; inputs equal
    the ids where none was.

    special_ids: never chosen, and never drawn as the random token. With () that token comes from
      the whole vocabulary, [MASK] included, as in BERT's script.
    special_mask: True where a token is never chosen: [CLS], [SEP], padding.
    select: "bernoulli" chooses each token independently; "exact" takes max(1, round(rate * L)) of
      a row's L maskable tokens (BERT's script counts [CLS] and [SEP] into L) and splits each
      independently; "exact_split" splits exactly too, by largest remainder: 30 -> 24/3/3.
    at_least_one: in "bernoulli", a row with a maskable token gets one chosen: where the draws
      choose none, a uniformly random one is. The count is then max(1, Binomial(L, rate)).
      False leaves Binomial(L, rate): 27% of rows of 8 tokens have nothing to learn from.

    Raises ValueError for a rate outside (0, 1] and for a split that is not three shares of 1.
    Source: Devlin et al. 2019, section 3.1; `create_masked_lm_predictions` in BERT's code.

    >>> ids = torch.tensor([[101, 7, 8, 9, 102]])
    >>> bert_corrupt(
    ...     ids, vocab_size=200, mask_id=103, special_ids=(101, 102, 103), rate=1, split=(1, 0, 0)
    ... )
    (tensor([[101, 103, 103, 103, 102]]), tensor([[-100,    7,    8,    9, -100]]))
    """
    rows.check_ids(ids_BT)
    _check_split(rate, split)
    special_BT = _special(ids_BT, special_ids, special_mask)
    # the chosen of a row are known beforehand or are those whose dice lies under the rate
    to_mask, to_random, below = _ends(rate if select == "bernoulli" else 1.0, split)
    if select == "bernoulli":
        where_N, dice_N = _bernoulli_dice(special_BT, below, at_least_one, generator)
    elif select in ("exact", "exact_split"):
        where_N, dice_N = _exact_dice(special_BT, rate, split, select == "exact_split", generator)
    else:
        raise ValueError(f"select is {select!r}: give 'bernoulli', 'exact' or 'exact_split'")
    ids_N = ids_BT.flatten() if where_N is None else ids_BT.flatten().index_select(0, where_N)
    inputs_N = _random_ids(dice_N, vocab_size, special_ids).to(ids_N.dtype)
    _blend_(inputs_N, _ones_below(dice_N, to_random), ids_N)
    _blend_(inputs_N, _ones_below(dice_N, to_mask).bitwise_not_(), mask_id)
    labels_N = _blend_(ids_N.clone(), _ones_below(dice_N, below), IGNORE_INDEX)
    if where_N is None:
        return inputs_N.view_as(ids_BT), labels_N.view_as(ids_BT)
    labels_BT = ids_BT.new_full(ids_BT.shape, IGNORE_INDEX)
    labels_BT.view(-1).scatter_(0, where_N, labels_N)
    inputs_BT = ids_BT.flatten().scatter(0, where_N, inputs_N).view_as(ids_BT)
    return inputs_BT, labels_BT


def _special(ids_BT: Tensor, special_ids: Sequence[int], special_mask: Tensor | None) -> Tensor:
    """True at the tokens never chosen."""
    special_BT = torch.zeros_like(ids_BT, dtype=torch.bool)
    if special_ids:
        special_BT = torch.isin(ids_BT, ids_BT.new_tensor(list(special_ids)))
    if special_mask is None:
        return special_BT
    if special_mask.shape != ids_BT.shape:
        raise ValueError(
            f"special_mask has shape {tuple(special_mask.shape)} and ids "
            f"{tuple(ids_BT.shape)}: give one flag for each token"
        )
    return special_BT | special_mask.bool()


def _check_split(rate: float, split: tuple[float, float, float]) -> None:
    if not 0 < rate <= 1:
        raise ValueError(f"rate is {rate}: choose a share of the tokens above 0 and up to 1")
    if len(split) != 3 or min(split) < 0 or abs(sum(split) - 1) > 1e-6:
        raise ValueError(f"split is {split}: give shares of (mask, random, kept) that sum to 1")


# One number for each token, its dice, decides everything: under the last of `_ends` the token is
# chosen and the dice is uniform, the ends part mask, random and kept, the low bits draw the id.
def _ends(rate: float, split: tuple[float, float, float]) -> tuple[int, int, int]:
    below = threshold(rate)
    return int(below * split[0]), below - int(below * split[2]), below


def _bernoulli_dice(
    special_BT: Tensor, below: int, at_least_one: bool, generator: Randomness
) -> tuple[Tensor | None, Tensor]:
    """The places (N,) of the chosen in the flattened batch, and their dice; None: all places.

    An accelerator would have to wait to know how many there are, and has no need to.
    """
    dice_BT = draws(special_BT, special_BT.shape[1], generator).masked_fill_(special_BT, LARGEST)
    if at_least_one and dice_BT.numel():
        # the smallest dice lies at a uniformly random token; where even that one is too large
        # nothing was chosen, and the row's spare dice takes its place
        least_B1, where_B1 = dice_BT.min(1, keepdim=True)
        none_B1 = (least_B1 >= below) & (least_B1 < LARGEST)
        if rows.any_seen(none_B1):
            spare_B1 = _shrink(draws(special_BT, 1, generator, stream=1), below)
            dice_BT.scatter_(1, where_B1, torch.where(none_B1, spare_B1, least_B1))
    dice_N = dice_BT.flatten()
    if not dice_N.is_cpu:
        return None, dice_N
    where_N = torch.from_numpy(np.flatnonzero((dice_N < below).numpy()))
    return where_N, dice_N.index_select(0, where_N)


def _exact_dice(
    special_BT: Tensor,
    rate: float,
    split: tuple[float, float, float],
    exact_split: bool,
    generator: Randomness,
) -> tuple[Tensor, Tensor]:
    """Places (N,) in the flattened batch, all those chosen among them, and the dice of each."""
    order_BK, live_BK = _exact_choice(special_BT, rate, generator)
    dice_BK = draws(special_BT, order_BK.shape[1], generator, stream=1)
    if exact_split:
        # the order is random, so its first become masks, the next random tokens, the rest stay
        parts_B3 = _largest_remainder(live_BK.sum(1, keepdim=True), split).cumsum(1)
        rank_K = torch.arange(order_BK.shape[1], device=order_BK.device)
        action_BK = (rank_K >= parts_B3[:, :1]).long() + (rank_K >= parts_B3[:, 1:2])
        ends_4 = parts_B3.new_tensor([0, *_ends(1.0, split)])
        dice_BK = ends_4[action_BK] + _shrink(dice_BK, ends_4.diff()[action_BK])
    first_B1 = torch.arange(len(special_BT), device=special_BT.device)[:, None]
    where_N = order_BK.add_(first_B1 * special_BT.shape[1]).flatten()
    return where_N, dice_BK.masked_fill_(~live_BK, LARGEST).flatten()


def _largest_remainder(count_B1: Tensor, split: tuple[float, float, float]) -> Tensor:
    """Whole numbers (B, 3) that sum to the count, each less than 1 from its exact share."""
    share_B3 = count_B1 * torch.tensor(split, dtype=torch.float64, device=count_B1.device)
    floor_B3 = share_B3.floor()
    left_B1 = count_B1 - floor_B3.sum(1, keepdim=True)
    largest_rest_first_B3 = (floor_B3 - share_B3).argsort(stable=True)
    extra_B3: Tensor = largest_rest_first_B3.argsort() < left_B1
    return floor_B3.long() + extra_B3.long()


def _shrink(dice: Tensor, end: int | Tensor) -> Tensor:
    """Dice uniform in 0..end-1, their low 31 bits as before; a remainder would not be uniform."""
    return (((dice >> 32) * (end >> 31) >> 31) << 31) | (dice & (2**31 - 1))


def _random_ids(dice: Tensor, vocab_size: int, special_ids: Sequence[int]) -> Tensor:
    """An id for each position from the low 31 bits, uniform over the vocabulary less specials."""
    pool_size = vocab_size - len(set(special_ids))
    drawn = (dice & (2**31 - 1)).mul_(pool_size).bitwise_right_shift_(31)
    if not special_ids:
        return drawn
    allowed_V = torch.ones(vocab_size, dtype=torch.bool)
    allowed_V[list(special_ids)] = False
    pool = allowed_V.nonzero().squeeze(1).to(dice.device)
    return pool.index_select(0, drawn.flatten()).view_as(drawn)


# `torch.where(dice < end, ids, otherwise)` would say this and take twice as long: on CPU it
# branches at every element, in a way nothing can predict, and writes to fresh memory each time.
def _ones_below(dice: Tensor, end: int) -> Tensor:
    """All bits set (-1) where dice < end, none (0) elsewhere; neither is negative."""
    return (dice - end).bitwise_right_shift_(63)


def _blend_(ids: Tensor, ones: Tensor, otherwise: Tensor | int) -> Tensor:
    """In place: the ids stay where `ones` is -1; `otherwise` stands where it is 0."""
    return ids.bitwise_xor_(otherwise).bitwise_and_(ones.to(ids.dtype)).bitwise_xor_(otherwise)
