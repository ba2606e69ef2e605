"""Attempts to stop the class, or to use up what the grader has.

D10 (archives in archives) is about collecting; a grader takes no archive, as its row shows.
"""

import json
from pathlib import Path

import pytest
from classes import LEVEL, Row, check_good_ones, verdict
from inside import FIND

from autograde.course import find_course

HUGE = "\nchoices = 8\n"
CHOICES_LOST = {"choices": ""}


def schema_bomb(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata["nbgrader"] |= {"schema_version": 99, "cell_type": "evil", "points": "x"}


def schema_too_old(notebook):
    for cell in notebook.cells:
        cell.metadata.get("nbgrader", {})["schema_version"] = 0
        cell.metadata.get("nbgrader", {})["grade_id"] = cell.metadata.get("nbgrader", {}).get(
            "grade_id"
        )


def many_cells(notebook):
    extra = {"cell_type": "code", "source": "import time\ntime.sleep(0.001)", "metadata": {}}
    notebook.cells[1:1] = [
        type(notebook)(extra | {"outputs": [], "id": f"x{n}"}) for n in range(300)
    ]


def many_floods(notebook):
    flood = (
        "from IPython.display import display\ndisplay({'text/plain': 'y' * 4_000_000}, raw=True)"
    )
    extra = {"cell_type": "code", "source": flood, "metadata": {}, "outputs": []}
    notebook.cells[1:1] = [extra] * 20


def deep(notebook):
    return json.dumps(notebook).encode().replace(b'"cells"', b'"x":' + b"[" * 10**6 + b',"cells"')


def million_cells(notebook):
    cells = b'{"cell_type": "code", "source": "1", "metadata": {}},' * 100_000
    return json.dumps(notebook).encode().replace(b'"cells": [', b'"cells": [' + cells, 1)


def saved_outputs(size):
    def write(notebook):
        output = {"output_type": "stream", "name": "stdout", "text": "y" * size}
        text = json.dumps(notebook).replace(
            '"outputs": []', '"outputs": [' + json.dumps(output) + "]", 1
        )
        return text.encode()

    return write


def device(path):
    import os

    path.unlink()
    os.mkfifo(path)


def hundred_files(path):
    path.unlink()
    for n in range(300):
        (path.parent / f"file-{n:03}.json").write_text('{"cells": [' + '{"source": "x"},' * 10_000)


def others(path):
    for name in ("*", "[a]", "a\nb", "+", "...", "{student_id}", "%s", "$(id)", "'; drop", "-rf"):
        (path.parent / f"{name}.ipynb").write_text("{}")


ROWS = [
    Row("D01 schema bomb", edit=schema_bomb),
    Row("D01b schema too old", edit=schema_too_old),
    Row(
        "D02 swallowed interrupt",
        choices="import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nchoices = 8\n"
        "while True:\n    pass",
        lost={"choices": "timed out"},
        says="time",
    ),
    Row(
        "D02b swallowed in a call",
        surprise="def surprise(p):\n    while True:\n        try:\n            while True:\n"
        "                pass\n        except BaseException:\n            pass",
        lost={"surprise": "timed out", "each": "timed out"},
    ),
    Row(
        "D02c asleep",
        choices="import time\ntime.sleep(1000)\nchoices = 8",
        lost={"choices": "timed out"},
    ),
    Row("D03 many cells", edit=many_cells),
    Row(
        "D03b slow by many calls",
        softmax="import time\ndef softmax(x):\n    t = time.process_time()\n"
        "    while time.process_time() < t + 0.3:\n        pass\n"
        "    if len(x) == 0:\n        raise ValueError\n    return torch.softmax(x, -1)",
    ),
    Row(
        "D04 fork bomb",
        choices="import os\nchoices = 8\nwhile True:\n    os.fork()",
        lost={},
    ),
    Row(
        "D04b thread bomb",
        choices="import threading, time\nchoices = 8\nwhile True:\n"
        "    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
        lost=CHOICES_LOST,
    ),
    Row(
        "D06 few big files",
        choices="choices = 8\nfor n in range(1000):\n    open(f'{n}', 'wb').write(bytes(10**7))",
        lost={"choices": "crashed"},
        says="wrote more than",
    ),
    Row(
        "D06b many small files",
        choices="choices = 8\nfor n in range(10**6):\n    open(f'{n}', 'wb').write(b'x')",
        lost={"choices": "crashed"},
    ),
    Row(
        "D06c a sparse file",
        choices="file = open('x', 'wb')\nfile.seek(10**13)\n"
        "file.write(b'x')\nfile.flush()\nchoices = 8",
        lost={"choices": "error"},
    ),
    Row(
        "D06d one huge file",
        choices="open('x', 'wb').write(bytes(10**9))\nchoices = 8",
        lost={"choices": "error"},
    ),
    Row(
        "D06e folders in folders",
        choices="import os\nchoices = 8\nwhile True:\n    os.mkdir('x')\n    os.chdir('x')",
        lost=CHOICES_LOST,
    ),
    Row(
        "D07 memory in bytes",
        choices="x = []\nwhile True:\n    x.append(bytes(10**9))\nchoices = 8",
        lost={"choices": "out of memory"},
    ),
    Row(
        "D07b memory in tensors",
        choices="x = []\nwhile True:\n    x.append(torch.empty(10**9))\nchoices = 8",
        lost={"choices": "out of memory"},
    ),
    Row(
        "D07c memory in maps",
        choices="import mmap\nx = []\nwhile True:\n"
        "    x.append(mmap.mmap(-1, 10**8, mmap.MAP_PRIVATE))\n"
        "    for at in range(0, 10**8, 4096):\n        x[-1][at] = 1\nchoices = 8",
        lost=CHOICES_LOST,
    ),
    Row(
        "D07d memory in small objects",
        choices="x = []\nwhile True:\n    x.append([x])\nchoices = 8",
        lost=CHOICES_LOST,
    ),
    Row(
        "D07e memory in a call",
        surprise="def surprise(p):\n    return bytearray(10**12)",
        lost={"surprise": "out of memory", "each": "out of memory"},
    ),
    Row(
        "D06f files that are removed but open",
        choices="import os\nkept = []\ntry:\n    while True:\n"
        "        kept.append(open('x', 'wb'))\n"
        "        os.remove('x')\nexcept OSError:\n"
        "    choices = 8 if len(kept) < 128 else len(kept)\n    kept.clear()",
    ),
    Row("D08 one huge line", choices="print('y' * 100_000_000)" + HUGE),
    Row("D08b many lines", choices="for n in range(10**6):\n    print(n)" + HUGE),
    Row(
        "D08c stderr",
        choices="import sys\nfor n in range(10**4):\n"
        "    print('y' * 10**4, file=sys.stderr, flush=True)" + HUGE,
    ),
    Row(
        "D08d below Python",
        choices="import os\nfor n in range(100):\n    os.write(1, b'y' * 10**6)\n"
        "    os.write(2, b'y' * 10**6)" + HUGE,
    ),
    Row("D08h floods in many cells", edit=many_floods),
    Row(
        "D08e a huge message",
        surprise="def surprise(p):\n    raise ValueError('y' * 10**8)",
        lost={"surprise": "error", "each": "error"},
    ),
    Row(
        "D08f a huge value",
        choices="choices = [0] * 10**7",
        lost={"choices": "error"},
        says="too many parts",
    ),
    Row(
        "D08g a huge name",
        surprise="class E(Exception):\n    pass\nE.__name__ = 'E' * 10**6 + '\\ud800'\n"
        "def surprise(p):\n    raise E",
        lost={"surprise": "error", "each": "error"},
    ),
    Row(
        "D10 zip bomb",
        data=lambda notebook: b"PK\x03\x04" + bytes(10**6),
        ungradable=True,
        says="zip archive",
    ),
    Row(
        "D12 over-max score",
        surprise="import sys\ndef surprise(p):\n    sys.displayhook(50)\n    return 50.0",
        lost={"surprise": "wrong", "each": "wrong"},
    ),
    Row(
        "D14 comm and widget flood",
        choices="import ipywidgets\nfrom IPython.display import display\nfor n in range(300):\n"
        "    w = ipywidgets.HTML(value='y' * 10**4)\n    display(w)" + HUGE,
    ),
    Row(
        "D14b display flood",
        choices="from IPython.display import display\nfor n in range(5000):\n"
        "    display({'text/plain': 'y' * 10**4}, raw=True)" + HUGE,
    ),
    Row("D15 deeply nested JSON", data=deep),
    Row("D15b a million cells", data=million_cells, ungradable=True, says=""),
    Row("D15c fifty MB of outputs", data=saved_outputs(50_000_000)),
    Row("D15d a pipe", files=device, ungradable=True, says="pipe"),
    Row("D15e three hundred candidates", files=hundred_files, ungradable=True, says="There is no"),
    Row(
        "D15f a huge integer",
        data=lambda n: (
            json.dumps(n).encode().replace(b'"nbformat": 4', b'"nbformat": ' + b"9" * 10**6)
        ),
    ),
    *(
        Row(
            f"D16 frame {n}",
            choices=FIND + f"choices = 8\nframe({text})",
            lost=CHOICES_LOST,
            disturbs=True,
        )
        for n, text in enumerate(
            (
                "b'[' * 5_000_000",
                "b'{\"error\": ' + b'[' * 900 + b']' * 900 + b'}'",
                "b'{\"error\": [' + b'[],' * 3_000_000 + b'1]}'",
                "b'no JSON'",
                "b'\\xff\\xfe'",
                "b'1' * 5000",
                "[]",
                "{'error': {'type': 7, 'name': None, 'message': ['x'], 'line': 'y'}}",
                "{'error': None}, bytes(33 << 20)",
            )
        )
    ),
    Row(
        "D16b half a frame",
        choices=FIND + "choices = 8\nchannel.sendall(wire.HEADER.pack(100, 0) + b'{')",
        lost={"choices": "timed out"},
    ),
    Row(
        "D16c a frame of 4 GB",
        choices=FIND + "choices = 8\nchannel.sendall(wire.HEADER.pack(2**32 - 1, 0))",
        lost={"choices": "crashed"},
    ),
    Row(
        "D16d channel closed",
        choices=FIND + "choices = 8\nchannel.close()\nimport time\ntime.sleep(100)",
        lost={"choices": "crashed"},
    ),
    Row(
        "D16e channel shut down",
        choices=FIND + "choices = 8\nchannel.shutdown(2)\nimport time\ntime.sleep(100)",
        lost={"choices": "crashed"},
    ),
    Row(
        "D16f channel not read",
        choices=FIND + "choices = 8\nframe({'error': None})\nimport time\ntime.sleep(100)",
        lost=CHOICES_LOST,
        disturbs=True,
    ),
    Row(
        "D16g keys whose hashes collide",
        choices=FIND
        + """
choices = 8
keys = [k * (2**61 - 1) for k in range(10_000)]
send = wire.send
def forged(channel, message, blob=b""):
    if "values" in message:
        message = {"values": {"choices": {"value": [{"set": keys}] * 50}}}
        return frame(message)
    send(channel, message, blob)
S.wire.send = forged
""",
        lost={"choices": "crashed"},
        disturbs=True,
    ),
    Row(
        "D16i keys that are sets whose hashes collide",
        choices=FIND
        + """
choices = 8
same = [k * (2**61 - 1) for k in range(7_100)]
keys = [{"frozenset": same[:80] + [k]} for k in same[80:]]
send = wire.send
def forged(channel, message, blob=b""):
    if "values" in message:
        return frame({"values": {"choices": {"value": {"set": keys}}}})
    send(channel, message, blob)
S.wire.send = forged
""",
        lost={"choices": "crashed"},
        disturbs=True,
    ),
    Row(
        "D16j threads outlive the main one",
        choices=FIND
        + """
import ctypes, threading, time
choices = 8
threading.Thread(target=time.sleep, args=(100,)).start()
ctypes.CDLL(None).syscall(60, 0)  # exit: of this thread alone
""",
        lost={"choices": "out of memory"},
    ),
    Row(
        "D16h names nested without end",
        choices=FIND
        + """
choices = 8
send = wire.send
def forged(channel, message, blob=b""):
    if "values" in message:
        deep = b"[" * 960 + b"]" * 960
        return frame(b'{"values": {"choices": {"value": {"other": ' + deep + b"}}}}")
    send(channel, message, blob)
S.wire.send = forged
""",
        lost={"choices": "crashed"},
        disturbs=True,
    ),
    Row("D18 hostile file names", files=others),
    *(Row(f"D18b {name}") for name in ("*", "[a-z]", "a+b", "{student_id}", "%s", "$(id)", "名前")),
    *(Row(f"D18c {name}") for name in ("'; drop table grade", '"x"', "..a", "&amp;<b>", "\\\\")),
    *(
        Row(f"D18d {name}", ungradable=True, says="rename it")
        for name in ("a\nb", "\x1b[31mred", "\udcff\udcfe", "n" * 230)
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ascii(str(row))[1:60])
def test_the_class_goes_on(row: Row, graded: Path) -> None:
    row.check(verdict(graded, row.student))


def test_the_good_submissions_of_the_class_have_full_marks(graded: Path) -> None:
    check_good_ones(graded)


def test_what_is_kept_of_an_output_is_bounded(graded: Path) -> None:
    course = find_course(graded)
    for row in ROWS:
        if row.id.startswith("D18d"):
            continue
        path = course.notebook("autograded", LEVEL, row.student)
        if path.exists():
            assert path.stat().st_size < 20 << 20, row.id
        assert course.verdict(LEVEL, row.student).stat().st_size < 20_000, row.id


def test_no_folder_of_a_student_s_is_left(graded: Path) -> None:
    assert [path.name for path in (graded / "tmp").iterdir()] == []


def test_what_has_no_usable_name_has_a_row_in_the_table(graded: Path) -> None:
    table = find_course(graded).report(LEVEL).read_text("utf-8")
    assert table.count("rename it") == sum(row.id.startswith("D18d") for row in ROWS)
