"""Properties of the objectives: what is scored, what may be read, and that nothing leaks."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from course_lib.corruption import ExampleKeys, span_corrupt
from course_lib.losses import IGNORE_INDEX, cross_entropy
from course_lib.objectives import (
    Batch,
    causal_lm,
    masked_lm,
    prefix_lm,
    shift_right,
    span_corruption,
    text_infilling,
)

V, MASK, PAD, EOS = 50, 4, 0, 1
T5 = {"first_sentinel": 199, "eos_id": EOS, "pad_id": PAD}
BART = {"mask_id": MASK, "pad_id": PAD, "decoder_start_id": EOS}
few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**31)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def text(rows: int, columns: int, seed: int = 0) -> Tensor:
    return torch.randint(5, V, (rows, columns), generator=rng(seed))


@st.composite
def padded_texts(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Ids and an attention mask, each row padded on a side of its own."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    mask = torch.zeros(rows, columns, dtype=torch.int64)
    for i in range(rows):
        length = draw(st.integers(0, columns))
        start = draw(st.sampled_from([0, columns - length]))
        mask[i, start : start + length] = 1
    return text(rows, columns, draw(seeds)), mask


@st.composite
def packed_texts(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    starts = torch.rand(rows, columns, generator=rng(draw(seeds))) < 0.3
    return text(rows, columns, draw(seeds)), starts.cumsum(1)


def every_batch(ids: Tensor, mask: Tensor, seed: int) -> dict[str, Batch]:
    lengths = mask.sum(1)
    g = rng(seed)
    return {
        "causal": causal_lm(ids, mask),
        "causal with BOS": causal_lm(ids, mask, bos_id=2),
        "prefix": prefix_lm(ids, min(3, ids.shape[1]), mask),
        "masked": masked_lm(ids, mask, vocab_size=V, mask_id=MASK, generator=g),
        "spans": span_corruption(ids, **T5, lengths=lengths, density=0.4, generator=g),
        "infilling": text_infilling(ids, **BART, lengths=lengths, generator=g),
    }


def read_by(batch: Batch) -> Tensor:
    """Who reads whom, spread out to (B, Q, K)."""
    columns = batch.inputs.shape[1]
    if batch.decoder_inputs is not None:
        columns += batch.decoder_inputs.shape[1]
    return batch.attention.expand(len(batch.inputs), columns, columns)


# ----------------------------------------------------------------------------- all objectives
@few
@given(padded_texts(), seeds)
def test_every_batch_has_the_promised_shapes_and_no_empty_softmax(
    texts: tuple[Tensor, Tensor], seed: int
) -> None:
    ids, mask = texts
    before = ids.clone()
    for name, batch in every_batch(ids, mask, seed).items():
        reader = batch.inputs if batch.decoder_inputs is None else batch.decoder_inputs
        assert batch.labels.dtype == torch.int64, name
        assert batch.labels.shape == reader.shape, name
        assert batch.attention.dtype == torch.bool, name
        assert read_by(batch).any(2).all(), name
    assert torch.equal(ids, before)


@few
@given(padded_texts(), seeds)
def test_a_scored_position_reads_no_padding(texts: tuple[Tensor, Tensor], seed: int) -> None:
    ids, mask = texts
    ids = ids.masked_fill(mask == 0, 45)  # an id that no text and no corruption produces
    ids = torch.where((ids == 45) & (mask == 1), 46, ids)
    for name, batch in every_batch(ids, mask, seed).items():
        if name in ("spans", "infilling"):
            continue  # their padding is new; the next test looks at it
        reads = read_by(batch) & (batch.labels != IGNORE_INDEX)[:, :, None]
        padding = (batch.inputs == 45)[:, None]
        if name == "masked":  # 45 may be drawn as a random token
            padding = (mask == 0)[:, None]
        assert not (reads & padding).any(), name


@few
@given(padded_texts(), seeds)
def test_encoder_and_decoder_read_what_they_may_and_nothing_else(
    texts: tuple[Tensor, Tensor], seed: int
) -> None:
    ids, mask = texts
    lengths = mask.sum(1)
    pair = span_corrupt(ids, **T5, lengths=lengths, density=0.4, generator=rng(seed))
    batch = span_corruption(ids, **T5, lengths=lengths, density=0.4, generator=rng(seed))
    s = batch.inputs.shape[1]
    for i in range(len(ids)):
        n, t = int(pair.input_lengths[i]), int(pair.target_lengths[i])
        reads = read_by(batch)[i]
        for q in range(reads.shape[0]):
            inputs = set(range(n))
            targets = {s + k for k in range(t) if k <= q - s}
            assert set(reads[q].nonzero().flatten().tolist()) == inputs | targets | {q}
        assert (batch.labels[i, t:] == IGNORE_INDEX).all()
        assert batch.labels[i, :t].tolist() == pair.targets[i, :t].tolist()


def _reader(batch: Batch) -> Tensor:
    """Logits of a fixed random one-layer attention model, in float64."""
    stream = batch.inputs
    if batch.decoder_inputs is not None:
        stream = torch.cat([batch.inputs, batch.decoder_inputs], 1)
    table = torch.randn(1300, 8, generator=rng(1), dtype=torch.float64)
    place = torch.randn(64, 8, generator=rng(2), dtype=torch.float64)
    x = table[stream] + place[: stream.shape[1]]
    out = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=batch.attention)
    return (out + x)[:, -batch.labels.shape[1] :] @ table[:V].T


@few
@given(st.integers(2, 12), st.integers(0, 11), st.sampled_from([None, 2]), seeds)
def test_changing_a_token_changes_no_earlier_score(
    columns: int, t: int, bos: int | None, seed: int
) -> None:
    t = t % columns
    ids = text(2, columns, seed)
    changed = ids.clone()
    changed[:, t] = (changed[:, t] + 1) % V
    shift = int(bos is None)
    a = _reader(causal_lm(ids, bos_id=bos))
    b = _reader(causal_lm(changed, bos_id=bos))
    first = t + 1 - shift  # the first position whose input is token t
    assert torch.equal(a[:, :first], b[:, :first])
    assert first >= a.shape[1] or not torch.equal(a[:, first], b[:, first])


# ------------------------------------------------------------------------------------ causal LM
@few
@given(st.integers(1, 4), st.integers(0, 12), seeds)
def test_t_tokens_give_t_minus_1_scores_and_t_behind_bos(rows: int, columns: int, s: int) -> None:
    ids = text(rows, columns, s)
    without, behind = causal_lm(ids), causal_lm(ids, bos_id=2)
    assert torch.equal(without.inputs, ids[:, :-1])
    assert torch.equal(without.labels, ids[:, 1:])
    assert torch.equal(behind.labels, ids)
    assert torch.equal(behind.inputs, shift_right(ids, 2))
    assert without.attention.shape == (1, max(columns - 1, 0), max(columns - 1, 0))


@few
@given(padded_texts(), st.sampled_from([None, 2]))
def test_causal_lm_scores_each_token_that_has_a_predecessor(
    texts: tuple[Tensor, Tensor], bos: int | None
) -> None:
    ids, mask = texts
    batch = causal_lm(ids, mask, bos_id=bos)
    for i in range(len(ids)):
        tokens = ids[i][mask[i].bool()].tolist()
        scored = batch.labels[i] != IGNORE_INDEX
        assert batch.labels[i][scored].tolist() == tokens[int(bos is None) :]
        context = tokens[:-1] if bos is None else [bos, *tokens[:-1]][: len(tokens)]
        assert batch.inputs[i][scored].tolist() == context
        assert not ((batch.inputs[i] == 2) & ~scored)[1:].any()  # no BOS in the padding


@few
@given(padded_texts(), st.sampled_from([None, 2]), st.integers(1, 5), st.booleans())
def test_more_padding_on_either_side_changes_no_score(
    texts: tuple[Tensor, Tensor], bos: int | None, more: int, left: bool
) -> None:
    ids, mask = texts
    side = (more, 0) if left else (0, more)
    a = causal_lm(ids, mask, bos_id=bos)
    b = causal_lm(
        torch.nn.functional.pad(ids, side, value=7), torch.nn.functional.pad(mask, side), bos_id=bos
    )
    for i in range(len(ids)):
        for x, y in ((a.inputs, b.inputs), (a.labels, b.labels)):
            assert torch.equal(x[i][a.labels[i] != IGNORE_INDEX], y[i][b.labels[i] != IGNORE_INDEX])


@few
@given(packed_texts(), st.sampled_from([None, 2]))
def test_packed_documents_score_and_read_as_if_alone(
    texts: tuple[Tensor, Tensor], bos: int | None
) -> None:
    ids, documents = texts
    batch = causal_lm(ids, document_ids=documents, bos_id=bos)
    for i in range(len(ids)):
        place = torch.arange(ids.shape[1])
        for document in documents[i].unique().tolist():
            inside = place[documents[i] == document]
            columns = inside if bos is not None else inside[:-1]
            alone = causal_lm(ids[i : i + 1, inside], bos_id=bos)
            assert torch.equal(batch.inputs[i, columns], alone.inputs[0])
            assert torch.equal(batch.labels[i, columns], alone.labels[0])
            reads = read_by(batch)[i][columns]
            assert torch.equal(reads[:, columns], alone.attention[0])
            other = torch.ones(reads.shape[1], dtype=torch.bool)
            other[columns] = False
            assert not reads[:, other].any()


def test_the_worked_example_of_the_course_costs_1_0397_nats() -> None:
    """p = .5 and .25 for the second and third token; the first is not scored."""
    batch = causal_lm(torch.tensor([[0, 1, 0]]))
    logits = torch.tensor([[[0.5, 0.5], [0.25, 0.75]]]).log()
    assert cross_entropy(logits, batch.labels) == pytest.approx(1.0397, abs=5e-5)


# ------------------------------------------------------------------------------------ prefix LM
@few
@given(padded_texts(), st.sampled_from([0, 1]))
def test_a_prefix_of_0_or_1_is_causal_lm(texts: tuple[Tensor, Tensor], prefix: int) -> None:
    ids, mask = texts
    a, b = causal_lm(ids, mask), prefix_lm(ids, prefix, mask)
    assert torch.equal(a.inputs, b.inputs)
    assert torch.equal(a.labels, b.labels)
    assert torch.equal(read_by(a), read_by(b))


@few
@given(padded_texts(), seeds)
def test_prefix_lm_reads_the_prefix_both_ways_and_scores_the_rest(
    texts: tuple[Tensor, Tensor], seed: int
) -> None:
    ids, mask = texts
    prefixes = torch.randint(0, ids.shape[1] + 1, (len(ids),), generator=rng(seed))
    batch = prefix_lm(ids, prefixes, mask)
    for i, prefix in enumerate(prefixes.tolist()):
        columns = mask[i].nonzero().flatten()
        tokens = ids[i, columns].tolist()
        scored = batch.labels[i] != IGNORE_INDEX
        assert batch.labels[i][scored].tolist() == tokens[max(prefix, 1) :]
        places = columns[columns < ids.shape[1] - 1].tolist()
        for rank, q in enumerate(places):
            expected = {k for r, k in enumerate(places) if r <= rank or max(r, rank) < prefix}
            assert set(read_by(batch)[i, q].nonzero().flatten().tolist()) == expected


@pytest.mark.parametrize("prefix", [-1, 4, torch.tensor([2, 9])])
def test_a_prefix_that_does_not_fit_is_named(prefix: int | Tensor) -> None:
    with pytest.raises(ValueError, match=r"-1|4|9"):
        prefix_lm(text(2, 3), prefix)


# --------------------------------------------------------------------- masked LM and denoising
@few
@given(padded_texts(), seeds)
def test_masked_lm_never_touches_padding_and_reads_all_tokens(
    texts: tuple[Tensor, Tensor], seed: int
) -> None:
    ids, mask = texts
    batch = masked_lm(ids, mask, vocab_size=V, mask_id=MASK, rate=0.5, generator=rng(seed))
    padding = mask == 0
    assert torch.equal(batch.inputs[padding], ids[padding])
    assert (batch.labels[padding] == IGNORE_INDEX).all()
    assert batch.attention.shape == (len(ids), 1, ids.shape[1])
    some = mask.any(1)
    assert torch.equal(batch.attention[some, 0], mask[some].bool())


def test_masked_lm_joins_padding_with_the_special_mask() -> None:
    special = torch.tensor([[True, False, False, False]])
    batch = masked_lm(
        text(1, 4), torch.tensor([[1, 1, 1, 0]]), vocab_size=V, mask_id=MASK, special_mask=special,
        rate=1.0,
    )  # fmt: skip
    assert (batch.labels != IGNORE_INDEX).tolist() == [[False, True, True, False]]


def test_labels_are_int64_for_int32_ids() -> None:
    ids, mask = text(2, 9).int(), torch.ones(2, 9)
    for name, batch in every_batch(ids, mask.long(), 0).items():
        assert (batch.inputs.dtype, batch.labels.dtype) == (torch.int32, torch.int64), name


@few
@given(padded_texts(), seeds)
def test_the_decoder_reads_its_own_target_one_step_later(
    texts: tuple[Tensor, Tensor], seed: int
) -> None:
    ids, mask = texts
    for name in ("spans", "infilling"):
        batch = every_batch(ids, mask, seed)[name]
        assert batch.decoder_inputs is not None
        start = PAD if name == "spans" else EOS
        assert (batch.decoder_inputs[:, 0] == start).all()
        scored = batch.labels[:, 1:] != IGNORE_INDEX
        assert torch.equal(batch.decoder_inputs[:, 1:][scored], batch.labels[:, :-1][scored])


def test_infilling_scores_the_whole_text() -> None:
    ids, lengths = text(3, 9), torch.tensor([9, 4, 0])
    batch = text_infilling(ids, **BART, lengths=lengths, generator=rng())
    assert torch.equal((batch.labels != IGNORE_INDEX).sum(1), lengths)
    assert torch.equal(text_infilling(ids, **BART).labels, ids)


# ------------------------------------------------------------------------- devices and batches
@few
@given(padded_texts(), seeds)
def test_one_batch_costs_what_its_rows_cost(texts: tuple[Tensor, Tensor], seed: int) -> None:
    """Summed over tokens; means of rows or micro-batches would differ."""
    ids, mask = texts

    def nats(ids: Tensor, mask: Tensor, index: Tensor) -> float:
        g = ExampleKeys(seed, 0, index)
        batch = span_corruption(ids, **T5, lengths=mask.sum(1), density=0.4, generator=g)
        scored = int((batch.labels != IGNORE_INDEX).sum())
        logits = torch.randn(1, 200, generator=rng(3), dtype=torch.float64)
        whole = logits.expand(*batch.labels.shape, -1)
        return float(cross_entropy(whole, batch.labels)) * scored

    index = torch.arange(len(ids))
    rows = [nats(ids[i : i + 1], mask[i : i + 1], index[i : i + 1]) for i in range(len(ids))]
    assert nats(ids, mask, index) == pytest.approx(sum(rows))


META: list[Callable[[Tensor, Tensor], Batch]] = [
    lambda ids, mask: causal_lm(ids, mask, bos_id=2, document_ids=ids),
    lambda ids, mask: prefix_lm(ids, mask.sum(1), mask),
    lambda ids, mask: masked_lm(ids, mask, vocab_size=V, mask_id=MASK, special_ids=(1, 2)),
    lambda ids, mask: masked_lm(ids, mask, vocab_size=V, mask_id=MASK, select="exact_split"),
    lambda ids, mask: span_corruption(ids, **T5, lengths=mask.sum(1)),
    lambda ids, mask: text_infilling(ids, **BART, lengths=mask.sum(1)),
    lambda ids, mask: text_infilling(ids, **BART, lengths=mask.sum(1), overlap="disjoint"),
]


@pytest.mark.parametrize("objective", META)
@pytest.mark.parametrize("columns", [2, 3, 20])
def test_no_objective_waits_for_the_device(
    objective: Callable[[Tensor, Tensor], Batch], columns: int
) -> None:
    """Tensors on "meta" have shapes and no values: whoever asks for a value gets an error."""
    ids = torch.zeros(3, columns, dtype=torch.int64, device="meta")
    batch = objective(ids, torch.ones(3, columns, device="meta"))
    assert batch.inputs.is_meta
    assert batch.labels.is_meta
    assert batch.attention.is_meta


def test_a_mask_of_another_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"\(2, 4\)"):
        causal_lm(text(2, 5), torch.ones(2, 4))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("objective", META)
def test_no_objective_waits_for_a_gpu(objective: Callable[[Tensor, Tensor], Batch]) -> None:
    ids, mask = text(8, 60).cuda(), torch.ones(8, 60).cuda()
    objective(ids, mask)  # what is made once may wait
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch = objective(ids, mask)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert batch.inputs.is_cuda


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_example_keys_give_the_same_batch_on_cpu_and_cuda() -> None:
    ids = text(8, 60)
    for corrupt in (
        lambda ids, g: masked_lm(ids, vocab_size=V, mask_id=MASK, generator=g),
        lambda ids, g: span_corruption(ids, **T5, generator=g),
        lambda ids, g: text_infilling(ids, **BART, generator=g),
    ):
        a = corrupt(ids, ExampleKeys(0, 0, torch.arange(8)))
        b = corrupt(ids.cuda(), ExampleKeys(0, 0, torch.arange(8)))
        assert torch.equal(a.labels, b.labels.cpu())
        assert torch.equal(a.inputs, b.inputs[:, : a.inputs.shape[1]].cpu())
