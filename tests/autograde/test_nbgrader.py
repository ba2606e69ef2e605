"""nbgrader's own ways in: its command, formgrader's button, an nbgrader without our settings."""

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from conftest import once
from gradebook_rows import rows
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from tiny_course import AUTOGRADE, autograde

from autograde import nbgrader_plugin
from autograde.course import Course, find_course
from autograde.demo import plan
from autograde.files import write_whole
from autograde.master import cells_by_id
from autograde.notebook import notebook_text, read_notebook
from autograde.store import kept_verdicts

TIMEOUT = 4
RIGHT = ["correct", "correct", "correct", "needs a person"]
BLANK = ["not attempted"] * 4
TRANSFORMER = "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])\n"
LATE = """
c.LateSubmissionPlugin.penalty_method = "zero"
"""
EXPECTED = {
    "ada": RIGHT,
    "blank": BLANK,
    "bomb": RIGHT,  # one cell claims a schema from the future, which stops stock nbgrader's class
    "garbage": [],  # the file is no notebook
    "exit": ["correct", "correct", "crashed", "needs a person"],  # by os._exit
    "late": RIGHT,
    "loud": RIGHT,  # warns on stderr, which costs all points in stock nbgrader
    "renamed": RIGHT,  # tiny (1).ipynb
    "skip": BLANK,  # has its tests skipped, which gives full marks in stock nbgrader
    "transform": ["error", "error", "not attempted", "not attempted"],  # drops every line of code
    "zoe": RIGHT,
}


def submissions(course: Course) -> dict[str, str]:
    """What each student hands in."""
    plans = {plant.planted: plant.answers for plant in plan(course, "tiny")}
    right, loud = plans["reference"], plans["prints to stderr"]

    def filled(answers: dict[str, str], **changes: object) -> str:
        notebook = read_notebook(course.notebook("release", "tiny"))
        for name, cell in cells_by_id(notebook).items():
            cell.source = answers.get(name, cell.source)
            if name.startswith("test_"):
                cell.metadata.update(changes)
        return notebook_text(notebook)

    good = filled(right)
    return {
        "ada": good,
        "blank": filled({}),
        "bomb": good.replace('"schema_version": 3', '"schema_version": 99', 1),
        "garbage": "this is no notebook",
        "exit": filled(right | {"T_choices": "import os\nos._exit(1)"}),
        "late": good,
        "loud": filled(loud),
        "renamed": good,
        "skip": filled({}, tags=["skip-execution"]),
        "transform": filled({"T_surprise": TRANSFORMER}),
        "zoe": good,
    }


def nbgrader(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = {"PATH": f"{AUTOGRADE.parent}{os.pathsep}{os.environ['PATH']}"}
    command = [AUTOGRADE.with_name("nbgrader"), *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=os.environ | path, capture_output=True, text=True)


def penalties(course: Course) -> dict[str, float | None]:
    query = """select student_id, late_submission_penalty from submitted_assignment a
        join submitted_notebook n on n.assignment_id = a.id"""
    with sqlite3.connect(course.classroom / "gradebook.db") as book:
        return dict(book.execute(query))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory, built_once: Path) -> Course:
    """The class, graded by `autograde grade`."""

    def make(root: Path) -> None:
        shutil.copytree(built_once, root)
        course = find_course(root)
        for student, text in submissions(course).items():
            path = course.notebook("submitted", "tiny", student)
            if student == "renamed":
                path = path.with_name("tiny (1).ipynb")
            write_whole(text, path)
        late = course.folder("submitted", "late", "tiny") / "timestamp.txt"
        late.write_text("2030-01-02 00:00:00 UTC")
        assert autograde("grade", "tiny", "--timeout", TIMEOUT, cwd=root).returncode == 1

    return find_course(once(tmp_path_factory, "ours", make))


def ungraded(ours: Course, root: Path) -> Course:
    """A copy of the class before grading, its level in the gradebook by nbgrader's command."""
    shutil.copytree(ours.root, root)
    course = find_course(root)
    for left in ("verdicts", "graded", "report"):
        shutil.rmtree(course.classroom / left)
    (course.classroom / "gradebook.db").unlink()
    done = nbgrader("generate_assignment", "tiny", "--force", cwd=root)
    assert done.returncode == 0, done.stderr
    with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as book:
        book.update_or_create_assignment("tiny", duedate="2030-01-01 00:00:00 UTC")
    return course


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, ours: Course) -> Course:
    """The same class, graded by `nbgrader autograde`. Its file `log` has what that said."""

    def make(root: Path) -> None:
        course = ungraded(ours, root)
        with (root / "nbgrader_config.py").open("a") as config:
            config.write(LATE)
        limit = f"--GradingExporter.timeout={TIMEOUT}"
        done = nbgrader("autograde", "tiny", limit, cwd=course.root)
        (root / "log").write_text(f"{done.stderr}\nexit code {done.returncode}", "utf-8")

    return find_course(once(tmp_path_factory, "theirs", make))


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize("student", EXPECTED)
def test_nbgraders_command_ends_every_submission_as_it_should(theirs, student):
    verdicts = {verdict.student: verdict for verdict in kept_verdicts(theirs, "tiny")}
    outcomes = [item.outcome for item in verdicts[student].items]
    assert outcomes == EXPECTED[student]


def test_nbgraders_command_gives_the_verdicts_of_our_own(ours, theirs):
    assert kept_verdicts(theirs, "tiny") == kept_verdicts(ours, "tiny")
    assert len(kept_verdicts(theirs, "tiny")) == len(EXPECTED)
    assert rows(theirs.classroom / "gradebook.db") == rows(ours.classroom / "gradebook.db")
    for student in EXPECTED:
        notebooks = [course.notebook("autograded", "tiny", student) for course in (ours, theirs)]
        texts = [path.read_text("utf-8") if path.is_file() else "" for path in notebooks]
        assert texts[0] == texts[1]
        assert bool(texts[0]) == (student != "garbage")


def test_what_cannot_be_graded_is_named_with_its_reason_and_fails_the_command(theirs):
    log = (theirs.root / "log").read_text("utf-8")
    (garbage,) = (v for v in kept_verdicts(theirs, "tiny") if v.student == "garbage")
    assert f"garbage: {garbage.reason}" in log
    assert "assignment 'tiny' for student 'garbage'" in log
    assert log.count("There was an error processing assignment 'tiny'") == 1
    assert log.endswith("exit code 1")


def test_the_late_penalty_stays_nbgraders(theirs):
    found = penalties(theirs)
    assert found.pop("late") == 5  # all that was known of the score
    assert set(found.values()) == {None}


# --- formgrader's button --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def button(tmp_path_factory: pytest.TempPathFactory, ours: Course):
    """The API that formgrader's button calls, on the class before grading."""
    course = ungraded(ours, tmp_path_factory.mktemp("button") / "course")
    config = course.config.copy()
    config.GradingExporter.timeout = TIMEOUT
    yield course, NbGraderAPI(CourseDirectory(config=config), config=config)
    nbgrader_plugin._open.close()
    nbgrader_plugin._warm.clear()


def test_the_button_gives_the_same_verdicts_as_the_command_line(ours, button):
    course, api = button
    results = {student: api.autograde("tiny", student) for student in EXPECTED}
    assert [student for student, result in results.items() if not result["success"]] == ["garbage"]
    assert kept_verdicts(course, "tiny") == kept_verdicts(ours, "tiny")
    assert rows(course.classroom / "gradebook.db") == rows(ours.classroom / "gradebook.db")


def test_a_persons_marks_survive_every_way_of_grading_again(button):
    course, api = button
    api.autograde("tiny", "zoe")
    with Gradebook(course.nbgrader.db_url) as book:
        for cell in ("T_words", "test_T_choices"):
            grade = book.find_grade(cell, "tiny", "tiny", "zoe")
            grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 0.5, 0.25, False
        book.find_comment("T_words", "tiny", "tiny", "zoe").manual_comment = "Well said."
        book.db.commit()
    path = course.notebook("submitted", "tiny", "zoe")
    path.write_text(path.read_text("utf-8").replace("2 ** 3", "2 ** 4"), "utf-8")

    def again() -> dict[str, tuple[object, ...]]:
        found = rows(course.classroom / "gradebook.db")
        assert ("zoe", "T_words", "SolutionCell", None, "Well said.") in found["comment"]
        return {row[1]: row[3:] for row in found["grade"] if row[0] == "zoe"}

    # auto score, manual score, extra credit, and whether a person is asked to look again
    marked = {"T_words": (None, 0.5, 0.25, 1), "test_T_choices": (0, 0.5, 0.25, 1)}
    assert api.autograde("tiny", "zoe")["success"]
    assert again().items() >= marked.items()
    assert autograde("gradebook", "tiny", cwd=course.root).returncode == 0
    assert again().items() >= marked.items()


def test_the_button_works_again_after_its_warm_parent_was_killed(button):
    _, api = button
    assert api.autograde("tiny", "ada")["success"]
    (nursery,) = nbgrader_plugin._warm.values()
    nursery.process.kill()
    nursery.process.wait()
    assert api.autograde("tiny", "ada")["success"]


# --- an nbgrader that knows nothing of us ---------------------------------------------------------


def test_the_notebooks_grade_under_an_nbgrader_with_no_settings_but_folders(ours, tmp_path):
    config = f"""c = get_config()
c.CourseDirectory.root = {str(tmp_path)!r}
c.CourseDirectory.source_directory = {str(ours.folder("source").parent / "source")!r}
c.CourseDirectory.submitted_directory = "in"
"""
    (tmp_path / "nbgrader_config.py").write_text(config)
    for student in ("ada", "blank"):
        shutil.copytree(
            ours.folder("submitted", student, "tiny"), tmp_path / "in" / student / "tiny"
        )
    for words in (["generate_assignment", "tiny"], ["autograde", "tiny"]):
        done = nbgrader(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    stock, mine = rows(tmp_path / "gradebook.db"), rows(ours.classroom / "gradebook.db")
    for table in ("grade", "submission", "student"):
        assert stock[table] == [row for row in mine[table] if row[0] in ("ada", "blank")]
    scores = {name: [r[3] for r in stock["grade"] if r[0] == name] for name in ("ada", "blank")}
    assert scores == {"ada": [None, 2, 2, 1], "blank": [0, 0, 0, 0]}


def test_jupyterlabs_validate_button_passes_a_solved_release_and_explains_an_untouched_one(ours):
    solved = nbgrader("validate", ours.notebook("submitted", "tiny", "ada"), cwd=ours.root)
    assert "Success! Your notebook passes all the tests." in solved.stdout
    untouched = nbgrader("validate", ours.notebook("release", "tiny"), cwd=ours.root)
    assert "Success" not in untouched.stdout
    assert "certainty has no surprise" in untouched.stdout
    assert "still to be answered" in untouched.stdout
