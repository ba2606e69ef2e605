"""Pictures show the numbers they are given, say the same in words, and need no colour vision."""

import io
import math
import subprocess
import sys
import warnings
from html.parser import HTMLParser

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from course_lib.losses import IGNORE_INDEX
from course_lib.teaching.show import (
    DOTS,
    MARKS,
    Picture,
    attention_mask,
    loss_per_position,
    perplexity_curve,
    perplexity_slider,
)
from course_lib.teaching.strip import INK, LOOKS, TokenStrip, token_strip

WORDS = ["[PAD]", "[MASK]", "the", "cat", "sat", "dog", "<extra_id_0>"]
few = settings(max_examples=25, deadline=None)


class Table(HTMLParser):
    """The cells of an HTML table, its tags and the attributes of each."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.rows[-1][-1] += data

    def attribute(self, tag: str, name: str) -> str | None:
        return next(attributes[name] for found, attributes in self.tags if found == tag)


def strip_of(texts: list[str]) -> TokenStrip:
    ids = list(range(len(texts)))
    return token_strip(ids, ids, name=texts.__getitem__)


def looks(strip: TokenStrip, row: str) -> list[str]:
    return [look for _, look in strip.rows[row]]


def words(picture: Picture) -> set[str]:
    return {text.get_text() for text in picture.figure.findobj(lambda a: hasattr(a, "get_text"))}


# --- token strips ---------------------------------------------------------------------------------


def test_a_strip_tells_masked_changed_and_kept_tokens_apart() -> None:
    tokens = torch.tensor([2, 3, 4, 5])
    labels = torch.tensor([IGNORE_INDEX, 3, 4, 5])
    strip = token_strip(torch.tensor([2, 1, 2, 5]), labels, tokens=tokens, name=WORDS.__getitem__)
    assert list(strip.rows) == ["tokens", "inputs", "labels", "scored"]
    assert looks(strip, "tokens") == ["kept"] * 4
    assert looks(strip, "inputs") == ["kept", "special", "changed", "kept"]
    assert strip.rows["labels"][0] == ("–", "not scored")
    assert strip.rows["labels"][3] == ("dog", "scored")  # unchanged, and scored all the same
    assert strip.rows["scored"] == [("–", "not scored")] + [("✓", "scored")] * 3


def test_a_strip_marks_no_change_where_nothing_is_aligned() -> None:
    strip = token_strip(
        [2, 6], [6, 3, 4], tokens=[2, 3, 4], decoder_inputs=[0, 6, 3], name=WORDS.__getitem__
    )
    assert looks(strip, "inputs") == ["kept", "special"]
    assert looks(strip, "decoder inputs") == ["special", "special", "kept"]
    assert looks(strip, "labels") == ["scored"] * 3
    assert looks(token_strip([2, 3], [3, 4], name=WORDS.__getitem__), "inputs") == ["kept"] * 2


@few
@given(st.lists(st.text(min_size=1, max_size=8).filter(str.isprintable), min_size=1, max_size=5))
@example(["<script>alert(1)</script>", '"', "'", "&amp;", "$\\frac{", "$x$", "日本", "_", "🐌"])
def test_any_text_is_shown_as_it_is(texts: list[str]) -> None:
    strip = strip_of(texts)
    table = Table(strip._repr_html_())
    shown = [text.replace(" ", "·") for text in texts]
    assert table.rows[0] == ["inputs", *shown]
    assert table.attribute("table", "aria-label") == strip.alt
    assert {tag for tag, _ in table.tags} <= {"div", "table", "tr", "th", "td"}


def test_spaces_and_line_ends_are_visible() -> None:
    assert strip_of([" a", "\n"]).rows["inputs"] == [("·a", "kept"), ("⏎", "kept")]


def test_an_id_without_a_name_is_shown_as_its_number() -> None:
    strip = token_strip([IGNORE_INDEX, 9], [9], name={9: None}.get)  # type: ignore[arg-type]
    assert [text for text, _ in strip.rows["inputs"]] == ["-100", "9"]


def test_the_static_strip_shows_the_same_cells() -> None:
    strip = token_strip([2, 1], [IGNORE_INDEX, 3], tokens=[2, 3], name=WORDS.__getitem__)
    picture = strip.picture()
    assert (
        picture.alt
        == strip.alt
        == ("tokens: the cat; inputs: the [MASK]; labels: – cat; scored: – ✓")
    )
    cells = {text for row in strip.rows.values() for text, _ in row}
    assert cells | set(strip.rows) <= words(picture)


def test_a_batch_is_not_a_row() -> None:
    with pytest.raises(ValueError, match=r"labels must be one row of ids, got shape \(1, 2\)"):
        token_strip([2, 3], torch.tensor([[2, 3]]), name=WORDS.__getitem__)


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance of #rrggbb."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("look", LOOKS)
def test_text_on_every_cell_has_contrast_on_light_and_dark_pages(look: str) -> None:
    # ink and background both come with the cell, so the page has no say (4.5 is WCAG's AA)
    assert (luminance(LOOKS[look].colour) + 0.05) / (luminance(INK) + 0.05) > 4.5
    text = {"kept": "cat", "special": "[MASK]"}.get(look, "cat")
    cells = TokenStrip({"inputs": [(text, look)]})._repr_html_()
    assert f"color:{INK};background:{LOOKS[look].colour}" in cells


def test_what_differs_in_colour_also_differs_in_form() -> None:
    strip = token_strip([2, 1, 3], [2, IGNORE_INDEX, 4], tokens=[2, 3, 4], name=WORDS.__getitem__)
    table = Table(strip._repr_html_())
    styles = [a["style"] or "" for tag, a in table.tags if tag == "td"][3:6]  # the inputs
    forms = {style.split("font-weight")[1] for style in styles}
    assert len(forms) == 3
    assert len({mark for mark, _ in MARKS}) == len(MARKS)


# --- figures --------------------------------------------------------------------------------------

EVERY_PICTURE = {
    "strip": lambda: strip_of(["$\\frac{$", "日本", "<b>"]).picture(),
    "curve": perplexity_curve,
    "mask": lambda: attention_mask(torch.ones(2, 2, dtype=torch.bool), ["$\\x$", "日"], ["_", '"']),
    "losses": lambda: loss_per_position({"$\\frac{$": [1.0, 2.0]}, uniform=2.0),
}


@pytest.mark.parametrize("kind", EVERY_PICTURE)
def test_every_picture_carries_its_words_and_draws_without_a_warning(kind: str) -> None:
    picture = EVERY_PICTURE[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = Image.open(io.BytesIO(picture.png()))
    assert image.info["Description"] == picture.alt
    assert Table(picture._repr_html_()).attribute("img", "alt") == picture.alt
    assert image.width > 50
    assert len(image.convert("RGB").getcolors(1 << 20) or []) > 5  # not an empty page


def test_the_curve_is_the_exponential_in_nats_and_its_upper_axis_is_in_bits() -> None:
    axes, bits = perplexity_curve().figure.axes
    x, y = axes.lines[0].get_data()
    torch.testing.assert_close(torch.tensor(y), torch.tensor(x).exp())
    assert bits.get_xlim()[1] == pytest.approx(axes.get_xlim()[1] / math.log(2))
    dots = [tuple(float(v[0]) for v in line.get_data()) for line in axes.lines[1:]]
    assert dots == DOTS == [(1.04, 2.83), (1.61, 5.0), (2.5, 12.2)]


@pytest.mark.parametrize(("nats", "perplexity"), DOTS)
def test_the_dots_lie_on_the_curve_as_far_as_their_digits_go(
    nats: float, perplexity: float
) -> None:
    assert math.exp(nats) == pytest.approx(perplexity, rel=0.005)


def test_a_marked_loss_is_read_off_in_both_units() -> None:
    picture = perplexity_curve(math.log(8))
    assert "2.08 nats = 3.00 bits: perplexity 8.00" in picture.alt
    assert "2.08 nats = 3.00 bits: perplexity 8.00" in words(picture)
    for outside in (-0.1, 3.1, math.nan):
        with pytest.raises(ValueError, match=f"loss={outside}"):
            perplexity_curve(outside)


def test_the_slider_shows_the_static_picture_of_its_value() -> None:
    slider, curve = perplexity_slider().children
    assert curve.value == perplexity_curve(1.04)._repr_html_()
    slider.value = 2.0
    assert curve.value == perplexity_curve(2.0)._repr_html_()


def test_the_mask_picture_is_the_mask_with_the_first_query_on_top() -> None:
    mask = torch.tensor([[True, False, False], [True, True, False]])
    picture = attention_mask(mask, ["a", "b"], ["x", "y", "z"])
    (axes,) = picture.figure.axes
    assert axes.collections[0].get_array().reshape(2, 3).tolist() == mask.int().tolist()
    assert axes.get_ylim() == (2, 0)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
    assert "a reads x; b reads x y." in picture.alt


def test_a_mask_that_does_not_fit_its_names_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(1, 2\).*torch\.bool of shape \(2, 2\)"):
        attention_mask(torch.ones(2, 2, dtype=torch.bool), ["a"], ["a", "b"])
    with pytest.raises(ValueError, match=r"torch\.float32"):
        attention_mask(torch.ones(1, 1), ["a"], ["a"])


def test_losses_are_drawn_position_by_position() -> None:
    picture = loss_per_position({"causal": [2.0, 1.5], "none": torch.tensor([0.1, 3.0])}, uniform=4)
    (axes,) = picture.figure.axes
    assert [line.get_label() for line in axes.lines] == ["causal", "none", "uniform guess, ln V"]
    assert axes.lines[0].get_xydata().tolist() == [[1, 2.0], [2, 1.5]]
    assert axes.lines[1].get_ydata()[1] == 3.0
    assert "causal: 2.00 1.50. none: 0.10 3.00. A uniform guess costs 4.00." in picture.alt


@pytest.mark.parametrize("n", [0, len(MARKS) + 1])
def test_more_lines_than_can_be_told_apart_are_refused(n: int) -> None:
    with pytest.raises(ValueError, match=f"{n} lines"):
        loss_per_position({str(i): [1.0] for i in range(n)})


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    script = """
import sys, matplotlib, torch
from course_lib.teaching.show import *
from course_lib.teaching.strip import token_strip
settings = lambda: {k: v for k, v in matplotlib.rcParams.copy().items() if k != "backend"}
before = settings()  # reading the backend would choose one
perplexity_slider()
token_strip([0], [0], name="a".__getitem__).picture().png()
attention_mask(torch.ones(1, 1, dtype=torch.bool), "a", "a").png()
loss_per_position({"a": [1.0]}).png()
print("matplotlib.pyplot" in sys.modules, settings() == before)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("False True\n", "")
