"""Random numbers for corruptions: draws that may belong to an example, and subsets from them.

A draw is an integer of 63 bits. Ties are then out of the question, so `topk` of a draw is a
uniform subset, and one draw decides both whether a token is chosen and what becomes of it.

Shapes: B rows, N draws of a row, K numbers chosen from 0..N-1; `_B1` is a column.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class ExampleKeys:
    """Random numbers that belong to an example: a hash of (seed, epoch, index, stream, column).

    `index` (B,) is each row's index in the data set. A row's result then depends neither on the
    rest of the batch, nor on padding, nor on the number of workers, nor on the device.
    The hash is SplitMix64 (Steele, Lea, Flood 2014), one round for each part of the key.

    >>> from course_lib.corruption import iid_mask
    >>> eligible = torch.ones(2, 20, dtype=torch.bool)
    >>> both = iid_mask(eligible, 0.3, generator=ExampleKeys(0, 0, torch.tensor([7, 8])))
    >>> alone = iid_mask(eligible[1:], 0.3, generator=ExampleKeys(0, 0, torch.tensor([8])))
    >>> bool((both[1:] == alone).all())
    True
    """

    seed: int
    epoch: int
    index: Tensor

    def bits(self, columns: int, stream: int, device: torch.device) -> Tensor:
        """Uniform integers of 63 bits (B, columns); a longer row begins like a shorter one."""
        key = torch.tensor([self.seed], device=device)
        for part in (self.epoch, self.index.to(device, torch.int64)[:, None], stream):
            key = _mix(key) + part
        return _mix(_mix(key) + torch.arange(columns, device=device)) & LARGEST


Randomness = torch.Generator | ExampleKeys | None


def _mix(x: Tensor) -> Tensor:
    """One step of SplitMix64: a bijection of int64 whose output bits look independent."""
    # int64 wraps around; its shifts copy the sign, which the masks remove; constants above 2^63
    # are written as what they are in two's complement
    x = x - 0x61C8864680B583EB
    x = (x ^ ((x >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & (2**33 - 1))


def draws(like: Tensor, columns: int, generator: Randomness, stream: int = 0) -> Tensor:
    """Uniform integers of 63 bits (B, columns) for the rows of `like`, on its device."""
    if not isinstance(generator, ExampleKeys):
        empty = torch.empty(len(like), columns, dtype=torch.int64, device=like.device)
        return empty.random_(generator=generator)
    if generator.index.shape != like.shape[:1]:
        raise ValueError(
            f"index has shape {tuple(generator.index.shape)} for a batch of {len(like)} rows: "
            "give one example index for each row"
        )
    return generator.bits(columns, stream, like.device)


def threshold(rate: float) -> int:
    """The threshold under which a draw lies with probability `rate`."""
    return min(int(rate * 2**63), LARGEST)


def subsets(bits_BN: Tensor, size_B1: Tensor, count_B1: Tensor, columns: int) -> Tensor:
    """`count` distinct numbers out of 0..size-1 in random order, then `size` in columns left over.

    All subsets in all orders are equally likely. N must be at least the largest size.
    """
    outside_BN = torch.arange(bits_BN.shape[1], device=bits_BN.device) >= size_B1
    # sorted, since the order in which an unsorted topk returns them depends on their positions
    order_BK = bits_BN.masked_fill(outside_BN, LARGEST).topk(columns, largest=False).indices
    live_BK = torch.arange(columns, device=bits_BN.device) < count_B1
    return torch.where(live_BK, order_BK, size_B1)
