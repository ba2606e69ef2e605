"""The class report and feedback in a real browser: read, sorted and searched by anyone."""

import re
import shutil

import pytest
from playwright.sync_api import expect
from tiny_course import autograde

from autograde.course import find_course


@pytest.fixture(scope="module")
def course(graded, tmp_path_factory):
    """The sample class with its feedback."""
    root = tmp_path_factory.mktemp("pages") / "course"
    shutil.copytree(graded, root)
    for command in ("feedback", "report"):
        assert autograde(command, "tiny", cwd=root).returncode == 0
    return find_course(root)


@pytest.fixture
def report(course, page):
    page.goto((course.classroom / "report" / "tiny.html").as_uri())
    return page


def table(page, section):
    return page.locator("section", has=page.locator(f"#{section}")).locator("table").first


def column(table, number):
    return table.locator(f"tbody tr:visible > :nth-child({number})").all_text_contents()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_the_class_report(report, accessible, noted, scheme):
    report.emulate_media(color_scheme=scheme)
    accessible()
    assert not noted


def test_the_class_report_sorts_by_keyboard(report):
    students = table(report, "students")
    heading = students.locator("thead button").first
    heading.focus()
    report.keyboard.press("Enter")
    first = column(students, 1)
    assert first == sorted(first)
    report.keyboard.press("Enter")
    assert column(students, 1) == first[::-1]
    expect(students.locator("thead th").first).to_have_attribute("aria-sort", "descending")


def test_the_class_report_finds_a_student(report):
    students = table(report, "students")
    name = column(students, 1)[3].split()[0]
    report.get_by_role("searchbox").fill(name)
    assert all(name in shown for shown in column(students, 1))
    assert 1 <= len(column(students, 1)) < 17
    report.get_by_role("searchbox").fill("nobody has this name")
    assert column(students, 1) == []


def test_the_class_report_prints_whole(report):
    report.emulate_media(media="print")
    rows = table(report, "students").locator("tbody tr").count()
    assert len(column(table(report, "students"), 1)) == rows


def test_a_name_in_the_class_report_leads_to_the_students_page(report):
    link = table(report, "students").get_by_role("link").first
    name = link.text_content()
    link.click()
    assert re.search(f"/feedback/{name}/tiny/tiny.html$", report.url)
    expect(report.get_by_role("heading", level=1)).to_contain_text("tiny")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_their_feedback(course, page, accessible, noted, scheme):
    page.emulate_media(color_scheme=scheme)
    pages = sorted(course.folder("feedback").glob("*/tiny/tiny.html"))
    assert len(pages) == 17
    for path in pages:
        page.goto(path.as_uri())
        accessible()
        assert "One point for the doubling" not in page.content()  # the mark scheme
    assert not noted
