"""Grade a class: every submission in its turn, side by side in worker processes.

One submission is one boundary. Whatever it does ends as its own verdict, and the class goes on.
"""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from autograde.course import Course, CourseError, is_storable
from autograde.files import scratch_folder, write_whole
from autograde.grade import Assignment, Graded, grade, one_line
from autograde.kernel import CannotStart, Limits, Nursery, NurseryEnded
from autograde.master import read_master
from autograde.notebook import notebook_text, read_notebook
from autograde.preflight import Unreadable, belongs_to, read_submission
from autograde.verdict import Verdict

DIED = "grading it ended the grader's process twice; a person must look at it"
NAMELESS = "the folder's name is too long or not printable; rename it"
MARGIN = 60  # seconds beyond a notebook's limit in which a worker must be done with it
MAX_OTHERS = 20  # files in a folder that are looked at for the notebook under another name
SUFFIXES = (".ipynb", ".py", ".json", ".txt")  # of files that may be a renamed notebook


def load_assignment(course: Course, level: str) -> Assignment:
    """A built level, ready to grade. Raises CourseError if its build is not current."""
    path = course.notebook("source", level)
    if not path.is_file():
        raise CourseError(f"{level} has not been built: run `autograde build {level}` first.")
    source = read_notebook(path)
    if source != read_master(course.masters / f"{level}.py"):
        raise CourseError(
            f"The master of {level} has changed: run `autograde build {level}` first."
        )
    return Assignment(level, read_notebook(course.notebook("release", level)), source)


def grade_class(
    course: Course,
    assignment: Assignment,
    students: Iterable[str],
    *,
    jobs: int,
    limits: Limits,
    confine: bool = True,
    gpu: bool = False,
) -> Iterator[Verdict]:
    """The verdict on every student, as they come, from `jobs` processes; each is kept in a file.

    Raises CannotStart where student code can't be confined and `confine` asks for it.
    """
    waiting: list[str] = []
    died_on = set[str]()
    for student in students:
        if is_storable(student):
            waiting.insert(0, student)
        else:
            yield Verdict(ascii(student)[:100], assignment.level, reason=NAMELESS)
    running: dict[Future[Verdict], tuple[ProcessPoolExecutor, str]] = {}
    with scratch_folder() as scratch:
        # pools of one: when a process dies, it is known over whose submission
        arguments = (course, assignment, limits, scratch, confine, gpu)
        idle = [_pool(arguments) for _ in range(min(jobs, len(waiting)))]
        try:
            while waiting or running:
                while waiting and idle:
                    pool, student = idle.pop(), waiting.pop()
                    running[pool.submit(_grade_student, student)] = pool, student
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    pool, student = running.pop(future)
                    try:
                        verdict = future.result()
                    except BrokenProcessPool:
                        pool = _pool(arguments)
                        if student not in died_on:
                            died_on.add(student)
                            waiting.append(student)
                            verdict = None
                        else:
                            verdict = Verdict(student, assignment.level, reason=DIED)
                            keep(course, Graded(verdict))
                    idle.append(pool)
                    if verdict:
                        yield verdict
        finally:
            for pool in [*idle, *(pool for pool, _ in running.values())]:
                pool.shutdown(cancel_futures=True)


def grade_student(
    course: Course, assignment: Assignment, student: str, nursery: Nursery, limits: Limits
) -> Graded:
    """Grade what a student handed in, and keep the verdict in a file.

    Raises CannotStart; whatever else happens is the verdict's reason.
    """
    level = assignment.level
    try:
        data, notes = _submission(course, assignment, student)
        graded = grade(data, assignment, nursery, student=student, limits=limits)
        verdict = replace(graded.verdict, notes=(*notes, *graded.verdict.notes))
        graded = replace(graded, verdict=verdict)
        keep(course, graded)
        return graded
    except Unreadable as error:
        reason = str(error)
    except CannotStart:
        raise
    except Exception as error:  # a fault of the grader's: the class goes on, a person looks
        reason = f"the grader failed, please report it: {type(error).__name__}: {error}"
    graded = Graded(Verdict(student, level, reason=one_line(reason)))
    keep(course, graded)
    return graded


def keep(course: Course, graded: Graded) -> None:
    """Keep a verdict, and the notebook as it ran, in files that appear whole or not at all."""
    verdict = graded.verdict
    write_whole(verdict.to_json(), course.verdict(verdict.level, verdict.student))
    notebook = course.notebook("autograded", verdict.level, verdict.student)
    if graded.notebook is not None:
        write_whole(notebook_text(graded.notebook), notebook)
    else:
        notebook.unlink(missing_ok=True)


def kept_verdicts(course: Course, level: str) -> list[Verdict]:
    """The verdicts that were kept on a level, by student. Raises CourseError if there are none."""
    paths = sorted(course.verdict(level, "any").parent.glob("*.json"))
    if not paths:
        raise CourseError(
            f"No submission of {level} has been graded: run `autograde grade {level}`."
        )
    verdicts = []
    for path in paths:
        try:
            verdicts.append(Verdict.from_json(path.read_text("utf-8")))
        except (ValueError, TypeError, KeyError):
            raise CourseError(f"{path} is damaged: run `autograde grade {level}` again.") from None
    return verdicts


def _submission(course: Course, assignment: Assignment, student: str) -> tuple[bytes, list[str]]:
    """The bytes of a student's notebook, found by name or else by what it holds, and notes."""
    try:
        return _found(course.notebook("submitted", assignment.level, student), assignment)
    except PermissionError:
        raise Unreadable(
            "The folder can't be opened; give yourself the right to read it."
        ) from None


def _found(path: Path, assignment: Assignment) -> tuple[bytes, list[str]]:
    if path.parent.is_symlink() or path.parent.parent.is_symlink():
        raise Unreadable("The folder is a link to another one; hand in the notebook itself.")
    if os.path.lexists(path):
        return read_submission(path), []
    others = sorted(p for p in path.parent.iterdir() if p.suffix.lower() in SUFFIXES)[:MAX_OTHERS]
    for other in others:
        with contextlib.suppress(Unreadable):
            data = read_submission(other)
            if belongs_to(data, {assignment.level: assignment.release}):
                name = one_line(other.name)
                return data, [f"The file is called {name}; it was taken for {path.name}."]
    found = ", ".join(other.name for other in others) or "nothing that could be one"
    raise Unreadable(f"There is no {path.name}; the folder has {found}.")


def _pool(arguments: tuple[Any, ...]) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), _start, arguments)


# --- in a worker process --------------------------------------------------------------------------


@dataclass
class _Worker:
    course: Course
    assignment: Assignment
    limits: Limits
    nursery: Nursery | CannotStart


_worker: _Worker


def _start(
    course: Course,
    assignment: Assignment,
    limits: Limits,
    scratch: Path,
    confine: bool,
    gpu: bool,
) -> None:
    global _worker
    nursery: Nursery | CannotStart
    try:
        nursery = Nursery(scratch, confine=confine, gpu=gpu)
    except CannotStart as error:  # a worker's initializer must not fail: the reason would be lost
        nursery = error
    _worker = _Worker(course, assignment, limits, nursery)


def _grade_student(student: str) -> Verdict:
    worker = _worker
    if isinstance(worker.nursery, CannotStart):
        raise worker.nursery
    # The last resort against what no limit of a kernel's sees, as a test that never ends: this
    # process dies, and `grade_class` makes it a row.
    signal.alarm(int(worker.limits.notebook_wall_s) + MARGIN)
    try:
        return grade_student(
            worker.course, worker.assignment, student, worker.nursery, worker.limits
        ).verdict
    except NurseryEnded:
        os._exit(1)  # the worker that takes this one's place has a nursery of its own
    finally:
        signal.alarm(0)
