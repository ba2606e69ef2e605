"""Rows of token ids: checks, lengths, and values moved along them.

Shapes: B rows, T positions, K runs of a row, W columns of a result; `_B1` is a column.
"""

import torch
from torch import Tensor


def covered(start_BK: Tensor, stop_BK: Tensor, columns: int) -> Tensor:
    """True at the columns that lie in any start..stop-1: bool (B, columns)."""
    change_BT = start_BK.new_zeros(len(start_BK), columns + 1)
    for sign, edge_BK in ((1, start_BK), (-1, stop_BK)):
        change_BT.scatter_add_(1, edge_BK.clamp(max=columns), torch.full_like(edge_BK, sign))
    return change_BT.cumsum(1)[:, :-1] > 0


def compact(values_BT: Tensor, keep_BT: Tensor, width: int) -> Tensor:
    """Each row's kept values moved to its front, 0 after them: (B, width)."""
    slot_BT = keep_BT.cumsum(1).mul_(keep_BT)
    out_BW = values_BT.new_zeros(len(values_BT), width + 1)  # the first column takes the others
    return out_BW.scatter_(1, slot_BT, values_BT)[:, 1:]


def width(lengths: Tensor, bound: int) -> int:
    """The longest of the lengths where reading it is free, on CPU; elsewhere their bound."""
    return int(lengths.max()) if lengths.is_cpu and lengths.numel() else bound


def any_seen(flags: Tensor) -> bool:
    """Whether any flag is set, where looking is free, on CPU; elsewhere True, as it may be."""
    return not flags.is_cpu or bool(flags.any())


def check_share(name: str, value: float) -> None:
    """Raise ValueError unless 0 <= value <= 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}: give a share between 0 and 1")


def check_ids(ids_BT: Tensor) -> None:
    """Raise ValueError unless these are rows of whole numbers."""
    if ids_BT.dim() != 2 or ids_BT.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"ids have shape {tuple(ids_BT.shape)} and dtype {ids_BT.dtype}: "
            "give int32 or int64 token ids (rows, positions)"
        )


def lengths_column(lengths: Tensor, rows: Tensor, columns: int) -> Tensor:
    """Lengths as a column on the device of the rows."""
    if lengths.shape != rows.shape[:1]:
        raise ValueError(
            f"lengths have shape {tuple(lengths.shape)} for {len(rows)} rows: give one for each"
        )
    if lengths.is_cpu and lengths.numel():
        for length in (int(lengths.min()), int(lengths.max())):
            if not 0 <= length <= columns:
                raise ValueError(f"a length is {length}: rows have 0 to {columns} tokens")
    return lengths.to(rows.device, torch.int64)[:, None]


def text_lengths(ids_BT: Tensor, lengths: Tensor | None) -> Tensor:
    """The rows' lengths as a column, all of them full without `lengths`; the ids are checked."""
    check_ids(ids_BT)
    columns = ids_BT.shape[1]
    if not columns:
        raise ValueError(f"ids have shape {tuple(ids_BT.shape)}: give at least one position")
    if lengths is None:
        return torch.full((len(ids_BT), 1), columns, device=ids_BT.device)
    return lengths_column(lengths, ids_BT, columns)
