"""Test cells run here, against a student's process over there."""

import pytest

from autograde.judge import RemoteFunction, judge, rebuilt
from autograde.kernel import Died, Failure
from autograde.limits import Limits
from autograde.verdict import Outcome
from course_lib.teaching.check import each, observe

LIMITS = Limits(cpu_s=1, wall_s=3, grace_s=0.5, memory=100 << 20)


@pytest.fixture(scope="module")
def kernel(nursery):
    kernel = nursery.fork(LIMITS)
    yield kernel
    kernel.close()


@pytest.fixture
def mortal(nursery):
    kernel = nursery.fork(LIMITS)
    yield kernel
    kernel.close()


def ruling(kernel, answer, test):
    kernel.run(answer)
    found = judge(test, kernel)
    return found.outcome, found.message


def counted(kernel, monkeypatch):
    """The requests that a kernel is sent from now on."""
    requests, send = [], kernel._send
    monkeypatch.setattr(kernel, "_send", lambda *args: requests.append(args[0]) or send(*args))
    return requests


# --- a pass ---------------------------------------------------------------------------------------


def test_a_test_that_runs_to_its_end_is_correct(kernel):
    assert ruling(kernel, "def f(x): return x + 1", "assert f(1) == 2") == (Outcome.CORRECT, "")


def test_a_misconception_is_told_and_kept_by_its_id(kernel):
    test = "from course_lib.teaching.check import diagnose\n"
    test += "diagnose(x, right=2.0, wrong={'M6: Bits.': 4.0})"
    kernel.run("x = 4")
    found = judge(test, kernel)
    assert (found.outcome, found.misconception) == (Outcome.WRONG, "M6")
    assert "you have 4. Bits. (misconception M6; read on: Primer, " in found.message


def test_names_that_the_test_binds_are_its_own_and_all_others_the_students(kernel):
    answer = "log = 'mine'\nx = 8\ndef isclose(*a): return True"
    test = "from math import log, isclose\nassert isclose(log(x), 3 * log(2))"
    assert ruling(kernel, answer, test) == (Outcome.CORRECT, "")
    assert ruling(kernel, "x = 9", test)[0] == Outcome.WRONG


def test_a_students_function_reaches_into_functions_of_the_test(kernel):
    test = "def twice(n):\n    return f(f(n))\nassert [twice(n) for n in (1, 2)] == [3, 4]"
    assert ruling(kernel, "def f(x): return x + 1", test) == (Outcome.CORRECT, "")


def test_builtins_are_the_graders_whatever_the_student_calls_so(kernel):
    answer = "def abs(x): return 0\ndef isinstance(*a): return True\nx = -3"
    assert ruling(kernel, answer, "assert abs(x) == 3")[0] == Outcome.CORRECT
    assert ruling(kernel, answer, "assert isinstance(x, str)")[0] == Outcome.WRONG
    kernel.run("del abs, isinstance")


def test_what_the_student_answered_for_builtins_unasked_counts_for_nothing(mortal):
    lie = """
import sys
wire = sys.modules["autograde.wire"]
send = wire.send
def lying(channel, message, blob=b""):
    if "values" in message:
        message["values"]["abs"] = {"value": {"callable": "zero"}}
    send(channel, message, blob)
wire.send = lying
def zero(x): return 0
abs = zero
x = -3
"""
    assert ruling(mortal, lie, "assert abs(x) < 1, 'no'") == (Outcome.WRONG, "no")


@pytest.mark.parametrize(
    "answer",
    [
        "print('AssertionError')\nimport sys\nprint('Traceback', file=sys.stderr)\nx = 1",
        "import sys\nsys.stdout = None\nx = 1",
        "import builtins\nbuiltins.sorted = lambda _: 3\nx = 1",
    ],
)
def test_nothing_that_is_printed_or_patched_over_there_changes_a_ruling(mortal, answer):
    assert ruling(mortal, answer, "assert x == 1 and sorted([2, 1]) == [1, 2]") == (
        Outcome.CORRECT,
        "",
    )
    assert ruling(mortal, answer, "assert x == 2, 'no'") == (Outcome.WRONG, "no")


@pytest.mark.parametrize(
    "lie",
    [
        "class Yes(float):\n    def __eq__(self, other): return True\nx = Yes(1)",
        "class Yes:\n    def __eq__(self, other): return True\nx = Yes()",
        "import numpy\nclass Yes(numpy.ndarray):\n    def __eq__(self, other): return True\n"
        "x = numpy.ones(1).view(Yes)",
        "import torch\nclass Yes(torch.Tensor):\n    def __eq__(self, other): return True\n"
        "x = torch.ones(1).as_subclass(Yes)",
    ],
)
def test_an_object_equal_to_everything_is_equal_to_nothing_here(mortal, lie):
    assert ruling(mortal, lie, "assert x == 2, 'no'")[0] != Outcome.CORRECT


# --- no pass --------------------------------------------------------------------------------------

RULINGS = [
    ("x = 1", "assert x == 2, 'one too few'", "wrong", "one too few"),
    ("x = 1", "assert x == 2", "wrong", "This is not right."),
    (
        "x = 4.0",
        "from course_lib.teaching.check import diagnose\n"
        "diagnose(x, right=2.0, wrong={'You forgot to halve.': 4.0}, what='half')",
        "wrong",
        "half: you have 4. You forgot to halve.",
    ),
    (
        "x = ...",
        "from course_lib.teaching.check import diagnose\ndiagnose(x, right=2.0, what='half')",
        "not attempted",
        "half: not attempted yet. Put your answer where the `...` is.",
    ),
    ("x = ...", "assert x is not ..., 'still open'", "wrong", "still open"),
    (
        "def f(x): x + 1",
        "from course_lib.teaching.check import diagnose\ndiagnose(f(1), right=2, what='f')",
        "not attempted",
        "f: got nothing. Still to be written, or a `return` forgotten?",
    ),
    (
        "x = {1: object()}",
        "from course_lib.teaching.check import diagnose\ndiagnose(x[1], right=2, what='f')",
        "wrong",
        "f: expected a number, got a `object`: <object>.",
    ),
    (
        "pass",
        "assert absent == 2",
        "error",
        "`absent` is not defined. Is it spelled as the text asks, and does its cell run without "
        "an error?",
    ),
    (
        "x = 5",
        "x(1)",
        "error",
        "The test could not use your answer. Is it of the type that the text asks for? "
        "TypeError: 'int' object is not callable",
    ),
    (
        "x = None",
        "assert x < 2",
        "error",
        "The test could not use your answer. Is it of the type that the text asks for? "
        "TypeError: '<' not supported between instances of 'NoneType' and 'int'",
    ),
    (
        "def f(x):\n    return x / 0",
        "f(1)",
        "error",
        "`f` raised ZeroDivisionError: division by zero (line 2 of the cell).",
    ),
    (
        "def f(x):\n    assert x == 2, 'I say so'",
        "f(1)",
        "error",
        "`f` raised AssertionError: I say so (line 2 of the cell).",
    ),
    ("def f(): return 1", "f(1)", "error", "`f` raised TypeError: f() takes 0 positional"),
    ("import sys\ndef f(): sys.exit()", "f()", "error", "`f` called exit(); it must return"),
    ("def f(): raise KeyboardInterrupt", "f()", "error", "`f` raised KeyboardInterrupt"),
    (
        "def f():\n    while True: pass",
        "f()",
        "timed out",
        "`f` was still running when its time was up.",
    ),
    (
        "def f(): return bytearray(1 << 45)",
        "f()",
        "out of memory",
        "`f` asked for more memory than there is.",
    ),
    ("x = [0] * 2_000_000", "len(x)", "error", "`x` can't be read: the value is nested too"),
]


@pytest.mark.parametrize(("answer", "test", "outcome", "message"), RULINGS)
def test_a_ruling_says_what_happened(kernel, answer, test, outcome, message):
    found = ruling(kernel, answer, test)
    assert found[0] == outcome
    assert found[1].startswith(message)


@pytest.mark.parametrize(
    ("body", "cause", "words"),
    [
        ("import os; os._exit(0)", "crashed", "ended Python itself, with exit code 0"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "SIGSEGV"),
        (
            "import numpy; return [numpy.ones(1 << 20) for _ in range(1000)]",
            "out of memory",
            "more than 100 MiB",
        ),
    ],
)
def test_a_process_that_ends_over_a_test_is_no_pass(mortal, body, cause, words):
    mortal.run(f"def f(): {body}")
    with pytest.raises(Died, match=words) as caught:
        judge("f()", mortal)
    assert caught.value.cause == cause


def test_a_test_that_catches_everything_does_not_hide_that_the_process_ended(mortal):
    mortal.run("def f():\n    import os\n    os._exit(0)")
    with pytest.raises(Died):
        judge("try:\n    f()\nexcept Exception:\n    pass", mortal)


def test_a_fault_of_the_test_itself_is_not_the_students(kernel):
    with pytest.raises(NameError):  # ends as a row that a person looks at
        judge("def g():\n    return later\ng()\nlater = 1", kernel)


# --- exceptions across the wall -------------------------------------------------------------------

RAISES = "from course_lib.teaching.check import raises\nwith raises({}, 'must raise'):\n    f()"


@pytest.mark.parametrize(
    ("raised", "expected", "outcome"),
    [
        ("ValueError('x')", "ValueError", "correct"),
        ("UnicodeDecodeError('utf-8', b'', 0, 1, 'x')", "ValueError", "correct"),
        ("IndexError", "LookupError", "correct"),
        ("type('Mine', (KeyError,), {})('x')", "KeyError", "correct"),
        ("TypeError('x')", "ValueError", "error"),
        ("SystemExit", "Exception", "error"),
    ],
)
def test_raises_works_across_the_wall_for_builtin_exceptions(kernel, raised, expected, outcome):
    found = ruling(kernel, f"def f(): raise {raised}", RAISES.format(expected))
    assert found[0] == outcome


def test_raising_nothing_is_wrong_and_running_out_of_time_is_no_exception(kernel):
    assert ruling(kernel, "def f(): pass", RAISES.format("ValueError")) == ("wrong", "must raise")
    endless = "def f():\n    while True: pass"
    assert ruling(kernel, endless, RAISES.format("Exception"))[0] == "timed out"


@pytest.mark.parametrize(
    "name",
    ["ValueError", "UnicodeDecodeError", "ExceptionGroup", "KeyError", "SystemExit", "len", "no"],
)
def test_any_failure_can_be_raised_here_and_ends_nothing(name):
    error = rebuilt(Failure(name, "A Name", "words", 3))
    assert error.failure.message == "words"
    assert not isinstance(error, SystemExit | KeyboardInterrupt | AssertionError)


# --- round trips ----------------------------------------------------------------------------------


def test_each_and_observe_take_one_round_trip(kernel, monkeypatch):
    kernel.run("def f(xs):\n    xs.append(len(xs))\n    print('hi')\n    return sum(xs)")
    requests, remote = counted(kernel, monkeypatch), RemoteFunction(kernel, "f")
    assert each(remote, [([n],) for n in range(50)]) == list(range(1, 51))
    assert len(requests) == 1
    seen = observe(remote, [5])
    assert (seen.result, seen.args, seen.printed, seen.moved_random) == (
        6,
        ([5, 1],),
        "hi\n",
        False,
    )
    assert len(requests) == 2


def test_the_first_call_of_each_that_fails_is_raised(kernel):
    kernel.run("def f(x): return 1 / x")
    with pytest.raises(ZeroDivisionError):
        each(RemoteFunction(kernel, "f"), [(1,), (0,), (2,)])


def test_the_hidden_source_never_reaches_the_process(mortal, monkeypatch):
    requests = counted(mortal, monkeypatch)
    mortal.run("def f(x): return x")
    judge("secret = 'a marker'\nassert f(1) == 1\nassert secret", mortal)
    assert "marker" not in str(requests)
    assert "secret" not in str(requests)
