"""A student's way through JupyterLab, in a real browser, to the grader's verdict."""

import getpass
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import once
from labs import BIN, Notebook, environment, lab
from playwright.sync_api import expect
from tiny_course import REPOSITORY, autograde

from autograde.course import find_course
from autograde.master import cells_by_id, items, read_master, settings
from autograde.notebook import read_notebook, write_notebook
from autograde.store import kept_verdict

PARTS = ("Makefile", "pyproject.toml", "requirements.lock", "nbgrader_config.py",
         "notebooks", "solutions", "autograde/source")  # fmt: skip
EXCHANGE = """
c.Exchange.root = str(root / "exchange")
c.Exchange.assignment_dir = str(root / "notebooks")
"""
PICTURES = os.environ.get("SCREENSHOTS")  # a folder to keep some in


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The course repository with an exchange of its own; level1 is built and released."""

    def make(root):
        for part in PARTS:
            source, to = REPOSITORY / part, root / part
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, to) if source.is_dir() else shutil.copy2(source, to)
        (root / ".venv").mkdir()
        (root / ".venv" / "bin").symlink_to(BIN)
        (root / ".venv" / ".ready").touch()
        exchange = root / "exchange"
        exchange.mkdir()
        exchange.chmod(0o777)
        with (root / "nbgrader_config.py").open("a") as config:
            config.write(EXCHANGE)
        course = find_course(root)
        source = read_master(course.masters / "level1.py")
        write_notebook(source, course.notebook("source", "level1"))
        nbgrader("release_assignment", "level1", root=root)

    return once(tmp_path_factory, "lab", make)


def nbgrader(*words, root):
    variables = environment(root / "home-of-nbgrader")
    done = subprocess.run(
        [BIN / "nbgrader", *words], cwd=root, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def url(root, tmp_path_factory):
    """The address of what `make lab` opens."""
    with lab("make", "lab", cwd=root, home=tmp_path_factory.mktemp("lab") / "home") as url:
        yield url


@pytest.fixture
def picture(page):
    """Keep a picture of the window, if somebody asks for pictures."""

    def take(name):
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}.png")

    return take


def answers(level):
    """What stands in the answer cells of the solution."""
    names = cells_by_id(read_notebook(REPOSITORY / "notebooks" / level / f"{level}.ipynb"))
    solution = read_notebook(REPOSITORY / "solutions" / level / f"{level}.ipynb")
    texts = {cell.id: cell.source for cell in solution.cells}
    return {name: texts[name] for name, cell in names.items() if settings(cell)["solution"]}


def test_a_student_works_through_a_level_and_hands_it_in(root, url, page, picture):
    right = answers("level1")
    notebook = Notebook(page, url, "level1/level1.ipynb")
    notebook.run("L1_setup")

    # five flashcards, and when each comes back is remembered
    cards = notebook.run("L1_cards")
    for button in ("I knew it", "Not yet", "I knew it", "I knew it", "Not yet"):
        cards.get_by_role("button", name="Show the answer").click()
        picture("cards")
        cards.get_by_role("button", name=button).click()
    expect(cards).to_contain_text("That was all for now.")
    schedule = json.loads((root / "notebooks" / ".cards.json").read_text("utf-8"))
    assert sorted(times for times, _ in schedule.values()) == [0, 0, 1, 1, 1]

    # a widget to practise with says what is right
    notebook.cell("L1_1_practice")
    practice = notebook.run("L1_1_practice")
    practice.get_by_role("button", name="CLM").click()
    expect(practice).to_contain_text("Not “CLM”.")
    practice.get_by_role("button", name="span").click()
    expect(practice).to_contain_text("Yes, “span”.")

    # an untouched answer, a known misunderstanding, a hint, a right answer
    notebook.run("L1_1_descriptions")
    expect(notebook.run("test_L1_1_descriptions")).to_contain_text("not attempted yet")
    notebook.write("L1_1_descriptions", right["L1_1_descriptions"])
    notebook.run("L1_1_descriptions")
    expect(notebook.run("test_L1_1_descriptions")).to_contain_text("✓ L1.1 c: right")
    notebook.run("L1_1_pictures")
    notebook.write("L1_1_pairs", right["L1_1_pairs"].replace('"none"', '"CLM"'))
    notebook.run("L1_1_pairs")
    said = notebook.run("test_L1_1_pairs")
    expect(said).to_contain_text("misconception M8; read on: Primer")
    expect(said).not_to_contain_text("Traceback")
    picture("misconception")
    assert "L1.1, hint 1:" in notebook.add_below("test_L1_1_pairs", 'hint("L1.1")')

    # an experiment shows nothing before a prediction is written, then both
    notebook.run("L1_2_picture")
    notebook.run("L1_2_prediction")
    expect(notebook.run("L1_2_experiment")).to_contain_text("write your prediction")
    notebook.write("L1_2_prediction", right["L1_2_prediction"])
    notebook.run("L1_2_prediction")
    expect(notebook.run("L1_2_experiment")).to_contain_text("L1.2: you predicted")
    picture("experiment")

    # the instructor's cells can't be written over
    locked = notebook.cell("L1_setup").locator(".cm-content")
    expect(locked).to_have_attribute("aria-readonly", "true")

    # everything answered: Validate says so, and Submit hands it in
    for name, source in right.items():
        notebook.write(name, source)
    notebook.save()
    page.locator(".validate-button").get_by_text("Validate").click()
    results = page.locator(".jp-Dialog")
    expect(results).to_contain_text("Success! Your notebook passes all the tests.", timeout=120_000)
    picture("validate")
    results.get_by_role("button", name="Ok").click()
    notebook.save()
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Assignment List").click()
    assignments = page.locator("#nbgrader-assignment-list")
    assignments.get_by_role("button", name="Submit").click()
    expect(assignments.locator("#submitted_assignments_list")).to_contain_text("level1")

    # the same file through the grader
    nbgrader("collect", "level1", root=root)
    done = autograde("grade", "level1", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = kept_verdict(find_course(root), "level1", getpass.getuser())
    assert [item.outcome for item in verdict.items] == ["correct"] * len(items(read_master(
        find_course(root).masters / "level1.py")))  # fmt: skip
    assert verdict.points == 10


def test_the_playground_shows_a_sentence_of_ones_own(url, page, picture):
    notebook = Notebook(page, url, "primer/primer.ipynb")
    shown = notebook.run(cell_with(notebook, "playground("))
    sentence = shown.get_by_label("sentence")
    sentence.fill("Where do seven owls sleep tonight")
    sentence.press("Enter")
    expect(shown.get_by_role("table").first).to_contain_text("owls")
    masked = shown.get_by_role("table").nth(1)
    before = masked.inner_text()
    draw = shown.get_by_role("slider").last
    draw.focus()
    draw.press("ArrowRight")
    expect(masked).not_to_have_text(before)
    picture("playground")
    shown.get_by_text("Who may read whom").first.click()
    expect(shown.get_by_role("img").first).to_have_attribute("alt", re.compile("owls"))
    sentence.fill("Short")
    sentence.press("Enter")
    expect(shown).to_contain_text("Give a sentence of 3 to 40 tokens: this one has 1.")


def test_the_slider_moves_along_the_perplexity_curve(url, page):
    notebook = Notebook(page, url, "level3/level3.ipynb")
    right = answers("level3")
    for cell_id in ("L3_setup", "L3_1_convert", "L3_1_prediction", "L3_1_experiment"):
        if cell_id in right:
            notebook.write(cell_id, right[cell_id])
        shown = notebook.run(cell_id)
    slider = shown.get_by_role("slider")
    slider.focus()
    slider.press("ArrowRight")
    expect(shown.get_by_role("img")).to_have_attribute("alt", re.compile("Marked: 1.05 nats"))


def cell_with(notebook, text):
    """The id of the first cell with a text in it."""
    return notebook.page.evaluate(
        """text => [...window.jupyterapp.shell.currentWidget.content.widgets]
            .find(cell => cell.model.sharedModel.source.includes(text)).model.sharedModel.id""",
        text,
    )
