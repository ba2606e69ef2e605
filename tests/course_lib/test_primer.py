"""The primer: its cells compute its numbers, its links lead somewhere, every box is there."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from autograde.master import read_master, without_markers
from course_lib.teaching.playground import playground, side_by_side

SOURCE = Path(__file__).parents[2] / "autograde" / "source"
CELLS = read_master(SOURCE / "primer.py").cells
PROSE = "\n".join(cell.source for cell in CELLS if cell.cell_type == "markdown")
SECTIONS = re.findall(r"^## (.+)$", PROSE, re.MULTILINE)


@pytest.fixture(scope="module")
def ran():
    """The names after all cells have run, and what they printed."""
    namespace, out = {}, io.StringIO()
    with contextlib.redirect_stdout(out):
        for cell in CELLS:
            if cell.cell_type == "code":
                exec(without_markers(cell.source), namespace)
    return namespace, out.getvalue()


def test_every_number_of_the_text_is_in_a_cell_or_comes_out_of_one(ran):
    code = "\n".join(cell.source for cell in CELLS if cell.cell_type == "code")
    numbers = set(re.findall(r"\d+\.\d+", PROSE))
    assert {"0.693", "0.3"} <= numbers
    assert [n for n in sorted(numbers) if n not in code + ran[1]] == []


def test_what_the_text_says_about_the_outcomes_is_so(ran):
    names, printed = ran
    assert names["product"] == 0.0
    assert names["agree"]
    assert "the four days at once: 0.01077" in printed
    assert "= 0.01077" in printed
    assert "Order: you predicted 1; it came out as 1." in printed
    assert "changed though not chosen: 0" in printed
    assert f"put together again: {names['sentence']}" in printed
    (badly, well) = (names["losses"](p) for p in (0.5, 0.99))
    assert badly[0] == well[0]
    assert well[1] < badly[1] / 2
    assert names["language"].mlm_loss(0.15, 1_000) < names["language"].clm_loss(1_000)


def test_every_section_has_its_hinglish_box():
    parts = re.split(r"^## .+$", PROSE, flags=re.MULTILINE)[1:]
    for section, part in zip(SECTIONS, parts, strict=True):
        assert part.count("Hinglish mein</summary>") == 1 == part.count("</details>"), section


def test_every_link_inside_leads_to_a_section():
    anchors = {section.replace(" ", "-") for section in SECTIONS}
    assert set(re.findall(r"\]\(#(.+?)\)", PROSE)) == anchors


@pytest.mark.parametrize("master", sorted(SOURCE.glob("level[0-9].py")), ids=lambda path: path.stem)
def test_what_a_level_links_to_in_the_primer_is_there(master):
    anchors = {section.replace(" ", "-") for section in SECTIONS}
    links = re.findall(r"primer/primer\.ipynb#([^)]+)\)", master.read_text("utf-8"))
    assert set(links) <= anchors


class TestPlayground:
    def test_shows_what_each_objective_reads_and_scores(self):
        causal, masked, spans = side_by_side("one two three four five six", 0.4).text.splitlines()
        assert (
            "inputs: [BOS] one two three four five; labels: one two three four five six" in causal
        )
        assert masked.count("✓") == 2
        assert "<extra_id_0>" in spans
        assert "decoder inputs: [PAD] <extra_id_0>" in spans

    @pytest.mark.parametrize("sentence", ["", "two words", "word " * 41])
    def test_a_sentence_without_a_readable_strip_is_refused(self, sentence):
        with pytest.raises(ValueError, match="3 to 40 tokens"):
            side_by_side(sentence)

    @pytest.mark.parametrize("rate", [0.0, 1.0])
    def test_a_rate_that_is_no_share_is_refused(self, rate):
        with pytest.raises(ValueError, match="rate is"):
            side_by_side("one two three", rate)

    @pytest.mark.parametrize(
        ("sentence", "rate"),
        [("a b c", 0.05), ("a b c", 0.9), ("¿Qué? — sí, 3 €!", 0.5), ("one " * 40, 0.9)],
    )
    def test_any_sentence_works_at_any_rate_of_the_slider(self, sentence, rate):
        assert "<extra_id_0>" in side_by_side(sentence, rate).text

    def test_the_controls_redraw_the_strips_and_say_what_is_wrong(self):
        sentence, rate, draw, strips = playground("one two three four").widget().children
        before = strips.value
        draw.value = 5
        rate.value = 0.6
        assert strips.value != before
        sentence.value = "short"
        assert "3 to 40 tokens" in strips.value
