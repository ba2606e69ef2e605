"""One submission becomes one verdict, and a class of them the rows that an instructor reads."""

import csv
import json
import sqlite3
from collections import Counter
from dataclasses import asdict, replace

import pytest

from autograde.assignment import load_assignment
from autograde.course import find_course
from autograde.export import write_csv
from autograde.grade import grade
from autograde.limits import Limits
from autograde.master import cells_by_id
from autograde.notebook import notebook_text, read_notebook
from autograde.table import UNCONFINED, summary, table
from autograde.verdict import MESSAGE_LENGTH, ItemResult, Outcome, Status, Verdict

RIGHT = {
    "T_surprise": "def surprise(p):\n    return -math.log(p)",
    "T_choices": "choices = 8",
    "T_words": "Each bit doubles them.",
}
ITEMS = ["T_surprise", "T_surprise__sign", "T_choices", "T_words"]
LIMITS = Limits(cpu_s=1, wall_s=9, grace_s=0.5, memory=100 << 20)


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


def test_right_answers_get_full_marks_whatever_else_happened(rows, planted):
    right = {name: plant for name, plant in planted.items() if plant["expected"] == "full marks"}
    kinds = {plant["planted"].split(" ")[0] for plant in right.values()}
    assert kinds == {"reference", "styles", "prints", "exit()", "a"}
    for student, plant in right.items():
        outcomes = [row["outcome"] for row in of(rows, student)]
        assert outcomes == ["correct"] * 3 + ["needs a person"], plant


def test_what_was_put_right_in_a_file_is_noted_beside_the_total(rows, planted):
    names = {plant["planted"]: student for student, plant in planted.items()}
    cut, muddled = names["truncated file"], names["a test deleted, one copied"]
    noted = {row["student"] for row in rows if row["notes"]}
    assert noted == {cut, muddled}
    assert "The file is damaged or cut off" in of(rows, cut, "total")[0]["notes"]
    (total,) = of(rows, muddled, "total")
    assert "The cell test_T_surprise was missing; it was put back." in total["notes"]
    assert "The cell test_T_surprise__sign was there 2 times." in total["notes"]


def test_a_mutant_loses_points_and_is_told_its_own_message(rows, planted):
    mutants = [name for name, plant in planted.items() if plant["expected"] == "wrong"]
    assert len(mutants) == 2
    for student in mutants:
        for item, message in planted[student]["flaws"].items():
            results = of(rows, student, item)
            assert any(message in row["message"] for row in results)
            assert any(float(row["points"]) < float(row["max_points"]) for row in results)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("error", "(line "),
        ("timed out", "longer than 2 s"),
        ("out of memory", "more memory than there is"),
        ("crashed", "SIGSEGV"),
    ],
)
def test_only_the_flawed_answer_of_a_broken_submission_loses_points(rows, planted, outcome, words):
    broken = [name for name, plant in planted.items() if plant["expected"] == outcome]
    assert broken
    for student in broken:
        ((flawed, _),) = planted[student]["flaws"].items()
        for row in of(rows, student)[:3]:
            is_flawed = row["item"].split("__")[0] == flawed
            assert row["outcome"] == (outcome if is_flawed else "correct"), planted[student]
            assert (words in row["message"]) == is_flawed


def test_an_untouched_submission_scores_nothing_and_needs_nobody(rows, planted):
    (student,) = (name for name, plant in planted.items() if plant["planted"] == "untouched")
    assert {row["outcome"] for row in of(rows, student)} == {"not attempted"}
    (total,) = of(rows, student, "total")
    assert (float(total["points"]), total["status"]) == (0, "graded")


def test_of_half_a_submission_the_half_that_is_there_counts(rows, planted):
    parts = {
        plant["planted"]: name for name, plant in planted.items() if "part" in plant["expected"]
    }
    assert set(parts) == {"half done", "truncated file"}
    for student in parts.values():
        outcomes = [row["outcome"] for row in of(rows, student)]
        assert outcomes == ["correct", "correct", "not attempted", "not attempted"]


def test_what_cannot_be_graded_has_a_reason_and_no_score(rows, planted):
    (lost,) = (name for name, plant in planted.items() if plant["expected"] == "ungradable")
    (total,) = (row for row in rows if row["student"] == lost)
    assert (total["item"], total["status"], total["points"]) == ("total", "ungradable", "")
    assert "empty" in total["message"]


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


def test_every_verdict_is_kept_and_says_what_the_table_says(graded, rows, planted):
    course = find_course(graded)
    for student in planted:
        kept = Verdict.from_json(course.verdict("tiny", student).read_text("utf-8"))
        assert [(i.item, i.outcome, i.message) for i in kept.items] == [
            (row["item"], row["outcome"], row["message"]) for row in of(rows, student)
        ]
        assert kept.confined


def test_the_table_is_printed_with_the_first_trouble_and_a_summary(graded, rows, planted):
    printed = (graded / "printed").read_text("utf-8")
    assert all(student in printed for student in planted)
    assert "17 submissions" in printed
    assert "classroom/report/tiny.csv" in printed
    assert (graded / "classroom/report/tiny.html").is_file()
    assert "that is in bits" in printed
    statuses = Counter(row["status"] for row in rows if row["item"] == "total")
    assert ", ".join(f"{statuses[status]} {status}" for status in Status) in printed
    assert "note: The cell" in printed
    assert "Traceback" not in printed
    assert "WITHOUT a sandbox" not in printed
    assert "exit code 1" in printed  # some need a person


# --- one submission -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(built_once):
    return load_assignment(find_course(built_once), "tiny")


def submission(tiny, extra=(), **answers):
    """The bytes of a notebook with these answers; `extra` are code cells at the top."""
    notebook = json.loads(notebook_text(tiny.release))
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    notebook["cells"][:0] = [{"cell_type": "code", "metadata": {}, "source": s} for s in extra]
    return json.dumps(notebook).encode()


@pytest.fixture
def verdict_on(tiny, nursery):
    def verdict_on(extra=(), limits=LIMITS, **answers):
        given = RIGHT | answers
        return grade(submission(tiny, extra, **given), tiny, nursery, limits=limits).verdict

    return verdict_on


def outcomes(verdict):
    return [item.outcome.value for item in verdict.items]


def test_right_answers_are_right_and_words_wait_for_a_person(verdict_on):
    verdict = verdict_on()
    assert [item.item for item in verdict.items] == ITEMS
    assert outcomes(verdict) == ["correct", "correct", "correct", "needs a person"]
    assert (verdict.points, verdict.max_points, verdict.status) == (5, 6, Status.PARTLY)


def test_grading_twice_gives_the_same_verdict(verdict_on):
    answer = "import random\nchoices = random.randrange(10**9)"
    assert verdict_on(T_choices=answer) == verdict_on(T_choices=answer)


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        ("choices = 8\n)", "error", "SyntaxError: unmatched ')' (line 2 of the cell)"),
        ("choices = 1 / 0", "error", "ZeroDivisionError: division by zero (line 1 of the cell)"),
        ("choice = 8", "error", "`choices` is not defined. Is it spelled as the text asks, and"),
        ("choices = '8'", "wrong", "answer with a whole number"),
        ("choices = 9", "wrong", "three bits are eight choices"),
        ("choices = 9\nraise SystemExit", "wrong", "three bits are eight choices"),
        ("while True: pass", "timed out", "The cell took longer than 1 s."),
        (
            "import numpy\nhoard = [numpy.ones(1 << 20) for _ in range(1000)]",
            "out of memory",
            "In this cell your code used more than 100 MiB of memory.",
        ),
        ("choices = bytearray(1 << 45)", "out of memory", "The cell asked for more memory than"),
        (
            "import ctypes\nctypes.string_at(0)",
            "crashed",
            "In this cell Python crashed with SIGSEGV.",
        ),
        (
            "import os\nos._exit(0)",
            "crashed",
            "In this cell your code ended Python itself, with exit code 0.",
        ),
    ],
)
def test_a_flawed_answer_costs_its_own_points_and_says_why(verdict_on, answer, outcome, message):
    verdict = verdict_on(T_choices=answer)
    assert outcomes(verdict) == ["correct", "correct", outcome, "needs a person"]
    assert verdict.items[2].message.startswith(message)
    assert verdict.items[2].points == 0


@pytest.mark.parametrize(
    ("body", "outcome", "message"),
    [
        ("    while True: pass", "timed out", "`surprise` was still running when its time was up."),
        (
            "    import os\n    os._exit(0)",
            "crashed",
            "While this was tested, your code ended Python itself, with exit code 0.",
        ),
        ("    return surprise(p)", "error", "`surprise` raised RecursionError: maximum recursion"),
        ("    exit()", "wrong", "certainty has no surprise"),
    ],
)
def test_a_function_that_fails_when_called_costs_no_other_answer(
    verdict_on, body, outcome, message
):
    verdict = verdict_on(T_surprise=f"def surprise(p):\n{body}")
    assert outcomes(verdict)[0] == outcome
    assert verdict.items[0].message.startswith(message)
    assert outcomes(verdict)[2] == "correct"


def test_what_went_well_before_a_crash_is_there_after_it(verdict_on):
    crash = "helper = 1\nimport os\nos.abort()"
    verdict = verdict_on([crash, "base = 6"], T_choices="choices = base + 2")
    assert outcomes(verdict)[2] == "correct"
    verdict = verdict_on([crash], T_choices="choices = helper + 7")
    assert verdict.items[2].message.startswith("NameError: name 'helper' is not defined")


def test_a_cell_of_the_students_own_may_fail_and_costs_nothing(verdict_on):
    assert outcomes(verdict_on(["1 / 0", "oops(", "input('name')"]))[:3] == ["correct"] * 3


def test_a_notebook_that_uses_up_its_time_keeps_what_was_proven(verdict_on):
    limits = replace(LIMITS, cpu_s=30, notebook_wall_s=1)
    verdict = verdict_on(limits=limits, T_choices="import time\ntime.sleep(60)\nchoices = 8")
    assert outcomes(verdict)[:3] == ["correct", "correct", "timed out"]
    assert verdict.seconds < 10


def test_an_untouched_answer_is_no_attempt_even_if_it_fails(tiny, nursery):
    verdict = grade(submission(tiny), tiny, nursery, limits=LIMITS).verdict
    assert outcomes(verdict) == ["not attempted"] * 4
    assert verdict.status == Status.GRADED


def test_what_is_no_notebook_of_this_level_has_a_reason_and_no_points(tiny, nursery):
    for data in (b"", b"%PDF-1.7", b'{"cells": []}', submission(tiny)[:100]):
        verdict = grade(data, tiny, nursery, student="ada").verdict
        assert (verdict.student, verdict.status, verdict.points) == ("ada", "ungradable", None)
        assert verdict.reason.endswith((".", ")"))


def test_a_changed_test_cell_is_graded_as_given_out_and_noted(tiny, nursery):
    data = submission(tiny, **RIGHT | {"T_choices": "choices = 9", "test_T_choices": "pass"})
    verdict = grade(data, tiny, nursery, limits=LIMITS).verdict
    assert outcomes(verdict)[2] == "wrong"
    assert "The cell test_T_choices had been changed" in verdict.notes[0]


def test_a_message_is_one_printable_line_of_bounded_length(verdict_on):
    raising = "raise ValueError('\\x1b[31mred\\nnext\\ud800' + 'x' * 10**6)"
    message = verdict_on(T_choices=raising).items[2].message
    assert message.startswith("ValueError: \N{REPLACEMENT CHARACTER}[31mred next?xxx")
    assert len(message) <= MESSAGE_LENGTH


def test_the_graded_notebook_shows_outputs_and_no_hidden_test(tiny, nursery):
    answer = "print('my working')\nprint('\\ud800\\0')\nchoices = 8"
    data = submission(tiny, **RIGHT | {"T_choices": answer})
    graded = grade(data, tiny, nursery, limits=LIMITS)
    cells = cells_by_id(graded.notebook)
    assert "my working" in cells["T_choices"].outputs[0].text
    text = notebook_text(graded.notebook)
    assert "that is in bits" not in text
    text.encode("utf-8")
    assert graded.notebook.metadata["autograde"] == {"confined": nursery.confined}


def test_a_mark_scheme_stands_above_the_answer_that_it_is_for(graded):
    ran = find_course(graded).notebook("autograded", "tiny", "obrien-001")
    cells = read_notebook(ran).cells
    (at,) = (number for number, cell in enumerate(cells) if cell.id == "T_words")
    assert "One point for the doubling." in cells[at - 1].source
    assert sum("One point" in cell.source for cell in cells) == 1


def test_the_release_alone_tells_nothing_of_the_hidden_tests(built_once):
    course = find_course(built_once)
    assert "that is in bits" not in notebook_text(read_notebook(course.notebook("release", "tiny")))


# --- rows -----------------------------------------------------------------------------------------


def verdict(*results, **fields):
    return Verdict("student", "tiny", tuple(results), **fields)


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
        {
            "item": "A",
            "outcome": "correct",
            "points": 2,
            "max_points": 2,
            "message": "",
            "misconception": "",
        }
    ]


@pytest.mark.parametrize(
    "message", ['say "a, b"', "two\nlines", "=1+1", "@x", "-1", "+1", "\t=1", "ü ✗", "a;b"]
)
def test_a_report_keeps_any_message_in_its_own_field_and_runs_none(tmp_path, message):
    path = tmp_path / "report" / "tiny.csv"
    given = verdict(ItemResult("A", Outcome.WRONG, 0, 2, message, "M6"), notes=(message, "b"))
    write_csv([given], path)
    with path.open(encoding="utf-8", newline="") as file:
        first, total = csv.DictReader(file)
    assert first["message"].removeprefix("'") == message
    assert (first["misconception"], total["misconception"]) == ("M6", "")
    assert total["notes"].removeprefix("'") == f"{message} b"
    assert not first["message"].startswith(("=", "@", "-", "+", "\t"))
    assert (first["points"], total["item"], total["max_points"]) == ("0", "total", "2")
    assert [other.name for other in path.parent.iterdir()] == ["tiny.csv"]


def test_what_was_graded_without_a_sandbox_says_so_wherever_it_is_read(tmp_path):
    item = ItemResult("A", Outcome.CORRECT, 2, 2)
    safe, unsafe = verdict(item), verdict(item, confined=False)
    assert UNCONFINED in table([safe, unsafe], "tiny").caption
    assert UNCONFINED in summary([safe, unsafe])
    assert UNCONFINED not in table([safe], "tiny").caption + summary([safe])
    write_csv([safe, unsafe], tmp_path / "tiny.csv")
    with (tmp_path / "tiny.csv").open(encoding="utf-8", newline="") as file:
        assert [row["confined"] for row in csv.DictReader(file)] == ["yes", "yes", "no", "no"]
    assert json.loads(unsafe.to_json())["confined"] is False
