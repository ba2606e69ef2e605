"""Functions that a test lends to the student's: they can be called, and that is all."""

import pytest

from autograde import lending
from autograde.judge import judge
from autograde.kernel import Died, Limits
from autograde.verdict import Outcome

LIMITS = Limits(cpu_s=1, wall_s=6, grace_s=0.5, memory=100 << 20)


@pytest.fixture
def kernel(nursery):
    kernel = nursery.fork(LIMITS)
    yield kernel
    kernel.close()


@pytest.fixture
def ruling(kernel):
    def ruling(answer, test):
        assert kernel.run(answer).failure is None
        found = judge(test, kernel)
        return found.outcome, found.message

    return ruling


RIGHT = (Outcome.CORRECT, "")


def test_a_lent_function_gives_what_it_gives_here(ruling):
    answer = "def total(f, xs): return sum(float(f(x, scale=2).sum()) for x in xs)"
    test = """
import torch
shift = 3
def f(x, scale):
    return scale * x + shift
assert total(f, [torch.ones(2), torch.zeros(3)]) == 19
"""
    assert ruling(answer, test) == RIGHT


def test_nothing_of_its_code_reaches_the_student(ruling):
    answer = """
import gc, types
def look(f):
    shown = [repr(f), *map(repr, vars(f).values()), type(f).__name__, *dir(f)]
    shown += [repr(g.__closure__) + g.__name__ for g in gc.get_objects()
              if type(g) is types.FunctionType and g.__module__ == "test"]
    return "\\n".join(shown) + repr(f(1))
"""
    test = """
secret_table = {1: "one"}
def secret_name(x, secret_default="hush"):
    secret_variable = secret_table[x]
    return len(secret_variable)
seen = look(secret_name)
assert "3" in seen and "secret" not in seen and "hush" not in seen, seen
"""
    assert ruling(answer, test) == RIGHT


def test_a_function_in_a_list_or_lent_twice_works_too(ruling):
    answer = "def all_at(functions, x): return [f(x) for f in functions]"
    test = """
def f(x): return x + 1
g = lambda x: 10 * x
assert all_at([f, g, f], 4) == [5, 40, 5]
"""
    assert ruling(answer, test) == RIGHT


def test_a_function_that_fails_raises_over_there_and_the_student_may_go_on(ruling):
    answer = """
def careful(f):
    try:
        return f(0)
    except RuntimeError as error:
        return str(error)
"""
    test = "def f(x): return 1 / x\nassert careful(f) == 'ZeroDivisionError: division by zero'"
    assert ruling(answer, test) == RIGHT


def test_results_that_are_no_plain_data_come_as_what_they_are_for_any_answer(ruling):
    answer = "def ask(f): return type(f()).__name__"
    assert ruling(answer, "def f(): return f\nassert ask(f) == 'Opaque'") == RIGHT


@pytest.mark.parametrize(
    "body", ["while True: pass", "return bytearray(1 << 40)", "import os; os._exit(3)"]
)
def test_a_function_that_does_not_return_hurts_only_the_call(ruling, kernel, body):
    """As when a student's arguments make it so."""
    answer = """
def try_it(f):
    try:
        f()
    except RuntimeError as error:
        return str(error)
"""
    assert ruling(answer, f"def f():\n    {body}\nassert try_it(f)") == RIGHT
    assert kernel.run("1").failure is None


def test_a_student_who_disturbs_the_function_disturbs_only_himself(ruling):
    """The function runs in a process of its own, where the student never was."""
    answer = """
import builtins, torch
builtins.sum = torch.sum = len
def ask(f): return f([1, 2])
"""
    assert ruling(answer, "def f(x): return sum(x)\nassert ask(f) == 3") == RIGHT


def test_after_the_call_the_function_is_gone(ruling):
    answer = """
kept = []
def keep(f): kept.append(f)
def use():
    try:
        return kept[0](1)
    except RuntimeError as error:
        return str(error)
"""
    test = "def f(x): return x\nkeep(f)"
    assert ruling(answer, test) == RIGHT
    assert ruling("said = use()", "assert 'for one call only' in said") == RIGHT
    assert ruling("", "def g(x): return 2 * x\nassert 'for one call only' in use()") == RIGHT


ASKING = """
import gc, json, struct
from autograde import student as S, wire
channel = next(o for o in gc.get_objects() if type(o) is S.Student).channel
def ask(f):
    wire.send(channel, {question})
    return wire.receive(channel)
"""


@pytest.mark.parametrize(
    "question",
    [
        '{"ask": 1, "with": [{"tuple": []}, {"dict": []}]}',
        '{"ask": -1, "with": [{"tuple": []}, {"dict": []}]}',
        '{"ask": True, "with": [{"tuple": []}, {"dict": []}]}',
        '{"ask": "0", "with": [{"tuple": []}, {"dict": []}]}',
        '{"ask": 0}',
        '{"ask": 0, "with": [[], {"dict": []}]}',
        '{"ask": 0, "with": [{"tuple": []}, {"dict": [[1, 2]]}]}',
        '{"ask": 0, "with": {"tensor": ["float32", [9], 0, 36]}}',
    ],
)
def test_a_question_that_nobody_honest_asks_ends_the_process(kernel, question):
    kernel.run(ASKING.replace("{question}", question))
    with pytest.raises(Died, match="disturbed the grading"):
        judge("def f(): return 1\nask(f)", kernel)


def test_questions_without_end_run_into_the_limit(kernel):
    kernel.run("def ask(f):\n    while True: f()")
    found = judge("def f(): return 1\nask(f)", kernel)
    assert found.outcome == Outcome.TIMED_OUT


def test_no_process_is_started_for_a_function_that_is_not_called(kernel, monkeypatch):
    monkeypatch.setattr(lending.Lending, "_run", lambda *_: 1 / 0)
    kernel.run("def ignore(f): return 1")
    assert judge("def f(): return 1\nassert ignore(f) == 1", kernel).outcome == Outcome.CORRECT
