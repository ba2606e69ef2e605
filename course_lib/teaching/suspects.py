"""The any-rate masked objective, right and with one bug each, to try a test of it on (Level 5).

Shapes: B texts, T positions, V letters; the model's logits have one more, the last: [MASK].
Each suspect is called as `suspect(model, ids_BT, generator)` with `model(ids_BT, hidden_BT)` giving
logits (B, T, V + 1), and returns an estimate in nats per letter.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.losses import token_nll

__all__ = ["SUSPECTS"]

Model = Callable[[Tensor, Tensor], Tensor]
Suspect = Callable[[Model, Tensor, torch.Generator], Tensor]


def _hide(ids_BT: Tensor, generator: torch.Generator) -> Tensor:
    """1 to T positions of each text, every number and every choice equally likely."""
    B, T = ids_BT.shape
    n_hidden_B1 = torch.randint(1, T + 1, (B, 1), generator=generator)
    ranks_BT = torch.rand(B, T, generator=generator).argsort(1).argsort(1)
    return ranks_BT < n_hidden_B1


def _right(model: Model, ids_BT: Tensor, generator: torch.Generator) -> Tensor:
    hidden_BT = _hide(ids_BT, generator)
    nll_BT = token_nll(model(ids_BT, hidden_BT)[..., :-1], ids_BT)
    return ((nll_BT * hidden_BT).mean(1) / hidden_BT.double().mean(1)).mean()


def _no_weight(model: Model, ids_BT: Tensor, generator: torch.Generator) -> Tensor:
    hidden_BT = _hide(ids_BT, generator)
    nll_BT = token_nll(model(ids_BT, hidden_BT)[..., :-1], ids_BT)
    return (nll_BT * hidden_BT).mean()


def _fixed_rate(model: Model, ids_BT: Tensor, generator: torch.Generator) -> Tensor:
    rate = 0.15
    hidden_BT = torch.rand(ids_BT.shape, generator=generator) < rate
    nll_BT = token_nll(model(ids_BT, hidden_BT)[..., :-1], ids_BT)
    return (nll_BT * hidden_BT).mean() / rate


def _visible_scored(model: Model, ids_BT: Tensor, generator: torch.Generator) -> Tensor:
    hidden_BT = _hide(ids_BT, generator)
    nll_BT = token_nll(model(ids_BT, hidden_BT)[..., :-1], ids_BT)
    return (nll_BT.mean(1) / hidden_BT.double().mean(1)).mean()


def _mask_allowed(model: Model, ids_BT: Tensor, generator: torch.Generator) -> Tensor:
    hidden_BT = _hide(ids_BT, generator)
    nll_BT = token_nll(model(ids_BT, hidden_BT), ids_BT)
    return ((nll_BT * hidden_BT).mean(1) / hidden_BT.double().mean(1)).mean()


SUSPECTS: dict[str, Suspect] = {
    "right": _right,
    "no weight": _no_weight,
    "fixed rate": _fixed_rate,
    "visible scored": _visible_scored,
    "mask allowed": _mask_allowed,
}
