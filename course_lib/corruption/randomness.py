"""Random numbers for corruptions: draws that may belong to an example, and subsets from them.

A draw is an integer of 63 bits. Ties are then out of the question, so a row's smallest draws are
a uniform subset, and one draw decides both whether a token is chosen and what becomes of it.

Shapes: B rows, N draws of a row, K numbers chosen from 0..N-1; `_B1` is a column.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from course_lib.corruption.rows import any_seen

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
        if like.is_cpu:  # NumPy's SFC64, seeded by the generator, takes half of torch's time
            seed = torch.empty((), dtype=torch.int64).random_(generator=generator)
            bits_N = np.random.SFC64(int(seed)).random_raw(len(like) * columns).view(np.int64)
            return torch.from_numpy(bits_N).bitwise_and_(LARGEST).view(len(like), columns)
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


def smallest_(bits_BN: Tensor, columns: int) -> Tensor:
    """Where a row's smallest draws are, in their order: (B, columns). Overwrites the draws.

    >>> smallest_(torch.tensor([[2**40, 2**62, 2**20, 2**50]]), 2)
    tensor([[2, 0]])
    """
    # with its column in a draw's last bits there are no ties, and no indices to carry along; NumPy
    # partitions rows of such numbers six times faster than topk does on CPU
    below = 1 << bits_BN.shape[1].bit_length()
    column_N = torch.arange(bits_BN.shape[1], device=bits_BN.device)
    packed_BN = bits_BN.bitwise_and_(-below).bitwise_or_(column_N)
    if columns and bits_BN.is_cpu:
        parted_BN = packed_BN.numpy()
        parted_BN.partition(columns - 1, axis=1)
        packed_BK = torch.from_numpy(np.sort(parted_BN[:, :columns], axis=1))
    else:
        packed_BK = packed_BN.topk(columns, largest=False).values
    return packed_BK.bitwise_and_(below - 1)


def subsets_(bits_BN: Tensor, size_B1: Tensor, count_B1: Tensor, columns: int) -> Tensor:
    """`count` distinct numbers out of 0..size-1 in random order, then `size` in columns left over.

    All subsets in all orders are equally likely. N must be at least the largest size. Overwrites
    the draws.
    """
    if any_seen(size_B1 < bits_BN.shape[1]):
        outside_BN = torch.arange(bits_BN.shape[1], device=bits_BN.device) >= size_B1
        bits_BN = bits_BN.masked_fill_(outside_BN, LARGEST)
    order_BK = smallest_(bits_BN, columns)
    live_BK = torch.arange(columns, device=bits_BN.device) < count_B1
    return torch.where(live_BK, order_BK, size_B1)


def sorted_rows(numbers_BK: Tensor) -> Tensor:
    """Each row's numbers in order; the CPU's sort of torch has its price for small rows."""
    if numbers_BK.is_cpu:
        return torch.from_numpy(np.sort(numbers_BK.numpy(), axis=1))
    return numbers_BK.sort(1).values
