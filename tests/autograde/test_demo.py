"""The sample class."""

import csv
import json
import re

import nbformat
import pytest
from tiny_course import REPOSITORY

from autograde.course import CourseError, find_course
from autograde.demo import make_class, plan
from autograde.master import cells_by_id, read_answers


def files(course):
    return {
        path.relative_to(course.root): path.read_bytes()
        for path in course.classroom.rglob("*")
        if path.is_file()
    }


def manifest(course):
    return json.loads((course.classroom / "demo.json").read_text("utf-8"))


def test_the_class_is_the_same_every_time(built):
    make_class(built, 30, force=False)
    first = files(built)
    make_class(built, 30, force=False)
    assert files(built) == first
    assert len([path for path in first if path.suffix == ".ipynb"]) == 30


def test_a_smaller_class_is_the_beginning_of_a_larger_one(built):
    make_class(built, 12, force=False)
    twelve = manifest(built)
    make_class(built, 5, force=False)
    assert manifest(built) == dict(list(twelve.items())[:5])
    assert built.submitted_students("tiny") == sorted(manifest(built))


def test_every_known_right_and_wrong_answer_is_handed_in_by_somebody(built):
    answers = read_answers(built.masters / "tiny_answers.py")
    handed_in = [plant.answers for plant in plan(built, "tiny")]
    for answer in answers:
        assert any(given.get(answer.item) == answer.source for given in handed_in), answer


def test_thirty_students_show_every_kind_of_level_2_and_a_smaller_class_says_what_it_lacks(built):
    assert len(plan(find_course(REPOSITORY), "level2")) <= 30
    kinds = len(plan(built, "tiny"))
    assert f"{kinds - 3} more kinds of submission need --students {kinds}" in make_class(
        built, 3, force=False
    )


def test_a_mutant_is_expected_to_be_told_its_message(built):
    make_class(built, 17, force=False)
    flaws = [who["tiny"]["flaws"] for who in manifest(built).values()]
    assert {"T_surprise": "that is in bits", "T_choices": "three bits are eight choices"} in flaws
    assert {"T_surprise": "a surprise is never negative"} in flaws


def test_names_are_diverse_and_ids_are_safe(built):
    make_class(built, 61, force=False)
    students = manifest(built)
    assert all(re.fullmatch(r"[a-z]+-\d{3}", student) for student in students)
    with (built.classroom / "students.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == list(students)
    assert any("'" in row["last_name"] for row in rows)
    assert any("ü" in row["last_name"] for row in rows)


def test_only_answer_cells_differ_from_the_release(built):
    make_class(built, 17, force=False)
    release = nbformat.read(built.notebook("release", "tiny"), as_version=4)
    altered = ("truncated", "empty", "a test deleted")
    for student, who in manifest(built).items():
        if who["tiny"]["planted"].startswith(altered):
            continue
        handed_in = nbformat.read(built.notebook("submitted", "tiny", student), as_version=4)
        for name in ("T_surprise", "T_choices", "T_words"):
            cells_by_id(handed_in)[name].source = cells_by_id(release)[name].source
        assert handed_in == release


def test_a_classroom_with_other_submissions_is_left_alone(built):
    real = built.folder("submitted", "real-student", "tiny") / "tiny.ipynb"
    real.parent.mkdir(parents=True)
    real.write_text("work")
    with pytest.raises(CourseError, match="such as real-student"):
        make_class(built, 3, force=False)
    assert built.submitted_students("tiny") == ["real-student"]
    make_class(built, 3, force=True)
    assert len(built.submitted_students("tiny")) == 4
    assert real.read_text() == "work"
    with pytest.raises(CourseError, match="such as real-student"):
        make_class(built, 3, force=False)


def test_a_course_must_be_built_first(built):
    built.notebook("release", "tiny").unlink()
    with pytest.raises(CourseError, match="autograde build"):
        make_class(built, 3, force=False)


def test_an_answer_to_no_item_is_an_error(built):
    with (built.masters / "tiny_answers.py").open("a", encoding="utf-8") as file:
        file.write('\n# %% answer="T_nothing" style="any"\npass\n')
    with pytest.raises(CourseError, match="'T_nothing', which tiny lacks"):
        make_class(built, 3, force=False)
