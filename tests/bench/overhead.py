"""CPU seconds of a submission beside those of its own cells."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch
from classes import LEVEL, a_class

from autograde.assignment import load_assignment
from autograde.grade import grade
from autograde.kernel import Kernel, Nursery, Ran
from autograde.submission import handed_in

SIZE = 100


def cpu(pid: int) -> float:
    """Seconds of computing of a process, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def own_seconds() -> Iterator[list[float]]:
    """What each cell takes that is run meanwhile, in the student's process."""
    seconds: list[float] = []
    run = Kernel.run

    def timed(kernel: Kernel, source: str) -> Ran:
        before = cpu(kernel.pid)
        result = run(kernel, source)
        seconds.append(cpu(kernel.pid) - before)
        return result

    Kernel.run = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        Kernel.run = run  # type: ignore[method-assign]


def report() -> str:
    """The table as Markdown."""
    torch.set_num_threads(1)
    with a_class(SIZE) as course, Nursery(Path(tempfile.gettempdir())) as nursery:
        assignment = load_assignment(course, LEVEL)
        submissions = [
            handed_in(course, assignment, student)[0]
            for student in course.submitted_students(LEVEL)
        ]
        grade(submissions[0], assignment, nursery)  # what only the first one costs
        parent = psutil.Process(nursery.process.pid)
        before, mine = parent.cpu_times(), time.process_time()
        with own_seconds() as cells:
            for data in submissions:
                grade(data, assignment, nursery)
        after, mine = parent.cpu_times(), time.process_time() - mine
    students = after.children_user + after.children_system
    students -= before.children_user + before.children_system
    warm = after.user + after.system - before.user - before.system
    own = sum(cells)
    rows = {
        "the grader: preflight, test cells, talking": mine,
        "the warm parent: forks": warm,
        "the student's process beside its cells: confinement, calls by tests, its end": students
        - own,
        "**beside the cells**": mine + warm + students - own,
        "its own cells": own,
    }
    lines = ["| CPU of a submission of Level 2 | ms |", "|---|---|"]
    lines += [f"| {name} | {seconds / SIZE * 1e3:.1f} |" for name, seconds in rows.items()]
    return "\n".join(lines)
