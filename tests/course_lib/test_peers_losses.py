"""Bugs that well-known libraries shipped in losses and perplexity: ours does not have them."""

import math
import re

import pytest
import torch
from torch import Tensor

from course_lib.losses import (
    IGNORE_INDEX,
    cross_entropy,
    linear_cross_entropy,
    linear_summed_nll,
    summed_nll,
)
from course_lib.perplexity import (
    Perplexity,
    nats_to_perplexity,
    sliding_windows,
    strided_perplexity,
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ragged(lengths: list[int], side: str, vocab: int = 6) -> tuple[Tensor, Tensor]:
    """Logits and labels of texts of these lengths, padded on one side with loud logits."""
    width = max(lengths)
    logits, labels = torch.full((len(lengths), width, vocab), 9.0), []
    for row, n in enumerate(lengths):
        part = slice(0, n) if side == "right" else slice(width - n, width)
        logits[row, part] = random(n, vocab, seed=n).float()
        padded = torch.full((width,), IGNORE_INDEX)
        padded[part] = torch.arange(n) % vocab
        labels.append(padded)
    return logits, torch.stack(labels)


def measured(logits: Tensor, labels: Tensor) -> Perplexity:
    result = Perplexity()
    result.update(logits, labels)
    return result


@pytest.mark.parametrize("cuts", [[11, 101], [1, 1, 110], [112]])
def test_micro_batches_accumulate_to_the_gradient_of_the_whole_batch(cuts: list[int]) -> None:
    """transformers #24725, PRs 34191, 34198; trl #2175; torchtune PR 1875; Lightning #20350.

    They averaged the means of micro-batches of unequal size.
    """
    hidden, weight = random(112, 4), random(6, 4, seed=1).requires_grad_()
    labels = torch.arange(112) % 6
    whole = cross_entropy(hidden @ weight.T, labels)
    (expected,) = torch.autograd.grad(whole, weight)
    tokens = int((labels != IGNORE_INDEX).sum())
    for h, y in zip(hidden.split(cuts), labels.split(cuts), strict=True):
        (summed_nll(h @ weight.T, y).nats / tokens).backward()
    torch.testing.assert_close(weight.grad, expected)


def test_the_mean_of_unequal_micro_batches_is_another_number() -> None:
    """The same threads: that their shortcut is wrong, so the test above can fail."""
    logits, labels = ragged([3, 5], "right")
    of_means = sum(cross_entropy(x, y) for x, y in zip(logits, labels, strict=True)) / 2
    assert abs(of_means - cross_entropy(logits, labels)) > 1e-3


def test_the_denominator_counts_scored_tokens_after_the_shift() -> None:
    """transformers PR 46204: the count was taken before the shift, one too many in each row."""
    ids, vocab = torch.tensor([[0, 1, 2, 3], [3, 2, 1, IGNORE_INDEX]]), 4
    nats, tokens = summed_nll(torch.zeros(2, 3, vocab), ids[:, 1:])
    assert tokens == 5
    assert (nats / tokens).item() == pytest.approx(math.log(vocab))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_batch_with_every_label_ignored_costs_zero_not_nan(dtype: torch.dtype) -> None:
    """pytorch #70348, #116349, #75181; nanochat #610: `mean` divides zero by zero."""
    logits = random(5, 6).to(dtype).requires_grad_()
    labels = torch.full((5,), IGNORE_INDEX)
    assert torch.nn.functional.cross_entropy(logits, labels).isnan()
    loss = cross_entropy(logits, labels)
    loss.backward()
    assert loss == 0
    assert logits.grad is not None
    assert (logits.grad == 0).all()


def test_backward_works_when_no_label_is_scored() -> None:
    """torchtune's chunked loss: it returns a constant without a graph, so backward() raises."""
    hidden, weight = random(5, 3).requires_grad_(), random(6, 3).requires_grad_()
    linear_cross_entropy(hidden, weight, torch.full((5,), IGNORE_INDEX)).backward()
    assert hidden.grad is not None
    assert weight.grad is not None
    assert (hidden.grad == 0).all()
    assert (weight.grad == 0).all()


def test_a_chunked_bfloat16_loss_does_not_depend_on_the_number_of_chunks() -> None:
    """torch 2.13 `linear_cross_entropy` sums chunks in bfloat16: 1024 of them halved the loss."""
    n, vocab = 4096, 1000
    hidden, weight = random(n, 16).bfloat16(), random(vocab, 16, seed=1).bfloat16()
    labels = torch.arange(n) % vocab
    exact = cross_entropy(hidden.double() @ weight.double().T, labels).item()
    losses = [
        linear_cross_entropy(hidden, weight, labels, chunk_rows=n // chunks).item()
        for chunks in (1, 16, 256, 1024)
    ]
    assert max(losses) - min(losses) < 1e-6 * exact
    assert losses[0] == pytest.approx(exact, rel=1e-3)


def test_the_loss_of_bfloat16_logits_is_not_rounded_to_bfloat16() -> None:
    """torch `F.cross_entropy` returns 15.4375 where 15.3936 is meant."""
    logits, labels = (8 * random(64, 1000)).bfloat16(), torch.arange(64)
    exact = cross_entropy(logits.double(), labels).item()
    assert abs(torch.nn.functional.cross_entropy(logits, labels).item() - exact) > 1e-3
    loss = cross_entropy(logits, labels)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("gap", [50, 100, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_confident_error_is_finite(gap: int, dtype: torch.dtype) -> None:
    """torchmetrics #2224, PR 2235: log(softmax) is infinite from a gap of about 100 logits."""
    logits = torch.tensor([[float(gap), 0.0]], dtype=dtype)
    result = measured(logits, torch.tensor([1]))
    assert result.nats == gap
    assert result.perplexity == pytest.approx(math.exp(gap))


def test_half_precision_over_a_large_vocabulary_is_finite() -> None:
    """torchmetrics Perplexity: float16 probabilities of 50257 tokens underflow to zero."""
    logits = random(4, 50_257).half()
    labels = logits.argmin(-1)
    exact = cross_entropy(logits.double(), labels).item()
    assert measured(logits, labels).nats == pytest.approx(exact, rel=1e-6)


def test_long_evaluations_do_not_lose_tokens() -> None:
    """torchmetrics Perplexity: a float32 count stops counting at 2^24."""
    result = Perplexity()
    for _ in range(100_000):
        result.add(8191 * 2.1, 8191)
    assert result.tokens == 8191 * 100_000
    assert result.nats == pytest.approx(2.1, rel=1e-9)


def test_corpus_perplexity_weights_by_token_not_by_text() -> None:
    """huggingface/evaluate #551, #688, PR 731: `mean_perplexity` averages perplexities of texts."""
    short, long = Perplexity(), Perplexity()
    short.add(8 * 2.0, 8)
    long.add(512 * 4.0, 512)
    assert (short + long).perplexity == pytest.approx(52.94, abs=5e-3)
    assert (short.perplexity + long.perplexity) / 2 == pytest.approx(30.99, abs=5e-3)
    assert nats_to_perplexity((short.nats + long.nats) / 2) == pytest.approx(20.09, abs=5e-3)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_batch_size_and_padding_side_do_not_change_perplexity(side: str, batch_size: int) -> None:
    """huggingface/evaluate #636, #573; mlx-lm PR 1855; transformers #2759: padding was scored."""
    lengths = [3, 7, 1, 5]
    alone = sum((measured(*ragged([n], "right")) for n in lengths), Perplexity())
    padded = sum(
        (
            measured(*ragged(lengths[i : i + batch_size], side))
            for i in range(0, len(lengths), batch_size)
        ),
        Perplexity(),
    )
    assert padded.tokens == alone.tokens == 16
    assert padded.nats == pytest.approx(alone.nats, rel=1e-6)


@pytest.mark.parametrize("window", [1, 2, 5, 8])
def test_sliding_windows_score_and_weight_each_token_once(window: int) -> None:
    """transformers #34138, #30975, #18887, #13202.

    Windows were weighted by labels lost to the shift, and at stride = window the first token of
    each window was never scored.
    """
    length = 23
    bigram = random(length, length)  # needs one token of context: any window is exact
    exact = cross_entropy(bigram[:-1], torch.arange(1, length)).item()
    for stride in range(1, window + 1):
        _, labels = sliding_windows(torch.arange(length), window, stride)
        assert sorted(labels[labels != IGNORE_INDEX].tolist()) == list(range(1, length))
        result = strided_perplexity(lambda ids: bigram[ids], torch.arange(length), window, stride)
        assert result.nats == pytest.approx(exact)


def test_a_loss_of_1000_nats_is_an_infinite_perplexity_and_no_exception() -> None:
    """fairseq #1833; transformers PR 11855; inspect_ai PR 5029: `math.exp` overflows."""
    result = Perplexity()
    result.add(1000.0, 1)
    assert result.perplexity == math.inf
    assert result.nats == 1000.0
    assert nats_to_perplexity(1000.0) == math.inf


def test_the_chunked_loss_passes_on_whatever_gradient_comes_from_above() -> None:
    """Liger-Kernel #968, #678, #1298: the fused loss ignored an upstream gradient per token."""
    hidden, weight = random(6, 3).requires_grad_(), random(5, 3, seed=1).requires_grad_()
    labels, importance = torch.tensor([0, 4, 2, IGNORE_INDEX, 1, 3]), [0.0, -1.0, 0.5, 1.0, 7.0, 2]

    def weighted(hidden: Tensor, weight: Tensor) -> Tensor:
        rows = zip(hidden.split(1), labels.split(1), importance, strict=True)
        return torch.stack([w * linear_summed_nll(h, weight, y).nats for h, y, w in rows]).sum()

    assert torch.autograd.gradcheck(weighted, (hidden, weight))


def test_bits_per_byte_and_perplexity_say_what_they_are_per() -> None:
    """lm-evaluation-harness #806, #814, #2301; lingua #46.

    Word- and token-normalised numbers shared a name, and truncated texts were divided by their
    full length: here numerator and denominator come from the same tokens, or reading fails.
    """
    kept, dropped = Perplexity(), Perplexity()
    kept.add(40.0, 10, n_bytes=50)
    assert kept.nats == 4.0
    assert kept.bits_per_byte == pytest.approx(40 / math.log(2) / 50)
    dropped.add(40.0, 10)
    with pytest.raises(ValueError, match="n_bytes"):
        _ = (kept + dropped).bits_per_byte


def test_bytes_are_what_a_text_is_measured_in_because_words_are_ambiguous() -> None:
    r"""lm-evaluation-harness `count_words` splits at \s+, so " a b " has 4 words and "" has 1."""
    assert [len(re.split(r"\s+", text)) for text in (" a b ", "")] == [4, 1]
    result = Perplexity()
    result.add(5.0, 5, n_bytes=len(b" a b "))
    assert result.bits_per_byte == pytest.approx(1 / math.log(2))
