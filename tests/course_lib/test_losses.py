"""Losses: what a token costs, what counts, and that chunks change nothing."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from course_lib.losses import (
    IGNORE_INDEX,
    SummedNLL,
    cross_entropy,
    linear_cross_entropy,
    linear_summed_nll,
    summed_nll,
    token_nll,
)

few = settings(max_examples=25, deadline=None)
HALVES = [torch.bfloat16, torch.float16]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def batch(
    seed: int, rows: int = 12, vocab: int = 7, width: int = 5, ignored: float = 0.4
) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states (N, D), a weight (V, D) and labels (N), some of them ignored, in float64."""
    g = torch.Generator().manual_seed(seed)
    hidden = torch.randn(rows, width, generator=g, dtype=torch.float64)
    weight = torch.randn(vocab, width, generator=g, dtype=torch.float64)
    labels = torch.randint(vocab, (rows,), generator=g)
    return hidden, weight, labels.masked_fill(torch.rand(rows, generator=g) < ignored, IGNORE_INDEX)


def by_hand(logits: Tensor, labels: Tensor) -> float:
    """Summed nats, one token after the other, in Python floats."""
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        if label != IGNORE_INDEX:
            top = max(row)
            total += top + math.log(math.fsum(math.exp(x - top) for x in row)) - row[label]
    return total


class TestTokenNLL:
    @few
    @given(st.integers(0, 10**6))
    def test_a_token_costs_minus_the_log_of_its_probability(self, seed: int) -> None:
        hidden, weight, labels = batch(seed)
        logits = hidden @ weight.T
        nats, tokens = summed_nll(logits, labels)
        assert tokens == sum(label != IGNORE_INDEX for label in labels.tolist())
        assert float(nats) == pytest.approx(by_hand(logits, labels), rel=1e-12)

    @few
    @given(st.integers(0, 10**6), st.floats(-50, 50))
    def test_adding_a_constant_to_all_logits_changes_nothing(self, seed: int, c: float) -> None:
        hidden, weight, labels = batch(seed)
        logits = hidden @ weight.T
        torch.testing.assert_close(token_nll(logits + c, labels), token_nll(logits, labels))

    def test_ignored_positions_cost_nothing_even_when_their_logits_are_nan(self) -> None:
        logits = torch.tensor([[math.nan] * 3, [0.0, 0.0, 0.0]])
        nll = token_nll(logits, torch.tensor([IGNORE_INDEX, 2]))
        assert nll.tolist() == pytest.approx([0.0, math.log(3)])

    def test_logits_of_ignored_positions_get_no_gradient(self) -> None:
        logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
        cross_entropy(logits, torch.tensor([0, IGNORE_INDEX, 1, IGNORE_INDEX])).backward()
        assert logits.grad is not None
        assert logits.grad[[1, 3]].abs().sum() == 0
        assert (logits.grad[[0, 2]] != 0).all()

    def test_token_zero_is_a_token_like_any_other(self) -> None:
        assert summed_nll(torch.zeros(2, 4), torch.tensor([0, 0])).tokens == 2

    def test_an_impossible_label_costs_infinitely_many_nats_not_nan_and_not_a_clamp(self) -> None:
        logits = torch.tensor([[0.0, -math.inf, 1.0]])
        assert token_nll(logits, torch.tensor([1])).item() == math.inf
        assert token_nll(logits, torch.tensor([0])).item() == pytest.approx(math.log1p(math.e))

    def test_a_logit_gap_of_200_costs_200_nats(self) -> None:
        # the softmax of the label is 1e-87: zero in float32, so log(softmax) would be infinite
        logits = torch.tensor([[200.0, 0.0], [0.0, 200.0], [-200.0, 0.0]])
        nll = token_nll(logits, torch.tensor([1, 0, 0]))
        assert nll.tolist() == [200.0, 200.0, 200.0]

    @pytest.mark.parametrize("dtype", HALVES)
    def test_half_precision_logits_are_scored_in_float32(self, dtype: torch.dtype) -> None:
        hidden, weight, labels = batch(3, rows=64, vocab=1000)
        logits = (hidden @ weight.T).to(dtype)
        nll = token_nll(logits, labels)
        assert nll.dtype == torch.float32
        torch.testing.assert_close(nll, token_nll(logits.double(), labels).float())

    def test_double_precision_stays_double(self) -> None:
        hidden, weight, labels = batch(0)
        assert token_nll(hidden @ weight.T, labels).dtype == torch.float64

    @pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 3, 4), (0,), (3, 0)])
    def test_labels_may_have_any_shape(self, shape: tuple[int, ...]) -> None:
        labels = torch.zeros(shape, dtype=torch.int64)
        nll = token_nll(torch.zeros(*shape, 5), labels)
        assert nll.shape == shape
        torch.testing.assert_close(nll, torch.full(shape, math.log(5)))

    def test_labels_may_be_32_bit_integers(self) -> None:
        labels = torch.tensor([1, IGNORE_INDEX, 0], dtype=torch.int32)
        assert token_nll(torch.zeros(3, 2), labels).tolist() == pytest.approx(
            [math.log(2), 0.0, math.log(2)]
        )

    def test_inputs_are_left_as_they_were(self) -> None:
        hidden, weight, labels = batch(1)
        logits = hidden @ weight.T
        before = logits.clone(), labels.clone()
        cross_entropy(logits, labels)
        assert torch.equal(logits, before[0])
        assert torch.equal(labels, before[1])


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], SummedNLL]] = {
    "full": lambda hidden, weight, labels: summed_nll(hidden @ weight.T, labels),
    "chunked": linear_summed_nll,
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
class TestBothLosses:
    """What holds of the loss from logits and of the loss from hidden states."""

    def test_no_scored_position_costs_zero_and_backward_gives_zeros(
        self, loss: Callable[..., SummedNLL]
    ) -> None:
        hidden, weight, labels = batch(0)
        hidden.requires_grad_()
        weight.requires_grad_()
        value = loss(hidden, weight, torch.full_like(labels, IGNORE_INDEX)).mean
        value.backward()
        assert value == 0
        for grad in (hidden.grad, weight.grad):
            assert grad is not None
            assert (grad == 0).all()

    @few
    @given(seed=st.integers(0, 10**6), cut=st.integers(1, 11))
    def test_splitting_a_batch_changes_neither_loss_nor_gradient(
        self, loss: Callable[..., SummedNLL], seed: int, cut: int
    ) -> None:
        hidden, weight, labels = batch(seed)
        weight.requires_grad_()
        whole = loss(hidden, weight, labels)
        (expected,) = torch.autograd.grad(whole.mean, weight)
        parts = [loss(hidden[p], weight, labels[p]) for p in (slice(cut), slice(cut, None))]
        nats, tokens = sum(p.nats for p in parts), sum(p.tokens for p in parts)
        assert tokens == whole.tokens
        accumulated = nats / whole.tokens.clamp(min=1)
        torch.testing.assert_close(accumulated, whole.mean, rtol=1e-12, atol=1e-12)
        (grad,) = torch.autograd.grad(accumulated, weight)
        torch.testing.assert_close(grad, expected, rtol=1e-12, atol=1e-12)

    @few
    @given(seed=st.integers(0, 10**6), left=st.integers(0, 4), right=st.integers(0, 4))
    def test_padding_never_changes_the_loss(
        self, loss: Callable[..., SummedNLL], seed: int, left: int, right: int
    ) -> None:
        hidden, weight, labels = batch(seed)
        noise = torch.full((left + right, 5), 1e3, dtype=torch.float64)
        padded = torch.cat([noise[:left], hidden, noise[left:]])
        padded_labels = torch.nn.functional.pad(labels, (left, right), value=IGNORE_INDEX)
        short, long = loss(hidden, weight, labels), loss(padded, weight, padded_labels)
        torch.testing.assert_close(long.mean, short.mean, rtol=1e-12, atol=0)
        assert long.tokens == short.tokens

    @pytest.mark.parametrize("bad", [-1, 7, 50_000])
    def test_a_label_outside_the_vocabulary_is_named(
        self, loss: Callable[..., SummedNLL], bad: int
    ) -> None:
        hidden, weight, labels = batch(0)
        labels[3] = bad
        with pytest.raises(ValueError, match=rf"label {bad} is not in the vocabulary 0\.\.6"):
            loss(hidden, weight, labels)

    def test_labels_of_another_shape_are_refused(self, loss: Callable[..., SummedNLL]) -> None:
        hidden, weight, labels = batch(0)
        with pytest.raises(ValueError, match=r"labels have shape \(11,\)"):
            loss(hidden, weight, labels[1:])


class TestLinear:
    @few
    @given(st.integers(0, 10**6), st.integers(1, 20))
    def test_it_equals_the_loss_of_the_full_logits_and_so_do_its_gradients(
        self, seed: int, chunk_rows: int
    ) -> None:
        hidden, weight, labels = batch(seed)
        hidden, weight = hidden.view(3, 4, 5).requires_grad_(), weight.requires_grad_()
        labels = labels.view(3, 4)
        full = cross_entropy(hidden @ weight.T, labels)
        chunked = linear_cross_entropy(hidden, weight, labels, chunk_rows=chunk_rows)
        torch.testing.assert_close(chunked, full, rtol=1e-12, atol=1e-14)
        for ours, expected in zip(
            torch.autograd.grad(chunked, (hidden, weight)),
            torch.autograd.grad(full, (hidden, weight)),
            strict=True,
        ):
            torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-14)

    @pytest.mark.parametrize("frozen", ["neither", "hidden", "weight"])
    def test_gradients_match_finite_differences_whatever_comes_after(self, frozen: str) -> None:
        hidden, weight, labels = batch(5)
        hidden.requires_grad_(frozen != "hidden")
        weight.requires_grad_(frozen != "weight")

        def two_unequal_parts_of_a_larger_loss(hidden: Tensor, weight: Tensor) -> Tensor:
            first = linear_summed_nll(hidden[:5], weight, labels[:5], chunk_rows=2).nats
            rest = linear_cross_entropy(hidden[5:], weight, labels[5:], chunk_rows=3)
            return torch.stack([0.3 * first, -2.5 * rest * rest])

        assert torch.autograd.gradcheck(two_unequal_parts_of_a_larger_loss, (hidden, weight))

    @pytest.mark.parametrize("frozen", ["hidden", "weight"])
    def test_what_is_frozen_gets_no_gradient(self, frozen: str) -> None:
        hidden, weight, labels = batch(5)
        hidden.requires_grad_(frozen != "hidden")
        weight.requires_grad_(frozen != "weight")
        linear_cross_entropy(hidden, weight, labels).backward()
        assert (hidden.grad is None) == (frozen == "hidden")
        assert (weight.grad is None) == (frozen == "weight")

    def test_backward_twice_through_one_graph_gives_the_same_gradient(self) -> None:
        hidden, weight, labels = batch(6)
        weight.requires_grad_()
        loss = 3 * linear_cross_entropy(hidden, weight, labels)
        (first,) = torch.autograd.grad(loss, weight, retain_graph=True)
        (second,) = torch.autograd.grad(loss, weight)
        assert torch.equal(first, second)

    def test_without_gradients_the_value_is_the_same_and_has_no_graph(self) -> None:
        hidden, weight, labels = batch(7)
        weight.requires_grad_()
        with torch.no_grad():
            value = linear_cross_entropy(hidden, weight, labels)
        assert not value.requires_grad
        assert value == linear_cross_entropy(hidden, weight, labels)

    @pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
    def test_the_number_of_chunks_changes_nothing(self, dtype: torch.dtype) -> None:
        hidden, weight, labels = batch(8, rows=512, vocab=503, width=64, ignored=0.1)
        hidden, weight = hidden.to(dtype), (weight / 8).to(dtype)
        values = [
            linear_cross_entropy(hidden, weight, labels, chunk_rows=rows).item()
            for rows in (1, 7, 64, 4096)
        ]
        assert max(values) - min(values) < 1e-6 * max(values)

    @pytest.mark.parametrize(
        ("dtype", "loss_error", "grad_error"),
        [(torch.float32, 1e-6, 1e-5), (torch.bfloat16, 2e-4, 1e-2), (torch.float16, 2e-5, 2e-3)],
    )
    def test_lower_precision_stays_close_to_double_precision(
        self, dtype: torch.dtype, loss_error: float, grad_error: float
    ) -> None:
        hidden, weight, labels = batch(9, rows=600, vocab=503, width=64)
        hidden, weight = hidden.to(dtype), (weight / 8).to(dtype)
        grads, losses = [], []
        for wide in (dtype, torch.float64):
            h = hidden.detach().to(wide).requires_grad_()
            w = weight.detach().to(wide).requires_grad_()
            loss = linear_cross_entropy(h, w, labels, chunk_rows=100)
            loss.backward()
            assert h.grad is not None
            assert w.grad is not None
            assert h.grad.dtype == w.grad.dtype == wide
            losses.append(loss.item())
            grads.append(torch.cat([h.grad, w.grad]).double())
        assert losses[0] == pytest.approx(losses[1], rel=loss_error)
        assert (grads[0] - grads[1]).norm() < grad_error * grads[1].norm()

    def test_the_loss_of_half_precision_inputs_is_float32(self) -> None:
        hidden, weight, labels = batch(0)
        loss = linear_cross_entropy(hidden.bfloat16(), weight.bfloat16(), labels)
        assert loss.dtype == torch.float32

    def test_rows_that_are_not_scored_are_not_even_projected(self) -> None:
        hidden, weight, labels = batch(10)
        broken = hidden.clone()
        broken[labels == IGNORE_INDEX] = math.nan
        broken.requires_grad_()
        loss = linear_cross_entropy(broken, weight, labels)
        assert loss == linear_cross_entropy(hidden, weight, labels)
        loss.backward()
        assert broken.grad is not None
        assert broken.grad[labels == IGNORE_INDEX].abs().sum() == 0

    def test_an_impossible_label_costs_infinitely_many_nats(self) -> None:
        hidden = torch.tensor([[1.0, 0.0]])
        weight = torch.tensor([[0.0, 0.0], [-math.inf, 1.0]])
        assert linear_cross_entropy(hidden[:, :1], weight[:, :1], torch.tensor([1])) == math.inf

    def test_no_allocation_has_the_size_of_the_logits(self) -> None:
        class Largest(torch.utils._python_dispatch.TorchDispatchMode):
            numel = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
                out = func(*args, **(kwargs or {}))
                if isinstance(out, Tensor):
                    self.numel = max(self.numel, out.numel())
                return out

        hidden, weight, labels = batch(11, rows=640, vocab=97, width=8, ignored=0)
        hidden.requires_grad_()
        weight.requires_grad_()
        with Largest() as largest:
            linear_cross_entropy(hidden, weight, labels, chunk_rows=64).backward()
        assert largest.numel == 64 * 97

    def test_mixed_dtypes_and_empty_chunks_are_refused(self) -> None:
        hidden, weight, labels = batch(0)
        with pytest.raises(ValueError, match="cast one of them"):
            linear_cross_entropy(hidden.float(), weight, labels)
        with pytest.raises(ValueError, match="chunk_rows is 0"):
            linear_cross_entropy(hidden, weight, labels, chunk_rows=0)


@few
@given(st.integers(0, 10**6), st.sampled_from([None, 12, 20]))
def test_projecting_other_rows_too_changes_nothing(seed: int, at_most: int | None) -> None:
    """What an accelerator does, where picking the scored rows would have to wait."""
    hidden, weight, labels = batch(seed)
    hidden[labels == IGNORE_INDEX] = math.nan
    tensors = [hidden.requires_grad_(), weight.requires_grad_()]
    expected = linear_summed_nll(*tensors, labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "is_cpu", property(lambda _: False))
        ours = linear_summed_nll(*tensors, labels, chunk_rows=5, at_most=at_most)
    assert ours.tokens == expected.tokens
    torch.testing.assert_close(ours.nats, expected.nats)
    gradients = [torch.autograd.grad(nats, tensors) for nats in (ours.nats, expected.nats)]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


def test_a_bound_below_the_number_of_scored_rows_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden, weight, labels = batch(3, ignored=0)
    monkeypatch.setattr(Tensor, "is_cpu", property(lambda _: False))
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value"):
        linear_summed_nll(hidden, weight, labels, at_most=11)


@pytest.mark.parametrize("at_most", [None, 4])
def test_no_loss_waits_for_the_device(at_most: int | None) -> None:
    """Tensors on "meta" have no values: whoever asks for one gets an error."""
    hidden, weight = torch.zeros(9, 5, device="meta"), torch.zeros(7, 5, device="meta")
    labels = torch.zeros(9, dtype=torch.int64, device="meta")
    tensors = [hidden.requires_grad_(), weight.requires_grad_()]
    linear_cross_entropy(*tensors, labels, at_most=at_most).backward()
    cross_entropy(hidden @ weight.T, labels).backward()
    assert weight.grad is not None
    assert weight.grad.is_meta


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("at_most", [None, 400])
def test_losses_on_a_gpu_never_wait_for_it(at_most: int | None) -> None:
    hidden, weight, labels = (x.cuda() for x in batch(13, rows=600, vocab=503, width=64))
    tensors = [hidden.requires_grad_(), weight.requires_grad_()]
    torch.cuda.set_sync_debug_mode("error")
    try:
        linear_cross_entropy(*tensors, labels, at_most=at_most).backward()
        cross_entropy(hidden @ weight.T, labels).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_gives_the_same_loss_and_gradients(dtype: torch.dtype) -> None:
    hidden, weight, labels = batch(12, rows=600, vocab=503, width=64)
    results = []
    for device in ("cpu", "cuda"):
        h = hidden.to(device, dtype).requires_grad_()
        w = (weight / 8).to(device, dtype).requires_grad_()
        loss = linear_cross_entropy(h, w, labels.to(device))
        results.append([loss, *torch.autograd.grad(loss, (h, w))])
    for ours, expected in zip(results[1], results[0], strict=True):
        assert ours.device.type == "cuda"
        assert (ours.cpu() - expected).norm() < 1e-2 * expected.norm()
