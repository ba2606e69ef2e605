"""Fixtures of the corpus: a course built once, and a class graded once for each module."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import classes
import pytest
from filelock import FileLock


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills once, though pytest-xdist runs several sessions."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with FileLock(shared / f"{name}.lock"):
        if not (shared / name / "made").exists():
            shutil.rmtree(shared / name, ignore_errors=True)
            make(shared / name)
            (shared / name / "made").touch()
    return shared / name


@pytest.fixture(scope="session")
def walls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the course, built; not to be changed."""
    return once(tmp_path_factory, "walls", classes.build)


@pytest.fixture(scope="module")
def graded(
    request: pytest.FixtureRequest, walls: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The root of the course with the module's ROWS handed in and graded."""

    def make(root: Path) -> None:
        shutil.copytree(walls, root, ignore=shutil.ignore_patterns("made"))
        classes.grade(root, request.module.ROWS)

    return once(tmp_path_factory, request.module.__name__, make)
