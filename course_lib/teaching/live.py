"""What a notebook shows as HTML, and as a widget where one can live: text that opens on a click."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipywidgets import Widget

__all__ = ["Live", "Page", "folded", "prose"]

WIDGET = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class Page:
    """A piece of HTML, and the text that says the same."""

    html: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True)
class Live:
    """A widget, and the page that stands for it: a front end shows the better one that it can.

    `page` must not depend on what the widget shows: a saved notebook and its re-run are compared
    by it.
    """

    widget: "Callable[[], Widget]"
    page: Page

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        shown = self.widget()._repr_mimebundle_()
        return {"text/plain": self.page.text, "text/html": self.page.html, WIDGET: shown[WIDGET]}


def prose(text: str) -> str:
    """Plain text as HTML, `code` in backticks.

    >>> prose("`p` < 1")
    '<code>p</code> &lt; 1'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def folded(summary: str, text: str) -> str:
    """A line of HTML that opens to show more.

    >>> folded("6 × 7?", "42")
    '<details><summary>6 × 7?</summary><p>42</p></details>'
    """
    return f"<details><summary>{prose(summary)}</summary><p>{prose(text)}</p></details>"
