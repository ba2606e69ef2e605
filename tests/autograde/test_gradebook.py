"""The gradebook: nbgrader's own rows, made from verdicts, at a few milliseconds each."""

import resource
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import replace

import pytest
from gradebook_rows import rows
from nbgrader.api import Gradebook
from tiny_course import AUTOGRADE, autograde

from autograde.course import CourseError, find_course
from autograde.files import write_whole
from autograde.gradebook import Scores, enter_level, fill_gradebook
from autograde.store import kept_verdicts
from autograde.verdict import ItemResult, Outcome, Verdict

VERDICTS = [
    Verdict(
        "ada",
        "tiny",
        (
            ItemResult("T_surprise", Outcome.CORRECT, 2, 2),
            ItemResult("T_surprise__sign", Outcome.WRONG, 0, 1, "a surprise is never negative"),
            ItemResult("T_choices", Outcome.NOT_ATTEMPTED, 0, 2),
            ItemResult("T_words", Outcome.NEEDS_PERSON, None, 1),
        ),
    ),
    Verdict(
        "blank",
        "tiny",
        (
            ItemResult("T_surprise", Outcome.NOT_ATTEMPTED, 0, 2),
            ItemResult("T_surprise__sign", Outcome.NOT_ATTEMPTED, 0, 1),
            ItemResult("T_choices", Outcome.NOT_ATTEMPTED, 0, 2),
            ItemResult("T_words", Outcome.NOT_ATTEMPTED, 0, 1),
        ),
    ),
    Verdict("lost", "tiny", reason="The file is empty."),
]


@pytest.fixture(scope="module")
def entered(tmp_path_factory, built_once):
    """The root of a tiny course with its level in the gradebook; not to be changed."""
    root = tmp_path_factory.mktemp("entered") / "course"
    shutil.copytree(built_once, root)
    enter_level(find_course(root), "tiny")
    return root


@pytest.fixture
def course(entered, tmp_path):
    shutil.copytree(entered, tmp_path / "course")
    return find_course(tmp_path / "course")


def write_as_nbgrader_does(course, verdict):
    """nbgrader's own calls, as its Autograde and SaveAutoGrades make them."""
    with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as book:
        book.update_or_create_student(verdict.student)
        book.update_or_create_submission("tiny", verdict.student)
        points = {item.item: item.points for item in verdict.items}
        outcomes = {item.item: item.outcome for item in verdict.items}
        for name in ("test_T_surprise", "test_T_surprise__sign", "test_T_choices", "T_words"):
            grade = book.find_grade(name, "tiny", "tiny", verdict.student)
            grade.auto_score = points.get(name.removeprefix("test_"))
            unsure = grade.auto_score is None or grade.manual_score is not None
            grade.needs_manual_grade = unsure
        for name in ("T_surprise", "T_choices", "T_words"):
            comment = book.find_comment(name, "tiny", "tiny", verdict.student)
            blank = outcomes.get(name) == Outcome.NOT_ATTEMPTED
            comment.auto_comment = "No response." if blank else None
        book.db.commit()


def mark_by_hand(course, student):
    with Gradebook(course.nbgrader.db_url) as book:
        grade = book.find_grade("T_words", "tiny", "tiny", student)
        grade.manual_score, grade.needs_manual_grade = 0.5, False
        book.find_comment("T_words", "tiny", "tiny", student).manual_comment = "Well said."
        book.db.commit()


def test_the_rows_are_those_of_nbgraders_own_calls_at_first_and_again(course, tmp_path):
    shutil.copytree(course.root, tmp_path / "other")
    other = find_course(tmp_path / "other")
    for step in ("first", "again"):
        with Scores(course, "tiny") as scores:
            for verdict in VERDICTS:
                scores.write(verdict)
        for verdict in VERDICTS:
            write_as_nbgrader_does(other, verdict)
        books = [c.classroom / "gradebook.db" for c in (course, other)]
        assert rows(books[0]) == rows(books[1]), step
        for each in (course, other):
            mark_by_hand(each, "ada")
    mine = rows(books[0])["grade"]
    assert len(mine) == 4 * len(VERDICTS)
    assert ("ada", "T_words", "GradeCell", None, 0.5, None, 0) in mine  # as marked last


def test_a_person_is_asked_to_look_again_only_at_what_was_graded_anew(course):
    old, new = (replace(VERDICTS[0], key=key) for key in ("old", "new"))

    def asked(*verdicts):
        fill_gradebook(course, "tiny", verdicts)
        found = rows(course.classroom / "gradebook.db")["grade"]
        return {row[0]: row[6] for row in found if row[1] == "T_words"}

    assert asked(old, VERDICTS[1]) == {"ada": 1, "blank": 0}
    mark_by_hand(course, "ada")
    assert asked(old) == {"ada": 0, "blank": 0}
    assert asked(new) == {"ada": 1, "blank": 0}
    assert asked(new) == {"ada": 1, "blank": 0}  # until somebody has
    mark_by_hand(course, "ada")
    assert asked(new) == {"ada": 0, "blank": 0}
    course.entered("tiny").write_text("damaged")
    assert asked(new) == {"ada": 1, "blank": 0}


def test_nbgrader_reads_the_totals(course):
    with Scores(course, "tiny") as scores:
        for verdict in VERDICTS:
            scores.write(verdict)
    with Gradebook(course.nbgrader.db_url) as book:
        assert book.find_submission("tiny", "ada").score == 2
        assert book.find_submission("tiny", "ada").needs_manual_grade
        assert not book.find_submission("tiny", "blank").needs_manual_grade
        assert {student.id for student in book.students} == {"ada", "blank", "lost"}


def test_an_ungradable_resubmission_keeps_no_automatic_score(course):
    with Scores(course, "tiny") as scores:
        scores.write(VERDICTS[0])
        scores.write(Verdict("ada", "tiny", reason="The file is empty."))
    found = rows(course.classroom / "gradebook.db")
    assert {row[3] for row in found["grade"]} == {None}
    assert {row[3] for row in found["comment"]} == {None}


def test_a_submission_is_entered_whole_or_not_at_all(course):
    book = course.classroom / "gradebook.db"
    with closing(sqlite3.connect(book)) as db:
        db.execute(
            "create trigger full before insert on comment begin select raise(abort, 'x'); end"
        )
        db.commit()
    with Scores(course, "tiny") as scores, pytest.raises(CourseError, match="can't be written: x"):
        scores.write(VERDICTS[0])
    assert not any(rows(book).values())


def test_a_submission_takes_a_few_milliseconds(course):
    with Scores(course, "tiny") as scores:
        times = []
        for number in range(50):
            started = time.process_time()
            scores.write(Verdict(f"student-{number}", "tiny", VERDICTS[0].items))
            times.append(time.process_time() - started)
    assert sorted(times)[25] < 0.005


def keep_verdicts(course):
    for verdict in VERDICTS:
        write_whole(verdict.to_json(), course.verdict("tiny", verdict.student))


def test_the_gradebook_is_made_anew_from_the_verdicts(course):
    keep_verdicts(course)
    book = course.classroom / "gradebook.db"
    fill_gradebook(course, "tiny", VERDICTS)
    before = rows(book)
    book.unlink()
    done = autograde("gradebook", "tiny", cwd=course.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 verdicts on tiny" in done.stdout
    assert rows(book) == before


def test_without_verdicts_or_with_a_damaged_one_the_command_says_what_to_do(built):
    done = autograde("gradebook", "tiny", cwd=built.root)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run `autograde grade tiny`" in done.stderr
    for damaged in ("{", "{}", '{"items": [], "notes": [], "more": 1}', "[]"):
        write_whole(damaged, built.verdict("tiny", "ada"))
        with pytest.raises(CourseError, match=r"ada\.json is damaged"):
            kept_verdicts(built, "tiny")


def test_a_full_disk_ends_in_one_sentence_and_loses_no_verdict(course):
    assert autograde("demo", "--students", "2", cwd=course.root).returncode == 0
    book = course.classroom / "gradebook.db"
    size = book.stat().st_size // 2  # no file may be written beyond it
    done = subprocess.run(
        [AUTOGRADE, "grade", "tiny", "-j", "1"],
        cwd=course.root,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("autograde: The gradebook can't be written: ")
    assert "run `autograde gradebook tiny`" in sentence
    assert "2 submissions" in done.stdout
    assert (course.root / "classroom/report/tiny.csv").is_file()
    assert len(kept_verdicts(course, "tiny")) == 2
    assert not rows(book)["grade"]
    assert autograde("gradebook", "tiny", cwd=course.root).returncode == 0
    assert len(rows(book)["grade"]) == 8


def test_a_gradebook_that_cannot_be_opened_is_one_sentence(built):
    keep_verdicts(built)
    (built.classroom / "gradebook.db").mkdir()
    done = autograde("gradebook", "tiny", cwd=built.root)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert "The gradebook can't be written: unable to open database file" in sentence
