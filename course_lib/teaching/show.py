"""Figures of an objective at work: attention masks, losses by position, perplexities.

Each shows itself at the end of a notebook cell and carries a text that says the same for
people who can't see it. Colours are Okabe and Ito's (told apart with any colour vision), and no
meaning hangs on colour alone. matplotlib and ipywidgets are imported when something is drawn.
"""

from __future__ import annotations

import base64
import html
import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ipywidgets import Widget
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Picture",
    "attention_mask",
    "loss_per_position",
    "perplexity_curve",
    "perplexity_slider",
]

ORANGE, SKY, GREEN, BLUE, VERMILLION = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00"
GREY = "#EEEEEE"
MARKS = [("o", BLUE), ("s", VERMILLION), ("D", GREEN), ("^", ORANGE)]
DOTS = [(1.04, 2.83), (1.61, 5.0), (2.5, 12.2)]  # (nats, perplexity) of exercises L2.1, L2.2, L5.2


@dataclass(frozen=True)
class Picture:
    """A matplotlib figure and what it says in words; shows itself in a notebook."""

    figure: Figure
    alt: str

    def png(self) -> bytes:
        """The figure as a PNG, with `alt` as its description."""
        buffer = io.BytesIO()
        with warnings.catch_warnings():  # a character without a glyph is drawn as a box: fine
            warnings.filterwarnings("ignore", message="Glyph")
            metadata = {"Description": self.alt, "Software": None}
            self.figure.savefig(buffer, dpi=100, bbox_inches="tight", metadata=metadata)
        return buffer.getvalue()

    def _repr_html_(self) -> str:
        # an <img>, for JupyterLab drops the alt text of a bare PNG
        png = base64.b64encode(self.png()).decode()
        return f'<img alt="{html.escape(self.alt)}" src="data:image/png;base64,{png}">'


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of its own, in inches: pyplot would keep it, and choose a backend for everyone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def visible(text: str) -> str:
    """The text with its spaces and line ends as signs."""
    return text.replace(" ", "·").replace("\n", "⏎")


def perplexity_curve(loss: float | None = None) -> Picture:
    """PPL = e^L over the loss in nats (below) and bits (above), with three losses of the course.

    `loss`, in nats, is marked on the curve as well. Raises ValueError if it is outside 0..3.

    >>> perplexity_curve(math.log(8)).alt.split("Marked: ")[1]
    '2.08 nats = 3.00 bits: perplexity 8.00.'
    """
    if loss is not None and not 0 <= loss <= 3:
        raise ValueError(f"loss={loss}: the curve shows 0 to 3 nats")
    figure, axes = new_figure(6, 4)
    nats = torch.linspace(0, 3, 200)
    axes.plot(nats.tolist(), nats.exp().tolist(), color=BLUE)
    axes.set(xlabel="loss L (nats per token)", ylabel="perplexity", xlim=(0, 3), ylim=(0, 21))
    axes.twiny().set(xlabel="loss (bits per token)", xlim=(0, 3 / math.log(2)))
    for x, y in DOTS:
        axes.plot(x, y, "o", color=VERMILLION)
        axes.annotate(f"({x:g}, {y:g})", (x, y), (-8, 4), textcoords="offset points", ha="right")
    alt = "Perplexity is e to the loss: 1 at 0 nats, 20.09 at 3 nats. Dots (nats, perplexity): "
    alt += ", ".join(f"({x:g}, {y:g})" for x, y in DOTS) + "."
    if loss is not None:
        ppl = math.exp(loss)
        reading = f"{loss:.2f} nats = {loss / math.log(2):.2f} bits: perplexity {ppl:.2f}"
        axes.plot([loss, loss, 0], [0, ppl, ppl], linestyle="--", color=ORANGE)
        axes.text(0.1, 19, reading)
        alt += f" Marked: {reading}."
    return Picture(figure, alt)


def perplexity_slider() -> Widget:
    """`perplexity_curve` with a slider for the loss. Needs a live kernel to move."""
    from ipywidgets import HTML, FloatSlider, VBox

    slider = FloatSlider(value=DOTS[0][0], min=0, max=3, step=0.01, description="loss, nats")
    curve = HTML()

    def draw(_: object = None) -> None:
        curve.value = perplexity_curve(slider.value)._repr_html_()

    slider.observe(draw, "value")
    draw()
    return VBox([slider, curve])


def attention_mask(mask_QK: Tensor, queries: Sequence[str], keys: Sequence[str]) -> Picture:
    """Which query (row) may read which key (column): filled cells of a bool mask (Q, K).

    Raises ValueError if the mask isn't bool or the names don't fit it.

    >>> attention_mask(torch.ones(2, 2, dtype=torch.bool).tril(), "ab", "ab").alt
    'Attention mask. a reads a; b reads a b.'
    """
    if mask_QK.dtype != torch.bool or mask_QK.shape != (len(queries), len(keys)):
        raise ValueError(
            f"expected a bool mask of shape {(len(queries), len(keys))} for these names, "
            f"got {mask_QK.dtype} of shape {tuple(mask_QK.shape)}"
        )
    from matplotlib.colors import ListedColormap

    figure, axes = new_figure(1.5 + 0.3 * len(keys), 1.5 + 0.3 * len(queries))
    colours = ListedColormap([GREY, BLUE])
    axes.pcolormesh(mask_QK.int().cpu(), cmap=colours, vmin=0, vmax=1, edgecolors="white", lw=2)
    axes.set(xlim=(0, len(keys)), ylim=(len(queries), 0), xlabel="key: is read")
    axes.set(ylabel="query: reads", aspect="equal")
    for set_ticks, names in ((axes.set_xticks, keys), (axes.set_yticks, queries)):
        middles = [i + 0.5 for i in range(len(names))]
        set_ticks(middles, [visible(name) for name in names], parse_math=False)
    axes.tick_params(axis="x", labelrotation=90)
    reads = [
        f"{query} reads {' '.join(key for key, may in zip(keys, row, strict=True) if may) or '–'}"
        for query, row in zip(queries, mask_QK.tolist(), strict=True)
    ]
    return Picture(figure, "Attention mask. " + "; ".join(reads) + ".")


def loss_per_position(
    losses: Mapping[str, Sequence[float] | Tensor], *, uniform: float | None = None
) -> Picture:
    """Mean loss in nats at each position of a sequence, one line a model: name -> (T,).

    `uniform` adds the loss of a uniform guess, ln V, to compare with. Raises ValueError for more
    lines than there are markers to tell them apart by.

    >>> loss_per_position({"no mask": [0.01, 0.01, 2.99]}).alt
    'Loss per position, in nats. no mask: 0.01 0.01 2.99.'
    """
    if not 1 <= len(losses) <= len(MARKS):
        raise ValueError(f"{len(losses)} lines: from 1 to {len(MARKS)} can be told apart")
    figure, axes = new_figure(6, 3.5)
    alt = ["Loss per position, in nats."]
    for (model, values), (marker, colour) in zip(losses.items(), MARKS, strict=False):
        nats = torch.as_tensor(values).tolist()
        axes.plot(range(1, len(nats) + 1), nats, marker=marker, color=colour, label=model)
        listed = " ".join(f"{value:.2f}" for value in nats)
        alt.append(f"{model}: {listed}.")
    if uniform is not None:
        axes.axhline(uniform, linestyle=":", color="grey", label="uniform guess, ln V")
        alt.append(f"A uniform guess costs {uniform:.2f}.")
    axes.set(xlabel="position", ylabel="loss (nats)", ylim=(0, None))
    legend = figure.legend(loc="outside upper center", ncols=3, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return Picture(figure, " ".join(alt))
