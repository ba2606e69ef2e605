"""Late submissions: the penalty that nbgrader's plugin says, by the collector's time."""

import pickle
import shutil
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from gradebook_rows import rows
from hypothesis import given
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from test_gradebook import VERDICTS, mark_by_hand

from autograde.course import Course, CourseError, find_course
from autograde.files import write_whole
from autograde.gradebook import Scores
from autograde.late import LatePolicy, as_timestamp, submitted_at
from autograde.marks import read_marks

DUE = datetime(2026, 12, 1, 17)
ZERO = 'c.LateSubmissionPlugin.penalty_method = "zero"\n'
# a tenth of the score for each hour that has begun, and beyond the score after ten of them
HOURLY = """
import math
from nbgrader.plugins import LateSubmissionPlugin

class Hourly(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score * math.ceil(total_seconds_late / 3600) / 10 - (student_id == "blank")

c.AssignLatePenalties.plugin_class = Hourly
"""
FAILING = """
from nbgrader.plugins import LateSubmissionPlugin

class Failing(LateSubmissionPlugin):
    def late_submission_penalty(self, *_):
        raise KeyError("no rule")

c.AssignLatePenalties.plugin_class = Failing
"""


def penalties(course: Course) -> dict[str, float | None]:
    query = """select student_id, late_submission_penalty from submitted_assignment a
        join submitted_notebook n on n.assignment_id = a.id"""
    with sqlite3.connect(course.classroom / "gradebook.db") as book:
        return dict(book.execute(query))


@pytest.fixture
def make(entered_once: Path, tmp_path: Path):
    """Makes the tiny course, its level due, with lines added to its configuration."""

    def make(config: str) -> Course:
        shutil.copytree(entered_once, tmp_path / "course")
        with (tmp_path / "course/nbgrader_config.py").open("a") as file:
            file.write(config)
        course = find_course(tmp_path / "course")
        with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as book:
            book.update_or_create_assignment("tiny", duedate=DUE)
        return course

    return make


def hand_in(course: Course, student: str, late: timedelta) -> None:
    path = course.folder("submitted", student, "tiny") / "timestamp.txt"
    write_whole(as_timestamp(DUE + late), path)


def write_scores(course: Course) -> None:
    with Scores(course, "tiny") as scores:
        for verdict in VERDICTS:
            scores.write(verdict)


@pytest.mark.parametrize(
    ("hours", "zero", "hourly"),
    [(-1, None, None), (0, None, None), (0.001, 2, 0.2), (3, 2, 0.6), (30, 2, 2)],
)
def test_the_penalty_is_the_plugins_between_nothing_and_the_score(make, hours, zero, hourly):
    for config, penalty in ((ZERO, zero), (HOURLY, hourly), ("", None)):
        course = make(config)
        for student in ("ada", "blank"):
            hand_in(course, student, timedelta(hours=hours))
        write_scores(course)
        found = penalties(course)
        assert found["ada"] == pytest.approx(penalty)
        assert found["blank"] in (0, None)  # of nothing, nothing can be taken
        assert found["lost"] is None  # no time is known
        shutil.rmtree(course.root)


@pytest.mark.parametrize("config", [ZERO, HOURLY], ids=["zero", "hourly"])
def test_nbgraders_own_pass_gives_the_same(make, config):
    course = make(config)
    hand_in(course, "ada", timedelta(hours=2))
    hand_in(course, "lost", timedelta(hours=2))
    hand_in(course, "blank", timedelta(hours=-2))
    write_scores(course)
    book = course.classroom / "gradebook.db"
    before = rows(book), penalties(course)
    for verdict in VERDICTS:  # what its Autograde does before and after the pass that grades
        with Gradebook(course.nbgrader.db_url) as gradebook:
            time = course.nbgrader.get_existing_timestamp(
                course.folder("submitted", verdict.student, "tiny")
            )
            gradebook.update_or_create_submission("tiny", verdict.student, timestamp=time)
        about = {"student": verdict.student, "assignment": "tiny", "notebook": "tiny"}
        about["db_url"] = course.nbgrader.db_url
        preprocessor = AssignLatePenalties(config=course.config)
        preprocessor.preprocess(NotebookNode(cells=[]), {"nbgrader": about})
    assert (rows(book), penalties(course)) == before
    assert penalties(course)["ada"] > 0


def test_an_extension_moves_the_day(make):
    course = make(ZERO)
    hand_in(course, "ada", timedelta(hours=2))
    write_scores(course)
    assert penalties(course)["ada"] == 2
    with Gradebook(course.nbgrader.db_url) as book:
        book.grant_extension("tiny", "ada", hours=2)
    write_scores(course)
    assert penalties(course)["ada"] is None


def test_a_level_without_a_due_date_has_no_late_submissions(make):
    course = make(ZERO)
    with sqlite3.connect(course.classroom / "gradebook.db") as book:
        book.execute("update assignment set duedate = null")
    hand_in(course, "ada", timedelta(days=365))
    write_scores(course)
    assert set(penalties(course).values()) == {None}


def test_a_newer_submission_without_a_time_loses_the_penalty_of_the_old_one(make):
    course = make(ZERO)
    hand_in(course, "ada", timedelta(hours=2))
    write_scores(course)
    (course.folder("submitted", "ada", "tiny") / "timestamp.txt").unlink()
    write_scores(course)
    assert penalties(course)["ada"] is None
    with Gradebook(course.nbgrader.db_url) as book:
        assert book.find_submission("tiny", "ada").timestamp is None


def test_marks_given_by_hand_count_in_the_penalty_when_they_are_read(make):
    course = make(ZERO)
    hand_in(course, "ada", timedelta(hours=2))
    for verdict in VERDICTS:
        write_whole(verdict.to_json(), course.verdict("tiny", verdict.student))
    write_scores(course)
    mark_by_hand(course, "ada")
    assert penalties(course)["ada"] == 2
    ada = read_marks(course, "tiny")[0]
    assert (ada.student, ada.points, ada.penalty, ada.final) == ("ada", 2.5, 2.5, 0)
    assert ada.submitted == DUE + timedelta(hours=2)


def test_a_plugin_may_be_a_module_beside_the_configuration(make):
    course = make('c.AssignLatePenalties.plugin_class = "our_rules.Two"\n')
    (course.root / "our_rules.py").write_text(
        "from nbgrader.plugins import LateSubmissionPlugin\n"
        "class Two(LateSubmissionPlugin):\n"
        "    def late_submission_penalty(self, *_):\n"
        "        return 1.5\n"
    )
    hand_in(course, "ada", timedelta(hours=2))
    write_scores(course)
    assert penalties(course)["ada"] == 1.5


def test_a_course_with_a_plugin_in_its_configuration_goes_to_other_processes(make):
    course = pickle.loads(pickle.dumps(make(HOURLY)))
    assert LatePolicy(course).penalty("ada", 10, 3601) == 2


def test_a_plugin_that_fails_is_one_sentence(make):
    course = make(FAILING)
    hand_in(course, "ada", timedelta(hours=2))
    with pytest.raises(CourseError, match=r"Failing, the plugin .* failed for ada: KeyError"):
        write_scores(course)
    assert not rows(course.classroom / "gradebook.db")["submission"]


# --- timestamp.txt --------------------------------------------------------------------------------


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))
def test_a_timestamp_is_what_nbgrader_reads(time):
    assert parse_utc(as_timestamp(time)) == time


@given(st.binary(max_size=150) | st.text("0123456789 :-+UTCZ.,", max_size=40).map(str.encode))
def test_a_damaged_timestamp_is_none_at_all(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    (folder / "timestamp.txt").write_bytes(data)
    time = submitted_at(folder)
    assert time is None or time.tzinfo is None


def test_a_timestamp_that_is_a_link_or_a_pipe_is_not_read(tmp_path):
    (tmp_path / "elsewhere").write_text("1999-01-01 00:00:00 UTC")
    path = tmp_path / "timestamp.txt"
    path.symlink_to(tmp_path / "elsewhere")
    assert submitted_at(tmp_path) is None
    path.unlink()
    assert submitted_at(tmp_path) is None


def test_the_policy_is_nbgraders_default_where_nothing_is_set(built):
    assert LatePolicy(built).penalty("ada", 3, 1000) is None
