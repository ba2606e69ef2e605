"""Cross-entropy in nats over the scored positions: per token, summed with its count, or the mean.

Shapes: B batch, T positions, V vocabulary, D width, N scored positions, C rows of one chunk;
`logits_V` and `hidden_D` stand for any leading shape, which the labels share.

Labels are aligned with the logits: logits at a position score the label at the same position.
Nothing here shifts; `course_lib.objectives` has done it. A label of `IGNORE_INDEX` is not scored.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy as fused_cross_entropy

__all__ = [
    "IGNORE_INDEX",
    "SummedNLL",
    "check_labels",
    "cross_entropy",
    "linear_cross_entropy",
    "linear_summed_nll",
    "summed_nll",
    "token_nll",
]

IGNORE_INDEX = -100


class SummedNLL(NamedTuple):
    """A negative log-likelihood summed over tokens, and the number of tokens in the sum.

    Sums add up over micro-batches, windows and machines; means do not. Under gradient
    accumulation divide each `nats` by the `tokens` of the *whole* batch.

    >>> a = SummedNLL(nats=torch.tensor(6.0), tokens=torch.tensor(2))
    >>> b = SummedNLL(nats=torch.tensor(2.0), tokens=torch.tensor(6))
    >>> (a.nats + b.nats) / (a.tokens + b.tokens), (a.mean + b.mean) / 2  # right, wrong
    (tensor(1.), tensor(1.6667))
    """

    nats: Tensor
    tokens: Tensor

    @property
    def mean(self) -> Tensor:
        """Nats per token; 0.0, with zero gradients, where no token was scored."""
        return self.nats / self.tokens.clamp(min=1)


def token_nll(logits_V: Tensor, labels: Tensor) -> Tensor:
    """-log p(label) in nats at every position, 0 where the label is `IGNORE_INDEX`.

    `logits_V` (..., V) and `labels` (...) give (...), in float32 for half-precision logits and in
    the logits' own dtype otherwise. A label given probability 0 costs inf: nothing is clamped.
    An ignored position has no influence on the value, whatever its logits (NaN included).
    Errors are those of `check_labels`.

    >>> p = torch.tensor([[0.5, 0.5], [0.75, 0.25], [0.1, 0.9]])
    >>> token_nll(p.log(), torch.tensor([0, 1, IGNORE_INDEX]))
    tensor([0.6931, 1.3863, 0.0000])
    """
    check_labels(labels, logits_V.shape, vocab_size=logits_V.shape[-1])
    return checked_nll(logits_V, labels)


def checked_nll(logits_V: Tensor, labels: Tensor) -> Tensor:
    """`token_nll` for labels that were checked."""
    flat_NV = logits_V.reshape(-1, logits_V.shape[-1]).to(_wide(logits_V.dtype))
    # fused and shifted by each row's maximum: logsumexp(x) - x[label], never log(softmax(x)),
    # which is log(0) as soon as the label's logit lies 104 below the largest
    nll_N = fused_cross_entropy(
        flat_NV, labels.flatten().long(), ignore_index=IGNORE_INDEX, reduction="none"
    )
    return nll_N.view_as(labels)


def summed_nll(logits_V: Tensor, labels: Tensor) -> SummedNLL:
    """The nats of all scored positions, and how many there are; see `token_nll`.

    >>> summed_nll(torch.zeros(2, 3, 4), torch.tensor([[0, 1, -100], [2, -100, -100]]))
    SummedNLL(nats=tensor(4.1589), tokens=tensor(3))
    """
    return SummedNLL(token_nll(logits_V, labels).sum(), (labels != IGNORE_INDEX).sum())


def cross_entropy(logits_V: Tensor, labels: Tensor) -> Tensor:
    """Mean nats over the scored positions: 0.0 with zero gradients where there are none.

    >>> p = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    >>> cross_entropy(p.log(), torch.tensor([0, 0]))  # -(ln 0.5 + ln 0.25) / 2
    tensor(1.0397)
    """
    return summed_nll(logits_V, labels).mean


def linear_summed_nll(
    hidden_D: Tensor,
    weight_VD: Tensor,
    labels: Tensor,
    *,
    chunk_rows: int = 256,
    at_most: int | None = None,
) -> SummedNLL:
    """`summed_nll(hidden_D @ weight_VD.T, labels)` without ever holding those logits.

    Only scored rows are projected, `chunk_rows` at a time, through one buffer of chunk_rows x V;
    their gradients are computed in the same pass. The value does not depend on `chunk_rows`: fewer
    rows need less memory, more rows rewrite the gradient of the weight less often. Per-row losses
    and the gradient of the weight are accumulated in float32 for half-precision inputs.
    Differentiable once. Errors are those of `check_labels`, and ValueError for mixed dtypes.

    at_most: a bound on the number of scored positions. A GPU, which nothing here waits for, can
      leave out the other rows only if it is given; more scored positions are an error there.

    The same idea is in torchtune's chunked loss, Liger-Kernel and Apple's cut cross-entropy.

    >>> hidden, weight = torch.eye(3), torch.zeros(5, 3)
    >>> linear_summed_nll(hidden, weight, torch.tensor([4, -100, 0]))  # 2 ln 5
    SummedNLL(nats=tensor(3.2189), tokens=tensor(2))
    """
    check_labels(labels, hidden_D.shape, vocab_size=weight_VD.shape[0])
    if hidden_D.dtype != weight_VD.dtype:
        raise ValueError(
            f"hidden is {hidden_D.dtype} and weight is {weight_VD.dtype}: cast one of them"
        )
    if chunk_rows < 1:
        raise ValueError(f"chunk_rows is {chunk_rows}: give at least 1, or 256 to be fast")
    hidden_ND = hidden_D.reshape(-1, hidden_D.shape[-1])
    labels_N, tokens = labels.flatten().long(), (labels != IGNORE_INDEX).sum()
    rows_N = _scored_rows(labels_N, tokens, at_most)
    if rows_N is not None:
        hidden_ND, labels_N = hidden_ND.index_select(0, rows_N), labels_N.index_select(0, rows_N)
    # inside a Function gradients are always off and its inputs look the same under no_grad
    wanted = [torch.is_grad_enabled() and x.requires_grad for x in (hidden_ND, weight_VD)]
    apply: Callable[..., Tensor] = _LinearNLL.apply
    nats = apply(hidden_ND, weight_VD, labels_N, chunk_rows, *wanted)
    return SummedNLL(nats, tokens)


def linear_cross_entropy(
    hidden_D: Tensor,
    weight_VD: Tensor,
    labels: Tensor,
    *,
    chunk_rows: int = 256,
    at_most: int | None = None,
) -> Tensor:
    """`cross_entropy(hidden_D @ weight_VD.T, labels)` without its logits; see `linear_summed_nll`.

    >>> linear_cross_entropy(torch.eye(3), torch.zeros(5, 3), torch.tensor([4, -100, 0]))
    tensor(1.6094)
    """
    return linear_summed_nll(
        hidden_D, weight_VD, labels, chunk_rows=chunk_rows, at_most=at_most
    ).mean


def _scored_rows(labels_N: Tensor, tokens: Tensor, at_most: int | None) -> Tensor | None:
    """The rows to project: on CPU the scored ones, elsewhere a fixed number; None: all."""
    scored_N = labels_N != IGNORE_INDEX
    if labels_N.is_cpu:
        return scored_N.nonzero().squeeze(-1)
    if at_most is None:
        return None
    torch._assert_async(tokens <= at_most)
    return scored_N.to(torch.int8).argsort(descending=True, stable=True)[:at_most]


class _LinearNLL(torch.autograd.Function):
    """Summed nll of a projection; forward also computes both gradients, for an upstream of 1."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        labels_N: Tensor,
        chunk_rows: int,
        wants_hidden: bool,
        wants_weight: bool,
    ) -> Tensor:
        wide = _wide(hidden_ND.dtype)
        nll_N = hidden_ND.new_empty(len(hidden_ND), dtype=wide)
        grad_hidden_ND = torch.empty_like(hidden_ND) if wants_hidden else None
        grad_weight_VD = torch.zeros_like(weight_VD, dtype=wide) if wants_weight else None
        buffer_CV = hidden_ND.new_empty(min(chunk_rows, len(hidden_ND)), len(weight_VD), dtype=wide)
        for start in range(0, len(hidden_ND), chunk_rows):
            rows = slice(start, start + chunk_rows)
            scored_C1 = labels_N[rows, None] != IGNORE_INDEX
            hidden_CD = hidden_ND[rows].where(scored_C1, 0)  # what is ignored may be NaN
            labels_C1 = labels_N[rows, None].where(scored_C1, 0)
            logits_CV = _project(hidden_CD, weight_VD, out_CV=buffer_CV[: len(hidden_CD)])
            nll_N[rows] = _softmax_(logits_CV, labels_C1, scored_C1)
            if not (wants_hidden or wants_weight):
                continue
            dlogits_CV = logits_CV.scatter_add_(1, labels_C1, -scored_C1.to(wide))
            if grad_weight_VD is not None:
                _add_product_(grad_weight_VD, dlogits_CV, hidden_CD)
            if grad_hidden_ND is not None:
                grad_hidden_ND[rows] = dlogits_CV.to(weight_VD.dtype) @ weight_VD
        del buffer_CV  # before the cast below asks for memory
        if grad_weight_VD is not None:
            grad_weight_VD = grad_weight_VD.to(weight_VD.dtype)
        ctx.save_for_backward(grad_hidden_ND, grad_weight_VD)
        return nll_N.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        # one number scales every token. Scaled in the wide dtype: 1/N is too coarse in bfloat16
        # and too small in float16. On a copy: backward(retain_graph=True) comes here again.
        grads = [
            None if g is None else g.to(upstream.dtype, copy=True).mul_(upstream).to(g.dtype)
            for g in ctx.saved_tensors
        ]
        return *grads, None, None, None, None


def _project(hidden_CD: Tensor, weight_VD: Tensor, out_CV: Tensor) -> Tensor:
    """The chunk's logits in the wide dtype, in the buffer."""
    if hidden_CD.dtype == out_CV.dtype:
        return torch.mm(hidden_CD, weight_VD.T, out=out_CV)
    return out_CV.copy_(hidden_CD @ weight_VD.T)


def _softmax_(logits_CV: Tensor, labels_C1: Tensor, scored_C1: Tensor) -> Tensor:
    """The nll of each row; the logits become probabilities in place, so that nothing is copied.

    Of a row that is not scored both are 0.
    """
    target_C1 = logits_CV.gather(1, labels_C1)
    largest_C1 = logits_CV.amax(1, keepdim=True)
    total_C1 = logits_CV.sub_(largest_C1).exp_().sum(1, keepdim=True)
    logits_CV.div_(total_C1.where(scored_C1, torch.inf))
    return (total_C1.log() + largest_C1 - target_C1).where(scored_C1, 0).squeeze(1)


def _add_product_(grad_weight_VD: Tensor, dlogits_CV: Tensor, hidden_CD: Tensor) -> None:
    """grad_weight += dlogits.T @ hidden, summed in float32 or wider."""
    if hidden_CD.dtype == grad_weight_VD.dtype or hidden_CD.is_cpu:
        grad_weight_VD.addmm_(dlogits_CV.T, hidden_CD.to(grad_weight_VD.dtype))
    else:  # a GPU multiplies half precision ten times faster; a CPU would lose that in the adding
        grad_weight_VD += dlogits_CV.to(hidden_CD.dtype).T @ hidden_CD


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: never below float32."""
    return torch.promote_types(dtype, torch.float32)


def check_labels(labels: Tensor, shape: torch.Size, vocab_size: int) -> None:
    """Raise ValueError unless the labels fit `shape` (..., V or D) and, on CPU, the vocabulary.

    On a GPU the second check would wait for the device, whose own assertion takes its place.
    """
    if labels.shape != shape[:-1]:
        raise ValueError(
            f"labels have shape {tuple(labels.shape)} and the model's output {tuple(shape)}: "
            "give one label for each position, so the same shape without the last size"
        )
    if labels.is_cpu:
        outside = labels[(labels != IGNORE_INDEX) & ((labels < 0) | (labels >= vocab_size))]
        if len(outside):
            raise ValueError(
                f"label {outside[0].item()} is not in the vocabulary 0..{vocab_size - 1}: "
                f"mark positions that are not scored with {IGNORE_INDEX}"
            )
