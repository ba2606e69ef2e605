"""Grade a class: every submission whose verdict is not known yet, side by side on any executor.

One submission is one boundary. Whatever it does ends as its own verdict, and the class goes on.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from filelock import FileLock, Timeout

from autograde.assignment import Assignment
from autograde.course import Course, CourseError, is_storable
from autograde.preflight import Unreadable
from autograde.store import keep, kept_verdict
from autograde.submission import handed_in
from autograde.verdict import Verdict, one_line
from autograde.worker import Result, Rules, Task, end_workers, engine, grade_task, pack

NAMELESS = "the folder's name is too long or not printable; rename it"
LOST = "the workers that graded it were lost again and again; a person must look at it"
TICK = 0.5  # seconds between looks at the clock while nothing comes back


@dataclass(frozen=True)
class Row:
    """What one submission came to: its verdict, the one before, and whether it was graded anew."""

    verdict: Verdict
    before: Verdict | None = None
    fresh: bool = True


@dataclass
class ClassRun:
    """A class being graded. Iterate over it for the rows as they come; each verdict is kept.

    `width` tells how many submissions to have under way, `budget` after how many seconds no more
    are begun: those are in `left` at the end. `under_way` has the start of each, by monotonic time.
    """

    course: Course
    assignment: Assignment
    students: list[str]
    executor: Executor
    width: Callable[[], int]
    rules: Rules
    force: bool = False
    budget: float = float("inf")
    under_way: dict[str, float] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Row]:
        started = time.monotonic()
        packed = pack(self.assignment)
        before = {student: self._kept(student) for student in self.students}
        running: dict[Future[Result], tuple[Task, Verdict | None]] = {}
        waiting = iter(_longest_first(before))
        try:
            more = True
            while more or running:
                while more and len(running) < self.width():
                    student = next(waiting, None)
                    if student is None:
                        more = False
                    elif time.monotonic() - started > self.budget:
                        self.left = [student, *waiting]
                        more = False
                    else:
                        known = before[student]
                        row = self._begin(student, known, packed)
                        if isinstance(row, Row):
                            yield row
                            continue
                        running[self.executor.submit(grade_task, row)] = row, known
                        self.under_way[student] = time.monotonic()
                for future in wait(running, TICK, FIRST_COMPLETED).done:
                    task, known = running.pop(future)
                    del self.under_way[task.student]
                    yield self._end(task, future, known)
        finally:
            for future in running:
                future.cancel()

    def _begin(self, student: str, known: Verdict | None, packed: bytes) -> Row | Task:
        """The task of grading a submission; the row itself where there is nothing to grade."""
        level = self.assignment.level
        if not is_storable(student):
            return Row(Verdict(ascii(student)[:100], level, reason=NAMELESS))
        try:
            data, notes = handed_in(self.course, self.assignment, student)
        except Unreadable as error:
            return self._row(Result(Verdict(student, level, reason=one_line(str(error)))), known)
        except Exception as error:  # a fault of the grader's: the class goes on, a person looks
            reason = f"it can't be read, please report this: {type(error).__name__}: {error}"
            return self._row(Result(Verdict(student, level, reason=one_line(reason))), known)
        task = Task(student, level, data, tuple(notes), packed, self.rules, engine())
        if known and known.key == task.key and not self.force:
            ran = self.course.notebook("autograded", level, student)
            if known.reason or ran.exists():
                return Row(known, known, fresh=False)
        return task

    def _end(self, task: Task, future: Future[Result], known: Verdict | None) -> Row:
        try:
            result = future.result()
        except CourseError:
            raise
        except Exception as error:  # as Dask's, when workers die over a submission
            reason = f"{LOST} ({type(error).__name__})"
            return self._row(Result(Verdict(task.student, task.level, reason=reason)), known)
        return self._row(result, known)

    def _row(self, result: Result, known: Verdict | None) -> Row:
        keep(self.course, result.verdict, result.notebook)
        return Row(result.verdict, known)

    def _kept(self, student: str) -> Verdict | None:
        if not is_storable(student):
            return None
        return kept_verdict(self.course, self.assignment.level, student)


def _longest_first(before: dict[str, Verdict | None]) -> list[str]:
    """Students, those first whose submission took longest last time; new ones in the middle."""
    times = [verdict.seconds for verdict in before.values() if verdict]
    typical = statistics.median(times) if times else 0.0
    seconds = {student: v.seconds if v else typical for student, v in before.items()}
    return sorted(before, key=lambda student: (-seconds[student], student))


@contextmanager
def local_workers(jobs: int) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """An executor of so many threads, each with a worker process, and its width; ended at the end.

    A worker starts with the first submission that its thread is given.
    """
    executor = ThreadPoolExecutor(jobs, "grading")
    try:
        yield executor, lambda: jobs
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        end_workers()


@contextmanager
def alone(course: Course, level: str) -> Iterator[None]:
    """Keep others from grading the same level of the class meanwhile; CourseError if one does."""
    folder = course.verdict(level, "any").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=0)
        with lock:
            yield
    except Timeout:
        raise CourseError(
            f"Another `autograde grade {level}` is at work on this class: wait for it, or stop it."
        ) from None
