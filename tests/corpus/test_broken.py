"""Honest submissions that something went wrong with: the grade is fair and the message clear.

H38 (tests of no points) is refused by `autograde build`, which has a test of its own; here it is
graded all the same, as a course that was built by other means may hold one.
"""

import copy
import json
import os
from pathlib import Path

import pytest
from classes import LEVEL, Row, answered, check_good_ones, verdict

from autograde.assignment import Assignment, load_assignment
from autograde.course import find_course
from autograde.grade import grade
from autograde.kernel import Nursery

RIGHT_SURPRISE = "def surprise(p):\n    return -math.log(p)\n"
LOST = {"surprise": "error", "each": "error"}


def cell(notebook, name):
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


def duplicated(*names):
    def edit(notebook):
        for name in names:
            at = notebook.cells.index(cell(notebook, name))
            notebook.cells.insert(at + 1, copy.deepcopy(notebook.cells[at]))

    return edit


def split(notebook):
    at = notebook.cells.index(cell(notebook, "W_softmax"))
    whole = notebook.cells[at]
    rest = copy.deepcopy(whole)
    whole.source, rest.source = "def normed(x):\n    return torch.softmax(x, -1)", whole.source
    notebook.cells.insert(at + 1, rest)


def without(*names):
    def edit(notebook):
        for name in names:
            notebook.cells.remove(cell(notebook, name))

    return edit


def of_type(kind, *names):
    def edit(notebook):
        for name in names:
            changed = cell(notebook, name)
            changed.cell_type = kind
            for key in ("outputs", "execution_count"):
                changed.pop(key, None)

    return edit


def renamed(name):
    return lambda path: path.rename(path.with_name(name))


def no_metadata(notebook):
    for c in notebook.cells:
        c.metadata.pop("nbgrader", None)
        c.pop("id", None)


def kernelspec(value):
    def edit(notebook):
        notebook.metadata.pop("kernelspec", None)
        notebook.metadata.pop("language_info", None)
        if value:
            notebook.metadata["kernelspec"] = {"name": value, "display_name": value}

    return edit


def colab(notebook):
    notebook.nbformat_minor = 0
    notebook.metadata = {"colab": {"provenance": [], "toc_visible": True}, "accelerator": "GPU"}
    for c in notebook.cells:
        c.metadata["id"] = c.pop("id")
        if c.cell_type == "code":
            c["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "saved by Colab"}]


def encoded(encoding):
    return lambda notebook: json.dumps(notebook, ensure_ascii=False).encode(encoding, "replace")


def conflict(notebook):
    lines = json.dumps(notebook, indent=1).splitlines()
    at = next(n for n, line in enumerate(lines) if "choices = 8" in line)
    lines[at:at] = ["<<<<<<< HEAD", lines[at], "=======", lines[at], ">>>>>>> theirs"]
    del lines[at + 5]
    return "\n".join(lines).encode()


def script(notebook):
    parts = [f"# In[ ]:\n{c.source}" for c in notebook.cells if c.cell_type == "code"]
    return "\n\n".join(parts).encode()


def old_version(notebook):
    for c in notebook.cells:
        about = c.metadata.get("nbgrader", {})
        if about:
            about.pop("schema_version", None)
            about.pop("grade_id") if about["grade_id"] == "test_W_choices" else None
            about["checksum"] = "0" * 32
    gone = copy.deepcopy(cell(notebook, "W_choices"))
    gone.metadata["nbgrader"]["grade_id"] = "W_of_last_year"
    gone.source, gone.id = "last_year = 7", "last-year"
    notebook.cells.append(gone)


def format_three(notebook):
    cells = []
    for c in notebook.cells:
        old = {"cell_type": c.cell_type, "metadata": c.metadata}
        old["input" if c.cell_type == "code" else "source"] = c.source.splitlines(keepends=True)
        cells.append(old | ({"language": "python", "outputs": []} if c.cell_type == "code" else {}))
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    return json.dumps(old).encode()


def saved_images(notebook):
    image = {"output_type": "display_data", "data": {"image/png": "A" * 3_000_000}, "metadata": {}}
    for c in notebook.cells:
        if c.cell_type == "code":
            c.outputs = [image]


def extras(path):
    (path.parent / ".ipynb_checkpoints").mkdir()
    (path.parent / ".ipynb_checkpoints" / "walls-checkpoint.ipynb").write_text("{}")
    (path.parent / "walls.html").write_text("<html>")
    (path.parent / "scratch.ipynb").write_text("{broken")


ROWS = [
    Row(
        "H01 syntax error in one answer",
        surprise="def surprise(p)\n    return 1",
        lost=LOST,
        says="line 1",
    ),
    Row(
        "H02 infinite loop in one answer",
        surprise="def surprise(p):\n    while True:\n        pass",
        lost={"surprise": "timed out", "each": "timed out"},
        says="`surprise` was still running",
    ),
    Row(
        "H03 correct but prints to stderr",
        surprise="""
import ctypes, logging, os, sys, warnings
from tqdm.auto import tqdm
def surprise(p):
    warnings.warn("careful")
    logging.warning("careful")
    print("careful", file=sys.stderr)
    os.write(2, b"careful")
    ctypes.CDLL(None).perror(b"careful")
    return [-math.log(p) for _ in tqdm(range(2))][0]
""",
    ),
    Row(
        "H04 answer copied", edit=duplicated("W_choices"), says="2 cells hold the answer W_choices"
    ),
    Row(
        "H04b test copied",
        edit=duplicated("test_W_choices", "test_W_surprise"),
        says="there 2 times",
    ),
    Row("H04c answer split", edit=split),
    Row("H05 test cell deleted", edit=without("test_W_choices", "test_W_softmax"), says="put back"),
    Row(
        "H06 answer cell deleted",
        edit=without("W_choices"),
        lost={"choices": "not attempted"},
        says="No answer was found for W_choices",
    ),
    Row(
        "H08 cell type changed",
        edit=of_type("markdown", "test_W_choices", "W_softmax"),
        says="code again",
    ),
    Row("H08b to raw", edit=of_type("raw", "W_choices", "test_W_surprise")),
    Row("H09 renamed file", files=renamed("walls (1).ipynb"), says="was taken for walls.ipynb"),
    Row("H09b in capitals", files=renamed("WALLS.IPYNB"), says="was taken for walls.ipynb"),
    Row("H09c another suffix", files=renamed("walls.ipynb.txt"), says="was taken for walls.ipynb"),
    Row("H10 nbgrader metadata gone", edit=no_metadata, says="recognised by"),
    Row("H11 kernelspec missing", edit=kernelspec(None)),
    Row("H11b kernelspec foreign", edit=kernelspec("conda-env-ml")),
    Row("H12 Colab export", edit=colab),
    Row("H14 latin-1", choices="choices = 8  # für", data=encoded("latin-1"), says="Windows-1252"),
    Row("H14b UTF-16", choices="choices = 8  # für", data=encoded("utf-16"), says="UTF-16"),
    Row("H14c byte order mark", data=encoded("utf-8-sig"), says="byte order mark"),
    Row("H15 empty file", data=lambda notebook: b"", ungradable=True, says="empty"),
    Row("H15b blank file", data=lambda notebook: b" \n\n", ungradable=True, says="empty"),
    Row(
        "H15c truncated",
        data=lambda notebook: json.dumps(notebook).encode()[:-40],
        says="damaged or cut off",
    ),
    Row("H15d merge conflict", data=conflict, says="two versions from a merge"),
    Row("H15e a script", data=script, says="read as a Python script"),
    Row(
        "H15f a bare list",
        data=lambda notebook: json.dumps(notebook.cells).encode(),
        says="a bare list",
    ),
    Row(
        "H15g a picture",
        data=lambda notebook: b"\x89PNG\r\n\x1a\n" + bytes(99),
        ungradable=True,
        says="picture",
    ),
    Row("H15h a word", data=lambda notebook: b'"hello"', ungradable=True),
    Row("H17 saved outputs", edit=saved_images),
    Row(
        "H19 segmentation fault in a call",
        softmax="import ctypes\ndef softmax(x):\n    ctypes.string_at(0)",
        lost={"softmax": "crashed", "empty": "crashed"},
        says="SIGSEGV",
    ),
    Row(
        "H19b segmentation fault in a cell",
        choices="import ctypes\nctypes.string_at(0)\nchoices = 8",
        lost={"choices": "crashed"},
        says="SIGSEGV",
    ),
    Row(
        "H20 no cell runs after the kernel has died",
        choices="import os\nos._exit(0)",
        softmax="import os\nos._exit(1)",
        lost={"choices": "crashed", "softmax": "crashed", "empty": "crashed"},
    ),
    Row(
        "H21 input() left in",
        surprise=RIGHT_SURPRISE + "name = input('Your name? ')",
        choices="name = input()\nchoices = 8",
        lost={"choices": "error"},
        says="input() is not available",
    ),
    Row(
        "H22 exit() in a cell",
        choices="choices = 8\nexit()",
        surprise=RIGHT_SURPRISE + "import sys\nsys.exit()",
    ),
    Row("H22b quit()", choices="choices = 8\nquit()", softmax=None),
    Row(
        "H25 wrong type",
        surprise="def surprise(p):\n    return str(-math.log(p))",
        choices="choices = '8'",
        softmax="def softmax(x):\n    return None",
        lost={
            "surprise": "wrong",
            "each": "wrong",
            "choices": "wrong",
            "softmax": "wrong",
            "empty": "wrong",
        },
        says="expected a number, got text",
    ),
    Row(
        "H25b an array with many truth values",
        choices="choices = torch.tensor([8, 8])",
        lost={"choices": "wrong"},
    ),
    Row("H25c a module", choices="import math as choices", lost={"choices": "wrong"}),
    Row(
        "H27 tensor of half precision that requires a gradient",
        softmax="def softmax(x):\n    if len(x) == 0:\n        raise ValueError\n"
        "    return torch.softmax(x, -1).half().requires_grad_()",
        choices="choices = torch.tensor(8.0, requires_grad=True)",
    ),
    Row(
        "H27b tensor of another shape or layout",
        softmax="def softmax(x):\n    return torch.softmax(x, -1)[None].to_sparse()",
        lost={"softmax": "wrong", "empty": "wrong"},
    ),
    Row(
        "H28 recursion",
        surprise="def surprise(p):\n    return surprise(p)",
        lost=LOST,
        says="RecursionError",
    ),
    Row(
        "H29 magics, shell and await",
        surprise="%matplotlib inline\n!pip install tqdm\n%pip install tqdm\nimport asyncio\n"
        "await asyncio.sleep(0)\nfiles = !ls\n%timeit -n1 -r1 1\n" + RIGHT_SURPRISE,
    ),
    Row("H32 old version of the assignment", edit=old_version),
    Row("H32b notebook format 3", data=format_three, says="old or unknown format"),
    Row(
        "H35 noisy but right",
        choices="from IPython.display import clear_output, display\nfor n in range(2000):\n"
        "    display(n)\n    print(n)\nclear_output()\nchoices = 8",
    ),
    Row(
        "H36 slow but right",
        surprise="import time\ndef surprise(p):\n    time.sleep(0.6)\n    return -math.log(p)",
    ),
    Row(
        "H39 zero as last expression",
        choices="choices = 8\n0",
        surprise="surprise = lambda p: -math.log(p)\n0",
    ),
    Row("H40 extra files", files=extras),
    Row(
        "H42 no result file at all",
        files=lambda path: path.unlink(),
        ungradable=True,
        says="There is no walls.ipynb",
    ),
    Row(
        "H43 missing import",
        choices="import pandas_of_the_student\nchoices = 8",
        lost={"choices": "error"},
        says="pandas_of_the_student",
    ),
    Row(
        "H45 float tolerance",
        surprise="import numpy as np\ndef surprise(p):\n    return float(-np.log(p)) + 1e-12",
        choices="import numpy as np\nchoices = np.float64(8.0)",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_grade_is_fair_and_the_message_clear(row: Row, graded: Path) -> None:
    row.check(verdict(graded, row.student))


def test_the_good_submissions_of_the_class_have_full_marks(graded: Path) -> None:
    check_good_ones(graded)


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> object:
    with Nursery(tmp_path_factory.mktemp("nursery")) as nursery:
        yield nursery


@pytest.mark.parametrize("choices", ["choices = 8", "choices = 7"])
def test_h38_a_test_of_no_points_is_graded(choices: str, walls: Path, nursery: Nursery) -> None:
    course = find_course(walls)
    given = load_assignment(course, LEVEL)
    source, release = copy.deepcopy(given.source), copy.deepcopy(given.release)
    for notebook in (source, release):
        cell(notebook, "test_W_choices").metadata["nbgrader"]["points"] = 0
    notebook = answered(given.release, course, {"choices": choices})
    graded = grade(json.dumps(notebook).encode(), Assignment(LEVEL, release, source), nursery)
    assert (graded.verdict.points, graded.verdict.max_points) == (6, 6)
    assert graded.verdict.status == "graded"


def test_a_class_graded_again_comes_out_the_same(walls: Path, nursery: Nursery) -> None:
    course = find_course(walls)
    assignment = load_assignment(course, LEVEL)
    right = answered(assignment.release, course, {})
    wrong = answered(
        assignment.release,
        course,
        {
            "surprise": "def surprise(p):\n    return torch.rand(()).item()",
            "choices": "import random\nchoices = random.random()",
            "softmax": "def softmax(x):\n    raise ValueError(hash('x'), id(1))",
        },
    )
    for notebook in (right, wrong):
        verdicts = {
            grade(json.dumps(notebook).encode(), assignment, nursery).verdict
            for _ in range(int(os.environ.get("REPEAT", "3")))
        }
        assert len(verdicts) == 1, verdicts
