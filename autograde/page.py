"""HTML pages that stand alone: one file, nothing fetched, and what others wrote is only text.

Templates escape every value; characters that can't be seen or that turn text around are shown as
escapes. A Content-Security-Policy in the page lets nothing run but the one script given here.
"""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

# found by this file, not by the package's name: a course has a folder autograde/ of its own
TEMPLATES = Path(__file__).with_name("templates")


def render(
    template: str, style: str, script: str = "", *, images: bool = False, **values: Any
) -> str:
    """The page of a template, with the text of its style and of its script in it.

    The template finds them as `style` and `script`, to be marked `|safe`, and the policy for its
    head as `policy`. `images` admits pictures that are in the page, and elements with a style.
    """
    policy = f"default-src 'none'; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    policy += f"; script-src {_hash(script)}" if script else ""
    policy += "; img-src data:; style-src-attr 'unsafe-inline'" if images else ""
    inline = {"policy": policy, "style": style, "script": script}
    return _environment().get_template(template).render(**values, **inline)


@cache
def part(name: str) -> str:
    """The text of a style or a script beside the templates."""
    return (TEMPLATES / name).read_text("utf-8")


def visible(text: str) -> str:
    """Text with every character in sight: those that are not print as their escapes.

    >>> print(visible("fine \\u202eenif\\x07"))
    fine \\u202eenif\\x07
    """
    return _UNUSUAL.sub(_escaped, text)


_UNUSUAL = re.compile(r"[^\x20-\x7e]")


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else ascii(character)[1:-1]


def _text_is_visible(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_text_is_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
