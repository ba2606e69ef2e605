"""`autograde export`: files that other programs read, with everybody's own points in them."""

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook
from test_gradebook import VERDICTS
from tiny_course import autograde
from zips import canvas as canvas_name
from zips import make_zip, notebook
from zips import moodle as moodle_name

from autograde.collect import open_batch
from autograde.course import Course, CourseError, find_course
from autograde.export import export, write_csv
from autograde.files import write_whole
from autograde.formats import Format
from autograde.gradebook import Scores
from autograde.marks import read_marks
from autograde.roster import read_roster
from autograde.sheet import csv_text, harmless, original
from autograde.store import kept_verdicts
from autograde.verdict import Outcome, Verdict

ITEMS = VERDICTS[1].items  # each of the level's, with nothing attempted
HOSTILE = [
    "O'Neil, Bo",
    '=HYPERLINK("http://x","y")',
    "👩‍🔬 Zoë",
    "עדה לאבלייס",
    "-2+3",
    "@SUM(A1)",
    "'quoted",
    "＝1+1",
]
DUE, LATE = "2026-12-01 17:00:00 UTC", "2026-12-01 18:00:00 UTC"


def verdict(student: str, *points: float | None) -> Verdict:
    """A verdict that gives these points for the items of the tiny level, in order."""
    items = []
    for item, got in zip(ITEMS, points, strict=True):
        outcome = Outcome.NEEDS_PERSON if got is None else Outcome.WRONG
        outcome = Outcome.CORRECT if got == item.max_points else outcome
        items.append(replace(item, outcome=outcome, points=got, message='a, "b"\n\'c'))
    return Verdict(student, "tiny", tuple(items))


def enter(course: Course, *verdicts: Verdict) -> None:
    for each in verdicts:
        write_whole(each.to_json(), course.verdict("tiny", each.student))
    with Scores(course, "tiny") as scores:
        for each in verdicts:
            scores.write(each)


def rows_of(path: Path) -> list[list[str]]:
    return [
        [original(field) for field in row]
        for row in csv.reader(io.StringIO(path.read_text("utf-8"), newline=""))
    ]


@pytest.fixture
def course(entered: Course) -> Course:
    """Eight students with hostile names, who have from 0 to 6 points and one late penalty."""
    with (entered.root / "nbgrader_config.py").open("a") as file:
        file.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    course = find_course(entered.root)
    points = [(2, 1, 2, 1), (2, 1, 2, 0.5), (2, 1, 0, 1), (2, 0, 0, 0), (0, 1, 0, 0)]
    points += [(0, 0, 0, 0), (2, 0, 2, 0), (2, 1, 2, None)]
    students = [name.replace("/", "_") for name in HOSTILE]
    verdicts = [verdict(student, *p) for student, p in zip(students, points, strict=True)]
    enter(course, *verdicts, Verdict("lost", "tiny", reason="The file is empty."))
    with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as book:
        book.update_or_create_assignment("tiny", duedate=DUE)
    late = course.folder("submitted", students[0], "tiny") / "timestamp.txt"
    write_whole(LATE, late)
    return course


# --- for people -----------------------------------------------------------------------------------


def test_a_row_a_student_adds_up_and_reads_back_whatever_the_names(course):
    path, left_out = export(course, "tiny", Format.CSV)
    header, *rows = rows_of(path)
    assert left_out == []
    found = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert set(found) == {*(name.replace("/", "_") for name in HOSTILE), "lost"}
    items = [item.item for item in ITEMS]
    for student, row in found.items():
        if student == "lost":
            assert row["missing"] == "The file is empty."
            assert {row[name] for name in (*items, "points", "penalty", "final")} == {""}
            continue
        got = [float(row[item]) for item in items if row[item]]
        assert float(row["points"]) == sum(got)
        assert float(row["max_points"]) == 6
        if row["missing"]:
            assert (row["missing"], row["final"]) == ("to be marked by hand: T_words", "")
        else:
            assert float(row["final"]) == float(row["points"]) - float(row["penalty"])
    late = found[HOSTILE[0]]
    assert (late["points"], late["penalty"], late["final"]) == ("6.0", "6.0", "0.0")
    assert late["submitted"] == "2026-12-01 18:00:00 UTC"


def test_no_cell_of_any_table_begins_like_a_formula(course):
    write_csv([replace(verdict("=1", 1, 1, 1, 1), notes=("+1",))], course.report("tiny"))
    for path in (export(course, "tiny", Format.CSV)[0], course.report("tiny")):
        for row in csv.reader(io.StringIO(path.read_text("utf-8"), newline="")):
            assert not [field for field in row if field.startswith(("=", "+", "-", "@", "＝"))]


@given(st.text())
def test_what_is_made_harmless_can_be_read_back(text):
    made = harmless(text)
    assert original(made) == text
    assert made == "-" or not made.startswith(("=", "+", "-", "@", "＝", "\t", "\r", "\n"))
    ((field, _),) = csv.reader(io.StringIO(csv_text([[text, 1.5]]), newline=""))
    assert original(field) == text


def test_json_says_all_of_it(course):
    path, _ = export(course, "tiny", Format.JSON)
    found = {one["student"]: one for one in json.loads(path.read_text("utf-8"))}
    assert set(found) == {*(name.replace("/", "_") for name in HOSTILE), "lost"}
    late = found[HOSTILE[0]]
    assert (late["points"], late["penalty"], late["final"], late["max_points"]) == (6, 6, 0, 6)
    assert late["submitted"] == "2026-12-01T18:00:00Z"
    assert [i["points"] for i in found[HOSTILE[7]]["items"]] == [2, 1, 2, None]
    assert (found["lost"]["points"], found["lost"]["missing"]) == (None, "The file is empty.")
    assert found["lost"]["items"] == []


def test_a_persons_marks_count_in_every_format(course):
    student = HOSTILE[7]
    with Gradebook(course.nbgrader.db_url) as book:
        grade = book.find_grade("T_words", "tiny", "tiny", student)
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 0.5, 0.25, False
        book.db.commit()
    header, *rows = rows_of(export(course, "tiny", Format.CSV)[0])
    (row,) = (dict(zip(header, row, strict=True)) for row in rows if row[0] == student)
    assert (row["T_words"], row["points"], row["final"]) == ("0.75", "5.75", "5.75")
    path, left_out = export(course, "tiny", Format.GRADESCOPE)
    assert json.loads((path / student / "results.json").read_text("utf-8"))["score"] == 5.75
    assert left_out == ["lost: The file is empty."]


def test_a_gradebook_that_is_behind_the_verdicts_is_not_exported(course):
    newer = verdict(HOSTILE[5], 2, 1, 2, 1)
    write_whole(newer.to_json(), course.verdict("tiny", newer.student))
    with pytest.raises(CourseError, match="run `autograde gradebook tiny`"):
        export(course, "tiny", Format.CSV)
    write_whole(verdict("new", 0, 0, 0, 0).to_json(), course.verdict("tiny", "new"))
    course.verdict("tiny", newer.student).unlink()
    with pytest.raises(CourseError, match=r"behind the verdict on new: .*, or delete .*new\.json"):
        export(course, "tiny", Format.JSON)


def test_one_who_has_withdrawn_is_no_hindrance_to_grading_the_others(course):
    others = kept_verdicts(course, "tiny")
    write_whole(verdict("gone", 0, 0, 0, 0).to_json(), course.verdict("tiny", "gone"))
    assert [marks.student for marks in read_marks(course, "tiny", others)] == [
        one.student for one in others
    ]


def test_gradescope_gets_scores_that_add_up_and_outputs_that_are_text(course):
    path, _ = export(course, "tiny", Format.GRADESCOPE)
    results = {p.parent.name: json.loads(p.read_text("utf-8")) for p in path.glob("*/results.json")}
    assert len(results) == 7  # not whom a person must mark, nor who has no points
    for student, result in results.items():
        assert result["output_format"] == "text"
        total = sum(test["score"] for test in result["tests"])
        assert result["score"] == (0 if student == HOSTILE[0] else total)
        assert all(t["score"] <= t["max_score"] for t in result["tests"])
    assert "6 points were taken off" in results[HOSTILE[0]]["output"]
    shutil.rmtree(course.verdict("tiny", "any").parent)
    enter(course, verdict("only", 0, 0, 0, 0))
    export(course, "tiny", Format.GRADESCOPE)
    assert [p.name for p in path.iterdir()] == ["only"]  # nothing of an export before


# --- there and back -------------------------------------------------------------------------------


def collect(course: Course, names: dict[str, str], tmp_path: Path) -> list[str]:
    """Collect these files; the students that they became."""
    with open_batch(course, "tiny", make_zip(tmp_path / "z.zip", names)) as batch:
        return [one.student for one in batch]


@pytest.fixture
def from_canvas(entered: Course, tmp_path: Path) -> Course:
    names = {
        canvas_name(11, 1, "lovelaceada"): notebook("a"),
        canvas_name(12, 2, "müllerbo"): notebook("b"),
        canvas_name(13, 3, "cy"): notebook("c"),
    }
    students = collect(entered, names, tmp_path)
    assert students == ["lovelaceada_11", "müllerbo_12", "cy_13"]
    enter(
        entered,
        verdict(students[0], 2, 1, 2, 1),
        verdict(students[1], 2, 0, 0.25, 0),
        verdict(students[2], 2, 1, 2, None),
        verdict("by hand", 0, 0, 0, 0),
    )
    return entered


GRADES = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Essay (5),Level 2 (77),Final Score
    Points Possible,,,,,9,100,(read only)
"Müller, Bo",12,S12,bo,Mon,3,1,80
"=cmd|' /C calc'!A0",11,S11,ada,"Tue, 9",,90,
"Absent, Al",19,S19,al,Mon,,5,1
"Hand, By",14,S14,by hand,Mon,,,
"""


def test_canvas_gets_its_ids_back_and_no_row_for_whom_it_would_lose_a_grade(from_canvas):
    path, left_out = export(from_canvas, "tiny", Format.CANVAS, title="Level 2")
    assert rows_of(path) == [
        ["Student", "ID", "SIS Login ID", "Section", "Level 2"],
        ["    Points Possible", "", "", "", "6"],
        ["lovelaceada", "11", "", "", "6.0"],
        ["müllerbo", "12", "", "", "2.25"],
    ]
    assert left_out == [
        "by hand: not known to Canvas",
        "cy_13: to be marked by hand: T_words",
    ]


def test_those_left_out_for_one_reason_share_a_line(from_canvas):
    enter(from_canvas, verdict("lovelaceada_11", 2, 1, 2, None))
    _, left_out = export(from_canvas, "tiny", Format.CANVAS)
    assert left_out == [
        "by hand: not known to Canvas",
        "2: to be marked by hand: T_words: cy_13, lovelaceada_11",
    ]


def test_canvass_own_gradebook_gets_its_column_filled_and_everything_else_left_out(
    from_canvas, tmp_path
):
    (tmp_path / "g.csv").write_text(GRADES, "utf-8")
    roster = read_roster(tmp_path / "g.csv")
    path, left_out = export(from_canvas, "tiny", Format.CANVAS, roster, "Level 2")
    assert rows_of(path) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Level 2 (77)"],
        ["    Points Possible", "", "", "", "", "100"],
        ["Müller, Bo", "12", "S12", "bo", "Mon", "2.25"],
        ["=cmd|' /C calc'!A0", "11", "S11", "ada", "Tue, 9", "6.0"],
        ["Hand, By", "14", "S14", "by hand", "Mon", "0.0"],
    ]
    assert left_out == ["cy_13: to be marked by hand: T_words"]
    assert "\"'=cmd|" in path.read_text("utf-8")


def test_a_level_that_canvas_does_not_have_yet_becomes_a_column(from_canvas, tmp_path):
    (tmp_path / "g.csv").write_text(GRADES, "utf-8")
    path, _ = export(from_canvas, "tiny", Format.CANVAS, read_roster(tmp_path / "g.csv"))
    header, points, *_ = rows_of(path)
    assert (header[-1], points[-1]) == ("tiny", "6")


@pytest.fixture
def from_moodle(entered: Course, tmp_path: Path) -> Course:
    names = {moodle_name(1, "Ada Lovelace"): notebook("a"), moodle_name(2, "-Bo"): notebook("b")}
    students = collect(entered, names, tmp_path)
    assert students == ["Ada Lovelace", "Bo"]
    enter(entered, verdict("Ada Lovelace", 2, 1, 2, 1), verdict("Bo", 0, 0, 0, 1))
    return entered


def test_moodle_gets_its_participants_back(from_moodle):
    path, left_out = export(from_moodle, "tiny", Format.MOODLE)
    assert left_out == []
    assert rows_of(path) == [
        ["Identifier", "Full name", "Grade", "Last modified (grade)"],
        ["Participant 1", "Ada Lovelace", "6.0", "-"],
        ["Participant 2", "-Bo", "1.0", "-"],
    ]


def test_moodles_own_worksheet_keeps_its_times_and_order(from_moodle, tmp_path):
    (tmp_path / "w.csv").write_text(
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,"
        "Last modified (grade),Notes\n"
        'Participant 2,-Bo,bo@x.org,Submitted,0.00,6.00,"Monday, 7 December 2026, 9:00 AM",hello\n'
        "Participant 9,Nobody,no@x.org,No submission,,6.00,-,\n"
        "Participant 1,Ada Lovelace,ada@x.org,Submitted,,6.00,-,\n"
    )
    roster = read_roster(tmp_path / "w.csv")
    path, _ = export(from_moodle, "tiny", Format.MOODLE, roster)
    assert rows_of(path) == [
        ["Identifier", "Full name", "Grade", "Last modified (grade)"],
        ["Participant 2", "-Bo", "1.0", "Monday, 7 December 2026, 9:00 AM"],
        ["Participant 1", "Ada Lovelace", "6.0", "-"],
    ]
    with pytest.raises(CourseError, match="not Canvas's"):
        export(from_moodle, "tiny", Format.CANVAS, roster)


def test_without_a_list_an_lms_that_nothing_came_from_is_one_sentence(from_moodle):
    with pytest.raises(CourseError, match="give its list of students with --roster"):
        export(from_moodle, "tiny", Format.CANVAS)


# --- answers for a plagiarism check ---------------------------------------------------------------


def test_sources_are_the_answers_of_each_student_and_what_everybody_was_given(graded, tmp_path):
    shutil.copytree(graded, tmp_path / "course")
    course = find_course(tmp_path / "course")
    path, _ = export(course, "tiny", Format.SOURCES)
    base = (path / "base/tiny.py").read_text("utf-8")
    given = [line for line in base.splitlines() if line.strip()]
    assert "def surprise(p):" in given
    students = {p.parent.name: p.read_text("utf-8") for p in path.glob("students/*/tiny.py")}
    planted = json.loads((course.classroom / "demo.json").read_text("utf-8"))
    assert students.keys() < planted.keys()  # not who handed in something else altogether
    compile(base, "tiny.py", "exec")
    for text in (base, *students.values()):
        assert "assert" not in text  # no test
        assert "you answered" not in text  # no cell of the instructor's
    assert len(set(students.values())) > 3
    assert any("math.log" in text for text in students.values())


# --- the command ----------------------------------------------------------------------------------


def test_the_command_says_where_and_its_exit_code_if_somebody_is_left_out(from_canvas):
    done = autograde("export", "tiny", "--format", "canvas", cwd=from_canvas.root)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "classroom/export/tiny.canvas.csv",
        "left out: by hand: not known to Canvas",
        "left out: cy_13: to be marked by hand: T_words",
    ]


def test_before_anything_is_graded_there_is_nothing_to_export(built):
    for form in Format:
        with pytest.raises(CourseError, match="run `autograde grade tiny`"):
            export(built, "tiny", form)
    assert not (built.classroom / "export").exists() or not list(
        (built.classroom / "export").iterdir()
    )
