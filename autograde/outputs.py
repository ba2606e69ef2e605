"""What a cell put out, as a notebook keeps it: whatever a student's process sends ends up valid."""

import re
from typing import Any

# No HTML under its own name: it would act for whoever reads it, and formgrader's pages can change
# grades. `HTML` is a name that nothing renders but the feedback, which makes it safe first.
HTML = "application/vnd.autograde.html"
KEPT = {mime: mime for mime in ("text/plain", "text/latex", "image/png", "image/svg+xml")}
KEPT["text/html"] = HTML
STREAMS = ("stdout", "stderr")


def add_output(outputs: list[dict[str, Any]], sent: Any) -> None:
    """Add an output to those of its cell; a text joins the one before, `clear` removes them all.

    What is no output is left out. Characters that no file can hold are replaced.

    >>> outputs = []
    >>> for text in ("a", "b"):
    ...     add_output(outputs, {"output_type": "stream", "name": "stdout", "text": text})
    >>> outputs
    [{'output_type': 'stream', 'name': 'stdout', 'text': 'ab'}]
    """
    if type(sent) is not dict:
        return
    kind, name, data = sent.get("output_type"), sent.get("name"), sent.get("data")
    if kind == "clear":
        outputs.clear()
    elif kind == "stream" and name in STREAMS:
        text, last = clean(sent.get("text")), outputs[-1] if outputs else {}
        if last.get("name") == name:
            last["text"] += text
        else:
            outputs.append({"output_type": "stream", "name": name, "text": text})
    elif kind == "display_data" and type(data) is dict:
        bundle = {kept: clean(data[mime]) for mime, kept in KEPT.items() if mime in data}
        outputs.append({"output_type": "display_data", "data": bundle, "metadata": {}})
    elif kind == "error":
        lines = sent.get("traceback")
        trace = [clean(line) for line in lines] if type(lines) is list else []
        shown = {key: clean(sent.get(key)) for key in ("ename", "evalue")}
        outputs.append({"output_type": "error", **shown, "traceback": trace})


def inert(markdown: str) -> str:
    """Markdown whose HTML tags are read as text: an invisible character follows each "<" of one.

    >>> inert("p < q <b>").encode("ascii", "namereplace")
    b'p < q <\\\\N{WORD JOINER}b>'
    """
    return re.sub("<(?=[A-Za-z/!?])", "<\N{WORD JOINER}", markdown)


def clean(sent: Any) -> str:
    """Text that a file and a class name can hold: no lone surrogates, no zeros."""
    return str(sent).encode("utf-8", "replace").decode().replace("\0", "")
