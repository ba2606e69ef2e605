"""Attempts to get points without the right answers.

T32 (a folder that pretends to be somebody else's) is about collecting: here a folder's name is all
that says who hands in, and no submission can write outside its own.
"""

from pathlib import Path

import pytest
from classes import LEVEL, Row, check_good_ones, verdict
from inside import FIND, forging

from autograde.course import find_course

WRONG = "def surprise(p):\n    return 1.5\n"  # to see what a trick makes of it
BOTH = {"surprise": "wrong", "each": "wrong"}  # what it should make of it


def tagged(notebook):
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata["tags"] = ["skip-execution", "raises-exception"]
            cell.metadata["nbgrader"]["points"] = 500
            cell.source = "assert True"


def with_files(*names):
    def write(path):
        for name in names:
            (path.parent / name).write_text("raise SystemExit('a module of the submission ran')")
        (path.parent / "timestamp.txt").write_text("1999-01-01 00:00:00 UTC")

    return write


ROWS = [
    Row("T01 skip-execution tag", surprise=WRONG, edit=tagged, lost=BOTH, says="had been changed"),
    Row(
        "T02 input transformer",
        surprise=WRONG
        + "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])",
        # what the student's shell runs afterwards is the student's loss
        lost=BOTH | {"choices": "error", "softmax": "error", "empty": "error"},
    ),
    Row(
        "T02b syntax tree transformer and import hook",
        surprise=WRONG
        + """
import ast, builtins, sys
class NoAsserts(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
get_ipython().ast_transformers.append(NoAsserts())
builtins.__build_class__ = builtins.compile = builtins.exec = None
sys.meta_path.insert(0, None)
""",
        lost=BOTH | {"softmax": "error", "empty": "error", "choices": "error"},
    ),
    Row("T02c settrace", surprise=WRONG + "import sys\nsys.settrace(lambda *a: None)", lost=BOTH),
    Row(
        "T04 run_cell replaced",
        surprise=WRONG
        + """
from IPython.core.interactiveshell import ExecutionResult, ExecutionInfo
async def fake(*args, **kwargs):
    return ExecutionResult(ExecutionInfo("", False, False, True, None))
get_ipython().run_cell_async = fake
""",
        lost=BOTH | {"choices": "error", "softmax": "error", "empty": "error"},
    ),
    Row(
        "T06 forged execute_result",
        surprise="import sys\ndef surprise(p):\n    sys.displayhook(5)\n    return 1.5",
        lost=BOTH,
    ),
    Row(
        "T07 NaN as a score and as an answer",
        surprise="import sys\ndef surprise(p):\n    sys.displayhook(math.nan)\n    return math.nan",
        choices="choices = math.nan",
        softmax="def softmax(x):\n    return x * math.nan",
        lost=BOTH | {"choices": "wrong", "softmax": "wrong", "empty": "wrong"},
    ),
    Row(
        "T07b infinite or negative answers",
        surprise="def surprise(p):\n    return math.inf",
        choices="choices = -8",
        lost=BOTH | {"choices": "wrong"},
    ),
    Row(
        "T08 always-equal object",
        surprise="""
class Yes(float):
    __eq__ = __ge__ = __le__ = __lt__ = __gt__ = lambda self, other: True
    __hash__ = None
    __abs__ = __sub__ = __rsub__ = lambda self, *other: self
def surprise(p):
    return Yes(1.5)
""",
        choices="""
class Yes:
    __class__ = int
    __eq__ = lambda self, other: True
    __hash__ = lambda self: 8
choices = Yes()
""",
        softmax="""
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True
def softmax(logits):
    return torch.zeros(7).as_subclass(Yes)
""",
        lost=BOTH | {"choices": "wrong", "softmax": "wrong", "empty": "wrong"},
    ),
    Row(
        "T08b numpy subclass and lying class",
        choices="""
import numpy as np
class Yes(np.ndarray):
    __eq__ = __le__ = lambda self, other: True
choices = np.zeros(()).view(Yes)
""",
        softmax="""
class Yes:
    __class__ = property(lambda self: torch.Tensor)
    shape = (7,)
    def __getattr__(self, name):
        return lambda *a, **k: torch.zeros(7)
def softmax(logits):
    return Yes()
""",
        lost={"choices": "wrong", "softmax": "wrong", "empty": "wrong"},
    ),
    Row(
        "T10 patched comparator",
        surprise=WRONG
        + "math.isclose = torch.allclose = torch.equal = lambda *a, **k: True\n"
        + "import numpy as np\nnp.testing.assert_allclose = lambda *a, **k: None",
        lost=BOTH,
    ),
    Row(
        "T11 redefined helper or builtin",
        surprise=WRONG
        + """
import builtins, course_lib.teaching.check, course_lib.teaching.plain
for module, name in [(builtins, "all"), (builtins, "isinstance"), (builtins, "abs"),
                     (course_lib.teaching.check, "diagnose"), (course_lib.teaching.check, "demand"),
                     (course_lib.teaching.plain, "same")]:
    setattr(module, name, lambda *a, **k: True)
diagnose = demand = isclose = all = len = lambda *a, **k: True
""",
        lost={"surprise": "", "each": ""},  # without `isinstance` its own process does not get far
        disturbs=True,
    ),
    Row(
        "T11b names forced upon the test",
        surprise=WRONG
        + forging("""
    for name in ("abs", "all", "len", "isinstance", "math", "draws", "SystemRandom", "demand"):
        message.get("values", {})[name] = {"value": {"callable": "function"}}
    message.get("values", {})["__builtins__"] = {"value": {"dict": [["len", 5]]}}
""").replace("    \n", "")
        + "abs = lambda x: 0.0\nall = lambda x: True",
        lost=BOTH,
    ),
    Row("T13 shadow module file", files=with_files("torch.py", "types.py", "math.py", "json.py")),
    Row(
        "T13b shadow modules written while running",
        choices="choices = 8\nfor name in ('torch', 'types', 'cloudpickle', 'course_lib'):\n"
        "    open(f'{name}.py', 'w').write('raise SystemExit')",
    ),
    Row(
        "T14 exit before the asserts",
        surprise="import os\ndef surprise(p):\n    os._exit(0)",
        lost={"surprise": "crashed", "each": "crashed"},
    ),
    Row(
        "T14b SystemExit",
        surprise="def surprise(p):\n    raise SystemExit(0)",
        lost={"surprise": "error", "each": "error"},
        says="exit()",
    ),
    Row(
        "T14c exit where the test wants an exception",
        softmax="import os\ndef softmax(x):\n    if len(x) == 0:\n        os._exit(0)\n"
        "    return torch.softmax(x, -1)",
        lost={"empty": "crashed"},
    ),
    Row(
        "T14d SystemExit where the test wants an exception",
        softmax="def softmax(x):\n    if len(x) == 0:\n        raise SystemExit\n"
        "    return torch.softmax(x, -1)",
        lost={"empty": "error"},
    ),
    Row(
        "T14e endless where the test wants an exception",
        softmax="def softmax(x):\n    while len(x) == 0:\n        pass\n"
        "    return torch.softmax(x, -1)",
        lost={"empty": "timed out"},
    ),
    Row(
        "T14f killed by itself",
        surprise="import os, signal\ndef surprise(p):\n    os.kill(os.getpid(), signal.SIGTERM)\n",
        lost={"surprise": "crashed", "each": "crashed"},
    ),
    Row(
        "T14g sys.exit in a thread",
        surprise="""
import sys, threading
def surprise(p):
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    return -math.log(p)
""",
    ),
    Row(
        "T14h abort",
        surprise="import faulthandler\ndef surprise(p):\n    faulthandler._sigabrt()",
        lost={"surprise": "crashed", "each": "crashed"},
    ),
    Row(
        "T14i endless recursion in C",
        surprise="import sys\nsys.setrecursionlimit(10**9)\ndef surprise(p):\n"
        "    return max([p], key=surprise)",
        lost={"surprise": "crashed", "each": "crashed"},
    ),
    Row(
        "T15 error hiding",
        surprise="ip = get_ipython()\nip.showtraceback = ip._showtraceback = lambda *a, **k: None\n"
        "ip.set_custom_exc((Exception,), lambda *a, **k: None)\n"
        "ip.events.register('post_run_cell', lambda *a: None)\nraise ValueError('hidden')",
        lost={"surprise": "error", "each": "error"},
    ),
    Row(
        "T16 forged reply to a request not yet made",
        surprise=WRONG
        + FIND
        + """
frame({"error": None})
frame({"values": {"surprise": {"value": {"callable": "f"}}}})
for _ in range(20):
    frame({"results": [{"value": 0.6931471805599453}]})
""",
        lost={"surprise": "wrong", "each": ""},
        disturbs=True,  # every reply afterwards answers an earlier request
    ),
    Row(
        "T16b replies from a thread",
        surprise=WRONG
        + FIND
        + """
import threading
def answers():
    while True:
        try:
            frame({"results": [{"value": 0.6931471805599453}] * 2})
        except OSError:
            return
threading.Thread(target=answers, daemon=True).start()
""",
        lost={"surprise": "", "each": ""},
        disturbs=True,
    ),
    Row(
        "T16c too many and too few results",
        surprise=forging('if "results" in message: message["results"] *= 2', WRONG),
        softmax=forging(
            'if "results" in message: message["results"] = []', "softmax = WRONG = len"
        ),
        lost={"surprise": "crashed", "each": "crashed", "softmax": "crashed", "empty": "crashed"},
    ),
    Row(
        "T18 outputs of any form",
        choices=FIND
        + """
choices = 8
for output in (None, 5, [], {}, {"output_type": 7}, {"output_type": "evil", "text": "x"},
               {"output_type": "stream", "name": [], "text": {"a": 1}},
               {"output_type": "display_data", "data": {"text/plain": [1]}, "metadata": 1},
               {"output_type": "error", "traceback": 3}, {"output_type": "execute_result"},
               {"output_type": "stream", "name": "stdout", "text": "\\ud800"}):
    frame({"output": output})
""",
    ),
    Row(
        "T20 predictable randomness",
        surprise="""
import random, numpy as np
random.seed(0), torch.manual_seed(0), np.random.seed(0)
random.SystemRandom.uniform = random.uniform = lambda *a: 0.5
torch.randn = lambda *a, **k: torch.zeros(7)
def surprise(p):
    return 0.6931471805599453
""",
        softmax="def softmax(logits):\n    if len(logits) == 0:\n        raise ValueError\n"
        "    return torch.full((7,), 1 / 7)",
        lost={"surprise": "wrong", "each": "wrong", "softmax": "wrong"},
    ),
    Row(
        "T21 hard-coded answers",
        surprise="def surprise(p):\n    return {1.0: 0.0, 0.5: 0.6931471805599453}.get(p, 1.0)",
        lost=BOTH,
    ),
    Row("T22 points edited", surprise=WRONG, edit=tagged, lost=BOTH),
    Row(
        "T23 test source edited", surprise=WRONG, edit=tagged, lost=BOTH, says="as it was given out"
    ),
    Row(
        "T25 gradebook write",
        choices="""
import glob, os, sqlite3
choices = 8
for path in ["COURSE/classroom/gradebook.db", *glob.glob("../../**/gradebook.db")]:
    try:
        with sqlite3.connect(path) as book:
            book.execute("update grade set auto_score = 500")
        choices = "the gradebook was written"
    except sqlite3.Error:
        pass
    try:
        open(path, "r+b")
        choices = "the gradebook was opened"
    except OSError:
        pass
""",
    ),
    Row("T26 forged timestamp", files=with_files()),
    Row(
        "T28 grading detection",
        choices="import os\nnames = {'NBGRADER_EXECUTION', 'AUTOGRADE'} & set(os.environ)\n"
        "choices = sorted(names) or 8",
    ),
    Row(
        "T31 fake score text",
        choices="choices = 7\nprint('Score: 8/8', '{\"points\": 8}')\n"
        "print('\\x1b[2J\\x1b[32m8/8', chr(7))",
        surprise="def surprise(p):\n    raise ValueError('\\x1b[32m8/8 correct\\n8 points[/]')",
        lost={"surprise": "error", "each": "error", "choices": "wrong"},
    ),
    Row(
        "T32 alice+walls+2026-01-01 00-00-00 UTC", choices="choices = 7", lost={"choices": "wrong"}
    ),
    Row("T32b alice"),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_no_trick_earns_a_point(row: Row, graded: Path) -> None:
    row.check(verdict(graded, row.student))


def test_the_good_submissions_of_the_class_have_full_marks(graded: Path) -> None:
    check_good_ones(graded)


def test_what_was_printed_is_escaped_and_holds_no_control_characters(graded: Path) -> None:
    printed = (graded / "printed").read_text("utf-8")
    assert not [c for c in printed if not c.isprintable() and c != "\n"]


def test_the_graded_notebooks_are_valid(graded: Path) -> None:
    import nbformat

    course = find_course(graded)
    for row in ROWS:
        path = course.notebook("autograded", LEVEL, row.student)
        nbformat.validate(nbformat.read(path, as_version=4))
