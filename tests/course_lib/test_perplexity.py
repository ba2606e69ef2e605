"""Perplexity: conversions, token weighting, merging, bytes, and windows."""

import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from course_lib.losses import IGNORE_INDEX, cross_entropy, summed_nll
from course_lib.perplexity import (
    Perplexity,
    bits_to_nats,
    nats_to_bits,
    nats_to_perplexity,
    perplexity_to_nats,
    sliding_windows,
    strided_perplexity,
)

few = settings(max_examples=40, deadline=None)
parts = st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 10**6)), min_size=1, max_size=8)


def measured(nll_sum: float, tokens: int, n_bytes: int | None = None) -> Perplexity:
    result = Perplexity()
    result.add(nll_sum, tokens, n_bytes)
    return result


def scored(seed: int, shape: tuple[int, ...] = (4, 6), vocab: int = 5) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(vocab, shape, generator=g)
    labels = labels.masked_fill(torch.rand(shape, generator=g) < 0.3, IGNORE_INDEX)
    labels.view(-1)[0] = 0
    return torch.randn(*shape, vocab, generator=g), labels


class TestConversions:
    @few
    @given(st.floats(0, 700))
    def test_each_conversion_undoes_its_inverse(self, nats: float) -> None:
        assert perplexity_to_nats(nats_to_perplexity(nats)) == pytest.approx(nats, abs=1e-12)
        assert bits_to_nats(nats_to_bits(nats)) == pytest.approx(nats)

    @few
    @given(st.floats(0, 700))
    def test_two_to_the_bits_is_e_to_the_nats(self, nats: float) -> None:
        assert 2 ** nats_to_bits(nats) == pytest.approx(nats_to_perplexity(nats), rel=1e-9)

    @few
    @given(st.floats(0, 700), st.floats(1e-6, 1))
    def test_more_nats_mean_a_higher_perplexity(self, nats: float, more: float) -> None:
        assert nats_to_perplexity(nats + more) > nats_to_perplexity(nats)

    def test_what_overflows_is_infinite_in_both_directions(self) -> None:
        assert nats_to_perplexity(709.7) < math.inf
        assert nats_to_perplexity(710) == nats_to_perplexity(math.inf) == math.inf
        assert perplexity_to_nats(math.inf) == math.inf

    def test_nan_stays_nan(self) -> None:
        assert math.isnan(nats_to_perplexity(math.nan))

    @pytest.mark.parametrize("bad", [0.999, 0, -3])
    def test_a_perplexity_below_one_is_refused(self, bad: float) -> None:
        with pytest.raises(ValueError, match=f"perplexity {bad} is below 1"):
            perplexity_to_nats(bad)


class TestAccumulator:
    @few
    @given(st.integers(0, 10**6), st.integers(1, 3))
    def test_batches_of_any_size_give_the_perplexity_of_the_whole(
        self, seed: int, cut: int
    ) -> None:
        logits, labels = scored(seed)
        result = Perplexity()
        result.update(logits[:cut], labels[:cut])
        result.update(logits[cut:], labels[cut:])
        whole = cross_entropy(logits.double(), labels).item()
        at_once = Perplexity()
        at_once.update(logits, labels)
        assert result.nats == pytest.approx(at_once.nats, rel=1e-12)
        assert result.nats == pytest.approx(whole, rel=1e-6)
        assert result.perplexity == pytest.approx(math.exp(whole), rel=1e-6)
        assert result.bits == pytest.approx(whole / math.log(2), rel=1e-6)
        assert result.tokens == (labels != IGNORE_INDEX).sum()

    @few
    @given(parts, st.randoms(use_true_random=False))
    def test_merging_is_the_same_in_any_order_and_grouping(self, parts, random) -> None:  # type: ignore[no-untyped-def]
        in_order = sum((measured(*p) for p in parts), Perplexity())
        random.shuffle(parts)
        cut = random.randint(0, len(parts))
        left = sum((measured(*p) for p in parts[:cut]), Perplexity())
        right = sum((measured(*p) for p in parts[cut:]), Perplexity())
        assert (left + right).nats == pytest.approx(in_order.nats, rel=1e-12)
        assert (left + right).tokens == in_order.tokens

    def test_merging_leaves_the_parts_alone(self) -> None:
        a, b = measured(2.0, 1), measured(8.0, 2)
        assert (a + b).nats == pytest.approx(10 / 3)
        assert (a.nats, b.nats) == (2.0, 4.0)

    def test_a_worker_can_send_its_part(self) -> None:
        logits, labels = scored(0)
        part = Perplexity()
        part.update(logits, labels, n_bytes=40)
        received = pickle.loads(pickle.dumps(part))
        assert (received.nats, received.bits_per_byte) == (part.nats, part.bits_per_byte)

    def test_a_loss_that_was_summed_elsewhere_can_be_added_and_keeps_no_graph(self) -> None:
        logits, labels = scored(1)
        result = Perplexity()
        result.add(*summed_nll(logits.requires_grad_(), labels))
        assert result.nats == pytest.approx(cross_entropy(logits, labels).item())
        assert not result._nll_sum.requires_grad

    def test_many_updates_do_not_drift(self) -> None:
        result = Perplexity()
        for _ in range(100_000):
            result.add(0.1, 1)
        assert result.tokens == 100_000
        assert result.nats == pytest.approx(0.1, rel=1e-9)

    def test_one_more_token_counts_beyond_what_float32_can_count(self) -> None:
        assert (measured(1.0, 2**24) + measured(1.0, 1)).tokens == 2**24 + 1

    @pytest.mark.parametrize("unit", ["nats", "bits", "perplexity", "bits_per_byte"])
    def test_zero_tokens_have_no_perplexity(self, unit: str) -> None:
        nothing = Perplexity()
        nothing.update(torch.zeros(3, 5), torch.full((3,), IGNORE_INDEX), n_bytes=3)
        with pytest.raises(ValueError, match="no token was scored"):
            getattr(nothing, unit)

    def test_a_batch_without_scored_tokens_changes_nothing(self) -> None:
        result = measured(6.0, 3, n_bytes=2)
        result.update(torch.zeros(3, 5), torch.full((3,), IGNORE_INDEX), n_bytes=0)
        assert result.nats == 2.0
        assert result.bits_per_byte == pytest.approx(6 / math.log(2) / 2)

    def test_a_negative_count_is_refused(self) -> None:
        with pytest.raises(ValueError, match="tokens is -1"):
            Perplexity().add(1.0, -1)

    def test_one_impossible_token_makes_the_perplexity_infinite(self) -> None:
        result = measured(1.0, 1)
        result.update(torch.tensor([[0.0, -math.inf]]), torch.tensor([1]))
        assert result.nats == result.perplexity == math.inf

    @pytest.mark.parametrize("view", ["contiguous", "shifted", "transposed"])
    def test_logits_of_any_layout_are_scored_in_blocks(self, view: str, monkeypatch) -> None:  # type: ignore[no-untyped-def]
        monkeypatch.setattr("course_lib.perplexity._CPU_BLOCK", 1)  # blocks of 8 rows
        logits, labels = scored(2, shape=(3, 21))
        if view == "shifted":
            logits, labels = logits[:, :-1], labels[:, 1:]
        elif view == "transposed":
            logits, labels = logits.transpose(0, 1), labels.transpose(0, 1)
        result = Perplexity()
        result.update(logits, labels)
        assert result.nats == pytest.approx(cross_entropy(logits.double(), labels).item())
        assert result.tokens == (labels != IGNORE_INDEX).sum()

    @pytest.mark.parametrize("shifted", [False, True])
    def test_an_update_allocates_nothing_the_size_of_the_logits(self, shifted: bool) -> None:
        class Allocated(torch.utils._python_dispatch.TorchDispatchMode):
            largest = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
                inputs = {x.untyped_storage().data_ptr() for x in args if isinstance(x, Tensor)}
                out = func(*args, **(kwargs or {}))
                if isinstance(out, Tensor) and out.untyped_storage().data_ptr() not in inputs:
                    self.largest = max(self.largest, out.numel())
                return out

        logits, labels = torch.zeros(4, 64, 2**15), torch.zeros(4, 64, dtype=torch.int64)
        if shifted:
            logits, labels = logits[:, :-1], labels[:, 1:]
        with Allocated() as allocated:
            Perplexity().update(logits, labels)
        assert 0 < allocated.largest <= 2**19 == logits[0, :16].numel()

    def test_labels_of_another_shape_are_refused_before_anything_is_counted(self) -> None:
        result = measured(2.0, 1)
        with pytest.raises(ValueError, match="labels have shape"):
            result.update(torch.zeros(2, 8, 3), torch.zeros(2, 9, dtype=torch.int64))
        assert result.tokens == 1


class TestBitsPerByte:
    def test_it_is_all_bits_over_all_bytes(self) -> None:
        result = measured(6 * math.log(2), 3, n_bytes=4) + measured(2 * math.log(2), 1, n_bytes=12)
        assert result.bits_per_byte == pytest.approx(8 / 16)

    def test_it_does_not_depend_on_how_the_text_was_cut_into_tokens(self) -> None:
        coarse, fine = measured(60.0, 10, n_bytes=50), measured(60.0, 50, n_bytes=50)
        assert coarse.perplexity > fine.perplexity
        assert coarse.bits_per_byte == pytest.approx(fine.bits_per_byte)

    def test_bytes_of_one_part_only_are_not_taken_for_the_whole(self) -> None:
        for total in (
            measured(1.0, 1, 4) + measured(1.0, 1),
            measured(1.0, 1) + measured(1.0, 1, 4),
        ):
            with pytest.raises(ValueError, match="give n_bytes with every update"):
                _ = total.bits_per_byte


def counting_model(ids_BW: Tensor) -> Tensor:
    """The label costs ln(number of tokens seen): id + 1 follows id, as one of that many."""
    seen = torch.arange(1, ids_BW.shape[1] + 1).expand_as(ids_BW)
    logits = torch.zeros(*ids_BW.shape, 100)
    others = (100 - 1) / (seen - 1)  # so that exp(label) / total = 1 / seen
    label = torch.where(seen == 1, math.inf, others).log()
    return logits.scatter(-1, (ids_BW + 1).unsqueeze(-1), label.clamp(max=1e4).unsqueeze(-1))


windows = st.integers(1, 12).flatmap(lambda w: st.tuples(st.just(w), st.integers(1, w)))


class TestWindows:
    @few
    @given(st.integers(0, 40), windows, st.booleans())
    def test_every_token_is_scored_exactly_once(
        self, length: int, window_stride: tuple[int, int], bos: bool
    ) -> None:
        _, labels = sliding_windows(
            torch.arange(length), *window_stride, bos_id=99 if bos else None
        )
        once = labels[labels != IGNORE_INDEX]
        assert sorted(once.tolist()) == list(range(0 if bos else 1, length))

    @few
    @given(st.integers(2, 40), windows)
    def test_windows_are_pieces_of_the_text_with_the_next_token_as_label(
        self, length: int, window_stride: tuple[int, int]
    ) -> None:
        window, stride = window_stride
        inputs, labels = sliding_windows(torch.arange(length), window, stride)
        assert inputs.shape == labels.shape
        assert inputs.shape[1] == min(window, length - 1)
        assert (inputs[:, 1:] == inputs[:, :-1] + 1).all()
        assert ((labels == inputs + 1) | (labels == IGNORE_INDEX)).all()
        steps = inputs[1:, 0] - inputs[:-1, 0]
        assert (steps[:-1] == stride).all()  # all but the last, which is shifted left
        assert inputs[-1, -1] == length - 2

    @few
    @given(st.integers(2, 40), windows)
    def test_a_later_window_scores_tokens_with_at_least_w_minus_s_plus_1_before_them(
        self, length: int, window_stride: tuple[int, int]
    ) -> None:
        window, stride = window_stride
        _, labels = sliding_windows(torch.arange(length), window, stride)
        position = (labels[1:] != IGNORE_INDEX).nonzero()[:, 1]
        assert (position + 1 >= window - stride + 1).all()

    @few
    @given(st.integers(2, 40), st.integers(1, 12))
    def test_stride_one_gives_every_token_the_longest_context_the_window_allows(
        self, length: int, window: int
    ) -> None:
        result = strided_perplexity(counting_model, torch.arange(length), window, stride=1)
        exact = [math.log(min(t, window)) for t in range(1, length)]
        assert result.tokens == length - 1
        assert result.nats == pytest.approx(math.fsum(exact) / len(exact), abs=1e-5)

    @pytest.mark.parametrize("batch_size", [1, 3, 100])
    def test_the_batch_size_changes_nothing(self, batch_size: int) -> None:
        ids = torch.arange(30)
        result = strided_perplexity(counting_model, ids, 7, 2, batch_size=batch_size)
        assert result.nats == pytest.approx(
            strided_perplexity(counting_model, ids, 7, 2).nats, rel=1e-12
        )

    def test_a_text_that_fits_is_one_window(self) -> None:
        inputs, labels = sliding_windows(torch.tensor([5, 6, 7]), window=10, stride=4, bos_id=0)
        assert (inputs.tolist(), labels.tolist()) == ([[0, 5, 6]], [[5, 6, 7]])

    @pytest.mark.parametrize(("window", "stride"), [(4, 0), (4, 5), (0, 0), (4, -1)])
    def test_a_stride_that_would_lose_tokens_is_refused(self, window: int, stride: int) -> None:
        with pytest.raises(ValueError, match=f"stride {stride} with window {window}"):
            sliding_windows(torch.arange(9), window, stride)

    def test_two_texts_at_once_are_refused(self) -> None:
        with pytest.raises(ValueError, match="one text at a time"):
            sliding_windows(torch.zeros(2, 9), 4, 2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_updates_on_a_gpu_never_wait_for_it() -> None:
    logits, labels = (x.cuda() for x in scored(0))
    result = Perplexity()
    torch.cuda.set_sync_debug_mode("error")
    try:
        result.update(logits, labels)
        result.update(logits, labels)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert result.nats == pytest.approx(cross_entropy(logits, labels).item(), rel=1e-6)
