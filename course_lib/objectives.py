"""Pretraining objectives: token ids → inputs, labels and attention mask of one training batch.

Shapes: B rows, T positions of the text, S and T' positions of encoder and decoder, Q queries,
K keys. Every objective returns a `Batch` under three conventions:

- Labels are aligned: the model's logits at position i are scored against the label at i. All
  shifting is done here, none in the model or the loss.
- `IGNORE_INDEX` marks what is not scored. Padding is known by `attention_mask` or `lengths`, never
  by its id, so an EOS that doubles as the padding id is scored like any token.
- Attention is True where a query may read a key. A query on padding may always read something
  (itself, where nothing else), so no softmax is empty.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from course_lib.corruption import Randomness, bert_corrupt, span_corrupt, text_infill
from course_lib.losses import IGNORE_INDEX

__all__ = [
    "Batch",
    "causal_lm",
    "masked_lm",
    "prefix_lm",
    "shift_right",
    "span_corruption",
    "text_infilling",
]


class Batch(NamedTuple):
    """What a model reads, what it is scored against, and who may read whom.

    `inputs` (B, S) are token ids; `labels` (B, T') int64 are aligned with the logits; `attention`
    is bool and broadcasts to (B, Q, K). With `decoder_inputs` (B, T') the model is an
    encoder–decoder, the labels are the decoder's, and attention covers encoder and decoder one
    after the other: Q = K = S + T'.
    """

    inputs: Tensor
    labels: Tensor
    attention: Tensor
    decoder_inputs: Tensor | None = None


def causal_lm(
    ids_BT: Tensor,
    attention_mask: Tensor | None = None,
    *,
    bos_id: int | None = None,
    document_ids: Tensor | None = None,
) -> Batch:
    """Predict each token from those before it.

    Without `bos_id`, T tokens give T - 1 inputs and labels: the first token has no predecessor and
    is not scored. With it, they give T: a token without predecessor is predicted from BOS.
    A token has no predecessor at the start of its row, after padding (on either side), and at the
    start of its document where documents are packed into one row.

    attention_mask (B, T): nonzero at tokens, zero at padding.
    document_ids (B, T): equal where two tokens of a row belong together; attention stays inside.

    >>> batch = causal_lm(torch.tensor([[5, 6, 7]]))
    >>> batch.inputs, batch.labels
    (tensor([[5, 6]]), tensor([[6, 7]]))
    >>> documents = torch.tensor([[0, 0, 1]])
    >>> batch = causal_lm(torch.tensor([[5, 6, 7]]), document_ids=documents, bos_id=1)
    >>> batch.inputs, batch.labels
    (tensor([[1, 5, 1]]), tensor([[5, 6, 7]]))
    """
    real_BT = _real(ids_BT, attention_mask)
    follows_BT = real_BT[:, :-1] & real_BT[:, 1:]  # at column i: token i + 1 has a predecessor
    if document_ids is not None:
        follows_BT = follows_BT & (document_ids[:, :-1] == document_ids[:, 1:])
    if bos_id is None:
        inputs_BT, labels_BT, scored_BT = ids_BT[:, :-1], ids_BT[:, 1:], follows_BT
        real_BT = real_BT[:, :-1]
    else:
        first_BT = real_BT & ~pad(follows_BT, (1, 0))
        inputs_BT = shift_right(ids_BT, bos_id).masked_fill(first_BT, bos_id)
        labels_BT, scored_BT = ids_BT, real_BT
    documents_BT = None if document_ids is None else document_ids[:, : inputs_BT.shape[1]]
    known = attention_mask is not None
    attention = _causal(inputs_BT, real_BT if known else None, documents_BT)
    return Batch(inputs_BT, _labels(labels_BT, scored_BT), attention)


def prefix_lm(
    ids_BT: Tensor, prefix_lengths: Tensor | int, attention_mask: Tensor | None = None
) -> Batch:
    """Read a prefix in both directions; predict each later token from all tokens before it.

    `prefix_lengths` (B,), or one number, counts tokens from the row's first, padding aside. As in
    `causal_lm`, T tokens give T - 1 inputs and labels; labels within the prefix are not scored. A
    prefix of 0 or 1 is causal LM: a token alone has no other direction.
    Raises ValueError, on CPU, for a prefix shorter than 0 or longer than the row.
    Source: Raffel et al. 2020, section 3.2.1.

    >>> batch = prefix_lm(torch.tensor([[5, 6, 7, 8]]), 2)
    >>> batch.inputs, batch.labels
    (tensor([[5, 6, 7]]), tensor([[-100,    7,    8]]))
    >>> batch.attention.int()
    tensor([[[1, 1, 0],
             [1, 1, 0],
             [1, 1, 1]]], dtype=torch.int32)
    """
    real_BT = _real(ids_BT, attention_mask)
    prefix_B1 = torch.as_tensor(prefix_lengths, device=ids_BT.device).reshape(-1, 1)
    if prefix_B1.is_cpu and not ((prefix_B1 >= 0) & (prefix_B1 <= ids_BT.shape[1])).all():
        raise ValueError(
            f"prefix_lengths are {prefix_B1.flatten().tolist()}: "
            f"give lengths from 0 to the {ids_BT.shape[1]} positions of a row"
        )
    prefix_BT = real_BT & (real_BT.cumsum(1) <= prefix_B1)
    batch = causal_lm(ids_BT, attention_mask)
    inside_BTT = prefix_BT[:, :-1, None] & prefix_BT[:, None, :-1]
    labels_BT = batch.labels.masked_fill(prefix_BT[:, 1:], IGNORE_INDEX)
    return Batch(batch.inputs, labels_BT, batch.attention | inside_BTT)


def masked_lm(
    ids_BT: Tensor,
    attention_mask: Tensor | None = None,
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
) -> Batch:
    """Predict the chosen tokens of a corrupted text from both sides; see `bert_corrupt`.

    attention_mask (B, T): nonzero at tokens, zero at padding, which is never chosen. Everything
    else is passed on.

    >>> batch = masked_lm(
    ...     torch.tensor([[5, 6, 7]]), torch.tensor([[1, 1, 0]]), vocab_size=9, mask_id=8,
    ...     rate=1.0, split=(1, 0, 0),
    ... )
    >>> batch.inputs, batch.labels
    (tensor([[8, 8, 7]]), tensor([[   5,    6, -100]]))
    """
    real_BT = _real(ids_BT, attention_mask)
    inputs_BT, labels_BT = bert_corrupt(
        ids_BT,
        vocab_size=vocab_size,
        mask_id=mask_id,
        special_ids=special_ids,
        special_mask=~real_BT if special_mask is None else ~real_BT | special_mask.bool(),
        rate=rate,
        split=split,
        select=select,
        at_least_one=at_least_one,
        generator=generator,
    )
    return Batch(inputs_BT, labels_BT.long(), _bidirectional(real_BT))


def span_corruption(
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
) -> Batch:
    """Write the spans that were taken out of a text, given the rest; see `span_corrupt`.

    Decoder inputs are the target shifted right behind the padding id, T5's start token.

    >>> batch = span_corruption(torch.tensor([[5, 6]]), first_sentinel=999, eos_id=1, pad_id=0)
    >>> batch.inputs, batch.decoder_inputs, batch.labels
    (tensor([[  5, 999,   1]]), tensor([[  0, 999,   6]]), tensor([[999,   6,   1]]))
    """
    pair = span_corrupt(
        ids_BT,
        first_sentinel=first_sentinel,
        eos_id=eos_id,
        pad_id=pad_id,
        lengths=lengths,
        density=density,
        mean_span=mean_span,
        num_sentinels=num_sentinels,
        final_sentinel=final_sentinel,
        generator=generator,
    )
    read_BS = _first(pair.input_lengths, pair.inputs)
    written_BT = _first(pair.target_lengths, pair.targets)
    return Batch(
        pair.inputs,
        _labels(pair.targets, written_BT),
        _encoder_decoder(read_BS, written_BT),
        shift_right(pair.targets, pad_id),
    )


def text_infilling(
    ids_BT: Tensor,
    *,
    mask_id: int,
    pad_id: int,
    decoder_start_id: int,
    lengths: Tensor | None = None,
    rate: float = 0.3,
    mean_span: float = 3.0,
    overlap: Literal["merge", "disjoint"] = "merge",
    generator: Randomness = None,
) -> Batch:
    """Write the whole text, given one in which spans became single masks; see `text_infill`.

    Decoder inputs are the text shifted right behind `decoder_start_id`, in BART its EOS.

    >>> batch = text_infilling(
    ...     torch.tensor([[0, 7, 8, 2]]), mask_id=9, pad_id=1, decoder_start_id=2, rate=0.0
    ... )
    >>> batch.inputs, batch.decoder_inputs, batch.labels
    (tensor([[0, 7, 8, 2]]), tensor([[2, 0, 7, 8]]), tensor([[0, 7, 8, 2]]))
    """
    inputs_BS, input_lengths = text_infill(
        ids_BT,
        mask_id=mask_id,
        pad_id=pad_id,
        lengths=lengths,
        rate=rate,
        mean_span=mean_span,
        overlap=overlap,
        generator=generator,
    )
    written_BT = _real(ids_BT, None) if lengths is None else _first(lengths, ids_BT)
    return Batch(
        inputs_BS,
        _labels(ids_BT, written_BT),
        _encoder_decoder(_first(input_lengths, inputs_BS), written_BT),
        shift_right(ids_BT, decoder_start_id),
    )


def shift_right(ids_BT: Tensor, start_id: int) -> Tensor:
    """A decoder's inputs for these targets: the start token, then all of them but the last.

    >>> shift_right(torch.tensor([[5, 6, 7]]), start_id=0)
    tensor([[0, 5, 6]])
    """
    return pad(ids_BT, (1, 0), value=start_id)[:, :-1]


def _real(ids_BT: Tensor, attention_mask: Tensor | None) -> Tensor:
    """True at tokens, False at padding (B, T)."""
    if attention_mask is None:
        return torch.ones_like(ids_BT, dtype=torch.bool)
    if attention_mask.shape != ids_BT.shape:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)} and ids "
            f"{tuple(ids_BT.shape)}: give one flag for each token"
        )
    return attention_mask.bool()


def _first(lengths: Tensor, ids_BT: Tensor) -> Tensor:
    """True at each row's first `length` positions (B, T)."""
    return torch.arange(ids_BT.shape[1], device=ids_BT.device) < lengths.to(ids_BT.device)[:, None]


def _labels(ids_BT: Tensor, scored_BT: Tensor) -> Tensor:
    return ids_BT.long().masked_fill(~scored_BT, IGNORE_INDEX)


def _bidirectional(real_BT: Tensor) -> Tensor:
    """All queries read all tokens (B, 1, T); a row of nothing but padding reads itself."""
    return (real_BT | ~real_BT.any(1, keepdim=True))[:, None]


def _causal(
    inputs_BT: Tensor, real_BT: Tensor | None = None, documents_BT: Tensor | None = None
) -> Tensor:
    """Each query reads itself and tokens before it: (1, T, T), or (B, T, T) where rows differ."""
    columns = inputs_BT.shape[1]
    square_TT = torch.ones(columns, columns, dtype=torch.bool, device=inputs_BT.device)
    attention = square_TT.tril()[None]
    if documents_BT is not None:
        attention = attention & (documents_BT[:, :, None] == documents_BT[:, None])
    if real_BT is not None:
        itself_TT = torch.eye(columns, dtype=torch.bool, device=inputs_BT.device)
        attention = (attention & real_BT[:, None]) | itself_TT
    return attention


def _encoder_decoder(read_BS: Tensor, written_BT: Tensor) -> Tensor:
    """Encoder queries read the input; decoder queries the input and the target up to themselves."""
    real_BK = torch.cat([read_BS, written_BT], 1)
    columns, encoder = real_BK.shape[1], read_BS.shape[1]
    position_K = torch.arange(columns, device=real_BK.device)
    # the encoder's part counts as one position: no one there waits for a neighbour
    reach_Q = position_K.clamp(min=encoder - 1)
    itself_KK = torch.eye(columns, dtype=torch.bool, device=real_BK.device)
    return ((position_K <= reach_Q[:, None]) & real_BK[:, None]) | itself_KK
