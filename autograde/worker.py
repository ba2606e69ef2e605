"""A worker: a process of its own that grades one submission after another, and may die over one.

`grade_task` is what an executor maps over a class. It runs in a thread, here or on another machine,
and has its submission graded by that thread's worker process, which is started on first use.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograde.course import CourseError
from autograde.files import remove_tree
from autograde.limits import Limits
from autograde.verdict import Verdict

if TYPE_CHECKING:
    from autograde.assignment import Assignment

DIED = "grading it ended the grader's process twice; a person must look at it"
MARGIN = 60  # seconds beyond a notebook's limit in which a worker must be done with it
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
MATTER = ("torch", "numpy", "ipython")  # whose version a verdict can depend on


@dataclass(frozen=True)
class Rules:
    """How submissions are graded; together with them and the assignment, this decides verdicts."""

    limits: Limits
    confine: bool = True
    gpu: bool = False


@dataclass(frozen=True)
class Task:
    """One submission to grade, complete: it can be sent to any machine with this version."""

    student: str
    level: str
    data: bytes
    notes: tuple[str, ...]  # on how it was found
    assignment: bytes  # of `pack`
    rules: Rules
    engine: str

    @property
    def key(self) -> str:
        """The digest of all that the verdict follows from."""
        parts = (self.student, self.data, self.notes, self.assignment, self.rules, self.engine)
        digest = hashlib.sha256()
        for part in parts:
            text = part if isinstance(part, bytes) else repr(part).encode()
            digest.update(b"%d:" % len(text) + text)
        return digest.hexdigest()


@dataclass(frozen=True)
class Result:
    """A verdict, and the notebook as it ran, as text; None where nothing could be run."""

    verdict: Verdict
    notebook: str | None = None


class WorkerDied(Exception):
    """A worker process ended before it had answered."""


def pack(assignment: "Assignment") -> bytes:
    """An assignment as bytes to send; the same ones each time."""
    return zlib.compress(pickle.dumps(assignment))


@functools.cache
def engine() -> str:
    """The digest of what grades: autograde, course_lib, Python, and the libraries that matter."""
    here = Path(__file__).parent
    digest = hashlib.sha256(sys.version.encode())
    for name in MATTER:
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    for folder in (here, here.parent / "course_lib"):
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(folder).parts
            if path.suffix in (".py", ".toml", ".json") and parts[0] != "source":
                digest.update(f"{folder.name} {parts}\n".encode() + path.read_bytes())
    return digest.hexdigest()


# --- in a thread of an executor's -----------------------------------------------------------------


class Worker:
    """This side of a worker process, which prepares with its first submission."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.closed = rules, False
        self.scratch = Path(tempfile.mkdtemp(prefix="autograde-"))
        ours, theirs = socket.socketpair()
        words = ["-P", "-m", "autograde.worker", str(theirs.fileno()), str(self.scratch)]
        self.process = subprocess.Popen(
            [sys.executable, *words],
            env=os.environ | ONE_THREAD,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the coordinator to act on
        )
        theirs.close()
        self.channel = Connection(ours.detach())

    def grade(self, task: Task) -> Result:
        """Have a submission graded. Raises WorkerDied, or CourseError that a person must mend."""
        try:
            self.channel.send(task)
            answer: Result | CourseError = self.channel.recv()
        except (EOFError, OSError):
            raise WorkerDied from None
        if isinstance(answer, CourseError):
            raise answer
        return answer

    def close(self) -> None:
        """End the process and its warm parent, whatever they are doing."""
        self.closed = True
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.channel.close()
        remove_tree(self.scratch)


_mine = threading.local()  # the worker of each thread
_all: set[Worker] = set()


def grade_task(task: Task) -> Result:
    """Grade a submission in this thread's worker; if that dies over it, once more in a new one."""
    for _ in range(2):
        worker: Worker | None = getattr(_mine, "worker", None)
        if worker is None or worker.closed or worker.rules != task.rules:
            _dismiss(worker)
            worker = _mine.worker = Worker(task.rules)
            _all.add(worker)
        try:
            return worker.grade(task)
        except WorkerDied:
            if worker.closed:  # by `end_workers`: nobody waits for this any more
                raise
            _dismiss(worker)
    return Result(Verdict(task.student, task.level, reason=DIED))


def end_workers() -> None:
    """End all worker processes of this process; what they are grading is given up."""
    for worker in list(_all):
        _dismiss(worker)


def _dismiss(worker: Worker | None) -> None:
    if worker is not None:
        with contextlib.suppress(KeyError):  # another thread has ended it
            _all.remove(worker)
            worker.close()


# --- in the worker process ------------------------------------------------------------------------


def serve(channel: Connection, scratch: Path) -> None:
    """Grade what comes until nobody is on the other side; answer with a Result or a CourseError."""
    from autograde.kernel import CannotStart, Nursery, NurseryEnded

    with contextlib.ExitStack() as at_end:
        at_end.callback(remove_tree, scratch)  # the other side may have ended without
        task: Task = channel.recv()
        rules = task.rules  # of all its tasks
        try:
            nursery = at_end.enter_context(Nursery(scratch, confine=rules.confine, gpu=rules.gpu))
        except NurseryEnded:
            return
        except CannotStart as error:
            channel.send(error)
            return
        while True:
            # The last resort against what no limit of a kernel's sees, as a test that never ends:
            # this process dies, and `grade_task` makes it a row.
            with _alarm(int(rules.limits.notebook_wall_s) + MARGIN):
                try:
                    answer: Result | CourseError = _graded(task, nursery)
                except NurseryEnded:
                    os._exit(1)  # the worker that takes this one's place has a nursery of its own
                except CourseError as error:
                    answer = error
            channel.send(answer)
            task = channel.recv()


def _graded(task: Task, nursery: Any) -> Result:
    from autograde.grade import grade
    from autograde.notebook import notebook_text

    if task.engine != engine():
        raise CourseError(
            f"The grader on {socket.gethostname()} is another version: install the same one there."
        )
    graded = grade(
        task.data,
        _unpack(task.assignment),
        nursery,
        student=task.student,
        limits=task.rules.limits,
        notes=task.notes,
    )
    verdict, ran = graded.verdict, graded.notebook
    if graded.settled:
        verdict = replace(verdict, key=task.key)
    return Result(verdict, None if ran is None else notebook_text(ran))


@functools.lru_cache(maxsize=1)
def _unpack(packed: bytes) -> "Assignment":
    assignment: Assignment = pickle.loads(zlib.decompress(packed))
    return assignment


@contextlib.contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    signal.alarm(seconds)
    yield
    signal.alarm(0)


if __name__ == "__main__":
    import autograde.quick  # noqa: F401 - first
    from autograde import worker  # under its own name, which is in what it is sent

    with contextlib.suppress(EOFError, ConnectionError):
        worker.serve(Connection(int(sys.argv[1])), Path(sys.argv[2]))
