"""Grading a class: every submission becomes a row, and the row is right."""

import csv
import json
import sqlite3
from collections import Counter
from dataclasses import asdict

import pytest
from nbformat.v4 import new_code_cell, new_output

from autograde import grade
from autograde.course import CourseError, find_course
from autograde.demo import make_class
from autograde.grade import grade_class, grade_student, item_result, prepare
from autograde.master import Item
from autograde.report import write_csv
from autograde.verdict import ItemResult, Outcome, Status, Verdict

ITEM = Item("A", 2.0, by_hand=False)
WORDS = Item("A", 2.0, by_hand=True)


# --- the sample class, graded once by the real command --------------------------------------------


@pytest.fixture(scope="module")
def rows(graded):
    with (graded / "classroom/report/tiny.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def planted(graded):
    manifest = json.loads((graded / "classroom/demo.json").read_text("utf-8"))
    return {student: who["tiny"] for student, who in manifest.items()}


def of(rows, student, item="T_"):
    return [row for row in rows if row["student"] == student and row["item"].startswith(item)]


def test_every_student_of_the_class_has_a_total(rows, planted):
    totals = [row["student"] for row in rows if row["item"] == "total"]
    assert totals == sorted(planted)


def test_right_answers_get_full_marks_however_they_are_written_and_whatever_they_print(
    rows, planted
):
    right = [name for name, plant in planted.items() if plant["expected"] == "full marks"]
    assert len(right) >= 4
    for student in right:
        outcomes = [row["outcome"] for row in of(rows, student)]
        assert outcomes == ["correct"] * 3 + ["needs a person"], planted[student]


def test_a_mutant_loses_points_and_is_told_its_own_message(rows, planted):
    mutants = [name for name, plant in planted.items() if plant["expected"] == "wrong"]
    assert len(mutants) == 2
    for student in mutants:
        for item, message in planted[student]["flaws"].items():
            results = of(rows, student, item)
            assert any(message in row["message"] for row in results)
            assert sum(float(row["points"]) < float(row["max_points"]) for row in results)


def test_only_the_flawed_answer_of_a_broken_submission_loses_points(rows, planted):
    for outcome in ("error", "timed out"):
        broken = [name for name, plant in planted.items() if plant["expected"] == outcome]
        assert broken
        for student in broken:
            ((flawed, _),) = planted[student]["flaws"].items()
            for row in of(rows, student)[:3]:
                is_flawed = row["item"].split("__")[0] == flawed
                assert row["outcome"] == (outcome if is_flawed else "correct"), planted[student]
                assert bool(row["message"]) == is_flawed


def test_an_untouched_submission_scores_nothing_and_needs_nobody(rows, planted):
    (student,) = (name for name, plant in planted.items() if plant["planted"] == "untouched")
    assert {row["outcome"] for row in of(rows, student)} == {"not attempted"}
    (total,) = of(rows, student, "total")
    assert (float(total["points"]), total["status"]) == (0, "graded")


def test_a_half_done_submission_gets_its_half(rows, planted):
    (student,) = (name for name, plant in planted.items() if plant["planted"] == "half done")
    outcomes = [row["outcome"] for row in of(rows, student)]
    assert outcomes == ["correct", "correct", "not attempted", "not attempted"]


def test_what_cannot_be_graded_has_a_reason_and_no_score(rows, planted):
    lost = [name for name, plant in planted.items() if plant["expected"] == "ungradable"]
    assert len(lost) == 2
    for student in lost:
        (total,) = (row for row in rows if row["student"] == student)
        assert (total["item"], total["status"], total["points"]) == ("total", "ungradable", "")
        assert "cell was copied" in total["message"] or "is damaged" in total["message"]


def test_a_submission_that_ends_its_kernel_is_a_row_whatever_came_first(rows, planted):
    (student,) = (name for name, plant in planted.items() if "exit()" in plant["planted"])
    (total,) = (row for row in rows if (row["student"], row["item"]) == (student, "total"))
    assert total["points"] == "5.0" or "ended the Python process" in total["message"]


def test_the_totals_are_the_sums_of_the_items(rows):
    for total in (row for row in rows if row["item"] == "total" and row["points"]):
        known = [row["points"] for row in of(rows, total["student"]) if row["points"]]
        assert float(total["points"]) == sum(map(float, known))
        assert float(total["max_points"]) == 6


def test_the_gradebook_agrees_with_the_table(graded, rows):
    course = find_course(graded)
    query = """select submitted_assignment.student_id, base_cell.name, grade.auto_score
        from grade join base_cell on grade.cell_id = base_cell.id
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        where grade.auto_score is not null"""
    with sqlite3.connect(course.classroom / "gradebook.db") as gradebook:
        scores = {(student, name): score for student, name, score in gradebook.execute(query)}
    for row in (row for row in rows if row["item"] not in ("total", "T_words")):
        assert scores[row["student"], f"test_{row['item']}"] == float(row["points"])


def test_the_table_is_printed_with_the_first_trouble_and_a_summary(graded, rows, planted):
    printed = (graded / "printed").read_text("utf-8")
    assert all(student in printed for student in planted)
    assert "17 submissions" in printed
    assert "classroom/report/tiny.csv" in printed
    assert "that is in bits" in printed
    statuses = Counter(row["status"] for row in rows if row["item"] == "total")
    assert ", ".join(f"{statuses[status]} {status}" for status in Status) in printed
    assert "Traceback" not in printed
    assert "exit code 1" in printed  # some need a person


# --- one submission -------------------------------------------------------------------------------


def score_in_gradebook(course):
    with sqlite3.connect(course.classroom / "gradebook.db") as gradebook:
        return gradebook.execute("select sum(auto_score) from grade").fetchone()[0]


def test_no_old_score_is_left_for_a_resubmission_that_cannot_be_graded(built):
    make_class(built, 1, force=False)
    (student,) = built.submitted_students("tiny")
    prepare(built, "tiny")
    assert grade_student(built.root, "tiny", student, 10).points == 5
    assert score_in_gradebook(built) == 5
    path = built.notebook("submitted", "tiny", student)
    text = path.read_text("utf-8")
    for broken in (
        text[:100],
        text.replace('"import math"', '"import os; os._exit(1)"'),
        text.replace('"schema_version": 3', '"schema_version": 1', 1),
    ):
        path.write_text(broken, "utf-8")
        verdict = grade_student(built.root, "tiny", student, 10)
        assert (verdict.status, verdict.points) == (Status.UNGRADABLE, None)
        assert score_in_gradebook(built) is None
        with sqlite3.connect(built.classroom / "gradebook.db") as gradebook:
            gradebook.execute("update grade set auto_score = 1")  # as after an earlier, good run


def test_a_file_under_another_name_is_named_in_the_reason(built):
    make_class(built, 1, force=False)
    (student,) = built.submitted_students("tiny")
    path = built.notebook("submitted", "tiny", student)
    path.rename(path.with_name("tiny (1).ipynb"))
    verdict = grade_student(built.root, "tiny", student, 10)
    assert verdict.reason == "there is no tiny.ipynb, but tiny (1).ipynb"


def test_a_dying_grading_process_costs_only_its_own_submission(built, monkeypatch):
    make_class(built, 2, force=False)
    kill_the_grader = '"import os, signal; os.kill(os.getppid(), signal.SIGKILL)"'
    students = built.submitted_students("tiny")
    path = built.notebook("submitted", "tiny", students[0])
    path.write_text(path.read_text("utf-8").replace('"import math"', kill_the_grader), "utf-8")
    prepare(built, "tiny")
    verdicts = {v.student: v for v in grade_class(built, "tiny", students, timeout=10, jobs=2)}
    assert verdicts[students[0]].reason == "its code ended the grading process"
    assert verdicts[students[1]].status == Status.PARTLY


def test_a_level_is_graded_by_the_tests_it_was_built_with(built):
    with (built.masters / "tiny.py").open("a", encoding="utf-8") as file:
        file.write("\n# %% [markdown]\n# One more thing.\n")
    with pytest.raises(CourseError, match="has changed: run `autograde build tiny`"):
        prepare(built, "tiny")
    built.notebook("source", "tiny").unlink()
    with pytest.raises(CourseError, match="has not been built"):
        prepare(built, "tiny")


# --- one item -------------------------------------------------------------------------------------


def cell(source="mine", error=None, value=""):
    outputs = [new_output("error", ename=error, evalue=value, traceback=[])] if error else []
    return new_code_cell(source, outputs=outputs)


def result(answer, test, score=0.0, item=ITEM):
    released = {"A": cell("..."), "test_A": cell("assert")}
    return item_result(item, released, {"A": answer, "test_A": test}, score, timeout=30)


@pytest.mark.parametrize(
    ("answer", "test", "score", "outcome", "message"),
    [
        (cell(), cell(), 2.0, Outcome.CORRECT, ""),
        (cell("..."), cell(error="AssertionError", value="no"), 0.0, Outcome.NOT_ATTEMPTED, ""),
        (cell(), cell(error="NotAttempted", value="write it"), 0.0, "not attempted", "write it"),
        (cell(), cell(error="AssertionError", value="a\nb\n"), 0.0, Outcome.WRONG, "b"),
        (cell(), cell(error="Wrong", value="the sum"), 0.0, Outcome.WRONG, "the sum"),
        (cell(), cell(error="AssertionError"), 0.0, "wrong", "a check failed without a message"),
        (cell(), cell(error="TypeError", value="no"), 0.0, Outcome.ERROR, "TypeError: no"),
        (cell(), cell(), 1.0, Outcome.WRONG, "partly right"),
        (
            cell(error="SyntaxError", value="bad (1234567.py, line 3)"),
            cell(error="NameError", value="f"),
            0.0,
            Outcome.ERROR,
            "SyntaxError: bad (line 3)",
        ),
        (
            cell(error="CellTimeoutError"),
            cell(error="NameError", value="f"),
            0.0,
            Outcome.TIMED_OUT,
            "the answer cell took longer than 30 s",
        ),
        (
            cell(),
            cell(error="KeyboardInterrupt"),
            0.0,
            Outcome.TIMED_OUT,
            "the test took longer than 30 s",
        ),
    ],
)
def test_an_outcome_says_what_happened(answer, test, score, outcome, message):
    got = result(answer, test, score)
    assert (got.outcome, got.points, got.message) == (outcome, score, message)


def test_a_missing_score_waits_for_a_person():
    assert result(cell(), cell(), score=None).outcome == Outcome.NEEDS_PERSON


def test_a_missing_test_cell_waits_for_a_person_with_a_reason():
    got = item_result(ITEM, {"A": cell("...")}, {"A": cell()}, 2.0, timeout=30)
    assert (got.outcome, got.points) == (Outcome.NEEDS_PERSON, None)
    assert "test_A is missing" in got.message


def test_a_missing_answer_cell_is_no_attempt():
    got = item_result(ITEM, {"A": cell("...")}, {"test_A": cell()}, 0.0, timeout=30)
    assert got.outcome == Outcome.NOT_ATTEMPTED


def test_a_written_answer_waits_for_a_person_until_it_is_marked():
    assert result(cell(), None, None, WORDS).outcome == Outcome.NEEDS_PERSON
    assert result(cell(), None, 2.0, WORDS).outcome == Outcome.CORRECT
    assert result(cell(), None, 1.0, WORDS).outcome == Outcome.WRONG
    assert result(cell("..."), None, 0.0, WORDS).outcome == Outcome.NOT_ATTEMPTED


def test_a_message_is_one_printable_line_of_bounded_length():
    got = result(cell(), cell(error="Wrong", value="\x1b[31mred\x1b[0m\x07" + "x" * 10**6))
    assert got.message.startswith("red\N{REPLACEMENT CHARACTER}xxx")
    assert len(got.message) == grade.MESSAGE_LENGTH


def test_the_names_of_wrong_answers_are_those_that_check_raises():
    from course_lib.check import NotAttempted, Wrong

    assert Wrong.__name__ in grade.WRONG
    assert NotAttempted.__name__ == "NotAttempted"


# --- rows -----------------------------------------------------------------------------------------


def verdict(*results, reason=""):
    return Verdict("student", "tiny", tuple(results), reason)


def test_a_submission_is_graded_only_if_all_points_are_known():
    right = ItemResult("A", Outcome.CORRECT, 2, 2)
    open_ = ItemResult("B", Outcome.NEEDS_PERSON, None, 3)
    assert verdict(right).status == Status.GRADED
    assert verdict(right, open_).status == Status.PARTLY
    assert (verdict(right, open_).points, verdict(right, open_).max_points) == (2, 5)
    assert verdict(reason="damaged").status == Status.UNGRADABLE
    assert verdict(reason="damaged").points is None


def test_a_verdict_is_plain_data():
    given = verdict(ItemResult("A", Outcome.CORRECT, 2, 2))
    back = json.loads(json.dumps(asdict(given)))
    assert back["items"] == [
        {"item": "A", "outcome": "correct", "points": 2, "max_points": 2, "message": ""}
    ]


@pytest.mark.parametrize("message", ['say "a, b"', "two\nlines", "=1+1", "@x", "-1", "ü ✗"])
def test_a_report_keeps_any_message_in_its_own_field_and_runs_none(tmp_path, message):
    path = tmp_path / "report" / "tiny.csv"
    write_csv([verdict(ItemResult("A", Outcome.WRONG, 0, 2, message))], path)
    with path.open(encoding="utf-8", newline="") as file:
        first, total = csv.DictReader(file)
    assert first["message"].removeprefix("'") == message
    assert not first["message"].startswith(("=", "@", "-"))
    assert (first["points"], total["item"], total["max_points"]) == ("0", "total", "2")
    assert [other.name for other in path.parent.iterdir()] == ["tiny.csv"]
