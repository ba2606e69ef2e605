"""A class: every submission becomes a row, whatever becomes of the process that grades it."""

import contextlib
import json
import threading
import time
from multiprocessing import resource_tracker
from pathlib import Path

import psutil
import pytest

from autograde import classroom, host
from autograde.classroom import DIED, grade_class, kept_verdicts, load_assignment
from autograde.course import CourseError, find_course
from autograde.kernel import CannotStart, Limits, Nursery
from autograde.notebook import notebook_text
from autograde.verdict import Status, Verdict

LIMITS = Limits(cpu_s=5, wall_s=20)
RIGHT = {
    "T_surprise": "def surprise(p):\n    return -math.log(p)",
    "T_choices": "choices = 8",
    "T_words": "Each bit doubles them.",
}


@pytest.fixture(scope="module")
def tiny(built_once):
    return load_assignment(find_course(built_once), "tiny")


@pytest.fixture
def hand_in(built, tiny):
    """Hand in right answers, changed by `answers`, under a name."""

    def hand_in(student, name="tiny.ipynb", **answers):
        notebook = json.loads(notebook_text(tiny.release))
        for cell in notebook["cells"]:
            cell["source"] = (RIGHT | answers).get(cell["id"], cell["source"])
        path = built.folder("submitted", student, "tiny") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook), "utf-8")
        return path

    return hand_in


@pytest.fixture
def graded(built, tiny, nursery):
    """Grade what a student handed in, without a worker process."""

    def graded(student):
        return classroom.grade_student(built, tiny, student, nursery, LIMITS).verdict

    return graded


# tells by a file that it is there, then waits for one that lets it go on
WAITING = """
import os, time
open({0!r}, "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
choices = 8
"""


def folder_with(name):
    """The folder of the student's process that has made a file of this name, and its grader."""
    while True:
        with contextlib.suppress(psutil.Error):  # one ended while it was looked at
            for worker in psutil.Process().children():
                for process in worker.children(recursive=True):
                    if (Path(process.cwd()) / name).exists():
                        return Path(process.cwd()), worker
        time.sleep(0.02)


def kill_graders(name, times):
    """Kill -9 the grader above a process that made the file, so many times; then let it go on."""
    for _ in range(times):
        _, worker = folder_with(name)
        worker.kill()
        psutil.wait_procs([worker], timeout=10)
    if times == 1:  # after two there is no third
        folder, _ = folder_with(name)
        (folder / "go").touch()


def test_a_grader_that_is_killed_costs_nobody_anything_but_whom_it_dies_over_twice(
    hand_in, built, tiny
):
    for student in ("ada", "eve"):
        hand_in(student)
    hand_in("bob", T_choices=WAITING.format("once"))
    hand_in("sue", T_choices=WAITING.format("twice"))
    for name, times in (("once", 1), ("twice", 2)):
        threading.Thread(target=kill_graders, args=(name, times), daemon=True).start()
    students = built.submitted_students("tiny")
    verdicts = list(grade_class(built, tiny, students, jobs=2, limits=LIMITS))
    points = {verdict.student: verdict.points for verdict in verdicts}
    assert points == {"ada": 5, "bob": 5, "eve": 5, "sue": None}
    kept = kept_verdicts(built, "tiny")
    assert kept == sorted(verdicts, key=lambda verdict: verdict.student)
    assert (kept[-1].status, kept[-1].reason) == (Status.UNGRADABLE, DIED)


def test_a_stopped_run_leaves_no_process_behind(hand_in, built, tiny):
    for student in ("ada", "bob"):
        hand_in(student)
    resource_tracker.ensure_running()  # multiprocessing's own, which stays
    before = {process.pid for process in psutil.Process().children()}
    verdicts = grade_class(built, tiny, ["ada", "bob"], jobs=1, limits=LIMITS)
    next(verdicts)
    verdicts.close()
    assert not {process.pid for process in psutil.Process().children()} - before


def test_a_notebook_under_another_name_is_found_by_what_it_holds(hand_in, graded, built):
    path = hand_in("ada", "tiny (1).ipynb")
    (path.parent / "notes.txt").write_text("buy milk")
    hand_in("bob", "homework.json")
    note = "The file is called tiny (1).ipynb; it was taken for tiny.ipynb."
    assert (graded("ada").points, graded("ada").notes) == (5, (note,))
    assert graded("bob").points == 5


def test_a_folder_without_a_notebook_says_what_is_in_it(graded, built):
    folder = built.folder("submitted", "eve", "tiny")
    folder.mkdir(parents=True)
    assert "There is no tiny.ipynb; the folder has nothing" in graded("eve").reason
    (folder / "notes.txt").write_text("buy milk")
    assert "There is no tiny.ipynb; the folder has notes.txt" in graded("eve").reason


def test_a_verdict_is_kept_whole_with_the_notebook_as_it_ran(hand_in, graded, built):
    hand_in("ada", T_choices="print('so: ')\nchoices = 8")
    verdict, kept = graded("ada"), built.verdict("tiny", "ada")
    assert Verdict.from_json(kept.read_text("utf-8")) == verdict
    assert [path.name for path in kept.parent.iterdir()] == ["ada.json"]
    assert "so: " in built.notebook("autograded", "tiny", "ada").read_text("utf-8")


def test_an_ungradable_resubmission_leaves_nothing_of_the_one_before(hand_in, graded, built):
    path = hand_in("ada")
    assert graded("ada").points == 5
    path.write_text("{")
    verdict = graded("ada")
    assert (verdict.status, verdict.points, verdict.items) == (Status.UNGRADABLE, None, ())
    assert kept_verdicts(built, "tiny") == [verdict]
    assert not built.notebook("autograded", "tiny", "ada").exists()


def test_a_link_is_not_followed(hand_in, graded, tmp_path):
    path = hand_in("ada")
    secret = tmp_path / "secret.ipynb"
    path.rename(secret)
    path.symlink_to(secret)
    assert graded("ada").status == Status.UNGRADABLE


def test_a_fault_of_the_graders_is_a_row_and_not_the_end(hand_in, graded, built, monkeypatch):
    hand_in("ada")
    monkeypatch.setattr(classroom, "grade", lambda *_, **__: 1 / 0)
    verdict = graded("ada")
    assert verdict.status == Status.UNGRADABLE
    assert "the grader failed, please report it: ZeroDivisionError" in verdict.reason
    assert kept_verdicts(built, "tiny") == [verdict]


def test_where_nothing_can_be_confined_grading_refuses_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "doctor", lambda: [host.Feature("landlock", False, "not there")])
    with pytest.raises(CannotStart, match=r"autograde doctor.*--unsafe-no-sandbox"):
        Nursery(tmp_path)


def test_a_level_is_graded_by_the_tests_it_was_built_with(built):
    with (built.masters / "tiny.py").open("a", encoding="utf-8") as file:
        file.write("\n# %% [markdown]\n# One more thing.\n")
    with pytest.raises(CourseError, match="has changed: run `autograde build tiny`"):
        load_assignment(built, "tiny")
    built.notebook("source", "tiny").unlink()
    with pytest.raises(CourseError, match="has not been built"):
        load_assignment(built, "tiny")
