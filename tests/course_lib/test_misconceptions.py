import ast
import json
import math
import re
from pathlib import Path

import pytest

from autograde.master import read_master
from course_lib.teaching import concepts
from course_lib.teaching.check import Wrong, demand, diagnose
from course_lib.teaching.misconceptions import catalogue, listed, named
from course_lib.teaching.traps import LETTERS, question_bank, traps

ROOT = Path(__file__).parents[2]
MASTERS = [
    path
    for path in sorted((ROOT / "autograde" / "source").glob("*.py"))
    if not path.stem.endswith("_answers")
]
PRIMER = read_master(ROOT / "autograde" / "source" / "primer.py")
PROSE = "\n".join(cell.source for cell in PRIMER.cells if cell.cell_type == "markdown")
SECTIONS = re.findall(r"^## (.+)$", PROSE, re.MULTILINE)


def named_in(master: Path) -> set[str]:
    """The misconceptions that the tests of a level tell students by name."""
    found = set()
    for cell in read_master(master).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%"):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= set(re.findall(r"^(M\d+): ", node.value))
    return found


class TestCatalogue:
    def test_it_holds_the_twenty_two_in_order(self):
        assert list(catalogue()) == [f"M{n}" for n in range(1, 23)]

    def test_each_has_a_claim_a_counter_example_and_a_section_of_the_primer(self):
        for id, entry in catalogue().items():
            assert entry.name.endswith("."), id
            assert len(entry.refuted) > 60, id
            assert entry.read_on in SECTIONS, id

    @pytest.mark.parametrize("master", MASTERS, ids=lambda path: path.stem)
    def test_every_id_that_a_level_names_is_in_it(self, master):
        assert named_in(master) <= set(catalogue())

    def test_level_2_names_those_that_it_is_about(self):
        assert named_in(ROOT / "autograde" / "source" / "level2.py") >= {"M1", "M5", "M6", "M21"}

    def test_every_one_is_told_by_name_somewhere(self):
        assert set().union(*map(named_in, MASTERS)) == set(catalogue())

    def test_every_id_in_the_public_answers_is_in_it(self):
        answers = json.loads((ROOT / "course_lib" / "teaching" / "answers.json").read_text("utf-8"))
        for key in answers.values():
            for sentence in key["wrong"].values():
                named(sentence)

    def test_the_list_unfolds_every_one(self):
        assert listed().html.count("<details>") == len(catalogue())

    def test_its_numbers_are_right(self):
        said = {id: entry.refuted for id, entry in catalogue().items()}
        assert "1.02" in said["M4"]
        assert round((3 + 99 * 1) / 100, 2) == 1.02
        assert "is 26" in said["M5"]
        assert "is 10" in said["M5"]
        assert (2 + 50) / 2 == 26
        assert math.exp((math.log(2) + math.log(50)) / 2) == pytest.approx(10)
        assert "is 1.62" in said["M6"]
        assert round(2 ** math.log(2), 2) == 1.62
        assert "7.39" in said["M7"]
        assert "2.72" in said["M7"]
        assert [round(math.exp(20 / n), 2) for n in (10, 20)] == [7.39, 2.72]
        assert "2%, with 18%" in said["M11"]
        assert (round(0.2 * 0.1, 2), round(0.2 * 0.9, 2)) == (0.02, 0.18)
        assert "one short sentence in five" in said["M14"]
        assert abs(0.85**10 - 1 / 5) < 0.01


class TestNaming:
    def test_a_student_reads_the_sentence_and_where_to_read_on(self):
        with pytest.raises(Wrong) as caught:
            diagnose(1.5, right=1.04, wrong={"M6: That is in bits.": 1.5}, what="loss")
        assert caught.value.misconception == "M6"
        expected = "loss: you have 1.5. That is in bits. (misconception M6; read on: Primer, "
        assert str(caught.value) == f"{expected}Perplexity)"

    def test_demand_names_one_too(self):
        with pytest.raises(Wrong, match=r"^It peeks\. \(misconception M16; ") as caught:
            demand(False, "M16: It peeks.")
        assert caught.value.misconception == "M16"

    def test_a_sentence_without_an_id_stays_as_it_is(self):
        with pytest.raises(Wrong, match=r"^M is for mask\.$") as caught:
            demand(False, "M is for mask.")
        assert caught.value.misconception == ""

    def test_an_id_that_nobody_knows_is_an_error(self):
        with pytest.raises(LookupError, match="M99 is no misconception"):
            named("M99: No.")


class TestQuestionBank:
    def test_there_are_twenty_traps(self):
        assert len(traps()) == 20

    def test_every_option_is_explained_and_one_is_right(self):
        for trap in traps():
            assert 3 <= len(trap.options) <= 4, trap.question
            assert trap.right in LETTERS[: len(trap.options)], trap.question
            assert all(says and len(why) > 20 for says, why in trap.options), trap.question
            assert trap.misconception in catalogue(), trap.question

    def test_the_right_letters_do_not_give_themselves_away(self):
        letters = [trap.right for trap in traps()]
        assert max(letters.count(letter) for letter in "abc") <= 10

    def test_every_option_unfolds(self):
        options = sum(len(trap.options) for trap in traps())
        assert question_bank().html.count("<details>") == options
        assert question_bank().html.count("✓ Right.") == 20

    def test_its_numbers_are_right(self):
        assert (10 * 4 + 30 * 2) / 40 == 2.5
        assert math.exp((math.log(4) + math.log(16)) / 2) == pytest.approx(8)
        assert round(1 / ((1 / 4 + 1 / 16) / 2), 9) == 6.4
        assert round(math.exp(3), 1) == 20.1
        assert round(3 * math.log(2), 2) == 2.08
        assert 50 < 2.2**5 < 2.2**6 < 115
        assert round(0.85**4, 2) == 0.52


class TestConceptMap:
    def test_every_edge_joins_two_boxes_and_every_box_is_joined(self):
        ends = {end for a, _, b in concepts.EDGES for end in (a, b)}
        assert ends == set(concepts.NODES)

    def test_every_box_links_to_a_section_of_the_primer(self):
        svg = concepts.concept_map().html
        for node in concepts.NODES.values():
            assert node.section in SECTIONS
            assert f'href="{concepts.anchor(node.section)}"' in svg

    def test_no_two_boxes_overlap_and_none_leaves_the_figure(self):
        boxes = list(concepts.NODES.values())
        for i, a in enumerate(boxes):
            assert concepts.BOX_WIDTH / 2 <= a.x <= concepts.WIDTH - concepts.BOX_WIDTH / 2
            assert concepts.BOX_HEIGHT / 2 <= a.y <= concepts.HEIGHT - concepts.BOX_HEIGHT / 2
            for b in boxes[:i]:
                apart = abs(a.x - b.x) > concepts.BOX_WIDTH or abs(a.y - b.y) > concepts.BOX_HEIGHT
                assert apart, (a, b)
