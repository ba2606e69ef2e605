"""Corrupt token ids for denoising: BERT's 80/10/10, T5's random spans, BART's text infilling.

A corruption is a noise mask × an input function × a target function. The pieces compose
(`iid_mask` or `random_spans_mask`, then `apply_spans`); `span_corrupt` is the direct way to the
same result for T5's own mask.

Shapes: B rows, T positions, S and T' the longest encoder input and target, K chosen positions or
spans of a row; `_B1` is a column, one number for each row. Padding stands on the right and is
known by `lengths` or a mask, never by its id: a pad id inside the text is a token.

Randomness: `generator` is a `torch.Generator` on the device of the ids (None: torch's own) or
`ExampleKeys`. The CPU and CUDA streams of a `torch.Generator` differ; `ExampleKeys` gives the
same numbers everywhere.

Widths: nothing here waits for an accelerator. Where the length of a row is random or ragged, a
CPU result is as wide as its longest row, a GPU result as wide as the longest row possible.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from course_lib.losses import IGNORE_INDEX

__all__ = [
    "Denoising",
    "ExampleKeys",
    "Randomness",
    "apply_spans",
    "bert_corrupt",
    "exact_mask",
    "iid_mask",
    "random_spans_mask",
    "restore",
    "span_corrupt",
    "span_counts",
    "span_lengths",
    "text_infill",
]

# ------------------------------------------------------------------------------- random numbers
# A draw is an integer of 63 bits. Ties are then out of the question, so `topk` of a draw is a
# uniform subset, and one draw decides both whether a token is chosen and what becomes of it.
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class ExampleKeys:
    """Random numbers that belong to an example: a hash of (seed, epoch, index, stream, column).

    `index` (B,) is each row's index in the data set. A row's result then depends neither on the
    rest of the batch, nor on padding, nor on the number of workers, nor on the device.
    The hash is SplitMix64 (Steele, Lea, Flood 2014), one round for each part of the key.

    >>> eligible = torch.ones(2, 20, dtype=torch.bool)
    >>> both = iid_mask(eligible, 0.3, generator=ExampleKeys(0, 0, torch.tensor([7, 8])))
    >>> alone = iid_mask(eligible[1:], 0.3, generator=ExampleKeys(0, 0, torch.tensor([8])))
    >>> bool((both[1:] == alone).all())
    True
    """

    seed: int
    epoch: int
    index: Tensor

    def bits(self, columns: int, stream: int, device: torch.device) -> Tensor:
        """Uniform integers of 63 bits (B, columns); a longer row begins like a shorter one."""
        key = torch.tensor([self.seed], device=device)
        for part in (self.epoch, self.index.to(device, torch.int64)[:, None], stream):
            key = _mix(key) + part
        return _mix(_mix(key) + torch.arange(columns, device=device)) & LARGEST


Randomness = torch.Generator | ExampleKeys | None


def _mix(x: Tensor) -> Tensor:
    """One step of SplitMix64: a bijection of int64 whose output bits look independent."""
    # int64 wraps around; its shifts copy the sign, which the masks remove; constants above 2^63
    # are written as what they are in two's complement
    x = x - 0x61C8864680B583EB
    x = (x ^ ((x >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & (2**33 - 1))


def _bits(like: Tensor, columns: int, generator: Randomness, stream: int = 0) -> Tensor:
    """Uniform integers of 63 bits (B, columns) for the rows of `like`, on its device."""
    if not isinstance(generator, ExampleKeys):
        empty = torch.empty(len(like), columns, dtype=torch.int64, device=like.device)
        return empty.random_(generator=generator)
    if generator.index.shape != like.shape[:1]:
        raise ValueError(
            f"index has shape {tuple(generator.index.shape)} for a batch of {len(like)} rows: "
            "give one example index for each row"
        )
    return generator.bits(columns, stream, like.device)


def _below(rate: float) -> int:
    """The threshold under which a draw lies with probability `rate`."""
    return min(int(rate * 2**63), LARGEST)


def _subsets(bits_BN: Tensor, size_B1: Tensor, count_B1: Tensor, columns: int) -> Tensor:
    """`count` distinct numbers out of 0..size-1 in random order, then `size` in columns left over.

    All subsets in all orders are equally likely. N must be at least the largest size.
    """
    outside_BN = torch.arange(bits_BN.shape[1], device=bits_BN.device) >= size_B1
    # sorted, since the order in which an unsorted topk returns them depends on their positions
    order_BK = bits_BN.masked_fill(outside_BN, LARGEST).topk(columns, largest=False).indices
    live_BK = torch.arange(columns, device=bits_BN.device) < count_B1
    return torch.where(live_BK, order_BK, size_B1)


# ------------------------------------------------------------------------------------ iid masks
def iid_mask(eligible_BT: Tensor, rate: float, *, generator: Randomness = None) -> Tensor:
    """Choose each eligible position independently with probability `rate`: bool (B, T).

    Of rows with L eligible positions a share of (1 - rate)^L ends up with none.
    Raises ValueError unless 0 <= rate <= 1.

    >>> iid_mask(torch.tensor([[True, True, False]]), 1.0)
    tensor([[ True,  True, False]])
    """
    _check_share("rate", rate)
    return (_bits(eligible_BT, eligible_BT.shape[1], generator) < _below(rate)) & eligible_BT


def exact_mask(eligible_BT: Tensor, rate: float, *, generator: Randomness = None) -> Tensor:
    """Choose max(1, round(rate * L)) of a row's L eligible positions: bool (B, T).

    Halves are rounded to the even number, as in BERT's script; a row without eligible positions
    gets none. All subsets of that size are equally likely.
    Raises ValueError unless 0 <= rate <= 1.

    >>> exact_mask(torch.ones(2, 200, dtype=torch.bool), 0.15).sum(1)
    tensor([30, 30])
    """
    order_BK, live_BK = _exact_choice(eligible_BT, rate, generator)
    return torch.zeros_like(eligible_BT).scatter_(1, order_BK, live_BK)


def _exact_choice(eligible_BT: Tensor, rate: float, generator: Randomness) -> tuple[Tensor, Tensor]:
    """Positions in random order (B, K), and which of these columns the row's count reaches."""
    _check_share("rate", rate)
    columns = eligible_BT.shape[1]
    most = min(max(1, round(columns * rate)), columns)
    size_B1 = eligible_BT.sum(1, keepdim=True)
    count_B1 = (size_B1.double() * rate).round().clamp(min=1).minimum(size_B1)
    bits_BT = _bits(eligible_BT, columns, generator).masked_fill_(~eligible_BT, LARGEST)
    order_BK = bits_BT.topk(most, largest=False).indices
    return order_BK, torch.arange(most, device=eligible_BT.device) < count_B1


# ----------------------------------------------------------------------------------------- BERT
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
    _check_ids(ids_BT)
    _check_split(rate, split)
    special_BT = _special(ids_BT, special_ids, special_mask)
    if select == "bernoulli":
        ids, dice = ids_BT, _bernoulli_dice(special_BT, rate, at_least_one, generator)
    elif select in ("exact", "exact_split"):
        order_BK, dice = _exact_dice(special_BT, rate, split, select == "exact_split", generator)
        ids = ids_BT.gather(1, order_BK)
    else:
        raise ValueError(f"select is {select!r}: give 'bernoulli', 'exact' or 'exact_split'")
    to_mask, to_random, below = _ends(rate, split)
    inputs = _random_ids(dice, vocab_size, special_ids).to(ids.dtype)
    _blend_(inputs, _ones_below(dice, to_random), ids)
    _blend_(inputs, _ones_below(dice, to_mask).bitwise_not_(), mask_id)
    labels = _blend_(ids.clone(), _ones_below(dice, below), IGNORE_INDEX)
    if select == "bernoulli":
        return inputs, labels
    labels_BT = torch.full_like(ids_BT, IGNORE_INDEX).scatter_(1, order_BK, labels)
    return ids_BT.scatter(1, order_BK, inputs), labels_BT


# One number for each token, its dice, decides everything: under the last of `_ends` the token is
# chosen and the dice is uniform, the ends part mask, random and kept, the low bits draw the id.
def _ends(rate: float, split: tuple[float, float, float]) -> tuple[int, int, int]:
    below = _below(rate)
    return int(below * split[0]), below - int(below * split[2]), below


# `torch.where(dice < end, ids, otherwise)` would say this and take twice as long: on CPU it
# branches at every element, in a way nothing can predict, and writes to fresh memory each time.
def _ones_below(dice: Tensor, end: int) -> Tensor:
    """All bits set (-1) where dice < end, none (0) elsewhere; neither is negative."""
    return (dice - end).bitwise_right_shift_(63)


def _blend_(ids: Tensor, ones: Tensor, otherwise: Tensor | int) -> Tensor:
    """In place: the ids stay where `ones` is -1; `otherwise` stands where it is 0."""
    return ids.bitwise_xor_(otherwise).bitwise_and_(ones.to(ids.dtype)).bitwise_xor_(otherwise)


def _shrink(dice: Tensor, end: int | Tensor) -> Tensor:
    """Dice uniform in 0..end-1, their low 31 bits as before; a remainder would not be uniform."""
    return (((dice >> 32) * (end >> 31) >> 31) << 31) | (dice & (2**31 - 1))


def _bernoulli_dice(
    special_BT: Tensor, rate: float, at_least_one: bool, generator: Randomness
) -> Tensor:
    dice_BT = _bits(special_BT, special_BT.shape[1], generator).masked_fill_(special_BT, LARGEST)
    if at_least_one and dice_BT.numel():
        # the smallest dice lies at a uniformly random token; where even that one is too large
        # nothing was chosen, and the row's spare dice takes its place
        least_B1, where_B1 = dice_BT.min(1, keepdim=True)
        spare_B1 = _shrink(_bits(special_BT, 1, generator, stream=1), _below(rate))
        none_B1 = (least_B1 >= _below(rate)) & (least_B1 < LARGEST)
        dice_BT.scatter_(1, where_B1, torch.where(none_B1, spare_B1, least_B1))
    return dice_BT


def _exact_dice(
    special_BT: Tensor,
    rate: float,
    split: tuple[float, float, float],
    exact_split: bool,
    generator: Randomness,
) -> tuple[Tensor, Tensor]:
    """Positions (B, K), all those chosen among them, and the dice of each."""
    order_BK, live_BK = _exact_choice(~special_BT, rate, generator)
    dice_BK = _bits(special_BT, order_BK.shape[1], generator, stream=1)
    if exact_split:
        # the order is random, so its first become masks, the next random tokens, the rest stay
        parts_B3 = _largest_remainder(live_BK.sum(1, keepdim=True), split).cumsum(1)
        rank_K = torch.arange(order_BK.shape[1], device=order_BK.device)
        action_BK = (rank_K >= parts_B3[:, :1]).long() + (rank_K >= parts_B3[:, 1:2])
        ends_4 = parts_B3.new_tensor([0, *_ends(rate, split)])
        dice_BK = ends_4[action_BK] + _shrink(dice_BK, ends_4.diff()[action_BK])
    else:
        dice_BK = _shrink(dice_BK, _below(rate))
    return order_BK, torch.where(live_BK, dice_BK, LARGEST)


def _largest_remainder(count_B1: Tensor, split: tuple[float, float, float]) -> Tensor:
    """Whole numbers (B, 3) that sum to the count, each less than 1 from its exact share."""
    share_B3 = count_B1 * torch.tensor(split, dtype=torch.float64, device=count_B1.device)
    floor_B3 = share_B3.floor()
    left_B1 = count_B1 - floor_B3.sum(1, keepdim=True)
    largest_rest_first_B3 = (floor_B3 - share_B3).argsort(stable=True)
    extra_B3: Tensor = largest_rest_first_B3.argsort() < left_B1
    return floor_B3.long() + extra_B3.long()


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


def _special(ids_BT: Tensor, special_ids: Sequence[int], special_mask: Tensor | None) -> Tensor:
    """True at the tokens never chosen."""
    if special_mask is None:
        special_mask = torch.zeros_like(ids_BT, dtype=torch.bool)
    if special_mask.shape != ids_BT.shape:
        raise ValueError(
            f"special_mask has shape {tuple(special_mask.shape)} and ids "
            f"{tuple(ids_BT.shape)}: give one flag for each token"
        )
    if not special_ids:
        return special_mask.bool()
    return special_mask.bool() | torch.isin(ids_BT, ids_BT.new_tensor(list(special_ids)))


# ---------------------------------------------------------------------------- T5 span corruption
class Denoising(NamedTuple):
    """What an encoder reads (B, S) and a decoder must write (B, T'); rows end in EOS and padding.

    `input_lengths` and `target_lengths` (B,) count each row's tokens, EOS included.
    """

    inputs: Tensor
    targets: Tensor
    input_lengths: Tensor
    target_lengths: Tensor


def span_counts(
    lengths: Tensor, density: float = 0.15, mean_span: float = 3.0
) -> tuple[Tensor, Tensor]:
    """How many noise tokens, in how many spans, T5 takes out of texts of these lengths.

    noise = round(length * density), between 1 and length - 1; spans = round(noise / mean_span), at
    least 1 and at most the number of kept tokens, since one stands before each span. Products are
    float32 and halves go to the even number, as in T5's mask (T5's length helper uses float64 and
    disagrees with it at some lengths, 190 for one). Texts of 0 or 1 tokens stay whole.
    Raises ValueError unless 0 <= density <= 1 and mean_span >= 1.

    >>> span_counts(torch.tensor([1, 8, 190, 512, 568]))
    (tensor([ 0,  1, 29, 77, 85]), tensor([ 0,  1, 10, 26, 28]))
    """
    _check_share("density", density)
    if not mean_span >= 1:
        raise ValueError(f"mean_span is {mean_span}: a span has at least 1 token")
    noise = (lengths.float() * density).round().long().clamp(min=1).minimum(lengths - 1)
    noise = noise.clamp(min=0) if density else torch.zeros_like(noise)
    # divided by a tensor: a GPU would multiply by the rounded reciprocal of a number
    spans = (noise.float() / torch.full_like(noise, mean_span, dtype=torch.float32)).round().long()
    return noise, spans.clamp(min=1).minimum(noise).minimum(lengths - noise)


def span_lengths(
    input_length: int, density: float = 0.15, mean_span: float = 3.0
) -> tuple[int, int]:
    """The longest text whose corrupted input fits in `input_length`, and its target's length.

    Both lengths count EOS. The counts are those of `span_counts`, so text and mask always agree; as
    in T5's helper, at density 0.5 the target may not be longer than the input.
    Raises ValueError unless 0 <= density < 1 and input_length >= 1.

    >>> span_lengths(512), span_lengths(114, density=0.5)
    ((568, 114), (170, 114))
    """
    if input_length < 1 or density == 1:
        raise ValueError(
            f"input_length is {input_length} and density {density}: "
            "give a length of at least 1, for EOS, and a density under 1"
        )
    _check_share("density", density)
    text = torch.arange(int(input_length / (1 - density)) + 2)
    noise, spans = span_counts(text, density, mean_span)
    closing = (spans == 0).long()
    target = noise + spans + closing + 1
    fits = text - noise + spans + 1 <= input_length
    if density == 0.5:
        fits &= (target <= input_length) | (text < 2)
    longest = int(text[fits].max())
    return longest, int(target[longest])


class _Spans(NamedTuple):
    """Kept and noise runs by turns, kept first; columns past a row's last span hold no tokens."""

    kept_ends: Tensor  # (B, K + 1): 0, then how many kept tokens precede each span
    noise_ends: Tensor  # (B, K + 1): 0, then how many noise tokens the spans so far have
    number: Tensor  # (B, 1), of spans
    most_kept: int  # the largest numbers of tokens a row can have
    most_noise: int


def _random_spans(
    lengths_B1: Tensor, longest: int, density: float, mean_span: float, generator: Randomness
) -> _Spans:
    """T5's spans: the kept and the noise tokens fall into runs of uniformly random lengths."""
    noise_B1, count_B1 = span_counts(lengths_B1, density, mean_span)
    most_noise, most_spans = map(int, span_counts(torch.tensor(longest), density, mean_span))
    columns = max(most_spans, 1)

    def run_ends(tokens_B1: Tensor, most: int, stream: int) -> Tensor:
        # to break n tokens into k runs is to choose k - 1 cuts among n - 1 places
        bits_BN = _bits(lengths_B1, max(most - 1, 0), generator, stream)
        cuts_BK = _subsets(bits_BN, tokens_B1 - 1, count_B1 - 1, columns - 1)
        return torch.cat([torch.zeros_like(tokens_B1), cuts_BK.sort(1).values + 1, tokens_B1], 1)

    kept_ends = run_ends(lengths_B1 - noise_B1, longest - most_noise, stream=0)
    noise_ends = run_ends(noise_B1, most_noise, stream=1)
    return _Spans(kept_ends, noise_ends, count_B1, longest - most_noise, most_noise)


def random_spans_mask(
    lengths: Tensor,
    columns: int,
    *,
    density: float = 0.15,
    mean_span: float = 3.0,
    random_roll: bool = False,
    generator: Randomness = None,
) -> Tensor:
    """T5's noise mask for texts of these lengths: bool (B, columns), False on padding.

    The numbers of noise tokens and spans are those of `span_counts`; all such masks are equally
    likely. Hence no two spans touch, the first token is never noise and the last always is.
    random_roll: turn each row by a random offset, so that all positions are noise equally often;
      a span may then wrap around the end.

    >>> random_spans_mask(torch.tensor([2, 3, 1]), 4, density=0.6)
    tensor([[False,  True, False, False],
            [False,  True,  True, False],
            [False, False, False, False]])
    """
    lengths_B1 = _lengths(lengths, lengths, columns)
    longest = _width(lengths_B1, columns)
    spans = _random_spans(lengths_B1, longest, density, mean_span, generator)
    kept, noise = spans.kept_ends, spans.noise_ends
    mask_BT = _covered(kept[:, 1:] + noise[:, :-1], kept[:, 1:] + noise[:, 1:], columns)
    if not random_roll:
        return mask_BT
    offset_B1 = _bits(lengths_B1, 1, generator, stream=2) % lengths_B1.clamp(min=1)
    column_T = torch.arange(columns, device=lengths_B1.device)
    source_BT = (column_T + offset_B1) % lengths_B1.clamp(min=1)
    return mask_BT.gather(1, source_BT) & (column_T < lengths_B1)


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
    lengths_B1 = _check_text(ids_BT, lengths, first_sentinel, num_sentinels)
    longest = _width(lengths_B1, ids_BT.shape[1])
    spans = _random_spans(lengths_B1, longest, density, mean_span, generator)
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
    source_BW = step_BW.scatter_(1, slot_BK, jump_BK).cumsum(1).sub_(1)
    out_BW = ids_BT.gather(1, source_BW.clamp_(0, ids_BT.shape[1] - 1))
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
    lengths_B1 = _check_text(ids_BT, lengths, first_sentinel, num_sentinels)
    columns = ids_BT.shape[1]
    real_BT = torch.arange(columns, device=ids_BT.device) < lengths_B1
    noise_BT = noise_mask_BT & real_BT
    start_BT = noise_BT & ~pad(noise_BT, (1, 0))[:, :-1]
    run_BT = start_BT.cumsum(1)
    runs_B1, ends_in_noise_B1 = run_BT[:, -1:], noise_BT.gather(1, (lengths_B1 - 1).clamp(min=0))
    closing_B1 = ~ends_in_noise_B1 | final_sentinel
    _check_sentinels(_width(runs_B1 + closing_B1, num_sentinels), num_sentinels, columns)
    sentinel_BT = (first_sentinel + 1 - run_BT).to(ids_BT.dtype)

    stays_BT = (real_BT & ~noise_BT) | start_BT
    input_ends_B1 = stays_BT.sum(1, keepdim=True)
    inputs_BS = _compact(torch.where(start_BT, sentinel_BT, ids_BT), stays_BT, columns + 1)

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
    return text_BT[:, : _width(lengths, text_BT.shape[1])], lengths


# --------------------------------------------------------------------------- BART text infilling
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
    _check_share("rate", rate)
    if overlap not in ("merge", "disjoint"):
        raise ValueError(f"overlap is {overlap!r}: give 'merge' or 'disjoint'")
    lengths_B1 = _check_text(ids_BT, lengths)
    columns, words_B1 = ids_BT.shape[1], (lengths_B1 - 2).clamp(min=0)
    most = int(_budget(torch.tensor(max(columns - 2, 0)), rate))
    span_BK, empty_BN = _poisson_spans(_budget(words_B1, rate), most, mean_span, generator)
    place = _disjoint_starts if overlap == "disjoint" else _free_starts
    bits_BT = _bits(ids_BT, max(columns - 2, 0), generator, stream=1)
    span_BK, start_BK = place(span_BK, words_B1, bits_BT)

    # a span's first token becomes the mask, its other tokens go, and with them any start inside
    start_BK = torch.where(span_BK > 0, start_BK + 1, lengths_B1.clamp(min=1) - 1)
    stop_BK = (start_BK + span_BK).minimum(lengths_B1 - 1)
    gone_BT = _covered(start_BK + 1, stop_BK.maximum(start_BK + 1), columns)
    masked_BT = torch.zeros_like(gone_BT).scatter_(1, start_BK, span_BK > 0)
    stays_BT = ~gone_BT & (torch.arange(columns, device=ids_BT.device) < lengths_B1)
    kept_BT = _compact(ids_BT.masked_fill(masked_BT, mask_id), stays_BT, columns)
    return _insert(kept_BT, stays_BT.sum(1, keepdim=True), empty_BN, mask_id, pad_id, generator)


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
    bits_BN = _bits(budget_B1, columns, generator, stream=0)
    drawn_BN = torch.bucketize(bits_BN, _poisson_steps(mean_span, bits_BN.device), right=True)
    before_BN = drawn_BN.cumsum(1) - drawn_BN
    live_BN = before_BN < budget_B1
    span_BN = drawn_BN.minimum(budget_B1 - before_BN).masked_fill_(~live_BN, 0)
    return _compact(span_BN, span_BN > 0, min(columns, most)), live_BN & (drawn_BN == 0)


def _poisson_steps(mean: float, device: torch.device) -> Tensor:
    """The distribution function of Poisson(mean), cut where its tail falls below 1e-7, as draws."""
    mode = int(mean)
    pmf: list[float] = []
    while len(pmf) <= mode or pmf[-1] >= 1e-7:
        k = len(pmf)
        pmf.append(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)))
    cdf = torch.tensor(pmf[:-1], dtype=torch.float64).cumsum(0)
    return torch.tensor([_below(p) for p in (cdf / cdf[-1])[:-1].tolist()], device=device)


def _free_starts(span_BK: Tensor, words_B1: Tensor, bits_BN: Tensor) -> tuple[Tensor, Tensor]:
    """Spans, and for each a start among the words: distinct, uniform, in random order."""
    count_B1 = (span_BK > 0).sum(1, keepdim=True)
    return span_BK, _subsets(bits_BN, words_B1, count_B1, span_BK.shape[1])


def _disjoint_starts(span_BK: Tensor, words_B1: Tensor, bits_BN: Tensor) -> tuple[Tensor, Tensor]:
    """Spans in a random order, and starts without overlap; all arrangements equally likely."""
    count_B1 = (span_BK > 0).sum(1, keepdim=True)
    # a row of places, one for each word that stays and one for each span: draw the spans' places
    places_B1 = words_B1 - span_BK.sum(1, keepdim=True) + count_B1
    place_BK, order_BK = _subsets(bits_BN, places_B1, count_B1, span_BK.shape[1]).sort(1)
    span_BK = span_BK.gather(1, order_BK)
    return span_BK, place_BK + (span_BK - 1).cumsum(1) - (span_BK - 1)


def _insert(
    ids_BT: Tensor,
    lengths_B1: Tensor,
    empty_BN: Tensor,
    mask_id: int,
    pad_id: int,
    generator: Randomness,
) -> tuple[Tensor, Tensor]:
    """A mask for each empty span, at uniformly random places but never first or last."""
    inserts_B1 = empty_BN.sum(1, keepdim=True)
    total_B1 = lengths_B1 + inserts_B1
    width = max(_width(total_B1, ids_BT.shape[1] + empty_BN.shape[1]), 1)
    most = min(_width(inserts_B1, empty_BN.shape[1]), max(width - 2, 0))
    bits_BN = _bits(ids_BT, max(width - 2, 0), generator, stream=2)
    place_BK = _subsets(bits_BN, (total_B1 - 2).clamp(min=0), inserts_B1, most) + 1
    live_BK = torch.arange(most, device=ids_BT.device) < inserts_B1
    inserted_BS = torch.zeros(len(ids_BT), width, dtype=torch.bool, device=ids_BT.device)
    inserted_BS.scatter_(1, place_BK.clamp(max=width - 1), live_BK)
    source_BS = (~inserted_BS).cumsum(1).sub_(1).clamp_(max=ids_BT.shape[1] - 1)
    out_BS = ids_BT.gather(1, source_BS).masked_fill_(inserted_BS, mask_id)
    padding_BS = torch.arange(width, device=ids_BT.device) >= total_B1
    return out_BS.masked_fill_(padding_BS, pad_id), total_B1.squeeze(1)


# ------------------------------------------------------------------------------------- the rest
def _covered(start_BK: Tensor, stop_BK: Tensor, columns: int) -> Tensor:
    """True at the columns that lie in any start..stop-1: bool (B, columns)."""
    change_BT = start_BK.new_zeros(len(start_BK), columns + 1)
    for sign, edge_BK in ((1, start_BK), (-1, stop_BK)):
        change_BT.scatter_add_(1, edge_BK.clamp(max=columns), torch.full_like(edge_BK, sign))
    return change_BT.cumsum(1)[:, :-1] > 0


def _compact(values_BT: Tensor, keep_BT: Tensor, width: int) -> Tensor:
    """Each row's kept values moved to its front, 0 after them: (B, width)."""
    slot_BT = torch.where(keep_BT, keep_BT.cumsum(1) - 1, width)
    out_BW = values_BT.new_zeros(len(values_BT), width + 1)  # the last column takes the others
    return out_BW.scatter_(1, slot_BT, values_BT)[:, :-1]


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
        ids_BW = ids_BW[:, : _width(end_B1 + 1, ids_BW.shape[1])]
        column_W = torch.arange(ids_BW.shape[1], device=ids_BW.device)
        tail_BW = torch.where(column_W == end_B1, eos_id, pad_id).to(ids_BW.dtype)
        ended.append(torch.where(column_W < end_B1, ids_BW, tail_BW))
    inputs_BS, targets_BT = ended
    lengths = [ends_B1.squeeze(1) + 1 for ends_B1 in (input_ends_B1, target_ends_B1)]
    return Denoising(inputs_BS, targets_BT, *lengths)


def _width(lengths: Tensor, bound: int) -> int:
    """The longest of the lengths where reading it is free, on CPU; elsewhere their bound."""
    return int(lengths.max()) if lengths.is_cpu and lengths.numel() else bound


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}: give a share between 0 and 1")


def _check_split(rate: float, split: tuple[float, float, float]) -> None:
    if not 0 < rate <= 1:
        raise ValueError(f"rate is {rate}: choose a share of the tokens above 0 and up to 1")
    if len(split) != 3 or min(split) < 0 or abs(sum(split) - 1) > 1e-6:
        raise ValueError(f"split is {split}: give shares of (mask, random, kept) that sum to 1")


def _check_ids(ids_BT: Tensor) -> None:
    if ids_BT.dim() != 2 or ids_BT.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"ids have shape {tuple(ids_BT.shape)} and dtype {ids_BT.dtype}: "
            "give int32 or int64 token ids (rows, positions)"
        )


def _lengths(lengths: Tensor, rows: Tensor, columns: int) -> Tensor:
    """Lengths as a column on the device of the rows."""
    if lengths.shape != rows.shape[:1]:
        raise ValueError(
            f"lengths have shape {tuple(lengths.shape)} for {len(rows)} rows: give one for each"
        )
    if lengths.is_cpu and lengths.numel():
        for length in (int(lengths.min()), int(lengths.max())):
            if not 0 <= length <= columns:
                raise ValueError(f"a length is {length}: rows have 0 to {columns} tokens")
    return lengths.to(rows.device, torch.int64)[:, None]


def _check_text(
    ids_BT: Tensor, lengths: Tensor | None, first_sentinel: int = -1, num_sentinels: int = 0
) -> Tensor:
    """The rows' lengths (B, 1), after a look at the ids, on CPU also at their values."""
    _check_ids(ids_BT)
    columns = ids_BT.shape[1]
    if not columns:
        raise ValueError(f"ids have shape {tuple(ids_BT.shape)}: give at least one position")
    if lengths is None:
        lengths = torch.full((len(ids_BT),), columns, device=ids_BT.device)
    lengths_B1 = _lengths(lengths, ids_BT, columns)
    if ids_BT.is_cpu and num_sentinels:
        held_BT = (ids_BT <= first_sentinel) & (ids_BT > first_sentinel - num_sentinels)
        held_BT &= torch.arange(columns) < lengths_B1
        if held_BT.any():
            raise ValueError(
                f"the text contains id {int(ids_BT[held_BT][0])}, one of the {num_sentinels} "
                f"sentinels that end at {first_sentinel}: keep these ids out of the text"
            )
    return lengths_B1


def _check_sentinels(needed: int, available: int, columns: int) -> None:
    if needed > available:
        raise ValueError(
            f"rows of up to {columns} tokens may need {needed} sentinels and there are "
            f"{available}: cut the text, lower the density or reserve more ids"
        )
