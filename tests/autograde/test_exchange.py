"""nbgrader's exchange between two users of one machine, with our grader and feedback in between."""

import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from labs import BIN, environment
from tiny_course import REPOSITORY

from autograde.course import find_course
from autograde.master import cells_by_id
from autograde.notebook import read_notebook, write_notebook
from autograde.store import kept_verdict

INSTRUCTOR, STUDENT = "daemon", "nobody"  # two users that every Linux has
COURSE = "pretraining-objectives"


@pytest.fixture(scope="module")
def place():
    """A folder that all users may walk through, unlike pytest's."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as two users")
    with tempfile.TemporaryDirectory(prefix="exchange-") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "desk").mkdir()
        done = run(STUDENT, BIN / "nbgrader", "--version", cwd=Path(folder) / "desk", check=False)
        if done.returncode:
            pytest.skip(f"other users can't run what is installed here: {done.stderr}")
        yield Path(folder)


def run(user, *words, cwd, check=True):
    """Run a command as a user, with a home beside `cwd`."""
    settings = {"JUPYTER_CONFIG_PATH": str(cwd.parent / "etc"), "USER": user, "LOGNAME": user}
    become = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", opened(cwd.parent / "kept"), "sh",
         *become, "--clear-groups", *words],
        cwd=cwd,
        env=environment(cwd.parent / f"home-of-{user}", **settings),
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def opened(kept):
    """A script that runs a command where everybody may reach Python and this project.

    They may lie in a home that is closed to others, as root's is: for this command alone, an
    open folder takes its place, with nothing in it but them.
    """
    needed = {Path(sys.base_prefix).resolve(), Path(sys.prefix), REPOSITORY}
    keep, cover, show = [], [], []
    for number, path in enumerate(sorted(needed)):
        closed = [above for above in path.parents if not above.stat().st_mode & 0o001]
        if closed:
            here = shlex.quote(str(kept / str(number)))
            keep.append(f"mkdir -p {here} && mount --bind {shlex.quote(str(path))} {here}")
            cover.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(str(closed[-1]))}")
            show.append(f"mkdir -p {shlex.quote(str(path))}")
            show.append(f"mount --bind {here} {shlex.quote(str(path))}")
    return " && ".join([*keep, *dict.fromkeys(cover), *show, 'exec "$@"'])


def own(user, folder):
    """Make a folder and all in it a user's, and nobody else's to read."""
    account = pwd.getpwnam(user)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    folder.chmod(0o700)


def test_a_level_goes_out_comes_in_and_its_feedback_goes_back(place, built_once):
    exchange, etc = place / "exchange", place / "etc"
    for folder in (exchange, etc):
        folder.mkdir()
    exchange.chmod(0o777)
    (etc / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.Exchange.root = {str(exchange)!r}\n"
        f"c.CourseDirectory.course_id = {COURSE!r}\n"
    )
    shutil.copytree(built_once, place / "course")
    desk = place / "desk"
    for user, folder in ((INSTRUCTOR, place / "course"), (STUDENT, desk)):
        (place / f"home-of-{user}").mkdir()
        own(user, place / f"home-of-{user}")
        own(user, folder)
    course = find_course(place / "course")
    nbgrader, autograde = BIN / "nbgrader", BIN / "autograde"

    run(INSTRUCTOR, nbgrader, "release_assignment", "tiny", cwd=course.root)
    run(STUDENT, nbgrader, "fetch_assignment", "tiny", cwd=desk)
    path = desk / "tiny" / "tiny.ipynb"
    notebook = read_notebook(path)
    cells_by_id(notebook)["T_choices"].source = "choices = 2 ** 3"
    write_notebook(notebook, path)
    run(STUDENT, nbgrader, "submit", "tiny", cwd=desk)

    run(INSTRUCTOR, nbgrader, "collect", "tiny", cwd=course.root)
    graded = run(INSTRUCTOR, autograde, "grade", "tiny", cwd=course.root)
    assert "1 submission" in graded.stdout
    verdict = kept_verdict(course, "tiny", STUDENT)
    assert {item.item: item.points for item in verdict.items}["T_choices"] == 2

    run(INSTRUCTOR, autograde, "feedback", "tiny", cwd=course.root)
    run(INSTRUCTOR, nbgrader, "release_feedback", "tiny", cwd=course.root)
    run(STUDENT, nbgrader, "fetch_feedback", "tiny", cwd=desk)
    (page,) = (desk / "tiny" / "feedback").glob("*/tiny.html")
    ours = course.notebook("feedback", "tiny", STUDENT).with_suffix(".html")
    assert page.read_text("utf-8") == ours.read_text("utf-8")
    assert "three bits" not in page.read_text("utf-8")
