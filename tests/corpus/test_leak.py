"""Attempts to read what a submission must not know: hidden tests, answers, other people's work.

Each looks from inside and gets full marks only if it finds nothing (`inside.unless`).

L11 (a score is an oracle, one bit a try) is a matter of policy: how often a class may hand in.
"""

import os
from pathlib import Path

import pytest
from classes import GOOD, LEVEL, Row, check_good_ones, verdict
from inside import FIND, unless

from autograde.course import find_course

# The marker of a hidden test (fixture/walls.txt), in parts so that a search does not find itself.
SEARCH = """
import ctypes
def memory():
    "What follows the marker's beginning, wherever it is in this process."
    seen = []
    for line in open("/proc/self/maps"):
        place, rights, *rest = line.split()
        if rights.startswith("rw") and not rest[-1].startswith("[v"):
            start, end = (int(part, 16) for part in place.split("-"))
            data = ctypes.string_at(start, end - start)
            for piece in data.split(b"MARKER-kept-in-the-j")[1:]:
                seen.append(piece[:4])
            del data
    return [piece for piece in seen if piece == bytes([117, 100, 103, 101])]
"""
FILES = """
/proc/self/environ /proc/self/mem /proc/self/cmdline /proc/self/mountinfo /proc/1/environ
/proc/PARENT/environ /proc/PARENT/mem /proc/PARENT/maps /proc/PARENT/cmdline /proc/net/tcp
/etc/passwd /etc/shadow /root/.bashrc /proc/mounts COURSE/nbgrader_config.py
COURSE/autograde/source/walls.py COURSE/build/source/walls/walls.ipynb
COURSE/build/source/./walls/walls.ipynb COURSE/classroom/gradebook.db COURSE/solutions
COURSE/notebooks/walls/walls.ipynb COURSE/classroom/submitted/0-good/walls/walls.ipynb
COURSE/classroom/verdicts COURSE/classroom COURSE . .. /tmp /home /proc
"""
PREPARE = """
import os
def read(path):
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, "rb") as file:
        return file.read(200)
"""
NETWORK = """
import socket, urllib.request
def connect(family, kind, address):
    with socket.socket(family, kind) as s:
        s.settimeout(1)
        s.connect(address)
        s.send(b"x")
        return "connected"
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
    look(lambda: connect(socket.AF_INET, kind, ("127.0.0.1", 53)))
    look(lambda: connect(socket.AF_INET6, kind, ("::1", 53)))
for path in ("/var/run/docker.sock", "/run/systemd/private", "\\0abstract", "/tmp/.X11-unix/X0"):
    look(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, path))
look(lambda: socket.getaddrinfo("localhost", 80) and socket.socket(socket.AF_PACKET))
look(lambda: urllib.request.urlopen("http://127.0.0.1:80", timeout=1))
look(lambda: socket.create_server(("127.0.0.1", 0)))
"""


def to_a_link(target):
    def link(path):
        path.unlink()
        path.symlink_to(os.path.relpath(target(path), path.parent))

    return link


def folder_of_another(path):
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(path.parents[2] / GOOD[0] / LEVEL)


ROWS = [
    Row("L01 own notebook file", choices=unless("import os\nlook(lambda: os.listdir('.'))")),
    Row(
        "L02 cell history",
        choices=unless("""
shell = get_ipython()
look(lambda: [text for text in In if "assert" in text])
look(lambda: list(shell.history_manager.get_range()))
look(lambda: [v for v in shell.user_ns.values() if "diagnose(" in repr(v)])
"""),
    ),
    Row(
        "L02b history while a test is run",
        surprise="""
import inspect
def surprise(p):
    frames = "".join(str(f.frame.f_globals) + str(f.frame.f_locals) for f in inspect.stack())
    if "MARKER-kept-in-the-" "judge" in frames or "isclose(surprise" in frames:
        return None
    return -math.log(p)
""",
    ),
    Row(
        "L04 gc, linecache and memory while a test is run",
        surprise=SEARCH
        + """
import linecache
linecache_of_tests = [name for name in linecache.cache if "test" in name]
searched = []
def surprise(p):
    if not searched:
        searched.append(memory())
    if searched[0] or linecache_of_tests:
        return None
    return -math.log(p)
""",
    ),
    Row(
        "L04b the search of L04 finds what is there",
        surprise=SEARCH
        + "kept = b'MARKER-kept-in-the-' + bytes([106, 117, 100, 103, 101])\n"
        + "def surprise(p):\n    return None if memory() else -math.log(p)",
        lost={"surprise": "wrong", "each": ""},
    ),
    Row(
        "L04c what the grader sends",
        surprise=FIND
        + """
received = []
receive = wire.receive
def listen(*args):
    message, blob = receive(*args)
    received.append(repr(message) + repr(blob))
    return message, blob
S.wire.receive = listen
def surprise(p):
    everything = "".join(received)
    if "MARKER-kept" in everything or "isclose" in everything or "1.386" in everything:
        return None
    return -math.log(p)
""",
    ),
    Row(
        "L05 course tree",
        choices=unless(
            PREPARE
            + f"for path in {FILES!r}.split():\n"
            + "    look(lambda: read(path.replace('PARENT', str(os.getppid()))))"
        ),
    ),
    Row(
        "L05b the installed package holds no tests",
        choices=unless("""
import autograde, course_lib, glob, os, sys
for folder in {*autograde.__path__, *course_lib.__path__, *sys.path}:
    for name in ("source", "build", "tests", "autograde/source"):
        look(lambda: os.listdir(os.path.join(folder, name)) if name != "tests" else None)
look(lambda: glob.glob("/**/walls*", recursive=True))
"""),
    ),
    Row(
        "L05c what others wrote",
        choices=unless("""
import os, tempfile
open("note-for-others.txt", "w").write("x")
open(os.path.join(tempfile.gettempdir(), "and-here.txt"), "w").write("x")
mine = {"note-for-others.txt", "and-here.txt"}
look(lambda: set(os.listdir(".")) - mine)
look(lambda: os.listdir(".."))
"""),
    ),
    Row(
        "L06 hidden tests in what is handed back",
        surprise="def surprise(p):\n    return 1.5",
        choices="choices = 7",
        softmax="def softmax(x):\n    raise KeyError",
        lost={
            "surprise": "wrong",
            "each": "wrong",
            "choices": "wrong",
            "softmax": "error",
            "empty": "error",
        },
    ),
    Row("L07 network", choices=unless(NETWORK)),
    Row("L07b pip", choices="!pip install antigravity\n%pip install antigravity\nchoices = 8"),
    Row(
        "L12 symlinked notebook",
        files=to_a_link(lambda path: path.parents[2] / GOOD[0] / LEVEL / path.name),
        ungradable=True,
        says="can't be opened",
    ),
    Row(
        "L12b link to the gradebook",
        files=to_a_link(lambda path: path.parents[3] / "gradebook.db"),
        ungradable=True,
        says="can't be opened",
    ),
    Row("L12c link to nothing", files=to_a_link(lambda path: "none"), ungradable=True),
    Row("L12d folder of another", files=folder_of_another, ungradable=True, says="is a link"),
    Row(
        "L12e links made while running",
        choices=unless("""
import os
for call in (os.symlink, os.link):
    try:
        call("COURSE/classroom/gradebook.db", "here")
        look(lambda: open("here", "rb").read(10))
    except OSError:
        pass
"""),
    ),
    Row(
        "L13 environment secrets",
        choices=unless("""
import os
allowed = {"HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "USER", "LANG", "PYTHONHASHSEED",
           "TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
look(lambda: set(os.environ) - allowed)
import ctypes
look(lambda: ctypes.CDLL(None).getenv(b"SECRET_OF_THE_GRADER"))
look(lambda: b"SECRET_OF_" in open("/proc/self/environ", "rb").read())
"""),
    ),
    Row(
        "L13b file descriptors",
        choices=unless("""
import os, stat
kinds = {}
for fd in range(256):
    try:
        kinds[fd] = os.fstat(fd)
    except OSError:
        pass
sockets = [fd for fd, s in kinds.items() if stat.S_ISSOCK(s.st_mode)]
look(lambda: sockets[3:])  # one leads to the grader, two are the event loop's
look(lambda: [fd for fd, s in kinds.items() if stat.S_ISREG(s.st_mode)])
"""),
    ),
]


@pytest.fixture(autouse=True, scope="module")
def a_secret() -> object:
    """Something in the environment of the grader."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_OF_THE_GRADER", "MARKER")
        yield


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_nothing_is_found(row: Row, graded: Path) -> None:
    row.check(verdict(graded, row.student))


def test_the_good_submissions_of_the_class_have_full_marks(graded: Path) -> None:
    check_good_ones(graded)


def test_no_hidden_test_is_in_anything_that_grading_writes(graded: Path) -> None:
    course = find_course(graded)
    written = [
        *course.classroom.rglob("*.json"),
        *course.classroom.rglob("*.csv"),
        *course.folder("autograded").rglob("*.ipynb"),
        graded / "printed",
    ]
    assert len(written) > 2 * len(ROWS)
    own = {course.notebook("autograded", LEVEL, row.student) for row in ROWS if row.id[:3] == "L04"}
    for path in set(written) - own:  # the attackers' own words
        text = path.read_text("utf-8")
        assert "MARKER-kept-in-the-judge" not in text, path
        assert "1.3862943611198906" not in text, path
        assert "not isclose" not in text, path
