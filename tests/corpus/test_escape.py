"""Attempts to act outside a student's process: on the grader, on files, on who reads the result.

E04 and E09 (HTML and pictures in what people read) end with the feedback pages; here it is shown
that what was saved in a submission never gets that far, and that what a cell displays is plain
text in known fields.
"""

import ast
import json
from pathlib import Path

import pytest
from classes import LEVEL, Row, check_good_ones, verdict
from inside import FIND, forging, unless

from autograde.course import find_course

EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>'


def hostile_content(notebook):
    notebook.metadata["widgets"] = {"state": {"a": EVIL}}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source += EVIL
            cell["attachments"] = {"a.svg": {"image/svg+xml": EVIL}}
        else:
            cell.outputs = [
                {
                    "output_type": "execute_result",
                    "data": {"text/html": EVIL, "application/javascript": EVIL},
                    "metadata": {},
                    "execution_count": 1,
                }
            ]


def fires(call):
    """A right answer, unless `call` does not raise."""
    return unless(f"""
import ctypes, os, signal, socket, subprocess, sys
def attempt():
    {call}
    return "it was done"
look(attempt)
""")


ROWS = [
    *(
        Row(f"E01 signal the grader {n}", choices=fires(f"os.{call}"))
        for n, call in enumerate(
            (
                "kill(os.getppid(), signal.SIGINT)",
                "kill(os.getppid(), signal.SIGKILL)",
                "kill(-1, signal.SIGKILL)",
                "killpg(os.getpgid(os.getppid()), signal.SIGKILL)",
                "kill(1, signal.SIGTERM)",
            )
        )
    ),
    Row(
        "E01b signals by other ways",
        choices=fires("""
    import fcntl
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {"tkill": 200, "pidfd_open": 434, "pidfd_send_signal": 424, "ptrace": 101}
    done = [name for name, n in numbers.items() if libc.syscall(n, parent, 15, 0, 0) >= 0]
    try:
        fcntl.fcntl(3, fcntl.F_SETOWN, parent)
        done.append("F_SETOWN")
    except OSError:
        pass
    if not done:
        raise PermissionError""").replace('return "it was done"', "return done"),
    ),
    Row(
        "E02 write outside",
        choices=unless("""
import os
for path in ("../x", "../../x", "/tmp/x", "/x", "COURSE/x", "COURSE/classroom/verdicts/x.json",
             os.__file__, os.path.dirname(os.__file__) + "/sitecustomize.py", "/dev/shm/x",
             "COURSE/classroom/submitted/z-good/walls/walls.ipynb", "COURSE/nbgrader_config.py"):
    look(lambda: open(path, "w"))
    look(lambda: open(path, "a"))
    look(lambda: os.mkdir(path) or path)
    look(lambda: os.rename(path, "here") or path)
    look(lambda: os.truncate(path, 0) or path)
"""),
    ),
    Row(
        "E02b the pretended chmod and utime change nothing",
        choices="import os\nos.chmod('COURSE/nbgrader_config.py', 0o000)\n"
        "os.utime('COURSE/nbgrader_config.py', (0, 0))\nchoices = 8",
    ),
    Row(
        "E04 HTML and scripts on display",
        surprise=f"def surprise(p):\n    raise ValueError({EVIL!r})",
        choices=f"from IPython.display import HTML, Javascript, display\n"
        f"display(HTML({EVIL!r}), Javascript('alert(3)'))\nchoices = 8",
        lost={"surprise": "error", "each": "error"},
    ),
    Row(
        "E06 pickle in results",
        choices=forging(
            'message.get("values", {}).update(choices={"value": {"pickle": "gASVKAAAAAAAAAC"}})',
            "choices = 8",
        ),
        lost={"choices": "crashed"},
    ),
    Row(
        "E06b objects instead of data",
        choices=forging(
            'message.get("values", {}).update(choices={"value": {"__reduce__": ["x", "y"]}})',
            "choices = 8",
        ),
        lost={"choices": "crashed"},
    ),
    *(
        Row(f"E08 privilege gain {n}", choices=fires(call))
        for n, call in enumerate(
            (
                "os.setuid(1)",
                "subprocess.run(['/usr/bin/su', '-c', 'id'])",
                "os.execv('/usr/bin/id', ['id'])",
                "os.posix_spawn('/bin/true', ['true'], {})",
                "os.fork() or os._exit(0)",
                "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
                "os.chroot('.')",
                "os.mknod('device', 0o60600, os.makedev(8, 0))",
                "os.unshare(0x10000000)",
                "os.memfd_create('program')",
                "open('/proc/self/mem', 'r+b')",
                "open('/dev/tty', 'w')",
            )
        )
    ),
    Row("E09 hostile notebook", edit=hostile_content),
    Row(
        "E10 a second process of the grader's",
        choices=FIND
        + "import os\nchoices = 8\ntry:\n"
        + '    os.write(channel.fileno() + 1, b\'{"fork": "/tmp"}\')\n'
        "except OSError:\n    pass",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_nothing_outside_is_reached(row: Row, graded: Path) -> None:
    row.check(verdict(graded, row.student))


def test_the_good_submissions_of_the_class_have_full_marks(graded: Path) -> None:
    check_good_ones(graded)


def test_the_course_is_as_it_was(graded: Path, walls: Path) -> None:
    def files(root: Path) -> dict[str, tuple[bytes, int]]:
        found = (path for path in root.rglob("*") if path.is_file())
        return {
            str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode)
            for path in found
            if path.relative_to(root).parts[0] not in ("classroom", "made", "printed", "exit")
        }

    assert files(graded) == files(walls)


def test_nothing_saved_in_a_submission_is_in_the_graded_notebook(graded: Path) -> None:
    (row,) = (row for row in ROWS if row.id.startswith("E09"))
    text = find_course(graded).notebook("autograded", LEVEL, row.student).read_text("utf-8")
    assert "onerror" not in text


def test_what_a_cell_displays_is_kept_in_fields_that_run_nothing(graded: Path) -> None:
    (row,) = (row for row in ROWS if row.id.startswith("E04"))
    path = find_course(graded).notebook("autograded", LEVEL, row.student)
    outputs = [
        o for cell in json.loads(path.read_text("utf-8"))["cells"] for o in cell.get("outputs", ())
    ]
    kinds = {mime for output in outputs for mime in output.get("data", ())}
    assert "text/plain" in kinds
    assert not {"text/html", "text/markdown", "application/javascript"} & kinds


@pytest.mark.parametrize("module", ["wire", "kernel", "judge", "grade", "lending"])
def test_what_a_student_sends_is_never_unpickled(module: str) -> None:
    import autograde

    tree = ast.parse(Path(autograde.__path__[0], f"{module}.py").read_text("utf-8"))
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert not {"pickle", "dill", "marshal", "shelve"} & imported
    assert not {"Unpickler", "eval", "allow_pickle"} & called
    for node in ast.walk(tree):  # json.loads is the only `loads`, `load` there is none
        if isinstance(node, ast.Attribute) and node.attr in ("load", "loads"):
            assert isinstance(node.value, ast.Name)
            assert node.value.id == "json"
