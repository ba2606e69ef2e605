"""Properties of the corruptions: what always holds, how often what happens, and known numbers."""

import itertools
from collections import Counter

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare, poisson
from torch import Tensor

from course_lib.corruption import (
    Denoising,
    ExampleKeys,
    apply_spans,
    bert_corrupt,
    exact_mask,
    iid_mask,
    random_spans_mask,
    restore,
    span_corrupt,
    span_counts,
    span_lengths,
    text_infill,
)

V, MASK, PAD, EOS, FIRST = 1000, 4, 0, 1, 1299  # sentinels lie above the vocabulary of the texts
SPECIALS = (0, 1, 2, 3, 4)
T5 = {"first_sentinel": FIRST, "eos_id": EOS, "pad_id": PAD}
ALPHA = 1e-6  # of a chi-square test; the draws are fixed, so it either always passes or never

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([torch.int32, torch.int64])


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def text(rows: int, columns: int, seed: int = 0, low: int = 5) -> Tensor:
    return torch.randint(low, V, (rows, columns), generator=rng(seed))


def z_score(mean: float, expected: float, sd: float, n: int) -> float:
    return abs(mean - expected) / (sd / n**0.5)


def row(ids: Tensor, lengths: Tensor, i: int) -> list[int]:
    return ids[i, : int(lengths[i])].tolist()


@st.composite
def ragged_texts(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 40))
    lengths = draw(st.lists(st.integers(0, columns), min_size=rows, max_size=rows))
    # padding and EOS ids also occur inside the text
    return text(rows, columns, draw(seeds), low=0).to(draw(dtypes)), torch.tensor(lengths)


# ------------------------------------------------------------------------------- random numbers
def test_the_draws_of_a_generator_are_reproducible_and_leave_the_global_state_alone() -> None:
    before = torch.get_rng_state()
    ids = text(3, 90)
    for corrupt in (
        lambda g: bert_corrupt(ids, vocab_size=V, mask_id=MASK, generator=g)[0],
        lambda g: span_corrupt(ids, **T5, generator=g).inputs,
        lambda g: text_infill(ids, mask_id=MASK, pad_id=PAD, generator=g)[0],
        lambda g: random_spans_mask(torch.full((3,), 90), 90, random_roll=True, generator=g),
    ):
        assert torch.equal(corrupt(rng(5)), corrupt(rng(5)))
        assert not torch.equal(corrupt(rng(5)), corrupt(rng(6)))
    assert torch.equal(before, torch.get_rng_state())


def test_example_keys_are_uniform_and_uncorrelated() -> None:
    keys = ExampleKeys(1, 2, torch.arange(400))
    draws = keys.bits(400, stream=0, device=torch.device("cpu"))
    assert (draws >= 0).all()
    for shift in (0, 7, 31, 57):  # low, middle and high bits
        counts = torch.bincount(((draws >> shift) & 63).flatten(), minlength=64)
        assert chisquare(counts).pvalue > ALPHA
    u = draws.double() / 2**63 - 0.5
    neighbours = {
        "column": (u[:, :-1], u[:, 1:]),
        "example": (u[:-1], u[1:]),
        "stream": (u, keys.bits(400, 1, torch.device("cpu")).double() / 2**63 - 0.5),
        "epoch": (u, ExampleKeys(1, 3, keys.index).bits(400, 0, u.device).double() / 2**63 - 0.5),
        "seed": (u, ExampleKeys(2, 2, keys.index).bits(400, 0, u.device).double() / 2**63 - 0.5),
    }
    for name, (a, b) in neighbours.items():
        correlation = 12 * float((a * b).mean())
        assert abs(correlation) * a.numel() ** 0.5 < 5, name


def test_example_keys_hash_as_splitmix64_does() -> None:
    """The first outputs of SplitMix64 from seed 1234567 are published test values."""
    from course_lib.corruption.randomness import _mix

    gamma = torch.tensor(0x9E3779B97F4A7C15 - 2**64)
    golden = 1234567 + gamma * torch.arange(3)
    outputs = [int(x) % 2**64 for x in _mix(golden)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@few
@given(ragged_texts(), seeds)
def test_with_example_keys_a_row_depends_on_nothing_but_itself(
    texts: tuple[Tensor, Tensor], seed: int
) -> None:
    ids, lengths = texts
    index = torch.arange(len(ids)) + 10
    wide = torch.nn.functional.pad(ids, (0, 7))

    def corrupted(ids: Tensor, lengths: Tensor, index: Tensor, which: int) -> list[list[int]]:
        g = ExampleKeys(seed, 3, index)
        real = torch.arange(ids.shape[1]) < lengths[:, None]
        if which < 2:
            select = ("bernoulli", "exact_split")[which]
            inputs, labels = bert_corrupt(
                ids, vocab_size=V, mask_id=MASK, special_mask=~real, select=select, generator=g
            )
            both = torch.stack([inputs, labels], 2)
            return [both[i, : int(n)].tolist() for i, n in enumerate(lengths)]
        if which == 2:
            pair = span_corrupt(ids, **T5, lengths=lengths, density=0.4, generator=g)
            return [
                row(pair.inputs, pair.input_lengths, i) + row(pair.targets, pair.target_lengths, i)
                for i in range(len(ids))
            ]
        overlap = ("merge", "disjoint")[which - 3]
        out = text_infill(
            ids, mask_id=MASK, pad_id=PAD, lengths=lengths, overlap=overlap, generator=g
        )
        return [row(*out, i) for i in range(len(ids))]

    for which in range(5):
        together = corrupted(ids, lengths, index, which)
        assert corrupted(wide, lengths, index, which) == together
        for i in range(len(ids)):
            alone = corrupted(wide[i : i + 1], lengths[i : i + 1], index[i : i + 1], which)
            assert alone == [together[i]]


@few
@given(ragged_texts(), st.sampled_from(["merge", "disjoint"]), st.booleans(), seeds)
def test_the_widths_of_an_accelerator_add_nothing_but_padding(
    texts: tuple[Tensor, Tensor], overlap: str, final: bool, seed: int
) -> None:
    """There a width is the longest possible, since reading the longest would wait."""
    ids, lengths = texts
    g = ExampleKeys(seed, 0, torch.arange(len(ids)))

    def rows() -> list[list[int]]:
        pair = span_corrupt(ids, **T5, lengths=lengths, final_sentinel=final, generator=g)
        any_mask = iid_mask(torch.ones_like(ids, dtype=torch.bool), 0.4, generator=g)
        other = apply_spans(ids, any_mask, **T5, lengths=lengths, final_sentinel=final)
        filled = text_infill(
            ids, mask_id=MASK, pad_id=PAD, lengths=lengths, overlap=overlap, generator=g
        )
        results = [filled, restore(other, first_sentinel=FIRST)]
        for p in (pair, other):
            results += [(p.inputs, p.input_lengths), (p.targets, p.target_lengths)]
        for out, out_lengths in results:
            beyond = torch.arange(out.shape[1]) >= out_lengths[:, None]
            assert (out[beyond] == PAD).all()
            assert out.shape[1] >= int(out_lengths.max())
        return [row(*result, i) for i in range(len(ids)) for result in results]

    tight = rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("course_lib.corruption.rows.width", lambda lengths, bound: bound)
        patch.setattr("course_lib.corruption.t5._check_sentinels", lambda *args: None)
        assert rows() == tight


# ------------------------------------------------------------------------------------ iid masks
@few
@given(st.integers(1, 6), st.integers(0, 30), st.floats(0, 1), seeds)
def test_masks_choose_eligible_positions_only(rows: int, columns: int, rate: float, s: int) -> None:
    eligible = torch.rand(rows, columns, generator=rng(s)) < 0.7
    for mask in (
        iid_mask(eligible, rate, generator=rng(s)),
        exact_mask(eligible, rate, generator=rng(s)),
    ):
        assert mask.dtype == torch.bool
        assert not (mask & ~eligible).any()


@few
@given(st.integers(1, 6), st.integers(0, 60), st.floats(0, 1), seeds)
def test_exact_masks_follow_the_count_rule_of_bert(
    rows: int, columns: int, rate: float, s: int
) -> None:
    eligible = torch.rand(rows, columns, generator=rng(s)) < 0.7
    counts = exact_mask(eligible, rate, generator=rng(s)).sum(1).tolist()
    sizes = eligible.sum(1).tolist()
    assert counts == [min(max(1, round(size * rate)), size) for size in sizes]


@pytest.mark.parametrize(("length", "count"), [(512, 77), (128, 19), (200, 30), (50, 8), (1, 1)])
def test_bert_chooses_these_counts(length: int, count: int) -> None:
    """50 * .15 = 7.5 goes to the even 8; Python's round, not the schoolbook's."""
    assert exact_mask(torch.ones(1, length, dtype=torch.bool), 0.15).sum() == count


def test_all_subsets_of_an_exact_mask_are_equally_likely() -> None:
    eligible = torch.tensor([[True, True, False, True, True, True]]).expand(20000, -1)
    masks = exact_mask(eligible, 0.4, generator=rng())
    counts = Counter(map(tuple, masks.tolist()))
    assert len(counts) == 10  # 2 of 5
    assert chisquare(list(counts.values())).pvalue > ALPHA


def test_an_iid_mask_has_a_binomial_count() -> None:
    masks = iid_mask(torch.ones(20000, 6, dtype=torch.bool), 0.3, generator=rng())
    counts = torch.bincount(masks.sum(1), minlength=7)
    assert chisquare(counts, binom.pmf(range(7), 6, 0.3) * 20000).pvalue > ALPHA
    assert chisquare(masks.sum(0)).pvalue > ALPHA


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_that_is_no_share_is_named(rate: float) -> None:
    with pytest.raises(ValueError, match=f"{rate}"):
        iid_mask(torch.ones(1, 4, dtype=torch.bool), rate)


# ----------------------------------------------------------------------------------------- BERT
modes = st.sampled_from(["bernoulli", "exact", "exact_split"])


@few
@given(st.integers(1, 5), st.integers(0, 40), st.floats(0.01, 1), modes, dtypes, seeds)
def test_bert_labels_hold_the_original_where_chosen_and_inputs_stay_elsewhere(
    rows: int, columns: int, rate: float, select: str, dtype: torch.dtype, s: int
) -> None:
    ids = text(rows, columns, s, low=0).to(dtype)
    special = torch.rand(ids.shape, generator=rng(s)) < 0.3
    before = ids.clone()
    inputs, labels = bert_corrupt(
        ids, vocab_size=V, mask_id=MASK, special_ids=SPECIALS, special_mask=special,
        rate=rate, select=select, generator=rng(s),
    )  # fmt: skip
    chosen = labels != -100
    eligible = ~special & ~torch.isin(ids, torch.tensor(SPECIALS))
    assert torch.equal(ids, before)
    assert inputs.dtype == labels.dtype == dtype
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])
    assert not (chosen & ~eligible).any()
    assert torch.equal(chosen.any(1), eligible.any(1))  # at least one, where there is one
    assert torch.isin(inputs[chosen & (inputs != MASK)], torch.tensor(SPECIALS)).sum() == 0
    if select != "bernoulli":
        sizes = eligible.sum(1).tolist()
        assert chosen.sum(1).tolist() == [min(max(1, round(n * rate)), n) for n in sizes]


@pytest.mark.parametrize("select", ["bernoulli", "exact", "exact_split"])
def test_bert_splits_the_chosen_80_10_10(select: str) -> None:
    ids = text(400, 500)
    inputs, labels = bert_corrupt(
        ids, vocab_size=V, mask_id=MASK, special_ids=SPECIALS, select=select, generator=rng()
    )
    chosen = labels != -100
    n = int(chosen.sum())
    masked = int((inputs == MASK).sum())
    changed = int(((inputs != ids) & (inputs != MASK)).sum())
    assert z_score(n / ids.numel(), 0.15, (0.15 * 0.85) ** 0.5, ids.numel()) < 5
    # a random token is the same again once in V - 5 times
    expected = np.array([0.8, 0.1 * (1 - 1 / (V - 5)), 0.1 + 0.1 / (V - 5)]) * n
    assert chisquare([masked, changed, n - masked - changed], expected).pvalue > ALPHA
    assert chisquare(chosen.sum(0)).pvalue > ALPHA  # no position is preferred
    for hit in (inputs == MASK, (inputs != ids) & (inputs != MASK)):
        assert chisquare(hit.sum(0).view(10, 50).sum(1)).pvalue > ALPHA


def test_random_tokens_are_uniform_over_the_vocabulary_without_special_ids() -> None:
    for specials, pool in (((), range(50)), ((0, 1, 7, 49), set(range(50)) - {0, 1, 7, 49})):
        ids = torch.full((200, 500), 20)
        inputs, _ = bert_corrupt(
            ids, vocab_size=50, mask_id=MASK, special_ids=specials, rate=1, split=(0, 1, 0),
            generator=rng(),
        )  # fmt: skip
        counts = torch.bincount(inputs.flatten(), minlength=50)
        assert set(counts.nonzero().flatten().tolist()) == set(pool)
        assert chisquare(counts[sorted(pool)]).pvalue > ALPHA


def test_the_action_does_not_depend_on_the_random_id_or_the_position() -> None:
    """All three come from one draw, so this is worth asking."""
    ids = torch.full((200, 500), 20)
    inputs, _ = bert_corrupt(ids, vocab_size=10, mask_id=99, rate=1, generator=rng())
    drawn = inputs[(inputs != 99) & (inputs != 20)]
    assert chisquare(torch.bincount(drawn, minlength=10)).pvalue > ALPHA


def test_the_bernoulli_count_with_at_least_one_is_the_maximum_of_1_and_a_binomial() -> None:
    ids = text(40000, 8)
    for at_least_one in (True, False):
        _, labels = bert_corrupt(
            ids, vocab_size=V, mask_id=MASK, at_least_one=at_least_one, generator=rng()
        )
        counts = torch.bincount((labels != -100).sum(1), minlength=9)[:6].double()
        law = binom.pmf(range(6), 8, 0.15)
        if at_least_one:
            assert counts[0] == 0
            law[1] += law[0]
            law, counts = law[1:], counts[1:]
        expected = law / law.sum() * float(counts.sum())
        assert chisquare(counts, expected).pvalue > ALPHA


@pytest.mark.parametrize(("columns", "rate"), [(5, 0.001), (1, 0.15), (2, 0.3)])
def test_the_rescued_token_is_uniform_and_split_80_10_10(columns: int, rate: float) -> None:
    """Rows so short that most have no other token chosen."""
    ids = text(60000, columns)
    inputs, labels = bert_corrupt(
        ids, vocab_size=V, mask_id=MASK, rate=rate, special_ids=SPECIALS, generator=rng()
    )
    chosen = labels != -100
    assert chisquare(chosen.sum(0)).pvalue > ALPHA or columns == 1
    masked = inputs[chosen] == MASK
    changed = (inputs != ids)[chosen] & ~masked
    assert z_score(float(masked.double().mean()), 0.8, 0.4, len(masked)) < 5
    assert z_score(float(changed.double().mean()), 0.1 * (1 - 1 / (V - 5)), 0.3, len(masked)) < 5


@few
@given(st.integers(1, 300), st.floats(0.05, 1))
def test_an_exact_split_is_by_largest_remainder(length: int, rate: float) -> None:
    ids = torch.full((2, length), 20)
    kw = {"vocab_size": 10, "mask_id": 99, "rate": rate, "select": "exact_split"}
    inputs, labels = bert_corrupt(ids, **kw, generator=rng())
    count = int((labels[0] != -100).sum())
    parts = [int((inputs[0] == 99).sum()), int(((inputs != 99) & (inputs != 20))[0].sum())]
    parts.append(count - sum(parts))
    shares = [0.8 * count, 0.1 * count, 0.1 * count]
    assert all(abs(part - share) < 1 for part, share in zip(parts, shares, strict=True))


def test_30_chosen_tokens_split_exactly_into_24_3_3() -> None:
    ids = torch.full((50, 200), 20)
    inputs, labels = bert_corrupt(
        ids, vocab_size=10, mask_id=99, select="exact_split", generator=rng()
    )
    assert ((labels != -100).sum(1) == 30).all()
    assert ((inputs == 99).sum(1) == 24).all()
    assert (((inputs != 99) & (inputs != 20)).sum(1) == 3).all()


def test_bert_refuses_what_it_cannot_mean() -> None:
    kw = {"vocab_size": V, "mask_id": MASK}
    for bad, match in (
        ({"rate": 0.0}, "0.0"),
        ({"rate": 1.5}, "1.5"),
        ({"split": (0.8, 0.1, 0.2)}, "0.2"),
        ({"split": (1.1, -0.1, 0.0)}, "-0.1"),
        ({"select": "topk"}, "topk"),
        ({"special_mask": torch.zeros(2, 3)}, r"\(2, 3\)"),
        ({"generator": ExampleKeys(0, 0, torch.arange(9))}, r"\(9,\)"),
    ):
        with pytest.raises(ValueError, match=match):
            bert_corrupt(text(2, 4), **{**kw, **bad})
    for ids in (text(2, 4).float(), text(2, 4)[0], text(2, 4).to(torch.uint8)):
        with pytest.raises(ValueError, match="int32 or int64"):
            bert_corrupt(ids, **kw)


# ---------------------------------------------------------------------------- T5 span corruption
densities = st.sampled_from([0.0, 0.15, 0.3, 0.5, 0.8, 1.0]) | st.floats(0, 1)
means = st.sampled_from([1.0, 2.0, 3.0, 8.0]) | st.floats(1, 10)


@few
@given(st.integers(0, 3000), densities, means)
def test_span_counts_are_those_of_the_reference(length: int, density: float, mean: float) -> None:
    noise, spans = span_counts(torch.tensor([length]), density, mean)
    assert (int(noise), int(spans)) == reference.t5_counts(length, density, mean)


@few
@given(densities, means)
def test_span_counts_grow_with_the_length(density: float, mean: float) -> None:
    """The width of a batch is that of its longest row only because of this."""
    lengths = torch.arange(3000)
    noise, spans = span_counts(lengths, density, mean)
    for count in (noise, spans, lengths - noise):
        assert (count.diff() >= 0).all()


@few
@given(ragged_texts(), densities, means, st.booleans(), seeds)
def test_span_corruption_keeps_every_promise(
    texts: tuple[Tensor, Tensor], density: float, mean: float, final: bool, s: int
) -> None:
    ids, lengths = texts
    before = ids.clone()
    pair = span_corrupt(
        ids, **T5, lengths=lengths, density=density, mean_span=mean, final_sentinel=final,
        generator=rng(s),
    )  # fmt: skip
    assert torch.equal(ids, before)
    assert pair.inputs.dtype == pair.targets.dtype == ids.dtype
    restored, restored_lengths = restore(pair, first_sentinel=FIRST)
    assert torch.equal(restored_lengths, lengths)
    for i, length in enumerate(lengths.tolist()):
        n, s_ = reference.t5_counts(length, density, mean)
        closing = int(final or s_ == 0)
        inputs, targets = (
            row(pair.inputs, pair.input_lengths, i),
            row(pair.targets, pair.target_lengths, i),
        )
        assert restored[i, :length].tolist() == ids[i, :length].tolist()
        assert (len(inputs), len(targets)) == (length - n + s_ + 1, n + s_ + closing + 1)
        assert inputs[-1] == targets[-1] == EOS
        sentinels = [FIRST - k for k in range(s_ + closing)]
        assert [x for x in inputs if x >= V] == sentinels[:s_]
        assert [x for x in targets if x >= V] == sentinels
        assert not any(a >= V and b >= V for a, b in itertools.pairwise(inputs))
        assert not any(a >= V and b >= V for a, b in itertools.pairwise(targets[:-2]))
        assert (pair.inputs[i, len(inputs) :] == PAD).all()
        assert (pair.targets[i, len(targets) :] == PAD).all()
    assert pair.inputs.shape[1] >= int(pair.input_lengths.max())


@few
@given(ragged_texts(), densities, means, st.booleans(), seeds)
def test_the_direct_and_the_composed_way_agree(
    texts: tuple[Tensor, Tensor], density: float, mean: float, final: bool, s: int
) -> None:
    ids, lengths = texts
    direct = span_corrupt(
        ids, **T5, lengths=lengths, density=density, mean_span=mean, final_sentinel=final,
        generator=rng(s),
    )  # fmt: skip
    mask = random_spans_mask(
        lengths, ids.shape[1], density=density, mean_span=mean, generator=rng(s)
    )
    composed = apply_spans(ids, mask, **T5, lengths=lengths, final_sentinel=final)
    assert all(torch.equal(a, b) for a, b in zip(direct, composed, strict=True))


@few
@given(ragged_texts(), st.floats(0, 1), st.booleans(), seeds)
def test_any_mask_gives_the_spans_of_the_reference_and_can_be_undone(
    texts: tuple[Tensor, Tensor], rate: float, final: bool, s: int
) -> None:
    ids, lengths = texts
    mask = iid_mask(torch.ones_like(ids, dtype=torch.bool), rate, generator=rng(s))
    pair = apply_spans(ids, mask, **T5, lengths=lengths, final_sentinel=final)
    restored, _ = restore(pair, first_sentinel=FIRST)
    for i, length in enumerate(lengths.tolist()):
        text, noise = ids[i, :length].numpy(), mask[i, :length].numpy()
        inputs, targets = reference.t5_spans(text, noise, FIRST, EOS, final)
        assert row(pair.inputs, pair.input_lengths, i) == inputs.tolist()
        assert row(pair.targets, pair.target_lengths, i) == targets.tolist()
        assert restored[i, :length].tolist() == ids[i, :length].tolist()


@pytest.mark.parametrize("length", range(1, 9))
def test_every_mask_up_to_length_8_can_be_undone(length: int) -> None:
    masks = torch.tensor(list(itertools.product([False, True], repeat=length)))
    ids = torch.arange(10, 10 + length).expand(len(masks), -1)
    pair = apply_spans(ids, masks, **T5)
    restored, lengths = restore(pair, first_sentinel=FIRST)
    assert torch.equal(restored, ids)
    assert (lengths == length).all()
    runs = (masks & ~torch.nn.functional.pad(masks, (1, 0))[:, :-1]).sum(1)
    closing = ~masks[:, -1]
    assert torch.equal(pair.input_lengths + pair.target_lengths, length + 2 * runs + closing + 2)


def _spans_of(mask: Tensor) -> Counter[tuple[bool, ...]]:
    return Counter(map(tuple, mask.tolist()))


@pytest.mark.parametrize(("length", "density", "mean", "masks"), [(8, 0.5, 2, 9), (10, 0.5, 2, 36)])
@pytest.mark.parametrize("ragged", [False, True])
def test_all_span_masks_are_equally_likely(
    length: int, density: float, mean: float, masks: int, ragged: bool
) -> None:
    """(8, .5, 2): 4 noise and 4 kept tokens in 2 runs each, 3 × 3 masks."""
    noise, spans = reference.t5_counts(length, density, mean)
    by_hand = [
        m
        for m in itertools.product([False, True], repeat=length)
        if sum(m) == noise
        and not m[0]
        and m[-1]
        and sum(b and not a for a, b in itertools.pairwise(m)) == spans
    ]
    rows = 3000 * len(by_hand) // 9
    lengths = torch.full((rows,), length)
    columns = length
    if ragged:  # longer rows set the widths
        lengths = torch.cat([lengths, torch.full((50,), 17)])
        columns = 17
    mask = random_spans_mask(lengths, columns, density=density, mean_span=mean, generator=rng())
    counts = _spans_of(mask[:rows, :length])
    assert set(counts) == set(by_hand)
    assert chisquare(list(counts.values())).pvalue > ALPHA


def test_kept_and_noise_runs_are_independent_with_example_keys_too() -> None:
    keys = ExampleKeys(0, 0, torch.arange(3000))
    mask = random_spans_mask(torch.full((3000,), 8), 8, density=0.5, mean_span=2, generator=keys)
    counts = _spans_of(mask)
    assert len(counts) == 9
    assert chisquare(list(counts.values())).pvalue > ALPHA


def test_span_masks_and_the_reference_have_the_same_law() -> None:
    draws, generator = 4000, np.random.default_rng(0)
    mask = random_spans_mask(
        torch.full((draws,), 9), 9, density=0.4, mean_span=1.5, generator=rng()
    )
    ours = _spans_of(mask)
    theirs = Counter(
        tuple(reference.t5_mask(9, 0.4, 1.5, generator).tolist()) for _ in range(draws)
    )
    assert set(ours) == set(theirs)
    assert chisquare([ours[m] for m in theirs]).pvalue > ALPHA
    assert chisquare([theirs[m] for m in theirs]).pvalue > ALPHA


def test_a_random_roll_makes_all_positions_noise_equally_often() -> None:
    lengths = torch.tensor([20, 12]).repeat(6000)
    mask = random_spans_mask(lengths, 20, random_roll=True, generator=rng())
    assert (mask.sum(1) == span_counts(lengths)[0]).all()
    assert chisquare(mask[::2].sum(0)).pvalue > ALPHA
    assert chisquare(mask[1::2, :12].sum(0)).pvalue > ALPHA
    assert not mask[1::2, 12:].any()


@pytest.mark.parametrize(
    ("inputs", "density", "mean", "tokens", "targets"),
    [
        (64, 0.2, 2.0, 70, 22),
        (64, 0.2, 1.0, 63, 27),
        (512, 0.15, 3.0, 568, 114),
        (114, 0.15, 3.0, 126, 26),
        (1024, 0.15, 3.0, 1137, 229),
        (2048, 0.15, 3.0, 2274, 456),
        (114, 0.5, 3.0, 170, 114),
    ],
)
def test_length_helper_gives_the_numbers_of_t5(
    inputs: int, density: float, mean: float, tokens: int, targets: int
) -> None:
    assert span_lengths(inputs, density, mean) == (tokens, targets)


@few
@given(st.integers(2, 400), st.floats(0, 0.9), means)
def test_the_helped_length_fits_and_is_the_longest_that_does(
    inputs: int, density: float, mean: float
) -> None:
    tokens, targets = span_lengths(inputs, density, mean)
    kw = {"density": density, "mean_span": mean, "num_sentinels": 400, "first_sentinel": 2000}
    pair = span_corrupt(text(1, tokens), eos_id=EOS, pad_id=PAD, **kw)
    assert pair.inputs.shape[1] <= inputs
    assert pair.targets.shape[1] == targets
    if density != 0.5:
        longer = span_corrupt(text(1, tokens + 1), eos_id=EOS, pad_id=PAD, **kw)
        assert longer.inputs.shape[1] > inputs


def test_568_tokens_make_85_noise_tokens_in_28_spans() -> None:
    assert span_counts(torch.tensor([568, 512])) == (
        pytest.approx(torch.tensor([85, 77])),
        pytest.approx(torch.tensor([28, 26])),
    )


def test_the_sentinel_case_of_t5s_own_tests() -> None:
    """Tokens 10..15 and a mask that starts with noise; T5's inputs are [999, 12, 13, 998, 15]."""
    mask = torch.tensor([[True, True, False, False, True, False]])
    pair = apply_spans(torch.arange(10, 16)[None], mask, first_sentinel=999, eos_id=1, pad_id=0)
    assert pair.inputs.tolist() == [[999, 12, 13, 998, 15, 1]]


def test_no_noise_leaves_the_inputs_and_one_sentinel_for_the_target() -> None:
    pair = span_corrupt(torch.tensor([[10, 11]]), **T5, density=0.0)
    assert pair.inputs.tolist() == [[10, 11, EOS]]
    assert pair.targets.tolist() == [[FIRST, EOS]]


def test_empty_batches_pass_through() -> None:
    ids = torch.zeros(0, 6, dtype=torch.int64)
    assert len(span_corrupt(ids, **T5).inputs) == 0
    assert len(text_infill(ids, mask_id=MASK, pad_id=PAD)[0]) == 0
    assert len(bert_corrupt(ids, vocab_size=V, mask_id=MASK)[0]) == 0


def test_span_corruption_refuses_what_it_cannot_do() -> None:
    for bad, match in (
        ({"density": 1.5}, "1.5"),
        ({"mean_span": 0.5}, "0.5"),
        ({"lengths": torch.tensor([7])}, "7"),
        ({"lengths": torch.tensor([-1])}, "-1"),
        ({"lengths": torch.tensor([2, 2])}, r"\(2,\)"),
    ):
        with pytest.raises(ValueError, match=match):
            span_corrupt(text(1, 6), **{**T5, **bad})
    with pytest.raises(ValueError, match="1250"):
        span_corrupt(torch.tensor([[5, 1250]]), **T5)
    with pytest.raises(ValueError, match="position"):
        span_corrupt(text(1, 6)[:, :0], **T5)
    # what lies in the padding is no text
    span_corrupt(torch.tensor([[5, 1250]]), **T5, lengths=torch.tensor([1]))
    mask = torch.tensor([[True, False] * 3])
    with pytest.raises(ValueError, match="4 sentinels and there are 3"):
        apply_spans(text(1, 6), mask, **T5, num_sentinels=3)
    for inputs, density in ((0, 0.15), (10, 1.0)):
        with pytest.raises(ValueError, match="at least 1"):
            span_lengths(inputs, density)


def test_restore_accepts_any_pair_with_matching_sentinels() -> None:
    pair = Denoising(
        torch.tensor([[5, FIRST, 8, EOS]]),
        torch.tensor([[FIRST, 6, 7, EOS]]),
        torch.tensor([4]),
        torch.tensor([4]),
    )
    assert restore(pair, first_sentinel=FIRST)[0].tolist() == [[5, 6, 7, 8]]


# --------------------------------------------------------------------------- BART text infilling
overlaps = st.sampled_from(["merge", "disjoint"])
BART = {"mask_id": MASK, "pad_id": PAD}


@few
@given(ragged_texts(), st.floats(0, 1), st.floats(0.2, 8), overlaps, seeds)
def test_infilling_keeps_every_promise(
    texts: tuple[Tensor, Tensor], rate: float, mean: float, overlap: str, s: int
) -> None:
    _, lengths = texts
    columns = texts[0].shape[1]
    ids = torch.arange(10, 10 + columns).expand(len(lengths), -1).to(texts[0].dtype)
    out, out_lengths = text_infill(
        ids, **BART, lengths=lengths, rate=rate, mean_span=mean, overlap=overlap, generator=rng(s)
    )
    assert out.dtype == ids.dtype
    for i, length in enumerate(lengths.tolist()):
        noised = row(out, out_lengths, i)
        kept = [x for x in noised if x != MASK]
        source = ids[i, :length].tolist()
        budget = int(np.ceil(np.float32(max(length - 2, 0)) * np.float32(rate)))
        assert kept == sorted(set(kept))
        assert set(kept) <= set(source)
        assert noised[:1] == source[:1]
        assert noised[-1:] == source[-1:]
        removed = length - len(kept)
        assert removed == budget if overlap == "disjoint" else removed <= budget
        assert (out[i, len(noised) :] == PAD).all()
        # each gap in the text has a mask
        for (_, a), (position, b) in itertools.pairwise(
            (p, x) for p, x in enumerate(noised) if x != MASK
        ):
            assert b == a + 1 or noised[position - 1] == MASK
    if rate == 0:
        assert torch.equal(out_lengths, lengths)


@pytest.mark.parametrize("overlap", ["merge", "disjoint"])
def test_infilling_at_rate_0_is_the_identity(overlap: str) -> None:
    ids = text(3, 20)
    out, _ = text_infill(ids, **BART, rate=0.0, overlap=overlap)
    assert torch.equal(out, ids)


@pytest.mark.parametrize(("mean", "masks", "removed"), [(3.0, 42.41, 0.2674), (3.5, 35.89, 0.2662)])
def test_infilling_has_the_statistics_of_fairseq(mean: float, masks: float, removed: float) -> None:
    ids = text(4000, 512)
    out, lengths = text_infill(ids, **BART, mean_span=mean, generator=rng())
    count = (out == MASK).sum(1).double()
    share = (512 - (lengths - count)) / 510
    # the targets are themselves means of 4000 or more rows, so their error is added
    assert z_score(float(count.mean()), masks, float(count.std()) * 2**0.5, 4000) < 5
    assert z_score(float(share.mean()), removed, float(share.std()) * 2**0.5, 4000) < 5


@pytest.mark.parametrize("rate", [0.3, 0.7])
def test_infilling_and_the_reference_have_the_same_law(rate: float) -> None:
    """On a small text every outcome can be counted."""
    source, draws, generator = [10, 11, 12, 13, 14, 15], 6000, np.random.default_rng(1)
    ids = torch.tensor(source).expand(draws, -1)
    out, lengths = text_infill(ids, **BART, rate=rate, mean_span=1.5, generator=rng(2))
    ours = Counter(tuple(row(out, lengths, i)) for i in range(draws))
    text = np.array(source)
    theirs = Counter(
        tuple(reference.bart_infill(text, MASK, rate, 1.5, generator).tolist())
        for _ in range(draws)
    )
    frequent = [key for key in theirs if ours[key] + theirs[key] >= 40]
    difference = sum((ours[k] - theirs[k]) ** 2 / (ours[k] + theirs[k]) for k in frequent)
    degrees = len(frequent) - 1
    assert degrees > 10
    assert abs(difference - degrees) / (2 * degrees) ** 0.5 < 5


def test_disjoint_spans_are_all_equally_likely_arrangements() -> None:
    """One span of 1 and its place: 6 words, budget 1, and a Poisson mean that is never 0."""
    ids = torch.arange(10, 18).expand(12000, -1)
    out, lengths = text_infill(
        ids, **BART, rate=0.15, mean_span=20.0, overlap="disjoint", generator=rng()
    )
    assert (lengths == 8).all()
    assert chisquare((out == MASK)[:, 1:7].sum(0)).pvalue > ALPHA


def test_disjoint_spans_may_touch_and_keep_two_masks() -> None:
    ids = torch.arange(10, 15).expand(500, -1)  # 3 words, all noise
    out, lengths = text_infill(
        ids, **BART, rate=1.0, mean_span=2.0, overlap="disjoint", generator=rng()
    )
    assert {out[i, : int(n)].tolist().count(MASK) for i, n in enumerate(lengths)} >= {1, 2, 3}
    assert ((out != MASK) & (torch.arange(out.shape[1]) < lengths[:, None])).sum() == 1000


def test_span_lengths_are_poisson_and_empty_ones_are_insertions() -> None:
    """With a budget far above the mean, masks per row follow from the lengths alone."""
    ids = text(3000, 402)
    out, lengths = text_infill(
        ids, **BART, rate=0.5, mean_span=2.0, overlap="disjoint", generator=rng()
    )
    masks = (out == MASK).sum(1).double()
    # draws until the sum reaches 200: a renewal count with mean (200 + overshoot) / 2
    tail = poisson.sf(np.arange(40), 2.0)
    overshoot = sum((k) * t for k, t in enumerate(tail)) / sum(tail)
    assert z_score(float(masks.mean()), (200 + overshoot) / 2, float(masks.std()), 3000) < 5
    assert (lengths == 402 - 200 + masks).all()


def test_infilling_keeps_each_position_as_often_as_the_reference_does() -> None:
    """A topk whose order depends on the position would show here."""
    source, rows, generator = np.arange(10, 50), 3000, np.random.default_rng(2)
    out, _ = text_infill(torch.tensor(source).expand(rows, -1), **BART, generator=rng(3))
    ours = torch.bincount(out.flatten(), minlength=50)[11:49].double()
    theirs = Counter(
        token
        for _ in range(rows)
        for token in reference.bart_infill(source, MASK, 0.3, 3.0, generator).tolist()
    )
    expected = torch.tensor([theirs[token] for token in source[1:-1].tolist()]).double()
    sd = (2 * rows * 0.73 * 0.27) ** 0.5
    assert ((ours - expected).abs() < 5 * sd).all()


def test_disjoint_spans_look_the_same_from_both_ends() -> None:
    """The last span drawn is cut to meet the budget; it must not always be the rightmost one."""
    rows = 20000
    out, _ = text_infill(
        torch.arange(10, 30).expand(rows, -1), **BART, overlap="disjoint", generator=rng(3)
    )
    kept = torch.bincount(out.flatten(), minlength=30)[11:29].double()
    assert ((kept - kept.flip(0)).abs() < 5 * (2 * rows * 0.7 * 0.3) ** 0.5).all()


def test_infilling_refuses_what_it_cannot_mean() -> None:
    for bad, match in (
        ({"rate": 1.5}, "1.5"),
        ({"mean_span": 0.0}, "0.0"),
        ({"overlap": "union"}, "union"),
    ):
        with pytest.raises(ValueError, match=match):
            text_infill(text(1, 6), **{**BART, **bad})
