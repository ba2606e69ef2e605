"""Known bugs of other projects in corrupting text: ours must not have them."""

import pytest
import reference
import torch
from torch import Tensor

from course_lib.corruption import (
    ExampleKeys,
    apply_spans,
    bart,
    bert_corrupt,
    exact_mask,
    random_spans_mask,
    restore,
    span_corrupt,
    span_counts,
    span_lengths,
    text_infill,
)
from course_lib.losses import IGNORE_INDEX
from course_lib.objectives import causal_lm, masked_lm

V, MASK, PAD, EOS = 1000, 4, 0, 1
T5 = {"first_sentinel": 1299, "eos_id": EOS, "pad_id": PAD}
MLM = {"vocab_size": V, "mask_id": MASK}
INFILL = {"mask_id": MASK, "pad_id": PAD}


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def text(rows: int, columns: int, low: int = 5) -> Tensor:
    return torch.randint(low, V, (rows, columns), generator=rng(9))


def test_the_first_sentinel_has_the_highest_id() -> None:
    """transformers 14282, PR 14477: sentinels ascended from 32000."""
    pair = span_corrupt(text(1, 30), **{**T5, "first_sentinel": 32099}, density=0.3)
    sentinels = [x for x in pair.inputs[0].tolist() if x > V]
    assert sentinels == [32099, 32098, 32097]


def test_id_0_in_the_text_survives() -> None:
    """transformers 15359, PR 15443, 15835: a filter on `ids > 0` dropped tokens with id 0."""
    ids = torch.zeros(4, 30, dtype=torch.int64)
    pair = span_corrupt(ids, **T5, density=0.3, generator=rng())
    assert (pair.input_lengths + pair.target_lengths == 30 + 2 * 3 + 2).all()
    assert torch.equal(restore(pair, first_sentinel=1299)[0], ids)


@pytest.mark.parametrize("length", range(2, 60))
def test_high_density_and_short_spans_keep_t5s_count(length: int) -> None:
    """transformers 22246, PR 22938: more spans than kept tokens; the fix changed other counts."""
    ids = text(3, length)
    pair = span_corrupt(ids, **T5, density=0.55, mean_span=1.0, generator=rng())
    assert torch.equal(restore(pair, first_sentinel=1299)[0], ids)
    noise, spans = map(int, span_counts(torch.tensor(length), 0.55, 1.0))
    assert spans == min(noise, length - noise)
    noise, spans = map(int, span_counts(torch.tensor(length), 0.55, 2.0))
    assert spans == max(round(noise / 2), 1)  # feasible, so T5's own number


@pytest.mark.parametrize("length", range(1, 11))
@pytest.mark.parametrize("density", [0.0, 0.15, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("mean", [1.0, 3.0])
def test_short_texts_and_extreme_densities_work(length: int, density: float, mean: float) -> None:
    """HF Flax after PR 22938: IndexError; nanoT5, fairseq: ValueError, IndexError at length 1."""
    ids = text(2, length)
    pair = span_corrupt(ids, **T5, density=density, mean_span=mean, generator=rng())
    noise, spans = reference.t5_counts(length, density, mean)
    assert (pair.input_lengths == length - noise + spans + 1).all()
    assert torch.equal(restore(pair, first_sentinel=1299)[0], ids)


def test_a_rolled_mask_numbers_inputs_and_targets_alike() -> None:
    """T5 issue 905: the first token is never noise; with `random_roll` its sentinels misalign."""
    ids = text(500, 20)
    mask = random_spans_mask(
        torch.full((500,), 20), 20, density=0.4, random_roll=True, generator=rng()
    )
    assert mask[:, 0].any()
    assert not mask[:, -1].all()
    pair = apply_spans(ids, mask, **T5)
    assert torch.equal(restore(pair, first_sentinel=1299)[0], ids)
    starts_with_noise = mask[:, 0]
    assert (pair.inputs[starts_with_noise, 0] == 1299).all()
    assert (pair.targets[starts_with_noise, 0] == 1299).all()


def test_sentinels_never_run_out_silently() -> None:
    """T5, HF: word ids as sentinels; llm-foundry: one for all; Megatron: an empty deque."""
    assert span_corrupt(text(1, 2009), **T5).inputs.shape[1] == 1809
    with pytest.raises(ValueError, match="101 sentinels and there are 100"):
        span_corrupt(text(1, 2010), **T5)
    longest, _ = span_lengths(2048)
    with pytest.raises(ValueError, match="114 sentinels and there are 100"):
        span_corrupt(text(1, longest), **T5)
    pair = span_corrupt(text(1, longest), **T5, num_sentinels=114)
    assert pair.inputs.shape[1] == 2048


def test_the_sentinels_of_the_closing_rule_count_too() -> None:
    """The same with the paper's final sentinel, which needs one more."""
    assert span_corrupt(text(1, 2009), **T5).targets.max() == 1299
    with pytest.raises(ValueError, match="101 sentinels"):
        span_corrupt(text(1, 2009), **T5, final_sentinel=True)


@pytest.mark.parametrize("split", [(0.9, 0.1, 0.0), (0.8, 0.2, 0.0), (0.0, 1.0, 0.0), (1, 0, 0)])
@pytest.mark.parametrize("select", ["bernoulli", "exact", "exact_split"])
def test_splits_that_leave_nothing_unchanged_work(
    split: tuple[float, float, float], select: str
) -> None:
    """HF's numpy collator: .1 / (1 - .9) is over 1, so ValueError."""
    ids = torch.full((50, 100), 20)
    inputs, labels = bert_corrupt(ids, **MLM, special_ids=(20,), split=split, select=select)
    assert (labels == IGNORE_INDEX).all()  # 20 is special: nothing to do
    inputs, labels = bert_corrupt(ids, **MLM, split=split, select=select, generator=rng())
    chosen = labels != IGNORE_INDEX
    kept = (inputs == ids) & chosen
    assert kept.sum() <= 5  # only a random token that happens to be 20


def test_each_epoch_has_its_own_masks_and_workers_do_not_matter() -> None:
    """HF's collator with `seed` and workers: equal masks each epoch, others for other workers."""
    ids = text(8, 40)

    def epoch(number: int, workers: int) -> Tensor:
        shares = torch.arange(8).chunk(workers)
        parts = [
            bert_corrupt(ids[i], **MLM, generator=ExampleKeys(3, number, i))[1] for i in shares
        ]
        return torch.cat(parts)

    assert torch.equal(epoch(1, workers=1), epoch(1, workers=4))
    assert not torch.equal(epoch(1, workers=1), epoch(2, workers=1))


def test_padding_is_never_masked() -> None:
    """transformers 11155: pads were masked where no special mask was passed."""
    ids = torch.full((3, 20), PAD)
    batch = masked_lm(ids, torch.zeros(3, 20), **MLM, rate=1.0)
    assert torch.equal(batch.inputs, ids)
    assert (batch.labels == IGNORE_INDEX).all()
    by_id, _ = bert_corrupt(ids, **MLM, special_ids=(PAD,), rate=1.0)
    assert torch.equal(by_id, ids)


def test_random_tokens_are_special_only_if_wanted() -> None:
    """transformers 15342, methylbert 28: the random token could be [PAD] or [MASK]."""
    ids = torch.full((100, 100), 20)
    kw = {"vocab_size": 30, "mask_id": MASK, "rate": 1.0, "split": (0.0, 1.0, 0.0)}
    whole, _ = bert_corrupt(ids, **kw, generator=rng())
    assert set(whole.unique().tolist()) == set(range(30))
    named, _ = bert_corrupt(ids, **kw, special_ids=(0, 1, MASK), generator=rng())
    assert set(named.unique().tolist()) == set(range(30)) - {0, 1, MASK}


def test_80_10_10_are_shares_of_the_chosen() -> None:
    """transformers 10285, 21803, PR 17377: read as 80/50; the half is of the remaining 20%."""
    ids = torch.full((400, 500), 20)
    inputs, labels = bert_corrupt(ids, vocab_size=20, mask_id=99, generator=rng())
    n = int((labels != IGNORE_INDEX).sum())
    masked, random = int((inputs == 99).sum()), int((inputs < 20).sum())
    for count, share in ((masked, 0.8), (random, 0.1), (n - masked - random, 0.1)):
        assert abs(count - share * n) / (share * (1 - share) * n) ** 0.5 < 5


def test_the_ids_given_are_never_changed() -> None:
    """HF's torch collator and fairseq's infilling wrote into their inputs."""
    ids = text(4, 30)
    before = ids.clone()
    for select in ("bernoulli", "exact", "exact_split"):
        bert_corrupt(ids, **MLM, special_ids=(5,), select=select)
    span_corrupt(ids, **T5)
    apply_spans(ids, ids > 500, **T5)
    for overlap in ("merge", "disjoint"):
        text_infill(ids, **INFILL, overlap=overlap)
    assert torch.equal(ids, before)


def test_eos_is_scored_where_it_is_also_the_padding_id() -> None:
    """transformers 23530, trl 976: pad = EOS, every EOS ignored, the model never stops."""
    ids = torch.tensor([[7, 8, EOS, EOS, EOS], [7, EOS, 9, 9, EOS]])
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    labels = causal_lm(ids, mask).labels
    assert ((labels == EOS).sum(1) == torch.tensor([1, 2])).all()


def test_unchosen_tokens_stay_and_padding_sides_count_alike() -> None:
    """lucidrains: random tokens anywhere; left padding counted as text, pads chosen."""
    ids = text(50, 100)
    for real in (torch.arange(100) < 10, torch.arange(100) >= 90):
        special = ~real.expand(50, -1)
        inputs, labels = bert_corrupt(ids, **MLM, special_mask=special, select="exact")
        chosen = labels != IGNORE_INDEX
        assert torch.equal(inputs[~chosen], ids[~chosen])
        assert (chosen.sum(1) == 2).all()
        assert not chosen[special].any()


def test_the_same_key_gives_the_same_noise_whatever_the_global_state() -> None:
    """fairseq denoising: numpy was seeded and torch drew, so the same key differed."""
    ids = text(3, 60)
    keys = ExampleKeys(1, 2, torch.tensor([5, 6, 7]))
    first, _ = text_infill(ids, **INFILL, generator=keys)
    with torch.random.fork_rng():
        torch.manual_seed(99)
        again, _ = text_infill(ids, **INFILL, generator=keys)
    assert torch.equal(first, again)


def test_empty_spans_insert_exactly_as_many_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq: ceil(N * (k / N)) inserted one mask more for some N and k, 11 of 301 for one."""
    for n in (300, 301, 519):
        for k in range(20):
            only_empty = torch.zeros(1, 0, dtype=torch.int64), torch.arange(25)[None] < k
            monkeypatch.setattr(bart, "_poisson_spans", lambda *_, spans=only_empty: spans)
            out, lengths = text_infill(text(1, n), **INFILL, generator=rng())
            assert lengths.tolist() == [n + k]
            assert int((out == MASK).sum()) == k


def test_budgets_are_per_row_and_empty_spans_insert() -> None:
    """HF Flax BART: no insertions, and one budget for the whole batch."""
    ids = torch.arange(10, 110).expand(300, -1)
    lengths = torch.tensor([100, 50, 12]).repeat(100)
    out, _ = text_infill(ids, **INFILL, lengths=lengths, overlap="disjoint", generator=rng())
    kept = ((out >= 10) & (out < 110)).sum(1)
    assert torch.equal(kept, lengths - torch.tensor([30, 15, 3]).repeat(100))
    inserted = [
        a == MASK and b == c + 1
        for row in out.tolist()
        for c, a, b in zip(row, row[1:], row[2:], strict=False)
    ]
    assert any(inserted)  # a mask between two neighbours of the text stands for nothing


def test_spans_never_touch() -> None:
    """Megatron T5: .73 adjacent pairs a row, and 18.3 spans where T5 has 28."""
    mask = random_spans_mask(torch.full((500,), 568), 568, generator=rng())
    runs = (mask[:, 1:] & ~mask[:, :-1]).sum(1)
    assert (runs == 28).all()
    inputs = span_corrupt(text(500, 568), **T5, generator=rng()).inputs
    sentinel = inputs > V
    assert not (sentinel[:, 1:] & sentinel[:, :-1]).any()


def test_the_number_of_scored_tokens_is_counted_after_the_shift() -> None:
    """transformers PR 46204: one too many a row."""
    labels = causal_lm(
        text(3, 10), torch.tensor([[1] * 10, [1] * 4 + [0] * 6, [0] * 9 + [1]])
    ).labels
    assert (labels != IGNORE_INDEX).sum(1).tolist() == [9, 3, 0]


def test_the_first_of_a_partial_topk_are_not_the_first_positions() -> None:
    """torch `topk(sorted=False)`, then "take the first k": the order follows the position."""
    eligible = torch.ones(4000, 40, dtype=torch.bool)
    eligible[:2000, 20:] = False  # ragged: these rows use only the first half of the columns
    chosen = exact_mask(eligible, 0.3, generator=rng())
    counts = chosen[:2000, :20].sum(0).double()
    assert ((counts - 600).abs() < 5 * (2000 * 0.3 * 0.7) ** 0.5).all()


def test_text_and_mask_round_alike_at_length_190() -> None:
    """T5: the length helper computes in float64 (28 noise tokens), the mask in float32 (29)."""
    assert int(span_counts(torch.tensor(190))[0]) == 29
    mask = random_spans_mask(torch.tensor([190]), 190)
    assert int(mask.sum()) == 29
    width = span_corrupt(text(1, 190), **T5).inputs.shape[1]
    longest, targets = span_lengths(width)
    assert span_corrupt(text(1, longest), **T5).targets.shape[1] == targets
