"""A student's process: what it does for honest code, and what becomes of the rest."""

import math
import os
import signal
import time

import numpy as np
import psutil
import pytest
import torch

from autograde.kernel import INTERRUPTED, Died, Failure
from autograde.limits import Limits
from course_lib.teaching.plain import Opaque

LIMITS = Limits(
    cpu_s=1,
    wall_s=5,
    grace_s=0.5,
    memory=100 << 20,
    disk=4 << 20,
    files=100,
    threads=16,
    output=100_000,
)


@pytest.fixture
def kernel(nursery):
    kernel = nursery.fork(LIMITS)
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def calm(nursery):
    """One process for all tests that leave it as it was."""
    kernel = nursery.fork(LIMITS)
    yield kernel
    kernel.close()


def call(kernel, name, *args, **kwargs):
    (result,) = kernel.call(name, [(args, kwargs)], observe=False)
    return result


def death(kernel, source):
    with pytest.raises(Died) as caught:
        kernel.run(source)
    return caught.value.cause, str(caught.value)


# --- cells ----------------------------------------------------------------------------------------


def test_a_cell_runs_and_the_next_one_sees_its_names(calm):
    assert calm.run("x = 20\ndef double(n): return 2 * n").failure is None
    assert calm.run("y = double(x) + 2").failure is None
    assert calm.look_up(["x", "y", "z"]) == {"x": 20, "y": 42}


def test_a_cell_shows_what_jupyter_shows(calm):
    ran = calm.run("import sys\nprint('a', end='')\nprint('b')\nsys.stderr.write('c\\n')\n1 + 1")
    printed = [(output.get("name"), output.get("text")) for output in ran.outputs]
    assert printed == [("stdout", "ab\n"), ("stderr", "c\n"), (None, None)]
    assert ran.outputs[2]["data"] == {"text/plain": "2"}
    (shown,) = calm.run("from IPython.display import Latex\nLatex('$x$')").outputs
    assert shown["data"]["text/latex"] == "$x$"


def test_clearing_leaves_only_what_comes_after(calm):
    ran = calm.run("from IPython.display import clear_output\nprint(1)\nclear_output()\nprint(2)")
    assert [output["text"] for output in ran.outputs] == ["2\n"]


def test_a_figure_is_shown_at_the_end_of_its_cell_and_only_once(calm):
    ran = calm.run("import matplotlib.pyplot as plt\nlines = plt.plot([1, 2])")
    assert [list(output["data"]) for output in ran.outputs] == [["text/plain", "image/png"]]
    assert calm.run("plt.get_fignums() or None").outputs == []


def test_await_and_magics_work_as_in_jupyter(calm):
    assert calm.run("import asyncio\nawait asyncio.sleep(0)\nz = 3").failure is None
    assert calm.run("%%time\nz += 1").failure is None
    assert calm.run("%timeit -n1 -r1 z").failure is None
    assert calm.look_up(["z"]) == {"z": 4}


def test_a_shell_command_does_not_run_and_ends_nothing(calm):
    ran = calm.run("files = !ls /\n!touch made\n%pip install x\ndone = True")
    assert ran.failure is None
    assert "shell commands do not run" in str(ran.outputs)
    assert calm.look_up(["files", "done"]) == {"files": [], "done": True}


def test_exit_in_a_cell_ends_nothing(calm):
    assert calm.run("before = 1\nexit()").failure is None
    assert calm.run("quit").failure is None
    assert calm.run("import sys\nsys.exit(3)").failure.type == "SystemExit"
    assert calm.look_up(["before"]) == {"before": 1}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x = 1\nx = = 2", "SyntaxError: invalid syntax (line 2 of the cell)"),
        ("return 1", "SyntaxError: 'return' outside function (line 1 of the cell)"),
        ("def f():\n    return 1 / 0\n\nf()", "ZeroDivisionError: division by zero (line 2 of"),
        ("{}['a']", "KeyError: 'a' (line 1 of the cell)"),
        ("class Mine(ValueError): pass\nraise Mine('no')", "Mine: no (line 2 of the cell)"),
        ("input('?')", "RuntimeError: input() is not available while grading"),
        ("%nope", "UsageError: Line magic function `%nope` not found."),
        ("exec('1 +')", "SyntaxError: invalid syntax (line 1 of the cell)"),
        ("raise ValueError('\\ud800')", "ValueError: ? (line 1 of the cell)"),
    ],
)
def test_a_failure_is_one_sentence_with_the_line_and_no_file_name(calm, source, sentence):
    failure = calm.run(source).failure
    assert failure.sentence.startswith(sentence)
    assert "ipython" not in failure.sentence


def test_an_endless_recursion_is_an_error_within_its_time(kernel):
    ran = kernel.run("def f(n):\n    return f(n + 1)\nf(0)")
    assert (ran.failure.type, ran.failure.line, ran.interrupted) == ("RecursionError", 2, False)


def test_what_a_cell_prints_without_end_is_cut(calm):
    ran = calm.run("for i in range(5):\n    display('x' * 30_000)")
    assert ran.failure is None
    assert len(ran.outputs) == 3
    ran = calm.run("print('x' * 3_000_000)\nprint('y')")
    assert ran.failure is None
    assert len(str(ran.outputs)) < LIMITS.output


# --- names and calls ------------------------------------------------------------------------------


def test_values_arrive_as_plain_data_and_all_else_by_the_name_of_its_type(calm):
    calm.run("import torch\nt = torch.ones(2)\nclass C: pass\nc = C()\ndef f(): pass\nnone = None")
    found = calm.look_up(["t", "c", "f", "none"])
    assert torch.equal(found.pop("t"), torch.ones(2))
    assert found == {"c": Opaque("__main__.C"), "f": Opaque("function", True), "none": None}


def test_a_value_too_large_to_send_is_a_failure_and_no_more(calm):
    calm.run("big = [0] * 2_000_000\nsmall = 1\nwide = ['x' * 10_000_000] * 2")
    found = calm.look_up(["big", "small"])
    assert found["small"] == 1
    assert isinstance(found["big"], Failure)
    assert "too" in found["big"].message
    assert "too large" in calm.look_up(["wide"])["wide"].message
    calm.run("def f(): return wide")
    assert "too large" in call(calm, "f").message


def test_calls_take_any_argument_and_give_plain_data(calm):
    calm.run("def f(x, scale=1):\n    return x * scale, type(x).__name__")
    (doubled, name) = call(calm, "f", torch.arange(3), scale=2)
    assert (doubled.tolist(), name) == ([0, 2, 4], "Tensor")
    (doubled, name) = call(calm, "f", np.arange(3), scale=2)
    assert (doubled.tolist(), name) == ([0, 2, 4], "ndarray")
    assert call(calm, "f", "ab", scale=2) == ("abab", "str")
    calm.run("def twice(g): return g(g(3))")
    assert call(calm, "twice", lambda n: n * n) == 81


def test_a_part_of_a_tensor_is_sent_without_the_rest(calm):
    calm.run("def held(x):\n    return x.untyped_storage().nbytes(), x")
    whole = torch.arange(60.0).reshape(6, 10)
    for part in (whole[1:], whole[:, ::2], whole[2, :3].requires_grad_()):
        ((size, same),) = calm.call("held", [((part,), {})], observe=False)
        assert size == part.nbytes
        assert torch.equal(same, part)


def test_many_calls_are_answered_in_order_each_for_itself(calm):
    calm.run("def inverse(x): return 1 / x")
    results = calm.call("inverse", [((n,), {}) for n in (1, 0, 2)], observe=False)
    assert (results[0], results[2]) == (1.0, 0.5)
    assert results[1] == Failure("ZeroDivisionError", "ZeroDivisionError", "division by zero", 1)


def test_an_observed_call_tells_what_it_did(calm):
    calm.run("def f(xs):\n    xs.append(3)\n    print('hi')\n    return len(xs)")
    calm.run("import random\ndef g(): return random.random() < 2")
    assert calm.call("f", [(([1],), {})], observe=True) == [(2, ([1, 3],), "hi\n", False)]
    assert calm.call("g", [((), {})], observe=True) == [(True, (), "", True)]


def test_what_a_call_prints_is_no_output_of_the_next_cell(calm):
    calm.run("import sys\ndef f():\n    print('a')\n    print('b', file=sys.stderr)")
    assert call(calm, "f") is None
    assert calm.run("'c'").outputs[0]["data"]["text/plain"] == "'c'"


@pytest.mark.parametrize(
    ("body", "type_", "message"),
    [
        ("raise ValueError('no tokens')", "ValueError", "no tokens"),
        ("import sys; sys.exit(2)", "SystemExit", "2"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("return bytearray(1 << 45)", "MemoryError", ""),
        ("import torch; return torch.ones(1 << 45)", "MemoryError", None),
        ("import numpy; return numpy.ones(1 << 45)", "MemoryError", None),
        ("return f()", "RecursionError", "maximum recursion depth exceeded"),
    ],
)
def test_an_exception_of_a_call_arrives_by_its_type_and_message(calm, body, type_, message):
    calm.run(f"def f(): {body}")
    failure = call(calm, "f")
    assert failure.type == type_
    assert message is None or failure.message == message


def test_an_unfit_call_is_an_exception_over_there(calm):
    calm.run("n = 5")
    assert call(calm, "n").type == "TypeError"
    assert call(calm, "absent").type == "KeyError"


# --- limits ---------------------------------------------------------------------------------------


def test_a_cell_that_computes_too_long_is_interrupted_and_the_process_lives(kernel):
    kernel.run("x = 1")
    began = time.monotonic()
    ran = kernel.run("while True:\n    pass")
    assert ran.interrupted
    assert ran.failure.type == "KeyboardInterrupt"
    assert time.monotonic() - began < LIMITS.wall_s + 2
    assert kernel.look_up(["x"]) == {"x": 1}


def test_a_cell_that_sleeps_is_interrupted_by_the_clock(nursery):
    kernel = nursery.fork(Limits(cpu_s=60, wall_s=0.3))
    ran = kernel.run("import time\ntime.sleep(60)")
    assert ran.interrupted
    kernel.close()


def test_a_call_that_computes_too_long_is_interrupted_and_says_so(kernel):
    kernel.run("def f():\n    while True: pass")
    assert call(kernel, "f") is INTERRUPTED
    assert kernel.look_up(["x"]) == {}


def test_what_ignores_the_interrupt_is_killed(nursery):
    kernel = nursery.fork(Limits(cpu_s=0.3, wall_s=3, grace_s=0.2))
    ignore = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    assert death(kernel, ignore) == (
        "timed out",
        "your code ran past the time limit and did not stop",
    )
    with pytest.raises(Died):  # and stays so
        kernel.run("1")


CRASHES = {
    "import os\nos._exit(0)": ("crashed", "your code ended Python itself, with exit code 0"),
    "import os\nos._exit(3)": ("crashed", "your code ended Python itself, with exit code 3"),
    "import ctypes\nctypes.string_at(0)": ("crashed", "Python crashed with SIGSEGV"),
    "import os\nos.abort()": ("crashed", "Python crashed with SIGABRT"),
    "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)": (
        "crashed",
        "Python crashed with SIGTERM",
    ),
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)": (
        "out of memory",  # so the system's own killer does it
        "Python was killed, most likely for its memory",
    ),
    "import os, time\nos.closerange(3, 99)\ntime.sleep(60)": (
        "crashed",
        "your code closed the connection to the grader",
    ),
    "import numpy\nhoard = [numpy.ones(1 << 20) for _ in range(1000)]": (
        "out of memory",
        "your code used more than 100 MiB of memory",
    ),
    "import time\nfor i in range(6):\n    open(str(i), 'wb').write(bytes(10**6))\ntime.sleep(9)": (
        "crashed",
        "your code wrote more than 4 MiB or 100 files",
    ),
    "import time\nfor i in range(200):\n    open(str(i), 'wb').close()\ntime.sleep(9)": (
        "crashed",
        "your code wrote more than 4 MiB or 100 files",
    ),
    "import threading, time\nfor _ in range(40):\n"
    "    threading.Thread(target=time.sleep, args=(9,)).start()\ntime.sleep(9)": (
        "crashed",
        "your code ran more than 16 threads",
    ),
}


@pytest.mark.parametrize("source", CRASHES)
def test_the_end_of_a_process_is_named_right(kernel, source):
    assert death(kernel, source) == CRASHES[source]


def test_a_process_that_ends_between_requests_is_named_right(kernel):
    kernel.run("import os, threading\nthreading.Timer(0.05, lambda: os._exit(7)).start()")
    time.sleep(0.3)
    with pytest.raises(Died, match="exit code 7"):
        kernel.look_up(["x"])


# --- lies -----------------------------------------------------------------------------------------

FORGE = """
import sys
wire = sys.modules["autograde.wire"]
send = wire.send
def forged(channel, message, blob=b""):
    if {when!r} in message:
        {then}
    else:
        send(channel, message, blob)
wire.send = forged
def f():
    return 1
"""


def forging(kernel, when, then):
    kernel.run(FORGE.format(when=when, then=then))


def test_only_names_that_were_asked_for_are_believed(kernel):
    forging(kernel, "values", 'send(channel, {"values": {"abs": {"value": {"callable": "f"}}}})')
    assert kernel.look_up(["x"]) == {}


@pytest.mark.parametrize(
    ("when", "then"),
    [
        ("results", 'send(channel, {"results": 5})'),
        ("results", 'send(channel, {"results": [5]})'),
        ("results", 'send(channel, {"results": [{"value": {"pickle": "x"}}]})'),
        ("results", "send(channel, [1])"),
        ("results", 'channel.sendall(b"\\xff" * 100)'),
        ("results", 'channel.sendall(wire.HEADER.pack(5, 0) + b"{[(,;")'),
    ],
)
def test_a_reply_that_makes_no_sense_ends_the_process(kernel, when, then):
    forging(kernel, when, then)
    with pytest.raises(Died, match="disturbed the grading") as caught:
        call(kernel, "f")
    assert caught.value.cause == "crashed"
    assert not psutil.pid_exists(kernel.pid)


def test_half_a_reply_is_waited_for_no_longer_than_any_other(kernel):
    forging(kernel, "results", 'channel.sendall(wire.HEADER.pack(50, 0) + b"{")')
    began = time.monotonic()
    with pytest.raises(Died) as caught:
        call(kernel, "f")
    assert caught.value.cause == "timed out"
    assert time.monotonic() - began < LIMITS.wall_s + 2


def test_a_failure_without_a_form_is_still_one(kernel):
    forging(kernel, "results", 'send(channel, {"results": [{"error": 5}]})')
    assert isinstance(call(kernel, "f"), Failure)


def test_outputs_without_a_form_are_left_out(calm):
    calm.run("import sys\noutputs = sys.modules['autograde.student']._Outputs")
    ran = calm.run(
        "for lie in (5, {}, {'output_type': 'stream'}, {'output_type': 'error', 'traceback': 5},\n"
        "            {'output_type': 'display_data', 'data': {'text/plain': [1], 'x': 2}}):\n"
        "    outputs.sink(lie)"
    )
    assert ran.failure is None
    assert [output["output_type"] for output in ran.outputs] == ["error", "display_data"]
    assert ran.outputs[1]["data"] == {"text/plain": "[1]"}


# --- apart from each other, and gone when closed --------------------------------------------------


def test_every_process_starts_from_the_same_random_state_and_an_empty_folder(nursery):
    drawn = []
    for _ in range(2):
        kernel = nursery.fork(LIMITS)
        kernel.run(
            "import os, random, numpy, torch\nfiles = os.listdir()\nopen('left', 'w').close()\n"
            "drawn = random.random(), numpy.random.rand(), torch.rand(1).item()"
        )
        assert kernel.look_up(["files"]) == {"files": []}
        drawn.append(kernel.look_up(["drawn"])["drawn"])
        kernel.close()
    assert drawn[0] == drawn[1]
    assert not any(math.isnan(number) for number in drawn[0])


def test_two_processes_live_side_by_side(nursery):
    first, second = nursery.fork(LIMITS), nursery.fork(LIMITS)
    first.run("x = 1")
    second.run("x = 2")
    assert (first.look_up(["x"]), second.look_up(["x"])) == ({"x": 1}, {"x": 2})
    first.close()
    assert second.look_up(["x"]) == {"x": 2}
    second.close()


def test_no_process_and_no_folder_is_left_after_closing(nursery):
    kernels = [nursery.fork(LIMITS) for _ in range(3)]
    kernels[0].run(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()"
    )
    with pytest.raises(Died):
        kernels[1].run("import os\nos._exit(1)")
    for kernel in kernels:
        kernel.close()
        kernel.close()  # twice is once
        assert not kernel.folder.exists()
        assert not psutil.pid_exists(kernel.pid)
    left = {child.pid for child in psutil.Process(nursery.process.pid).children()}
    assert not left & {kernel.pid for kernel in kernels}


def test_students_end_with_their_warm_parent(fresh_nursery):
    kernel = fresh_nursery.fork(LIMITS)
    os.kill(fresh_nursery.process.pid, signal.SIGKILL)
    fresh_nursery.process.wait()
    psutil.wait_procs([psutil.Process(kernel.pid)] if psutil.pid_exists(kernel.pid) else [], 5)
    assert not psutil.pid_exists(kernel.pid)
