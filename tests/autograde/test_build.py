"""The build: what is published, and what is refused."""

import json
import shutil

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator
from tiny_course import REPOSITORY, make_course

from autograde.build import build_level, make_release, solution_source
from autograde.course import CourseError, find_course
from autograde.master import cells_by_id, items, read_master, secret_lines
from autograde.notebook import last_error, notebook_text, write_notebook

SECRETS = ["nats = -math.log(p)", "2 ** 3", "isclose", "three bits", "doubling", "each bit doubles"]


def read(course, step):
    return nbformat.read(course.notebook(step, "tiny"), as_version=4)


def text_of(course, step):
    return course.notebook(step, "tiny").read_text("utf-8")


def test_a_release_holds_no_solution_and_no_hidden_test(built):
    assert all(secret in text_of(built, "source") for secret in SECRETS)
    assert not [secret for secret in SECRETS if secret in text_of(built, "release")]
    assert "BEGIN" not in text_of(built, "release")


def test_a_release_has_a_stub_for_every_answer_and_is_valid_for_nbgrader(built):
    release = read(built, "release")
    MetadataValidator().validate_nb(release)
    nbformat.validate(release)
    cells = cells_by_id(release)
    assert cells["T_surprise"].source.endswith("...  # YOUR CODE HERE")
    assert cells["T_choices"].source == "choices = (\n    ...  # YOUR CODE HERE\n)"
    assert cells["T_words"].source == "YOUR ANSWER HERE"
    assert cells["test_T_choices"].metadata.editable is False
    assert sum(item.points for item in items(release)) == 6


def test_a_solution_notebook_shows_answers_and_outputs_but_no_hidden_test(built):
    solution = read(built, "solution")
    text = text_of(built, "solution")
    assert "nats = -math.log(p)" in text
    assert "each bit doubles" in text
    assert not [secret for secret in ("isclose", "three bits", "doubling", "###") if secret in text]
    assert not [cell.id for cell in solution.cells if last_error(cell)]
    assert not [cell.id for cell in solution.cells if "nbgrader" in cell.metadata]
    (shown,) = (cell for cell in solution.cells if cell.id == "T_show")
    assert shown.outputs[0].text == "you answered 8\n"


def test_building_again_gives_the_same_bytes(built):
    steps = ("source", "release", "solution")
    before = [text_of(built, step) for step in steps]
    build_level(built, "tiny", lambda step: None)
    assert [text_of(built, step) for step in steps] == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("nats = -math.log(p)", "nats = -math.log2(p)", "test_T_surprise gives the reference 0"),
        ("    2 ** 3", "    1 / 0", "ZeroDivisionError"),
        ("assert choices == 8", "import warnings; warnings.warn('x')\nassert choices", "stderr"),
        ('"three bits are eight choices"', '"three"\n0.5', "gives the reference 0.5 of 2"),
        ('print("you answered", choices)', "print(undefined)", "solution notebook fails"),
        (
            'assert choices is not ..., "still to be answered"\nassert type(choices) is int, "ans'
            'wer with a whole number"\n',
            "",
            "gives the untouched release 2 points",
        ),
        ("choices = (\n", "", "IndentationError|unexpected indent"),
        (
            '"you answered", choices',
            "__import__('os').path.expanduser('~')",
            "shows a path here",
        ),
    ],
)
def test_a_level_that_does_not_hold_is_refused_and_nothing_is_published(tmp_path, old, new, words):
    course = make_course(tmp_path, lambda text: text.replace(old, new))
    with pytest.raises(CourseError, match=words):
        build_level(course, "tiny", lambda step: None)
    assert not course.notebook("release", "tiny").exists()
    assert not course.notebook("solution", "tiny").exists()


def test_a_test_must_not_end_in_a_name_error_on_the_untouched_release(tmp_path):
    def define_only_in_the_solution(text):
        answer = "choices = (\n    ### BEGIN SOLUTION\n    2 ** 3\n    ### END SOLUTION\n)"
        return text.replace(answer, "### BEGIN SOLUTION\nchoices = 2 ** 3\n### END SOLUTION")

    course = make_course(tmp_path, define_only_in_the_solution)
    with pytest.raises(CourseError, match=r"NameError.*outside its solution region"):
        build_level(course, "tiny", lambda step: None)


@pytest.mark.parametrize("cleaner", ["ClearSolutions", "ClearHiddenTests"])
def test_a_release_that_nbgrader_did_not_clean_is_refused(tmp_path, cleaner):
    course = make_course(
        tmp_path,
        lambda text: text[: text.index("# ### BEGIN MARK SCHEME")],  # nbgrader would refuse it
        config=f"\nc.{cleaner}.enabled = False\n",
    )
    with pytest.raises(CourseError, match="would show a secret line"):
        build_level(course, "tiny", lambda step: None)
    assert not course.notebook("release", "tiny").exists()


def test_what_the_tests_record_is_kept_for_check(tmp_path):
    record = (
        "import types, sys\nmodule = types.ModuleType('course_lib.teaching.check')\n"
        "module.recorded = {'T choices': {'right': 'ab'}}\nsys.modules[module.__name__] = module\n"
    )
    course = make_course(tmp_path, lambda text: text.replace("import math", record + "import math"))
    build_level(course, "tiny", lambda step: None)
    kept = json.loads((tmp_path / "course_lib" / "teaching" / "answers.json").read_text("utf-8"))
    assert kept == {"T choices": {"right": "ab"}}


def test_the_lines_of_a_region_are_inside_and_its_markers_are_nowhere():
    inside, outside = secret_lines("a\n### BEGIN SOLUTION\nb\n### END SOLUTION\nc")
    assert (inside, outside) == (["b"], ["a", "c"])


# --- this repository's own levels -----------------------------------------------------------------


HERE = find_course(REPOSITORY)


@pytest.mark.parametrize("level", HERE.levels())
def test_the_committed_notebooks_are_current(level, tmp_path):
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    copy = find_course(tmp_path)
    source = read_master(HERE.masters / f"{level}.py")
    write_notebook(source, copy.notebook("source", level))
    release = HERE.notebook("release", level).read_text("utf-8")
    assert release == notebook_text(make_release(copy, level)), "run `make build` and commit"
    shown, due = (
        [(cell.cell_type, cell.id, cell.source) for cell in notebook.cells]
        for notebook in (
            nbformat.read(HERE.notebook("solution", level), 4),
            solution_source(source),
        )
    )
    assert shown == due, "run `make build` and commit"
