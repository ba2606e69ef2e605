"""The class report is one page that shows all of a class, and nobody in it can act through it."""

import base64
import hashlib
import json
import re
from dataclasses import asdict

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st
from nbgrader.api import Gradebook
from tiny_course import autograde

from autograde.course import find_course
from autograde.files import write_whole
from autograde.gradebook import fill_gradebook
from autograde.page import visible
from autograde.report import KINDS, RANKED, report_page, write_report
from autograde.statistics import class_statistics
from autograde.store import kept_verdicts
from autograde.table import SIGNS, UNCONFINED
from autograde.verdict import ItemResult, Outcome, Status, Verdict

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src="https://example.org/x" onerror="alert(1)">',
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u202c\x07\x1b[31m\u2028",
    "]]><!--",
    "javascript:alert(1)",
    "&lt;b&gt;&amp;",
    "فاطمة 🧪 O’Neill, Jr.",
)


def parsed(page):
    return BeautifulSoup(page, "html.parser")


def rows(soup, section):
    """The rows of the first table in the section with this heading."""
    table = soup.find(id=section).parent.find("table")
    return table.tbody.find_all("tr")


def number(cell):
    """What a cell sorts by."""
    text = cell.get("data-v", cell.get_text())
    return None if text in ("", "–") else float(text)


@pytest.fixture(scope="module")
def verdicts(graded):
    """The sample class, and two who show what nobody in it does."""
    bits = ItemResult("T_choices", Outcome.WRONG, 0, 2, "That is in bits.", "M6")
    more = (Verdict(student, "tiny", (bits,), seconds=99) for student in ("zoe", "zyx"))
    return [*kept_verdicts(find_course(graded), "tiny"), *more]


@pytest.fixture(scope="module")
def soup(verdicts):
    return parsed(report_page(verdicts, "tiny"))


# --- all of the class -----------------------------------------------------------------------------


def test_every_student_has_a_row_and_every_item_a_column(soup, verdicts):
    names = [button.get_text() for button in soup.find(id="heat").thead.find_all("button")]
    items = [item.item for item in class_statistics(verdicts, "tiny").items]
    assert names == ["Student", "Points", *items, "What went wrong"]
    heat = rows(soup, "students")
    assert [row.th.get_text() for row in heat] == sorted(v.student for v in verdicts)
    for row, verdict in zip(heat, sorted(verdicts, key=lambda v: v.student), strict=True):
        outcomes = {item.item: item.outcome for item in verdict.items}
        signs = [SIGNS[outcomes[item]][0] if item in outcomes else "" for item in items]
        assert [cell.get_text() for cell in row.find_all("td", class_="cell")] == signs
        assert number(row.td) == verdict.points
        for item in verdict.items:
            assert visible(item.message) in row.get_text()


def test_the_json_has_the_same_numbers_as_the_page(verdicts, soup):
    numbers = json.loads(json.dumps(asdict(class_statistics(verdicts, "tiny"))))
    facts = [int(fact.b.get_text()) for fact in soup.header.find_all("li") if "of" not in fact.text]
    assert facts == [
        numbers["submissions"],
        numbers["statuses"]["partly graded"],
        numbers["statuses"]["ungradable"],
    ]
    bars = re.findall(r"points: (\d+)\.", soup.find(id="chart").get_text())
    assert [int(n) for n in bars] == [
        one["students"] for one in numbers["scores"]["bins"] if one["students"]
    ]
    for row, item in zip(rows(soup, "items"), numbers["items"], strict=True):
        points, difficulty, discrimination, outcomes = row.find_all("td")
        assert row.th.get_text() == item["item"]
        assert number(points) == item["max_points"]
        assert number(difficulty) == item["difficulty"]
        assert number(discrimination) == item["discrimination"]
        told = re.findall(r"(\d+) ([a-z ]+)", outcomes.get_text())
        assert {outcome: int(count) for count, outcome in told} == {
            outcome: count for outcome, count in item["outcomes"].items() if count
        }
    for row, (outcome, count) in zip(
        rows(soup, "outcomes"), numbers["outcomes"].items(), strict=True
    ):
        assert outcome in row.th.get_text()
        assert number(row.td) == count
    for row, one in zip(rows(soup, "misconceptions"), numbers["misconceptions"], strict=True):
        students, answers, *_ = row.find_all("td")
        assert row.th.get_text().startswith(one["misconception"])
        assert (number(students), number(answers)) == (len(one["students"]), one["answers"])
    for section in ("slow", "repaired"):
        students = [row.th.get_text() for row in rows(soup, section)]
        assert students == [one["student"] for one in numbers[section]]


def test_who_needs_a_person_comes_first_with_the_reason(soup, verdicts):
    section = soup.main.section
    assert section.h2.get_text() == "Needs a person"
    for verdict in verdicts:
        if verdict.status != Status.GRADED:
            assert verdict.student in section.get_text()
            assert visible(verdict.reason) in section.get_text()


def test_a_misconception_is_shown_with_its_counter_example():
    wrong = ItemResult("A", Outcome.WRONG, 0, 1, "That is in bits.", "M6")
    page = report_page([Verdict("ada", "tiny", (wrong,))], "tiny")
    (row,) = rows(parsed(page), "misconceptions")
    assert row.th.get_text().startswith("M6 · Perplexity is 2 to the power of the loss")
    assert "A fair coin has 2 outcomes" in row.get_text()


def test_a_misconception_that_the_catalogue_lacks_is_counted_all_the_same():
    wrong = ItemResult("A", Outcome.WRONG, 0, 1, "", "M999")
    (row,) = rows(parsed(report_page([Verdict("a", "t", (wrong,))], "t")), "misconceptions")
    assert row.th.get_text() == "M999"


@pytest.mark.parametrize("reasons", [[], ["It is damaged."] * 2])
def test_a_class_without_a_graded_submission_has_a_page(reasons):
    verdicts = [Verdict(f"student-{n}", "tiny", reason=text) for n, text in enumerate(reasons)]
    soup = parsed(report_page(verdicts, "tiny"))
    assert len(rows(soup, "students")) == len(reasons)
    assert "nothing could be graded" in soup.get_text()


def test_verdicts_on_different_versions_of_a_level_stand_side_by_side():
    old = Verdict("ada", "tiny", (ItemResult("A", Outcome.CORRECT, 1, 1),))
    new = Verdict("bo", "tiny", (ItemResult("B", Outcome.WRONG, 0, 1),))
    ada, bo = rows(parsed(report_page([new, old], "tiny")), "students")
    assert [cell.get_text() for cell in ada.find_all("td", class_="cell")] == ["✓", ""]
    assert [cell.get_text() for cell in bo.find_all("td", class_="cell")] == ["", "✗"]


def test_every_outcome_has_a_sign_a_colour_and_a_rank():
    assert set(KINDS) == set(Outcome)
    assert sorted(RANKED) == sorted(sign for sign, _ in SIGNS.values())


def test_what_was_graded_without_a_sandbox_is_said_at_the_top():
    safe, unsafe = Verdict("ada", "tiny"), Verdict("bo", "tiny", confined=False)
    assert UNCONFINED in parsed(report_page([safe, unsafe], "tiny")).header.get_text()
    assert UNCONFINED not in report_page([safe], "tiny")


# --- nothing acts ---------------------------------------------------------------------------------


def alone(page):
    """The page, after seeing that it fetches nothing and runs nothing but its own script."""
    soup = parsed(page)
    (policy,) = (meta["content"] for meta in soup.find_all("meta", {"http-equiv": True}))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for name in ("script", "style"):
        (element,) = soup.find_all(name)
        digest = base64.b64encode(hashlib.sha256(element.string.encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"
        assert element.attrs == {}
    assert not re.search(r"url\(|@import|image-set", soup.style.string)
    for element in soup.find_all(True):
        assert element.name not in ("img", "link", "iframe", "object", "base", "form", "use")
        for attribute, value in element.attrs.items():
            assert not attribute.startswith("on")
            assert attribute not in ("style", "src", "srcset", "xlink:href", "action", "srcdoc")
            if attribute == "href":
                assert value.startswith(("#", "../"))
    return soup


def test_the_page_stands_alone(verdicts):
    alone(report_page(verdicts, "tiny"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_wherever_it_stands(text):
    wrong = ItemResult(text, Outcome.WRONG, 0, 1, text, text)
    waiting = ItemResult(f"{text}2", Outcome.NEEDS_PERSON, None, 1)
    verdicts = [
        Verdict(text, text, (wrong, waiting), notes=(text, text), confined=False, seconds=9),
        Verdict(f"{text}2", text, (wrong, waiting), seconds=1),
        Verdict(f"{text}3", text, (wrong, waiting), seconds=1),
        Verdict(f"{text}4", text, reason=text),
    ]
    page = report_page(verdicts, text)
    soup = alone(page)
    assert all(character.isprintable() or character == "\n" for character in page)
    assert soup.h1.get_text() == f"Class report: {visible(text)}"
    assert [row.th.get_text() for row in rows(soup, "students")] == [
        visible(verdict.student) for verdict in verdicts
    ]
    for section in ("items", "misconceptions", "slow", "repaired"):
        assert rows(soup, section)[0].th.get_text() == visible(text)
    assert rows(soup, "person")[0].td.get_text() == visible(text)


@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1, max_size=40))
def test_any_name_is_shown_as_it_is_or_as_its_escapes(name):
    (row,) = rows(parsed(report_page([Verdict(name, "tiny")], "tiny")), "students")
    assert row.th.get_text() == visible(name)
    assert visible(name).isprintable()


# --- the command ----------------------------------------------------------------------------------


def keep(course, *students):
    for student in students:
        items = (
            ItemResult("T_surprise", Outcome.CORRECT, 2.0, 2),
            ItemResult("T_choices", Outcome.WRONG, 0.0, 2, "No.", "M6"),
            ItemResult("T_words", Outcome.NEEDS_PERSON, None, 1),
        )
        write_whole(Verdict(student, "tiny", items).to_json(), course.verdict("tiny", student))
    fill_gradebook(course, "tiny", kept_verdicts(course, "tiny"))


def test_the_command_writes_the_page_and_says_where(built):
    keep(built, "ada", "bo")
    done = autograde("report", "tiny", cwd=built.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "classroom/report/tiny.html" in done.stdout.replace("\n", "")
    page = (built.classroom / "report" / "tiny.html").read_text("utf-8")
    assert page == report_page(kept_verdicts(built, "tiny"), "tiny")


def test_the_json_is_that_of_the_statistics_and_no_page_is_written(built):
    keep(built, "ada", "bo")
    done = autograde("report", "tiny", "--json", cwd=built.root)
    found = class_statistics(kept_verdicts(built, "tiny"), "tiny")
    assert json.loads(done.stdout) == json.loads(json.dumps(asdict(found)))
    assert not (built.classroom / "report").exists()


def test_a_persons_marks_are_in_it(built):
    keep(built, "ada", "bo", "cy")
    with Gradebook(built.nbgrader.db_url) as book:
        for student, item, points in (
            ("ada", "T_words", 1), ("bo", "T_words", 0.5), ("bo", "test_T_choices", 2),
            ("cy", "test_T_choices", 1), ("cy", "test_T_surprise", 2),
        ):  # fmt: skip
            book.find_grade(item, "tiny", "tiny", student).manual_score = points
        book.db.commit()
    found = json.loads(autograde("report", "tiny", "--json", cwd=built.root).stdout)
    assert found["scores"]["mean"] == pytest.approx((3 + 4.5 + 3) / 3)
    assert found["to_mark"] == [{"item": "T_words", "students": ["cy"]}]
    assert found["statuses"]["graded"] == 2
    outcomes = {item["item"]: item["outcomes"] for item in found["items"]}
    assert (
        outcomes["T_words"] | {"marked by a person": 2, "needs a person": 1} == outcomes["T_words"]
    )
    assert outcomes["T_choices"]["marked by a person"] == 2
    assert outcomes["T_surprise"]["marked by a person"] == 0  # the same mark as before
    # full marks by hand take back that something was wrong; fewer do not
    assert found["misconceptions"][0]["students"] == ["ada", "cy"]
    assert autograde("report", "tiny", cwd=built.root).returncode == 0
    soup = parsed((built.classroom / "report" / "tiny.html").read_text("utf-8"))
    ada, bo, cy = rows(soup, "students")
    assert [row.find(class_="cell", string="+") is not None for row in (ada, bo, cy)] == [True] * 3
    assert cy.find(class_="cell", string="?")


def test_a_class_that_was_not_graded_says_what_to_do(built):
    done = autograde("report", "tiny", cwd=built.root)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run `autograde grade tiny`" in done.stderr


def test_a_student_links_to_the_feedback_where_there_is_some(built):
    student = 'a"b#c%20<?> d'
    keep(built, student, "bo")
    feedback = built.folder("feedback", student, "tiny") / "tiny.html"
    write_whole("<!DOCTYPE html>", feedback)
    soup = alone(write_report(kept_verdicts(built, "tiny"), built, "tiny").read_text("utf-8"))
    linked, other = rows(soup, "students")
    assert linked.a["href"] == "../feedback/a%22b%23c%2520%3C%3F%3E%20d/tiny/tiny.html"
    assert other.a is None
