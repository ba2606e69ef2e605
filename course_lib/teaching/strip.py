"""Token strips: what a model reads and what it is scored on, as rows of coloured cells.

A strip shows itself at the end of a notebook cell and carries a text that says the same; no
meaning hangs on colour alone.
"""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.losses import IGNORE_INDEX
from course_lib.teaching.show import GREY, ORANGE, SKY, VERMILLION, Picture, new_figure, visible

__all__ = ["TokenStrip", "token_strip"]

INK = "#000000"


class Look(NamedTuple):
    """How a cell is drawn, always with dark ink: a strip brings its own light background."""

    colour: str
    weight: str = "normal"
    slant: str = "normal"


LOOKS = {
    "kept": Look(GREY),
    "special": Look(ORANGE, weight="bold"),
    "changed": Look(VERMILLION, slant="italic"),
    "scored": Look(SKY),
    "not scored": Look(GREY),
}
_SPECIAL = re.compile(r"\[[A-Z]+\]|<extra_id_\d+>")


@dataclass(frozen=True)
class TokenStrip:
    """Titled rows of (token, look) cells; a coloured table in a notebook."""

    rows: dict[str, list[tuple[str, str]]]

    @property
    def alt(self) -> str:
        """The rows in words."""
        return "; ".join(
            f"{title}: {' '.join(text for text, _ in cells)}" for title, cells in self.rows.items()
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr style="background:none"><th scope="row" style="text-align:right">{title}</th>'
            f"{''.join(_td(text, look) for text, look in cells)}</tr>"
            for title, cells in self.rows.items()
        )
        return (
            f'<div style="overflow-x:auto"><table aria-label="{html.escape(self.alt)}" '
            f'style="border-collapse:separate;border-spacing:2px">{rows}</table></div>'
        )

    def picture(self) -> Picture:
        """The same strip as a static figure."""
        columns = max(map(len, self.rows.values()))
        width = 0.3 + 0.25 * max(len(text) for cells in self.rows.values() for text, _ in cells)
        figure, axes = new_figure(0.35 * (width * columns + 4), 0.35 * len(self.rows))
        axes.set(xlim=(-4, width * columns), ylim=(len(self.rows), 0))
        axes.axis("off")
        for y, (title, cells) in enumerate(self.rows.items()):
            axes.text(-0.2, y + 0.5, title, ha="right", va="center")
            for x, (text, look) in enumerate(cells):
                colour, weight, slant = LOOKS[look]
                axes.broken_barh([(x * width, width - 0.1)], (y, 0.9), color=colour)
                drawn = axes.text((x + 0.5) * width - 0.05, y + 0.45, text, parse_math=False)
                drawn.set(color=INK, ha="center", va="center", weight=weight, style=slant)
        return Picture(figure, self.alt)


def _td(text: str, look: str) -> str:
    colour, weight, slant = LOOKS[look]
    style = f"color:{INK};background:{colour};font-weight:{weight};font-style:{slant}"
    return f'<td title="{look}" style="{style};text-align:center">{html.escape(text)}</td>'


def token_strip(
    inputs: Sequence[int] | Tensor,
    labels: Sequence[int] | Tensor,
    *,
    name: Callable[[int], str],
    tokens: Sequence[int] | Tensor = (),
    decoder_inputs: Sequence[int] | Tensor = (),
) -> TokenStrip:
    """What a model reads and what it is scored on, from one row of ids each: (S,), (T,).

    `name` gives the text of an id, such as `tokenizer.id_to_token`. `tokens` is the text before it
    was corrupted: where `inputs` is as long, ordinary tokens that differ are shown as changed.
    Special tokens are bold, changed ones italic; a label of -100 is a dash and isn't scored. An id
    without a name is shown as its number. Raises ValueError for anything but one row.

    >>> words = ["[MASK]", "the", "cat", "sat"]
    >>> token_strip([1, 0], [IGNORE_INDEX, 2], name=words.__getitem__).alt
    'inputs: the [MASK]; labels: – cat; scored: – ✓'
    """

    def cell(id: int, look: str = "kept") -> tuple[str, str]:
        if id == IGNORE_INDEX and look == "scored":
            return "–", "not scored"
        text = str(id) if id < 0 else name(id) or str(id)
        if look != "scored" and _SPECIAL.fullmatch(text):
            look = "special"
        return visible(text), look

    before, read, targets = _ids("tokens", tokens), _ids("inputs", inputs), _ids("labels", labels)
    was = before if len(before) == len(read) else read
    changes = ["kept" if id == old else "changed" for id, old in zip(read, was, strict=True)]
    rows = {
        "tokens": [cell(id) for id in before],
        "inputs": [cell(id, look) for id, look in zip(read, changes, strict=True)],
        "decoder inputs": [cell(id) for id in _ids("decoder_inputs", decoder_inputs)],
        "labels": [cell(id, "scored") for id in targets],
        "scored": [
            ("–", "not scored") if id == IGNORE_INDEX else ("✓", "scored") for id in targets
        ],
    }
    return TokenStrip({title: cells for title, cells in rows.items() if cells})


def _ids(what: str, ids: Sequence[int] | Tensor) -> list[int]:
    row = torch.as_tensor(ids)
    if row.ndim != 1:
        raise ValueError(f"{what} must be one row of ids, got shape {tuple(row.shape)}")
    return [int(id) for id in row.tolist()]
