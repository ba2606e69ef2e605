"""What runs inside the sandbox: an IPython shell for the student's cells, and calls to their names.

Nothing here is trusted once student code has run; the grader decodes what it is sent (`wire.py`).
Requests come one at a time; each gets any number of `{"output": ...}` frames, then one reply:

    {"run": source}                 -> {"error": null | {...}}
    {"look_up": [names]}            -> {"values": {name: tree}}
    {"call": name, "observe": bool} -> {"results": [{"value": tree} | {"error": {...}}, ...]}
    {"define": null}                -> {}

The blob of a call is a cloudpickle of `[(args, kwargs), ...]`, with a number for each function that
is only lent. The call may ask what such a function returns, with the tree of `[args, kwargs]`:

    {"ask": number, "with": tree}   -> {"value": tree} | {"error": text}
"""

import asyncio
import base64
import builtins
import contextlib
import io
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, cast

import cloudpickle
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from autograde import wire
from autograde.outputs import KEPT
from course_lib.teaching.check import random_state

MAX_STREAM = 1 << 20  # characters of print that a cell keeps
TRACE = 20  # frames of a deep traceback that are shown


class _Outputs:
    """Where a cell's outputs go; `None` while nobody listens."""

    sink: Callable[[dict[str, Any]], None] | None = None

    @classmethod
    def emit(cls, output: dict[str, Any]) -> None:
        if cls.sink is not None:
            with contextlib.suppress(ValueError):  # too large to send, and so to show
                cls.sink(output)


class _Stream(io.TextIOBase):
    """sys.stdout or sys.stderr: text becomes stream outputs, up to a limit a cell."""

    def __init__(self, name: str) -> None:
        self.stream = name
        self.pieces: list[str] = []
        self.room = MAX_STREAM

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.room > 0:
            self.pieces.append(text[: self.room])
            self.room -= len(text)
            if self.room <= 0:
                self.pieces.append("\n[the rest of this cell's output is not shown]\n")
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        text, self.pieces = "".join(self.pieces), []
        if text:
            _Outputs.emit({"output_type": "stream", "name": self.stream, "text": text})


def _bundle(data: dict[str, Any]) -> dict[str, str]:
    kept = {}
    for mime in KEPT:
        if mime in data:
            body = data[mime]
            if isinstance(body, bytes):
                body = base64.b64encode(body).decode()
            kept[mime] = str(body)
    return kept


class _Publisher(DisplayPublisher):
    """What a cell displays."""

    def publish(self, data: Any, *_: Any, **__: Any) -> None:
        flush()
        _Outputs.emit({"output_type": "display_data", "data": _bundle(data), "metadata": {}})

    def clear_output(self, wait: bool = False) -> None:
        flush()
        _Outputs.emit({"output_type": "clear"})


class _Hook(DisplayHook):
    """What the last expression of a cell shows."""

    def write_output_prompt(self) -> None: ...

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        flush()
        _Outputs.emit({"output_type": "display_data", "data": _bundle(format_dict), "metadata": {}})


def flush() -> None:
    """Send what has been printed so far."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Stream):
            stream.flush()


class Shell(InteractiveShell):
    """IPython without terminal, history or threads. One is made in the warm parent."""

    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.cache_size = 0
        config.InteractiveShell.colors = "NoColor"
        super().__init__(config=config)  # type: ignore[no-untyped-call]
        self.enable_matplotlib("inline")  # type: ignore[no-untyped-call]

    def ask_exit(self) -> None:
        """`exit()` in a cell ends nothing, as in Jupyter until the cell is over."""

    def enable_gui(self, gui: Any = None) -> None:
        """There is no window to integrate with."""

    def system(self, cmd: str) -> None:
        """`!command` and `%pip` start no process; as in Jupyter, that ends no cell."""
        print("[shell commands do not run while grading]", file=sys.stderr)

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> list[str] | str:
        """The output of `!command`: none."""
        self.system(cmd)
        return [] if split else ""

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        """Show an error; of an endless recursion the end only, since all of it takes seconds."""
        kind, error, trace = cast(Any, exc_tuple or sys.exc_info())
        depth = sum(1 for _ in traceback.walk_tb(trace))
        for _ in range(depth - TRACE if depth > 2 * TRACE else 0):
            trace = trace.tb_next
        super().showtraceback((kind, error, trace), *args, **kwargs)

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        flush()
        text = str(evalue) if etype is not None else ""
        _Outputs.emit(
            {
                "output_type": "error",
                "ename": str(getattr(etype, "__name__", etype)),
                "evalue": text[:2000],
                "traceback": [str(line)[:2000] for line in stb][-20:],
            }
        )


def refuse_input(prompt: object = "") -> str:
    raise RuntimeError("input() is not available while grading: give the value in the code")


class Lent:
    """A function of the test's: a call is asked of the grader."""

    now: object = None  # stands for the call that the grader waits for

    def __init__(self, channel: socket.socket, number: int) -> None:
        self.channel, self.number, self.call = channel, number, Lent.now

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is not Lent.now:
            raise RuntimeError("the test lent this function for one call only")
        blob = bytearray()
        tree = wire.encode([args, kwargs], blob)
        wire.send(self.channel, {"ask": self.number, "with": tree}, bytes(blob))
        reply, answer = wire.receive(self.channel)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return wire.decode(reply["value"], answer)


class _Unpickler(pickle.Unpickler):
    """Reads the arguments of a call; what is lent comes as a number."""

    def __init__(self, file: io.BytesIO, channel: socket.socket) -> None:
        super().__init__(file)
        self.channel = channel

    def persistent_load(self, number: Any) -> Lent:
        return Lent(self.channel, number)


class Student:
    """Serves one student's namespace over `channel` until the grader closes it."""

    def __init__(self, shell: Shell, channel: socket.socket) -> None:
        self.shell = shell
        self.channel = channel
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        builtins.input = refuse_input

    def serve(self) -> None:
        while True:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt that came too late
            try:
                request, blob = wire.receive(self.channel)
            except EOFError:
                return
            if "run" in request:
                wire.send(self.channel, {"error": self.run(request["run"])})
            elif "look_up" in request:
                self.look_up(request["look_up"])
            elif "define" in request:
                self.shell.user_ns.update(cloudpickle.loads(blob))
                wire.send(self.channel, {})
            else:
                self.call(request["call"], bool(request["observe"]), blob)

    def run(self, source: str) -> dict[str, Any] | None:
        """Run a cell, as Jupyter does: inside a running event loop, magics and await included."""
        sys.stdout, sys.stderr = _Stream("stdout"), _Stream("stderr")
        _Outputs.sink = lambda output: wire.send(self.channel, {"output": output})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            result = self.loop.run_until_complete(self._run(source))
            error = result.error_before_exec or result.error_in_exec
        except BaseException as escaped:
            error = escaped
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.shell.events.trigger("post_execute")  # shows the figures that the cell drew
            flush()
            _Outputs.sink = None
        return None if error is None else describe(error)

    async def _run(self, source: str) -> Any:
        try:
            transformed, failed = self.shell.transform_cell(source), None  # type: ignore[no-untyped-call]
        except Exception:  # run_cell_async shows it as the cell's own error
            transformed, failed = source, sys.exc_info()
        return await self.shell.run_cell_async(
            source,
            store_history=False,
            transformed_cell=transformed,
            preprocessing_exc_tuple=failed,
        )

    def look_up(self, names: list[str]) -> None:
        reply = bytearray()
        values = {name: self.value_of(name, reply) for name in names}
        try:
            wire.send(self.channel, {"values": values}, bytes(reply))
        except ValueError as error:
            wire.send(
                self.channel, {"values": {name: {"error": describe(error)} for name in names}}
            )

    def value_of(self, name: str, blob: bytearray) -> Any:
        if name not in self.shell.user_ns:
            return {"missing": name}
        start = len(blob)
        try:
            return {"value": wire.encode(self.shell.user_ns[name], blob)}
        except Exception as error:
            del blob[start:]
            return {"error": describe(error)}

    def call(self, name: str, observe: bool, pickled: bytes) -> None:
        """Call a name with each pickled (args, kwargs); send all results at once."""
        reply, results = bytearray(), []
        signal.signal(signal.SIGINT, signal.default_int_handler)
        Lent.now = object()
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                function = self.shell.user_ns[name]
                for args, kwargs in _Unpickler(io.BytesIO(pickled), self.channel).load():
                    results.append(self.call_once(function, args, kwargs, observe, reply))
        except BaseException as error:
            results.append({"error": describe(error)})
        Lent.now = None
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            wire.send(self.channel, {"results": results}, bytes(reply))
        except ValueError as error:
            wire.send(self.channel, {"results": [{"error": describe(error)}]})

    def call_once(
        self, function: Any, args: Any, kwargs: Any, observe: bool, blob: bytearray
    ) -> dict[str, Any]:
        before = random_state() if observe else None
        start = len(blob)
        try:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                value = function(*args, **kwargs)
            if not observe:
                return {"value": wire.encode(value, blob)}
            seen = (value, tuple(args), out.getvalue()[:MAX_STREAM], random_state() != before)
            return {"value": wire.encode(seen, blob)}
        except BaseException as error:
            del blob[start:]
            return {"error": describe(error)}


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as plain data: the built-in type that it is or derives from, message, place."""
    mro = type(error).__mro__
    builtin = next(kind.__name__ for kind in mro if kind.__module__ == "builtins")
    name, message, line = type(error).__name__, "", None
    with contextlib.suppress(Exception):  # from a __str__ of the student's
        message = str(error.msg if isinstance(error, SyntaxError) else error)  # no file name
    with contextlib.suppress(Exception):
        line = next(_cell_lines(error), None)
    if builtin == "RuntimeError" and "can't allocate memory" in message:  # how torch says it
        builtin = name = "MemoryError"
    return {"type": builtin, "name": name[:80], "message": message[:500], "line": line}


def _cell_lines(error: BaseException) -> Iterator[int]:
    """The innermost line of the student's own cells that an error passed through."""
    if isinstance(error, SyntaxError) and error.lineno and _in_cell(error.filename):
        yield error.lineno
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if _in_cell(frame.f_code.co_filename):
            yield line


def _in_cell(filename: str | None) -> bool:
    return filename is not None and filename.startswith("<ipython-input")
