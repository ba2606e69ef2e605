"""Fixtures of the corpus: a course built once, and a class graded once for each module."""

from pathlib import Path

import classes
import pytest


@pytest.fixture(scope="session")
def walls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the course, built; not to be changed."""
    return classes.once(tmp_path_factory, "walls", classes.build)


@pytest.fixture(scope="module")
def graded(
    request: pytest.FixtureRequest, walls: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The root of the course with the module's ROWS handed in and graded."""
    return classes.graded(request.module, walls, tmp_path_factory)
