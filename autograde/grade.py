"""Grade the submissions of a level with nbgrader's autograder, one student at a time.

One submission is one nbgrader run, so a bad one never stops the class; every one ends as a
Verdict, and a run that fails never leaves an old score in the gradebook.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde, GenerateAssignment
from traitlets.config import Config

from autograde.course import Course, CourseError, find_course, run_nbgrader
from autograde.master import Item, cells_by_id, items, read_master
from autograde.notebook import last_error, read_notebook
from autograde.verdict import ItemResult, Outcome, Verdict

WRONG = {"AssertionError", "Wrong"}  # Wrong: course_lib.check's, whose text is for the student
TIMED_OUT = {"CellTimeoutError", "KeyboardInterrupt"}
MESSAGE_LENGTH = 300
NOISE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|(?<=\()\d+\.py, ")  # colours, the kernel's file names
REASONS = {  # in nbgrader's log -> in plain words
    "add_missing_": "a test cell was copied or deleted, and could not be put right",
    "old version of the nbgrader metadata": "the grading metadata of a cell is damaged",
    "DeadKernelError": "its code ended the Python process",
    "CellTimeoutError": "a cell ran on after it was stopped at the time limit",
    "Inconsistent checksums": "the grading metadata of a cell was changed",
    "failed to validate": "the grading metadata of a cell was changed",
}


def prepare(course: Course, level: str) -> None:
    """Enter the level's cells and points into the gradebook."""
    path = course.notebook("source", level)
    if not path.is_file():
        raise CourseError(f"{level} has not been built: run `autograde build {level}` first.")
    if read_notebook(path) != read_master(course.masters / f"{level}.py"):
        raise CourseError(
            f"The master of {level} has changed: run `autograde build {level}` first."
        )
    with tempfile.TemporaryDirectory() as folder:
        release = Config(release_directory=folder)
        success, log = run_nbgrader(GenerateAssignment, course, level, CourseDirectory=release)
    if "Cannot add or remove cells" in log:
        raise CourseError(
            f"The gradebook holds submissions of another version of {level}: "
            f"move {course.classroom / 'gradebook.db'} away, then grade again."
        )
    if not success:
        raise CourseError(f"nbgrader can't enter {level} into the gradebook:\n{log}")


def grade_class(
    course: Course, level: str, students: list[str], timeout: int, jobs: int
) -> Iterator[Verdict]:
    """A Verdict for every student, as they come, from `jobs` processes side by side."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the kernels inherit it: one core each
    lost = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {
            pool.submit(grade_student, course.root, level, student, timeout): student
            for student in students
        }
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:  # somebody's code killed a process: whose?
                lost.append(futures[future])
    for student in lost:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            try:
                yield pool.submit(grade_student, course.root, level, student, timeout).result()
            except BrokenProcessPool:
                _forget_scores(course, level, student)
                yield Verdict(student, level, reason="its code ended the grading process")


def grade_student(root: Path, level: str, student: str, timeout: int) -> Verdict:
    """Grade one submission; any failure is a Verdict too."""
    course = find_course(root)
    try:
        reason = _unreadable(course, level, student)
        if not reason:
            limit = Config(timeout=timeout)
            success, log = run_nbgrader(Autograde, course, level, student, Execute=limit)
            reason = "" if success else _reason(log)
        if not reason:
            return _verdict(course, level, student, timeout)
    except Exception as error:  # whatever a file made nbgrader do, the class goes on
        reason = _clean(f"{type(error).__name__}: {error}")
    _forget_scores(course, level, student)
    return Verdict(student, level, reason=reason)


def item_result(
    item: Item,
    released: dict[str, NotebookNode],
    executed: dict[str, NotebookNode],
    score: float | None,
    timeout: int,
) -> ItemResult:
    """What an item's cells, after the run, say about it; `score` is the gradebook's."""
    if item.by_hand or score is None or item.graded not in executed:
        return _marked_by_hand(item, released, executed, score)

    def result(outcome: Outcome, message: str = "") -> ItemResult:
        return ItemResult(item.name, outcome, score, item.points, _clean(message))

    if score == item.points:
        return result(Outcome.CORRECT)
    if item.answer not in executed:
        return result(Outcome.NOT_ATTEMPTED, "the answer cell is missing")
    answer, test = executed[item.answer], executed[item.graded]
    if answer.source == released[item.answer].source:
        return result(Outcome.NOT_ATTEMPTED)
    in_answer, in_test = last_error(answer), last_error(test)
    for error, where in ((in_answer, "the answer cell"), (in_test, "the test")):
        if error and error.ename in TIMED_OUT:
            return result(Outcome.TIMED_OUT, f"{where} took longer than {timeout} s")
    if in_answer:
        return result(Outcome.ERROR, f"{in_answer.ename}: {in_answer.evalue}")
    if in_test is None:
        return result(Outcome.WRONG, "partly right")
    if in_test.ename == "NotAttempted":
        return result(Outcome.NOT_ATTEMPTED, in_test.evalue)
    if in_test.ename in WRONG:
        return result(Outcome.WRONG, in_test.evalue or "a check failed without a message")
    return result(Outcome.ERROR, f"{in_test.ename}: {in_test.evalue}")


def _marked_by_hand(
    item: Item,
    released: dict[str, NotebookNode],
    executed: dict[str, NotebookNode],
    score: float | None,
) -> ItemResult:
    outcome, message = Outcome.NEEDS_PERSON, ""
    if item.graded not in executed:
        score, message = None, f"the cell {item.graded} is missing"
    elif executed[item.answer].source == released[item.answer].source:
        outcome = Outcome.NOT_ATTEMPTED
    elif score is not None:
        outcome = Outcome.CORRECT if score == item.points else Outcome.WRONG
        message = "marked by hand"
    return ItemResult(item.name, outcome, score, item.points, message)


def _verdict(course: Course, level: str, student: str, timeout: int) -> Verdict:
    source = read_notebook(course.notebook("source", level))
    release = read_notebook(course.notebook("release", level))
    graded = read_notebook(course.notebook("autograded", level, student))
    with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as gradebook:
        grades = gradebook.find_submission_notebook(level, level, student).grades
        scores = {
            grade.name: grade.auto_score if grade.manual_score is None else grade.manual_score
            for grade in grades
        }
    released, executed = cells_by_id(release), cells_by_id(graded)
    results = (
        item_result(item, released, executed, scores.get(item.graded), timeout)
        for item in items(source)
    )
    return Verdict(student, level, tuple(results))


def _unreadable(course: Course, level: str, student: str) -> str:
    """Why the file can't be graded at all; empty if it can."""
    path = course.notebook("submitted", level, student)
    if not path.is_file():
        others = ", ".join(sorted(other.name for other in path.parent.iterdir())) or "nothing"
        return _clean(f"there is no {path.name}, but {others}")
    try:
        read_notebook(path)
    except Exception:  # nbformat raises many kinds
        return f"{path.name} is damaged: it is not a notebook"
    return ""


def _reason(log: str) -> str:
    """Why an nbgrader run failed, in plain words where they are known."""
    for sign, words in REASONS.items():
        if sign in log:
            return words
    errors = [line for line in log.splitlines() if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return _clean(errors[-1] if errors else "nbgrader failed without a reason")


def _forget_scores(course: Course, level: str, student: str) -> None:
    """Take a submission's old automatic scores out of the gradebook; keep a person's marks."""
    with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as gradebook:
        try:
            grades = gradebook.find_submission_notebook(level, level, student).grades
        except MissingEntry:
            return
        for grade in grades:
            grade.auto_score = None
            grade.needs_manual_grade = True
        gradebook.db.commit()


def _clean(text: str) -> str:
    """The last line of a text, printable and short."""
    lines = [line for line in NOISE.sub("", text).splitlines() if line.strip()] or [""]
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in lines[-1].strip())
    return line if len(line) <= MESSAGE_LENGTH else line[: MESSAGE_LENGTH - 1] + "…"
