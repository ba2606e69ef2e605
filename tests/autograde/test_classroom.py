"""A class: every submission becomes a row, whatever becomes of the process that grades it."""

import contextlib
import copy
import json
import signal
import subprocess
import threading
import time
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_course import AUTOGRADE, autograde

from autograde import classroom, grade, host, worker
from autograde.assignment import load_assignment
from autograde.classroom import ClassRun, alone, local_workers
from autograde.course import CourseError, find_course
from autograde.kernel import CannotStart, Nursery
from autograde.limits import Limits
from autograde.notebook import notebook_text
from autograde.progress import changes
from autograde.store import keep, kept_verdict, kept_verdicts
from autograde.verdict import Status, Verdict
from autograde.worker import DIED, Rules

RULES = Rules(Limits(cpu_s=5, wall_s=20))
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


class InPlace(Executor):
    """Runs a task in this process, in the nursery that tests share."""

    def __init__(self, nursery):
        self.nursery, self.submitted = nursery, []

    def submit(self, function, task):
        assert function is worker.grade_task
        self.submitted.append(task.student)
        future = Future()
        future.set_result(worker._graded(task, self.nursery))
        return future


@pytest.fixture
def executor(nursery):
    return InPlace(nursery)


@pytest.fixture
def run(built, tiny, executor):
    """A run over the class, without a worker process."""

    def run(*students, rules=RULES, assignment=tiny, **options):
        students = list(students) or built.submitted_students("tiny")
        return ClassRun(built, assignment, students, executor, lambda: 2, rules, **options)

    return run


@pytest.fixture
def graded(run):
    """The verdict on what a student handed in."""

    def graded(student):
        (row,) = run(student)
        return row.verdict

    return graded


def in_workers(course, assignment, jobs=1, students=None):
    """The verdicts of real worker processes, as they come."""
    students = students or course.submitted_students("tiny")
    with local_workers(jobs) as (executor, width):
        for row in ClassRun(course, assignment, students, executor, width, RULES):
            yield row.verdict


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
    verdicts = list(in_workers(built, tiny, jobs=2))
    points = {verdict.student: verdict.points for verdict in verdicts}
    assert points == {"ada": 5, "bob": 5, "eve": 5, "sue": None}
    kept = kept_verdicts(built, "tiny")
    assert kept == sorted(verdicts, key=lambda verdict: verdict.student)
    assert (kept[-1].status, kept[-1].reason) == (Status.UNGRADABLE, DIED)


def test_a_stopped_run_leaves_no_process_behind(hand_in, built, tiny):
    for student in ("ada", "bob"):
        hand_in(student)
    before = {process.pid for process in psutil.Process().children()}
    verdicts = in_workers(built, tiny)
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
    monkeypatch.setattr(grade, "preflight", lambda *_: 1 / 0)
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


def test_what_has_not_changed_is_not_graded_again_unless_asked_to(hand_in, run, executor):
    hand_in("ada"), hand_in("bob")
    first = list(run())
    assert [row.fresh for row in first] == [True, True]
    hand_in("bob", T_choices="choices = 7")
    assert [(row.verdict.student, row.fresh) for row in run()] == [("ada", False), ("bob", True)]
    assert executor.submitted == ["ada", "bob", "bob"]
    assert [row.fresh for row in run(force=True)] == [True, True]


def test_other_tests_limits_or_another_grader_grade_anew(hand_in, run, tiny, monkeypatch):
    hand_in("ada")
    list(run())
    assert [row.fresh for row in run(rules=replace(RULES, gpu=True))] == [True]
    source = copy.deepcopy(tiny.source)
    source.cells[-1].source += "\n# one more thing"
    assert [row.fresh for row in run(assignment=replace(tiny, source=source))] == [True]
    list(run())
    monkeypatch.setattr(classroom, "engine", lambda: "another")
    monkeypatch.setattr(worker, "engine", lambda: "another")
    assert [row.fresh for row in run()] == [True]


def test_a_verdict_that_is_damaged_or_stands_alone_is_made_again(hand_in, run, built):
    hand_in("ada")
    (row,) = run()
    built.verdict("tiny", "ada").write_text("{")
    assert [again.verdict for again in run()] == [row.verdict]
    assert kept_verdict(built, "tiny", "ada") == row.verdict
    built.notebook("autograded", "tiny", "ada").unlink()
    assert [row.fresh for row in run()] == [True]
    assert built.notebook("autograded", "tiny", "ada").exists()


def test_a_fault_of_the_graders_is_tried_again_next_time(hand_in, run, monkeypatch):
    hand_in("ada")
    with monkeypatch.context() as broken:
        broken.setattr(grade, "preflight", lambda *_: 1 / 0)
        assert [row.verdict.status for row in run()] == [Status.UNGRADABLE]
    assert [(row.fresh, row.verdict.points) for row in run()] == [(True, 5)]


def test_a_run_that_is_stopped_goes_on_where_it_was(hand_in, run):
    for student in ("ada", "bob", "eve"):
        hand_in(student)
    rows = iter(run())
    done = next(rows).verdict.student
    rows.close()
    fresh = {row.verdict.student: row.fresh for row in run()}
    assert not fresh.pop(done)
    assert sum(fresh.values()) >= 1


def test_what_changed_since_last_time_is_told(hand_in, run):
    hand_in("ada"), hand_in("bob")
    assert list(changes(list(run()))) == []
    hand_in("bob", T_choices="choices = 7")
    (line,) = changes(list(run()))
    assert line == "bob 5 → 3: T_choices correct → wrong"


def test_those_that_took_long_last_time_begin_first_and_new_ones_in_the_middle(
    hand_in, run, built, executor
):
    for student, seconds in {"ada": 1, "bob": 30, "eve": 3, "new": None, "sue": 9}.items():
        hand_in(student)
        if seconds:
            keep(built, Verdict(student, "tiny", seconds=seconds))
    list(run())
    assert executor.submitted == ["bob", "sue", "new", "eve", "ada"]


def test_when_the_time_is_up_nothing_more_begins_and_the_next_run_goes_on(hand_in, run):
    for student in ("ada", "bob"):
        hand_in(student)
    short = run(budget=0)
    assert list(short) == []
    assert short.left == ["ada", "bob"]
    assert len(list(run())) == 2


def test_two_at_a_time_are_refused_with_the_reason(built):
    with (
        alone(built, "tiny"),
        pytest.raises(CourseError, match="Another `autograde grade tiny` is at work"),
        alone(built, "tiny"),
    ):
        pass
    with alone(built, "tiny"):
        assert kept_verdict(built, "tiny", "any") is None


def test_a_worker_of_another_version_is_refused_by_name(hand_in, run, monkeypatch):
    hand_in("ada")
    monkeypatch.setattr(classroom, "engine", lambda: "another")
    with pytest.raises(CourseError, match="is another version: install the same one there"):
        list(run())


task_parts = st.fixed_dictionaries(
    {
        "student": st.text(max_size=3),
        "data": st.binary(max_size=3),
        "notes": st.lists(st.text(max_size=2), max_size=2).map(tuple),
        "assignment": st.binary(max_size=2),
        "engine": st.text(max_size=2),
    }
)


@given(task_parts, task_parts)
def test_tasks_have_one_key_exactly_if_they_are_the_same(one, other):
    keys = [worker.Task(level="tiny", rules=RULES, **parts).key for parts in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def full(folder):
    """Make a folder's disk full, until it is unmounted."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder])
    if done.returncode:
        pytest.skip("only root can mount a small disk")


@pytest.mark.parametrize("what", ["full", "read-only"])
def test_a_disk_that_takes_no_more_ends_in_one_sentence_and_loses_nothing(what, hand_in, built):
    for student in ("ada", "bob", "eve"):
        hand_in(student)
    assert autograde("grade", "tiny", cwd=built.root).returncode == 1
    hand_in("bob", T_choices="choices = 7")
    folder = built.verdict("tiny", "ada").parent
    kept = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    full(folder)
    try:
        for name, data in kept.items():
            (folder / name).write_bytes(data)
        if what == "full":
            with contextlib.suppress(OSError):
                (folder / "other").write_bytes(bytes(16 << 10))
        else:
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        done = autograde("grade", "tiny", cwd=built.root)
        assert {path.name: path.read_bytes() for path in folder.glob("*.json")} == kept
    finally:
        subprocess.run(["umount", folder], check=True)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    reason = "No space left on device" if what == "full" else "Read-only file system"
    assert reason in sentence
    assert "Nothing that was finished is lost" in sentence
    assert autograde("grade", "tiny", cwd=built.root).returncode == 1
    assert [verdict.points for verdict in kept_verdicts(built, "tiny")] == [5, 3, 5]


def test_ctrl_c_says_how_to_go_on_and_leaves_nothing_behind(hand_in, built):
    hand_in("ada"), hand_in("bob", T_choices=WAITING.format("here"))
    command = [AUTOGRADE, "grade", "tiny", "-j", "1"]
    run = psutil.Popen(command, cwd=built.root, stderr=subprocess.PIPE, text=True)
    folder_with("here")
    below = run.children(recursive=True)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == 130
    assert errors == (
        "autograde: stopped. Nothing that was finished is lost: the same command goes on.\n"
    )
    assert not psutil.wait_procs(below, timeout=10)[1]
    assert [verdict.student for verdict in kept_verdicts(built, "tiny")] == ["ada"]
    assert "here" not in {path.name for path in built.root.iterdir()}


def test_the_log_has_a_line_for_each_event_as_it_happens(hand_in, built):
    hand_in("ada")
    autograde("grade", "tiny", cwd=built.root)
    autograde("grade", "tiny", "--quiet", cwd=built.root)
    events = [json.loads(line) for line in built.log("tiny").read_text("utf-8").splitlines()]
    assert [event["event"] for event in events] == ["start", "verdict", "end"] * 2
    assert [event["fresh"] for event in events if event["event"] == "verdict"] == [True, False]
