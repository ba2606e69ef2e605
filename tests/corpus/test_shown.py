"""The feedback of the whole corpus in a real browser: it acts on nobody and tells no secret."""

import shutil

import classes
import pytest
import test_broken
import test_denial
import test_escape
import test_leak
import test_tamper
from classes import LEVEL

from autograde.course import find_course
from autograde.master import read_master, secret_lines

MODULES = [test_broken, test_denial, test_escape, test_leak, test_tamper]


@pytest.fixture(scope="module", params=MODULES, ids=lambda module: module.__name__)
def course(request, walls, tmp_path_factory):
    """The class of one module, graded, with its feedback."""
    graded = classes.graded(request.param, walls, tmp_path_factory)
    root = tmp_path_factory.mktemp("shown") / "course"
    shutil.copytree(graded, root, symlinks=True, ignore=shutil.ignore_patterns("submitted"))
    done = classes.autograde("feedback", LEVEL, cwd=root)
    assert done.returncode == 0, done.stderr
    return find_course(root)


@pytest.fixture(scope="module")
def secrets(course):
    """The lines of hidden tests and mark schemes that are long enough to know again."""
    cells = read_master(course.masters / f"{LEVEL}.py").cells
    lines = [
        line.strip()
        for cell in cells
        for line in secret_lines(cell.source, ("HIDDEN TESTS", "MARK SCHEME"))[0]
    ]
    return [line for line in lines if len(line) > 20]


def test_feedback_acts_on_nobody_and_tells_no_secret(course, secrets, page, noted, accessible):
    pages = sorted(course.folder("feedback").glob(f"*/{LEVEL}/{LEVEL}.html"))
    assert len(pages) == len(list(course.verdict(LEVEL, "any").parent.glob("*.json")))
    assert secrets
    for path in pages:
        page.goto(path.as_uri())
        assert not noted, path
        shown = page.inner_text("body")
        assert "MARKER-kept-in-the-judge" not in path.read_text("utf-8"), path
        assert not [line for line in secrets if line in shown], path
        accessible()
