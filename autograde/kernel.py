"""The grader's side of a student's process: start it, ask it, hold it to its limits.

A `Nursery` is the warm parent; `nursery.fork()` gives a `Kernel`, one student's process. A kernel
that breaks a limit is interrupted, then killed; what is asked of a dead one raises `Died`.
"""

import contextlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import psutil

from autograde import host, sandbox, wire
from autograde.course import CourseError
from autograde.files import remove_tree
from autograde.lending import Lending, pickled
from autograde.limits import Limits
from autograde.outputs import add_output, clean

Cause = Literal["timed out", "out of memory", "crashed"]
LATE = "your code ran past the time limit and did not stop"
DISTURBED = "your code disturbed the grading"
TICK = 0.02  # seconds between looks at what a busy kernel uses
START = 60.0  # seconds for the warm parent to import torch on a slow disk


class Died(Exception):
    """The student's process is gone. `cause` is an outcome, the message a clause that says why."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause: Cause = cause


class CannotStart(CourseError):
    """No student process can be had on this host. The message says what to do."""


class NurseryEnded(CannotStart):
    """The warm parent has ended, as when the system ran out of memory. Another one may do."""


@dataclass(frozen=True)
class Failure:
    """An exception in the student's code, as plain data."""

    type: str  # the built-in exception that it is or derives from
    name: str
    message: str
    line: int | None = None

    @property
    def sentence(self) -> str:
        where = f" (line {self.line} of the cell)" if self.line else ""
        return f"{self.name}: {self.message}{where}" if self.message else f"{self.name}{where}"


INTERRUPTED = Failure("KeyboardInterrupt", "KeyboardInterrupt", "the time limit was reached")


@dataclass
class Ran:
    """What became of a cell."""

    failure: Failure | None = None
    interrupted: bool = False
    outputs: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0  # bytes of the outputs


class Nursery:
    """A warm parent process, and the students' processes that it forks. A context manager.

    `scratch` is a folder for what they write; `threads` is how many threads torch uses in each.
    """

    def __init__(
        self, scratch: Path, *, confine: bool = True, gpu: bool = False, threads: int = 1
    ) -> None:
        if confine and not all(feature.ok for feature in host.doctor()):
            raise CannotStart(
                "This host cannot confine student code. `autograde doctor` says what is missing; "
                "--unsafe-no-sandbox grades without confinement, and says so on every output."
            )
        self.confined = confine
        self.scratch = Path(tempfile.mkdtemp(dir=scratch))
        self.control, theirs = socket.socketpair()
        counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        env = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograde.nursery", str(theirs.fileno())],
            env=env | dict.fromkeys(counts, str(threads)),
            cwd=self.scratch,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self.control.settimeout(START)
        readable = [str(path) for path in sandbox.default_readable()]
        setup = {"scratch": str(self.scratch), "readable": readable, "gpu": gpu}
        self._ask(setup | {"confine": confine})

    def fork(self, limits: Limits | None = None) -> "Kernel":
        """A fresh student's process in a folder of its own, ready for cells."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        ours, theirs = socket.socketpair()
        pid = self._ask({"fork": str(folder)}, [theirs.fileno()])["pid"]
        theirs.close()
        kernel = Kernel(self, pid, ours, folder, limits or Limits())
        kernel.start()
        return kernel

    def reap(self, pid: int) -> int:
        """Wait for a process that is dead or about to be; its wait status."""
        return int(self._ask({"reap": pid})["status"])

    def _ask(self, request: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        try:
            socket.send_fds(self.control, [json.dumps(request).encode()], fds)
            reply = self.control.recv(1 << 16)
        except OSError:
            reply = b""
        if not reply:
            raise NurseryEnded("The warm parent of the student processes has ended unexpectedly.")
        answer: dict[str, Any] = json.loads(reply)
        return answer

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.control.close()
        self.process.kill()
        self.process.wait()
        remove_tree(self.scratch)


class Kernel:
    """One student's process."""

    def __init__(
        self, nursery: Nursery, pid: int, channel: socket.socket, folder: Path, limits: Limits
    ) -> None:
        self.nursery, self.pid, self.channel, self.folder = nursery, pid, channel, folder
        self.limits = limits
        self.usage = psutil.Process(pid)
        self.deadline = math.inf  # of the notebook, by time.monotonic
        self.base_memory = 0
        self.dead: Died | None = None
        self._begin()

    def start(self) -> None:
        """Wait until the process is confined."""
        message, _ = self._receive()
        if "failed" in message:
            self.close()
            raise CannotStart(f"A student process could not be confined: {message['failed']}")
        self.base_memory = self.usage.memory_info().rss
        self.channel.settimeout(self.limits.wall_s)

    # --- what one asks of it ----------------------------------------------------------------------

    def run(self, source: str) -> Ran:
        """Run a cell; its outputs, and its failure if it raised. Raises `Died`."""
        ran = Ran()
        self._send({"run": source})
        while True:
            message, _ = self._receive()
            if "output" not in message:
                break
            ran.size += len(json.dumps(message["output"]))
            if ran.size < self.limits.output:
                add_output(ran.outputs, message["output"])
        ran.failure = _failure(message.get("error"))
        ran.interrupted = self._interrupted_at is not None
        return ran

    def look_up(self, names: Sequence[str]) -> dict[str, Any]:
        """The values of the names that exist: plain data, `wire.Opaque`, or a `Failure`."""
        self._send({"look_up": list(names)})
        message, blob = self._receive()
        values = _dict(message, "values")
        # no other names: one would shadow what the test takes for its own
        found = [name for name in names if "missing" not in values.get(name, {"missing": name})]
        return dict(zip(found, self._results([values[name] for name in found], blob), strict=True))

    def call(
        self, name: str, calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]], observe: bool
    ) -> list[Any]:
        """The results of calling `name` with each (args, kwargs): plain data or a `Failure`.

        Functions of the test among the arguments are lent, not sent (`lending.py`).
        """
        with Lending(self.nursery, self.limits) as lending:
            self._send({"call": name, "observe": observe}, lending.pickled(calls))
            message, blob = self._receive()
            while "ask" in message:
                try:
                    reply, answer = lending.answer(message, blob)
                except wire.Malformed as error:
                    raise self._kill("crashed", f"{DISTURBED}: {error}") from None
                self._write(reply, answer)
                message, blob = self._receive()
        if self._interrupted_at is not None:
            return [INTERRUPTED]
        results = message.get("results")
        if type(results) is not list or not all(type(result) is dict for result in results):
            raise self._kill("crashed", f"{DISTURBED}: no results came")
        return self._results(results, blob)

    def define(self, values: dict[str, Any]) -> None:
        """Give the process values under names, code included: never one with student code."""
        self._send({"define": None}, pickled(values))
        self._receive()

    def close(self) -> None:
        """End the process and remove its folder."""
        if self.dead is None:
            self.dead = Died("crashed", "closed")
            self._end()

    # --- talking, within limits -------------------------------------------------------------------

    def _send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        if self.dead:
            raise self.dead
        self._begin()
        if self._started > self.deadline:  # many short requests never meet `_enforce`
            raise self._kill("timed out", "the time for the whole notebook was up")
        self._write(message, blob)

    def _write(self, message: dict[str, Any], blob: bytes) -> None:
        try:
            wire.send(self.channel, message, blob)
        except ConnectionError:
            raise self._gone() from None
        except OSError:
            raise self._kill("crashed", "your code stopped answering the grader") from None

    def _receive(self) -> tuple[Any, bytes]:
        try:
            message, blob = wire.receive(self.channel, self._wait)
        except (EOFError, ConnectionError):
            raise self._gone() from None
        except wire.Malformed as error:
            raise self._kill("crashed", f"{DISTURBED}: {error}") from None
        if type(message) is not dict:
            raise self._kill("crashed", f"{DISTURBED}: no message came")
        return message, blob

    def _results(self, results: Sequence[dict[str, Any]], blob: bytes) -> list[Any]:
        """The value or the `Failure` that each result stands for."""
        try:  # all at once: together they hold no more bytes than came
            values = iter(wire.decode([r["value"] for r in results if "value" in r], blob))
        except wire.Malformed as error:
            raise self._kill("crashed", f"{DISTURBED}: {error}") from None
        return [
            next(values) if "value" in result else _failure(result.get("error"), always=True)
            for result in results
        ]

    def _begin(self) -> None:
        """A request begins: its time starts now."""
        self._started = self._looked = time.monotonic()
        self._cpu_before: float | None = None
        self._interrupted_at: float | None = None

    def _wait(self) -> None:
        """Return when the channel can be read; meanwhile hold the process to its limits."""
        while True:
            now = time.monotonic()
            if now - self._looked >= TICK:
                self._enforce(now)
                self._looked = now
            if select.select([self.channel], [], [], TICK)[0]:
                return

    def _enforce(self, now: float) -> None:
        limits = self.limits
        try:
            with self.usage.oneshot():
                times = self.usage.cpu_times()
                cpu, memory = times.user + times.system, self.usage.memory_info().rss
                threads, state = self.usage.num_threads(), self.usage.status()
        except psutil.Error:
            return  # it has just ended; reading the channel says so
        if state == psutil.STATUS_ZOMBIE:  # if threads outlive the main one, their memory reads 0
            raise self._gone()
        if self._cpu_before is None:
            self._cpu_before = cpu
        if self.base_memory and memory - self.base_memory > limits.memory:
            most = f"{limits.memory >> 20} MiB of memory"
            raise self._kill("out of memory", f"your code used more than {most}")
        if threads > limits.threads:
            raise self._kill("crashed", f"your code ran more than {limits.threads} threads")
        if now > self.deadline:
            raise self._kill("timed out", "the time for the whole notebook was up")
        if _too_much_on_disk(self.folder, limits):
            most = f"{limits.disk >> 20} MiB or {limits.files:,} files"
            raise self._kill("crashed", f"your code wrote more than {most}")
        if self._interrupted_at is not None:
            if now - self._interrupted_at > limits.grace_s:
                raise self._kill("timed out", LATE)
        elif cpu - self._cpu_before > limits.cpu_s or now - self._started > limits.wall_s:
            self._interrupted_at = now
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)

    def _kill(self, cause: Cause, detail: str) -> Died:
        if self._interrupted_at is not None:  # which may have cut a frame in two
            cause, detail = "timed out", LATE
        self.dead = Died(cause, detail)
        self._end()
        return self.dead

    def _gone(self) -> Died:
        """The process closed the channel: say of what it died."""
        if self._lives():
            return self._kill("crashed", "your code closed the connection to the grader")
        status = self._end()
        code = os.waitstatus_to_exitcode(status)
        if self._interrupted_at is not None:
            self.dead = Died("timed out", LATE)
        elif code == -signal.SIGKILL:
            self.dead = Died("out of memory", "Python was killed, most likely for its memory")
        elif code < 0:
            self.dead = Died("crashed", f"Python crashed with {signal.Signals(-code).name}")
        else:
            self.dead = Died("crashed", f"your code ended Python itself, with exit code {code}")
        return self.dead

    def _lives(self) -> bool:
        """Whether it still runs, a moment after it closed the channel."""
        for _ in range(50):
            with contextlib.suppress(psutil.Error):
                if self.usage.status() == psutil.STATUS_ZOMBIE:
                    return False
            time.sleep(0.002)
        return True

    def _end(self) -> int:
        # it stays a zombie until the nursery reaps it, so its pid names no other process
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)
        self.channel.close()
        status = self.nursery.reap(self.pid)
        remove_tree(self.folder)
        return status


def _dict(message: Any, key: str) -> dict[str, Any]:
    body = message.get(key)
    if type(body) is not dict or not all(type(part) is dict for part in body.values()):
        return {}
    return body


def _failure(report: Any, *, always: bool = False) -> Failure | None:
    """What the other side says of an exception, believed as far as text goes."""
    if type(report) is not dict:
        return Failure("Exception", "Exception", "no result") if always else None
    line = report.get("line")
    return Failure(
        type=clean(report.get("type"))[:80],
        name=clean(report.get("name"))[:80],
        message=clean(report.get("message"))[:500],
        line=line if type(line) is int else None,
    )


def _too_much_on_disk(folder: Path, limits: Limits) -> bool:
    size = count = 0
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
            continue
        except OSError:  # nested deeper than a path is long, and so out of sight
            return True
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                count += 1
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if size > limits.disk or count > limits.files:
                    return True
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
    return False
