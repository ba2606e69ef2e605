"""The tiny transformer reads what its mask allows and nothing else; training and sampling work."""

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from course_lib.losses import cross_entropy, token_nll
from course_lib.model import TinyTransformer, generate, train
from course_lib.objectives import Batch, causal_lm, masked_lm, span_corruption, text_infilling

V = 11
seeds = st.integers(0, 2**16)
few = settings(max_examples=15, deadline=None)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices this small are slower on two threads than on one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tiny(seed: int = 0, vocab_size: int = V, **sizes: int) -> TinyTransformer:
    return TinyTransformer(
        vocab_size, **{"d_model": 16, "n_heads": 2, "max_length": 16} | sizes, generator=rng(seed)
    )


def draw(shape: tuple[int, ...], seed: int = 0, vocab_size: int = V) -> Tensor:
    return torch.randint(vocab_size, shape, generator=rng(seed))


def causal(T: int) -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril()


def encoder_decoder(S: int, T: int) -> Tensor:
    """The inputs read each other; decoder inputs read the inputs and what came before."""
    mask = torch.zeros(S + T, S + T, dtype=torch.bool)
    mask[:, :S] = True
    mask[S:, S:] = causal(T)
    return mask


def changed_positions(before: Tensor, after: Tensor) -> Tensor:
    return (before != after).any(-1)  # exact: not one bit may differ


# --- the mask -------------------------------------------------------------------------------------


@few
@given(seed=seeds, t=st.integers(0, 7))
def test_under_a_causal_mask_a_token_changes_no_logits_before_it(seed: int, t: int) -> None:
    model, ids_BT = tiny(seed), draw((2, 8), seed)
    other_BT = ids_BT.clone()
    other_BT[:, t] = (other_BT[:, t] + 1) % V
    changed = changed_positions(model(ids_BT, causal(8)), model(other_BT, causal(8)))
    assert not changed[:, :t].any()
    assert changed[:, t:].all()
    assert changed_positions(model(ids_BT), model(other_BT)).all()  # no mask: everything leaks


@few
@given(seed=seeds, n_layers=st.integers(1, 3))
def test_a_token_reaches_exactly_the_queries_that_a_path_through_the_mask_leads_to(
    seed: int, n_layers: int
) -> None:
    mask = torch.rand(6, 6, generator=rng(seed)) < 0.3
    steps = (mask | torch.eye(6, dtype=torch.bool)).float()  # the residual stream keeps the token
    reached = torch.linalg.matrix_power(steps, n_layers) > 0
    model, ids_1T = tiny(seed, n_layers=n_layers), draw((1, 6), seed)
    for key in range(6):
        other_1T = ids_1T.clone()
        other_1T[0, key] = (ids_1T[0, key] + 1) % V
        changed = changed_positions(model(ids_1T, mask), model(other_1T, mask))[0]
        assert changed.equal(reached[:, key])


@few
@given(seed=seeds, t=st.integers(0, 4))
def test_an_encoder_decoder_mask_hides_later_decoder_inputs_and_hidden_inputs(
    seed: int, t: int
) -> None:
    model, inputs, decoder_inputs = tiny(seed), draw((1, 6), seed), draw((1, 5), seed + 1)
    mask = encoder_decoder(6, 5)
    mask[:, 2] = False  # as if input 2 were padding
    logits = model(inputs, mask, decoder_inputs)
    assert logits.shape == (1, 5, V)

    later = decoder_inputs.clone()
    later[0, t] = (later[0, t] + 1) % V
    changed = changed_positions(logits, model(inputs, mask, later))[0]
    assert changed.tolist() == [position >= t for position in range(5)]

    for position, seen in ((2, False), (3, True)):
        other = inputs.clone()
        other[0, position] = (other[0, position] + 1) % V
        changed = changed_positions(logits, model(other, mask, decoder_inputs))
        assert changed.all() if seen else not changed.any()


def test_a_mask_means_the_same_in_every_shape_that_broadcasts() -> None:
    model, ids_BT = tiny(), draw((3, 8))
    expected = model(ids_BT, causal(8))
    for mask in (causal(8)[None], causal(8).repeat(3, 1, 1)):
        assert model(ids_BT, mask).equal(expected)
    keys_only = torch.ones(3, 1, 8, dtype=torch.bool)
    torch.testing.assert_close(model(ids_BT, keys_only), model(ids_BT))


def test_rows_of_a_batch_may_have_masks_of_their_own() -> None:
    model, ids_BT = tiny(), draw((2, 8))
    masks = torch.stack([causal(8), torch.ones(8, 8, dtype=torch.bool)])
    together = model(ids_BT, masks)
    torch.testing.assert_close(together[:1], model(ids_BT[:1], causal(8)))
    torch.testing.assert_close(together[1:], model(ids_BT[1:]))


def test_a_query_that_reads_nothing_has_finite_logits_and_gradients() -> None:
    model, mask = tiny(), causal(8)
    mask[3] = False
    logits = model(draw((2, 8)), mask)
    logits.square().sum().backward()
    assert logits.isfinite().all()
    assert all(
        p.grad is not None and p.grad.isfinite().all()
        for p in model.parameters()
        if p is not model.segments.weight
    )


IDS_BT = draw((3, 10), 1, 20)
OBJECTIVES = {
    "causal": lambda: causal_lm(IDS_BT),
    "masked": lambda: masked_lm(IDS_BT, vocab_size=20, mask_id=20, generator=rng()),
    "spans": lambda: span_corruption(
        IDS_BT, first_sentinel=29, num_sentinels=5, eos_id=21, pad_id=22, generator=rng()
    ),
    "infilling": lambda: text_infilling(
        IDS_BT, mask_id=20, pad_id=22, decoder_start_id=21, generator=rng()
    ),
}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_is_nearly_uniform_at_first_and_learnable(objective: str) -> None:
    model, batch = tiny(0, 30, max_length=24), OBJECTIVES[objective]()
    losses = train(model, itertools.repeat(batch), steps=100, lr=1e-2, progress=False)
    assert losses[0] == pytest.approx(math.log(30), rel=0.03)
    assert losses[-1] < 0.1


@pytest.mark.parametrize("objective", ["causal", "spans", "infilling"])
def test_no_objective_lets_the_model_read_what_it_is_about_to_write(objective: str) -> None:
    model, batch = tiny(0, 30, max_length=24), OBJECTIVES[objective]()
    logits = model(batch.inputs, batch.attention, batch.decoder_inputs)
    for t in range(logits.shape[1]):
        part = "inputs" if batch.decoder_inputs is None else "decoder_inputs"
        other = getattr(batch, part).clone()
        other[:, t] = (other[:, t] + 1) % 30
        inputs, _, attention, decoder_inputs = batch._replace(**{part: other})
        changed = changed_positions(logits, model(inputs, attention, decoder_inputs))
        assert not changed[:, :t].any()
        assert changed[:, t].all()


# --- the parts ------------------------------------------------------------------------------------


def test_the_decoder_part_restarts_positions_and_differs_by_its_segment_only() -> None:
    model, ids_BT = tiny(max_length=8), draw((2, 8))
    apart = torch.block_diag(torch.ones(8, 8), torch.ones(8, 8)).bool()
    alone = model(ids_BT)
    assert (alone - model(ids_BT, apart, ids_BT)).abs().amax(-1).min() > 1e-3
    with torch.no_grad():
        model.segments.weight.zero_()
    torch.testing.assert_close(model(ids_BT, apart, ids_BT), model(ids_BT))


def test_positions_tell_equal_tokens_apart() -> None:
    logits = tiny()(torch.zeros(1, 8, dtype=torch.long))[0]
    assert len(logits.unique(dim=0)) == 8


def test_no_decoder_inputs_at_all_give_no_logits() -> None:
    assert tiny()(draw((2, 5)), None, draw((2, 0))).shape == (2, 0, V)


@pytest.mark.parametrize("d_model", [16, 64])
@pytest.mark.parametrize("vocab_size", [2, 64, 5000])
def test_an_untrained_model_is_nearly_uniform(vocab_size: int, d_model: int) -> None:
    model = tiny(1, vocab_size, d_model=d_model)
    ids_BT = draw((64, 16), 2, vocab_size)
    for labels in (draw((64, 16), 3, vocab_size), ids_BT):  # also when it should copy
        loss = cross_entropy(model(ids_BT, causal(16)), labels).item()
        assert loss == pytest.approx(math.log(vocab_size), rel=0.03)


def test_weights_follow_the_generator_and_leave_the_global_one_alone() -> None:
    before = torch.get_rng_state()
    one, same, other = (list(tiny(seed).parameters()) for seed in (5, 5, 6))
    assert torch.get_rng_state().equal(before)
    assert all(a.equal(b) for a, b in zip(one, same, strict=True))
    assert not any(a.equal(b) for a, b in zip(one, other, strict=True) if a.std() > 0)
    assert all(p.isfinite().all() for p in one)  # nothing left as it was found in memory


def test_logits_have_the_dtype_of_the_model() -> None:
    model, ids_BT = tiny(), draw((2, 8))
    for dtype, tolerance in ((torch.float64, 1e-5), (torch.bfloat16, 0.05)):
        exact = tiny()(ids_BT, causal(8))
        logits = model.to(dtype)(ids_BT, causal(8))
        assert logits.dtype == dtype
        torch.testing.assert_close(logits.float(), exact, atol=tolerance, rtol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_gpu_agrees_with_the_cpu() -> None:
    model, inputs, decoder_inputs = tiny(), draw((2, 6)), draw((2, 5))
    for mask in (encoder_decoder(6, 5), encoder_decoder(6, 5).repeat(2, 1, 1)):
        expected = model.cpu()(inputs, mask, decoder_inputs)
        logits = model.cuda()(inputs.cuda(), mask.cuda(), decoder_inputs.cuda())
        assert logits.is_cuda
        torch.testing.assert_close(logits.cpu(), expected, atol=1e-4, rtol=1e-3)
    losses = train(model, [cycle_batch()], steps=1, progress=False)  # a batch on the CPU moves
    assert math.isfinite(losses[0])


def test_what_cannot_be_read_is_refused_by_name() -> None:
    model = tiny()
    with pytest.raises(ValueError, match=r"17 positions.*max_length=16"):
        model(draw((1, 17)))
    with pytest.raises(TypeError, match=r"bool.*torch\.float32"):
        model(draw((1, 8)), causal(8).float())
    for bad in (-100, V):
        with pytest.raises(IndexError, match=rf"id {bad} is outside the vocabulary 0\.\.10"):
            model(torch.tensor([[0, bad]]))
    with pytest.raises(ValueError, match=r"d_model=10.*n_heads=4"):
        TinyTransformer(V, d_model=10, n_heads=4)


# --- training -------------------------------------------------------------------------------------


def cycle_batch(T: int = 8) -> Batch:
    """The endless cycle 0 1 ... V-1 0 1 ..., from every start: each token follows from the last."""
    z = (torch.arange(V)[:, None] + torch.arange(T + 1)) % V
    return Batch(z[:, :-1], z[:, 1:], causal(T))


def test_a_deterministic_cycle_is_learnt_to_zero_nats() -> None:
    model = tiny(max_length=8)
    losses = train(model, itertools.repeat(cycle_batch()), steps=150, lr=1e-2, progress=False)
    assert losses[0] == pytest.approx(math.log(V), rel=0.03)
    assert losses[-1] < 0.01
    sampled = generate(model, torch.tensor([[3], [9]]), 20, generator=rng())
    assert sampled.equal((torch.tensor([[3], [9]]) + torch.arange(21)) % V)  # beyond max_length too


def test_without_a_mask_next_token_training_reads_its_answers() -> None:
    # tokens without any pattern: a causal model cannot go below ln V; one that sees its answers
    # knows all but the last, and is left with ln V / T
    T, vocab_size = 8, 8

    def position_losses(mask: Tensor | None) -> Tensor:
        windows = (draw((32, T + 1), step, vocab_size) for step in itertools.count())
        batches = (Batch(z[:, :-1], z[:, 1:], mask) for z in windows)
        model = tiny(0, vocab_size, d_model=32)
        train(model, batches, steps=120, lr=1e-2, progress=False)
        z = draw((512, T + 1), 10**6, vocab_size)
        with torch.no_grad():
            return token_nll(model(z[:, :-1], mask), z[:, 1:]).mean(0)

    blind, leaky = position_losses(causal(T)), position_losses(None)
    uniform = math.log(vocab_size)
    assert blind.min() > 0.95 * uniform
    assert leaky.mean() < 0.2 * blind.mean()
    assert leaky[-1] > 0.95 * uniform
    assert leaky[:-1].max() < leaky[-1] / 10


def test_training_is_deterministic_in_place_and_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    runs = []
    for _ in range(2):
        model = tiny(1)
        start = [p.clone() for p in model.parameters()]
        runs.append(train(model, [cycle_batch()] * 3, steps=3, progress=False))
        assert not any(a.equal(b) for a, b in zip(start, model.parameters(), strict=True))
    assert runs[0] == runs[1]
    assert all(type(loss) is float for loss in runs[0])
    assert torch.get_rng_state().equal(before)


def test_the_first_loss_is_that_of_the_untrained_model() -> None:
    batch = cycle_batch()
    expected = cross_entropy(tiny()(batch.inputs, batch.attention), batch.labels).item()
    assert train(tiny(), [batch], steps=1, progress=False) == [expected]


def test_decoder_inputs_and_ignored_labels_train() -> None:
    decoder_inputs = draw((4, 5), 1)
    labels = decoder_inputs.clone()
    labels[:, ::2] = -100
    batch = Batch(draw((4, 6)), labels, encoder_decoder(6, 5), decoder_inputs)
    losses = train(tiny(), itertools.repeat(batch), steps=60, lr=1e-2, progress=False)
    assert losses[-1] < 0.1 < losses[0]


def test_exactly_as_many_batches_are_taken_as_there_are_steps() -> None:
    batches = iter([cycle_batch()] * 5)
    assert len(train(tiny(), batches, steps=2, progress=False)) == 2
    assert len(list(batches)) == 3


def test_the_bar_goes_to_stdout_and_can_be_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    train(tiny(), [cycle_batch()] * 2, steps=2)
    out, err = capsys.readouterr()
    assert "2/2" in out
    assert err == ""
    train(tiny(), [cycle_batch()] * 2, steps=2, progress=False)
    assert capsys.readouterr() == ("", "")


def test_training_that_cannot_happen_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"after 2 of 3 steps.*itertools\.cycle"):
        train(tiny(), [cycle_batch()] * 2, steps=3, progress=False)
    with pytest.raises(ValueError, match="steps=0"):
        train(tiny(), [], steps=0)


# --- sampling -------------------------------------------------------------------------------------


def test_samples_follow_the_softmax_at_the_temperature() -> None:
    model, n = tiny(4), 20_000
    with torch.no_grad():
        model.head.weight.mul_(20)  # far from uniform
    prompt = torch.tensor([[1, 2, 3]])
    for temperature in (1.0, 0.5):
        p = (model(prompt, causal(3))[0, -1].detach() / temperature).softmax(-1)
        sampled = generate(model, prompt.expand(n, 3), 1, temperature=temperature, generator=rng(7))
        count = sampled[:, -1].bincount(minlength=V)
        z = (count - n * p) / (n * p * (1 - p)).sqrt()
        assert z.abs().max() < 5
        assert p.max() > 2 / V


def test_samples_keep_the_prompt_and_follow_the_generator() -> None:
    model, prompt = tiny(), draw((3, 4))
    before = torch.get_rng_state()
    one, same, other = (generate(model, prompt, 12, generator=rng(seed)) for seed in (1, 1, 2))
    assert torch.get_rng_state().equal(before)
    assert one.shape == (3, 16)
    assert one[:, :4].equal(prompt)
    assert one.equal(same)
    assert not one.equal(other)
    assert generate(model, prompt, 0).equal(prompt)


def test_sampling_that_cannot_happen_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="temperature=0 must be positive"):
        generate(tiny(), draw((1, 4)), 1, temperature=0)
    with pytest.raises(ValueError, match="prompt is empty"):
        generate(tiny(), draw((1, 0)), 1)
