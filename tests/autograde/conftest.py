"""Fixtures of the tests that need a course."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from tiny_course import autograde, make_course

from autograde.course import Course, find_course
from autograde.gradebook import enter_level
from autograde.host import doctor
from autograde.kernel import Nursery

CONFINE = all(feature.ok for feature in doctor())  # where a host can't, test_sandbox.py skips


def once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills once, though pytest-xdist runs several sessions."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with FileLock(shared / f"{name}.lock"):
        if not (shared / name).exists():
            making = shared / f"{name}-in-the-making"
            shutil.rmtree(making, ignore_errors=True)
            make(making)
            making.rename(shared / name)
    return shared / name


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """The warm parent of all students' processes that the tests of one worker fork."""
    with Nursery(tmp_path_factory.mktemp("nursery"), confine=CONFINE) as nursery:
        yield nursery


@pytest.fixture
def fresh_nursery(tmp_path: Path) -> Iterator[Nursery]:
    """A warm parent that a test may end."""
    with Nursery(tmp_path, confine=CONFINE) as nursery:
        yield nursery


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a tiny course that was built; not to be changed."""

    def make(root: Path) -> None:
        make_course(root)
        done = autograde("build", cwd=root)
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, "built", make)


@pytest.fixture(scope="session")
def entered_once(tmp_path_factory: pytest.TempPathFactory, built_once: Path) -> Path:
    """The root of that course with its level in the gradebook; not to be changed."""

    def make(root: Path) -> None:
        shutil.copytree(built_once, root)
        enter_level(find_course(root), "tiny")

    return once(tmp_path_factory, "entered", make)


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory, built_once: Path) -> Path:
    """The root of a tiny course whose sample class was graded; not to be changed.

    Its file `printed` holds what `autograde grade` printed, and its exit code.
    """

    def make(root: Path) -> None:
        shutil.copytree(built_once, root)
        assert autograde("demo", "--students", "17", cwd=root).returncode == 0
        done = autograde("grade", "tiny", "--timeout", "2", cwd=root)
        assert done.stderr == ""
        (root / "printed").write_text(f"{done.stdout}\nexit code {done.returncode}", "utf-8")

    return once(tmp_path_factory, "graded", make)


@pytest.fixture
def entered(entered_once: Path, tmp_path: Path) -> Course:
    """A private copy of the tiny course with its level in the gradebook."""
    shutil.copytree(entered_once, tmp_path / "course")
    return find_course(tmp_path / "course")


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> Course:
    """A private copy of the tiny course, built, without a classroom."""
    shutil.copytree(built_once, tmp_path / "course")
    return find_course(tmp_path / "course")
