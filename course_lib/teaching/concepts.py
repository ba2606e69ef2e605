"""The concept map of the course, drawn from its nodes and edges; each node links to its section."""

import html
from typing import NamedTuple

from course_lib.teaching.live import Page

__all__ = ["EDGES", "NODES", "concept_map"]

WIDTH, HEIGHT = 960, 590
BOX_WIDTH, BOX_HEIGHT, LINE = 150, 46, 16


class Node(NamedTuple):
    """A concept, the middle of its box, and the section of the primer that it links to."""

    x: int
    y: int
    section: str


NODES = {
    "raw text": Node(85, 290, "Why self-supervision"),
    "self-supervised|pretraining": Node(310, 290, "Why self-supervision"),
    "labels made|from the input": Node(195, 140, "Why self-supervision"),
    "grammar, facts,|knowledge": Node(195, 440, "Why self-supervision"),
    "causal LM|(GPT)": Node(560, 140, "Causal language modelling"),
    "masked LM|(BERT)": Node(560, 290, "Masked language modelling"),
    "span corruption|(T5, BART)": Node(560, 460, "Span corruption"),
    "chain rule": Node(440, 35, "From likelihood to loss"),
    "causal mask": Node(680, 35, "Causal language modelling"),
    "80/10/10 on 15%|of the tokens": Node(560, 375, "Masked language modelling"),
    "sentinels": Node(560, 560, "Span corruption"),
    "cross-entropy": Node(860, 290, "What is scored"),
    "perplexity": Node(860, 440, "Perplexity"),
}
EDGES = [
    ("raw text", "enables", "self-supervised|pretraining"),
    ("self-supervised|pretraining", "is defined by", "labels made|from the input"),
    ("self-supervised|pretraining", "makes a model learn", "grammar, facts,|knowledge"),
    ("self-supervised|pretraining", "by predicting what follows", "causal LM|(GPT)"),
    ("self-supervised|pretraining", "by filling in", "masked LM|(BERT)"),
    ("self-supervised|pretraining", "by writing spans", "span corruption|(T5, BART)"),
    ("causal LM|(GPT)", "follows from", "chain rule"),
    ("causal LM|(GPT)", "can't peek thanks to", "causal mask"),
    ("masked LM|(BERT)", "corrupts by", "80/10/10 on 15%|of the tokens"),
    ("span corruption|(T5, BART)", "marks gaps by", "sentinels"),
    ("causal LM|(GPT)", "scores next tokens by", "cross-entropy"),
    ("masked LM|(BERT)", "scores chosen tokens by", "cross-entropy"),
    ("span corruption|(T5, BART)", "scores spans by", "cross-entropy"),
    ("cross-entropy", "is exponentiated to", "perplexity"),
]


def concept_map() -> Page:
    """The map as an SVG figure whose boxes are links, and its edges as sentences.

    >>> print(concept_map().text.splitlines()[0])
    raw text enables self-supervised pretraining
    """
    sentences = [f"{a} {verb} {b}".replace("|", " ") for a, verb, b in EDGES]
    drawn = [_arrow(NODES[a], verb, NODES[b]) for a, verb, b in EDGES]
    drawn += [_box(name, node) for name, node in NODES.items()]
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" style="max-width:{WIDTH}px;width:100%" '
        f'aria-label="{html.escape("; ".join(sentences))}" font-family="sans-serif" '
        'font-size="13" text-anchor="middle"><defs><marker id="tip" orient="auto" refX="9" '
        'refY="4" markerWidth="9" markerHeight="8"><path d="M0,0 L9,4 L0,8 z" fill="#555"/>'
        f'</marker></defs><rect width="100%" height="100%" fill="white"/>{"".join(drawn)}</svg>'
    )
    return Page(svg, "\n".join(sentences))


def anchor(section: str) -> str:
    """Where JupyterLab puts a heading.

    >>> anchor("From likelihood to loss")
    '#From-likelihood-to-loss'
    """
    return "#" + section.replace(" ", "-")


def _box(name: str, node: Node) -> str:
    lines = name.split("|")
    top = node.y + 4 - LINE * (len(lines) - 1) / 2
    text = "".join(
        f'<text x="{node.x}" y="{top + LINE * i:g}" fill="black">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<a href="{anchor(node.section)}"><rect x="{node.x - BOX_WIDTH / 2:g}" '
        f'y="{node.y - BOX_HEIGHT / 2:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" '
        f'fill="#D6ECFA" stroke="#0072B2"/>{text}</a>'
    )


def _arrow(start: Node, verb: str, end: Node) -> str:
    dx, dy = end.x - start.x, end.y - start.y
    # from edge to edge of the boxes: the first side that the line between the middles meets
    reach = min(
        BOX_WIDTH / 2 / abs(dx) if dx else 1.0,
        BOX_HEIGHT / 2 / abs(dy) if dy else 1.0,
    )
    x1, y1 = start.x + dx * reach, start.y + dy * reach
    x2, y2 = end.x - dx * reach, end.y - dy * reach
    return (
        f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#555" '
        f'marker-end="url(#tip)"/><text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2:.0f}" '
        'font-size="11" fill="#333" stroke="white" stroke-width="4" '
        f'paint-order="stroke">{html.escape(verb)}</text>'
    )
