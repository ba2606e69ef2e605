"""T5's random spans: how many, how long, where.

Shapes: B rows, K spans of a row; `_B1` is a column, one number for each row.
"""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.corruption import rows
from course_lib.corruption.randomness import Randomness, draws, sorted_rows, subsets_


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
    rows.check_share("density", density)
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
    rows.check_share("density", density)
    text = torch.arange(int(input_length / (1 - density)) + 2)
    noise, spans = span_counts(text, density, mean_span)
    closing = (spans == 0).long()
    target = noise + spans + closing + 1
    fits = text - noise + spans + 1 <= input_length
    if density == 0.5:
        fits &= (target <= input_length) | (text < 2)
    longest = int(text[fits].max())
    return longest, int(target[longest])


class Spans(NamedTuple):
    """Kept and noise runs by turns, kept first; columns past a row's last span hold no tokens."""

    kept_ends: Tensor  # (B, K + 1): 0, then how many kept tokens precede each span
    noise_ends: Tensor  # (B, K + 1): 0, then how many noise tokens the spans so far have
    number: Tensor  # (B, 1), of spans
    most_kept: int  # the largest numbers of tokens a row can have
    most_noise: int


def random_spans(
    lengths_B1: Tensor, longest: int, density: float, mean_span: float, generator: Randomness
) -> Spans:
    """T5's spans: the kept and the noise tokens fall into runs of uniformly random lengths."""
    noise_B1, count_B1 = span_counts(lengths_B1, density, mean_span)
    most_noise, most_spans = _most(longest, density, mean_span)
    columns = max(most_spans, 1)

    def run_ends(tokens_B1: Tensor, most: int, stream: int) -> Tensor:
        # to break n tokens into k runs is to choose k - 1 cuts among n - 1 places
        bits_BN = draws(lengths_B1, max(most - 1, 0), generator, stream)
        cuts_BK = subsets_(bits_BN, tokens_B1 - 1, count_B1 - 1, columns - 1)
        return torch.cat([torch.zeros_like(tokens_B1), sorted_rows(cuts_BK) + 1, tokens_B1], 1)

    kept_ends = run_ends(lengths_B1 - noise_B1, longest - most_noise, stream=0)
    noise_ends = run_ends(noise_B1, most_noise, stream=1)
    return Spans(kept_ends, noise_ends, count_B1, longest - most_noise, most_noise)


@cache
def _most(length: int, density: float, mean_span: float) -> tuple[int, int]:
    """Noise tokens and spans of the longest text, which are the most there can be."""
    noise, spans = span_counts(torch.tensor(length), density, mean_span)
    return int(noise), int(spans)


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
    lengths_B1 = rows.lengths_column(lengths, lengths, columns)
    longest = rows.width(lengths_B1, columns)
    spans = random_spans(lengths_B1, longest, density, mean_span, generator)
    kept, noise = spans.kept_ends, spans.noise_ends
    mask_BT = rows.covered(kept[:, 1:] + noise[:, :-1], kept[:, 1:] + noise[:, 1:], columns)
    if not random_roll:
        return mask_BT
    offset_B1 = draws(lengths_B1, 1, generator, stream=2) % lengths_B1.clamp(min=1)
    column_T = torch.arange(columns, device=lengths_B1.device)
    source_BT = (column_T + offset_B1) % lengths_B1.clamp(min=1)
    return mask_BT.gather(1, source_BT) & (column_T < lengths_B1)
