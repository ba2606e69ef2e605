"""What a submission shows, made safe to read: text in sight, pictures, HTML that only looks.

All of it is a student's word and may try to act for its reader: see docs/security.md.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner
from markupsafe import Markup
from nbformat import NotebookNode

from autograde.outputs import HTML
from autograde.page import visible

MAX_TEXT = 20_000  # characters of one text
MAX_HTML = 200_000
MAX_PICTURES = 1_500_000  # bytes of base64 on a page
PNG = "data:image/png;base64,"
TAGS = ["b", "br", "caption", "code", "dd", "details", "div", "dl", "dt", "em", "figcaption",
        "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "kbd", "li", "ol", "p",
        "pre", "s", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td",
        "tfoot", "th", "thead", "tr", "u", "ul"]  # fmt: skip
ATTRIBUTES = ("alt", "aria-label", "colspan", "dir", "lang", "open", "rowspan", "scope")
LOOKS = ["background", "background-color", "border", "border-collapse", "border-color",
         "border-spacing", "border-style", "border-width", "color", "font-style", "font-weight",
         "overflow-x", "padding", "text-align", "text-decoration", "vertical-align",
         "white-space"]  # fmt: skip
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Shown:
    """One thing to see on a page: lines of text, the source of a picture, or safe HTML."""

    kind: str  # text, prose, error, note, picture or html
    lines: tuple[str, ...] = ()
    picture: str = ""
    html: Markup | None = None

    @property
    def is_figure(self) -> bool:
        """Whether there is a picture or a table in it."""
        return bool(self.picture) or "<img" in (self.html or "") or "<table" in (self.html or "")

    @property
    def body(self) -> Markup:
        """The lines as HTML text."""
        return Markup("\n").join(visible(line) for line in self.lines)


@dataclass
class Room:
    """How much more a page takes."""

    pictures: int = MAX_PICTURES


def text(source: Any, kind: str = "text") -> Shown:
    """A text by lines, cut where it is too long."""
    source = _ANSI.sub("", str(source))
    lines = source[:MAX_TEXT].replace("\t", "    ").splitlines()
    if len(source) > MAX_TEXT:
        lines.append(f"[{len(source) - MAX_TEXT:,} more characters are not shown]")
    return Shown(kind, tuple(lines))


def outputs(cell: NotebookNode, room: Room) -> Iterator[Shown]:
    """What a cell put out."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            yield text(output.text)
        elif output.output_type == "error":
            yield text("\n".join(output.traceback) or f"{output.ename}: {output.evalue}", "error")
        else:
            yield _display(output.data, room)


def _display(data: dict[str, str], room: Room) -> Shown:
    """The best of what a display offers."""
    plain = text(data.get("text/plain", "something that can't be shown here"))
    picture = "".join(data.get("image/png", "").split())
    if picture and _is_png(picture):
        if len(picture) > room.pictures:
            return Shown("note", ("[a picture that is too large to show here]",))
        room.pictures -= len(picture)
        return Shown("picture", plain.lines, PNG + picture)
    source = data.get(HTML, "")
    if source and len(source) <= room.pictures + MAX_HTML:
        safe = re.sub("<img(?![^>]* alt=)", '<img alt="a picture"', _cleaner().clean(source))
        room.pictures -= sum(map(len, re.findall(PNG + '[^"]*', safe)))
        return Shown("html", html=Markup(safe))
    return plain


def _is_png(base64_text: str) -> bool:
    try:
        return base64.b64decode(base64_text, validate=True).startswith(b"\x89PNG\r\n\x1a\n")
    except (binascii.Error, ValueError):
        return False


@cache
def _cleaner() -> Cleaner:
    def allowed(tag: str, name: str, value: str) -> bool:
        if tag == "img" and name == "src":
            return value.startswith(PNG) and _is_png(value.removeprefix(PNG))
        if name == "style":  # no functions, as url(…), also not by way of an escape
            return not set("(\\") & set(value)
        return name in ATTRIBUTES

    return Cleaner(
        tags=TAGS,
        attributes=allowed,
        protocols=["data"],
        strip=True,
        css_sanitizer=CSSSanitizer(allowed_css_properties=LOOKS, allowed_svg_properties=[]),
    )
