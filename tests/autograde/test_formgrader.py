"""An instructor in formgrader, in a real browser: marking by hand, and its buttons."""

import csv
import json
import re
import shutil

import pytest
from labs import lab
from nbgrader.api import Gradebook
from playwright.sync_api import expect
from tiny_course import autograde

from autograde.course import find_course
from autograde.store import kept_verdict


@pytest.fixture(scope="module")
def course(graded, tmp_path_factory):
    """The sample class, graded."""
    root = tmp_path_factory.mktemp("formgrader") / "course"
    shutil.copytree(graded, root)
    return find_course(root)


@pytest.fixture(scope="module")
def url(course, tmp_path_factory):
    home = tmp_path_factory.mktemp("formgrader") / "home"
    with lab("jupyter", "lab", cwd=course.root, home=home) as url:
        yield url


@pytest.fixture
def formgrader(url, page):
    """Formgrader, opened from JupyterLab's menu."""
    # it starts only once MathJax has come from elsewhere, or has not
    page.route(re.compile(r"https?://(?!127\.0\.0\.1)"), lambda route: route.abort())
    page.goto(f"{url}/lab?token=open&reset")
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Formgrader").click()
    return page.frame_locator("iframe")


def submission(course, student):
    """The id that formgrader calls a student's submission by."""
    with Gradebook(course.nbgrader.db_url) as book:
        return book.find_submission_notebook("tiny", "tiny", student).id


def waiting(course):
    """Students with an answer that a person must mark, as the verdicts say."""
    planted = json.loads((course.classroom / "demo.json").read_text("utf-8"))
    verdicts = (kept_verdict(course, "tiny", student) for student in planted)
    return [v.student for v in verdicts if any(i.outcome == "needs a person" for i in v.items)]


def exported(course, student):
    """A student's row in the table for spreadsheets."""
    assert autograde("export", "tiny", cwd=course.root).returncode in (0, 1)
    with (course.classroom / "export" / "tiny.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = (row for row in csv.DictReader(file) if row["student"] == student)
    return row


def test_a_written_answer_is_marked_beside_its_scheme_and_exported(course, page, formgrader):
    student, *others = waiting(course)
    formgrader.get_by_role("link", name="Manual Grading").click()
    formgrader.get_by_role("link", name="tiny").click()
    formgrader.get_by_role("link", name="tiny").last.click()
    queue = formgrader.locator("td.needs-manual-grade .glyphicon-ok")
    expect(queue).to_have_count(len(others) + 1)
    formgrader.locator(f'a[href*="{submission(course, student)}"]:visible').click()
    expect(formgrader.get_by_text("One point for the doubling.")).to_be_visible()
    # its fields are there before anything listens to them
    frame = formgrader.locator("#T_words").element_handle().owner_frame()
    frame.wait_for_function("formgrader.grades?.loaded && formgrader.comments?.loaded")
    for field, kind, text in (
        ("#T_words", "grade", "0.5"),
        ("#T_words-comment", "comment", "Why does it double?"),
    ):
        with page.expect_response(lambda response, kind=kind: f"/api/{kind}/" in response.url):
            formgrader.locator(field).fill(text)
            formgrader.locator(field).press("Tab")
    assert exported(course, student)["T_words"] == "0.5"
    formgrader.get_by_role("link", name="tiny").last.click()
    expect(queue).to_have_count(len(others))


def test_the_buttons_grade_and_write_feedback_as_the_commands_do(course, formgrader):
    student = waiting(course)[0]
    path = course.notebook("submitted", "tiny", student)
    path.write_text(path.read_text("utf-8").replace("2 ** 3", "2 ** 4"), "utf-8")
    formgrader.get_by_role("link", name="Manage Assignments").click()
    formgrader.locator("tr", has=formgrader.get_by_text("tiny")).locator(
        ".num-submissions a"
    ).click()
    row = formgrader.locator("tr", has=formgrader.get_by_text(student, exact=True))
    row.locator(".autograde a").click()
    dialog = formgrader.locator(".modal-dialog")
    expect(dialog).to_contain_text("Successfully autograded")
    dialog.get_by_role("button", name="OK").click()
    outcomes = {item.item: item.outcome for item in kept_verdict(course, "tiny", student).items}
    assert outcomes["T_choices"] == "wrong"
    row.locator(".generate-feedback a").click()
    expect(dialog).to_contain_text("Successfully generated feedback")
    page = course.notebook("feedback", "tiny", student).with_suffix(".html")
    theirs = page.read_text("utf-8")
    page.unlink()
    assert autograde("feedback", "tiny", student, cwd=course.root).returncode == 0
    assert page.read_text("utf-8") == theirs
