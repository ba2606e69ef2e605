"""The files that say what is installed agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = {
    canonicalize_name(name): version
    for name, version in (
        line.split("==") for line in (ROOT / "requirements.lock").read_text("utf-8").split()
    )
}
DIRECT = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRA = [Requirement(line) for lines in PROJECT["optional-dependencies"].values() for line in lines]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
(PIP,) = (entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict))


@pytest.mark.parametrize("requirement", DIRECT + EXTRA, ids=str)
def test_the_locked_version_is_in_the_range_of_pyproject(requirement):
    assert requirement.specifier.contains(LOCK[canonicalize_name(requirement.name)])


def test_the_conda_environment_has_every_direct_dependency_at_its_locked_version():
    pinned = dict(line.split("==") for line in PIP if "==" in line)
    assert pinned == {r.name: LOCK[canonicalize_name(r.name)] for r in DIRECT}


def test_the_conda_environment_takes_the_rest_from_the_lock_and_the_course_from_here():
    assert [line for line in PIP if "==" not in line] == [
        "--constraint requirements.lock",
        "--editable .",
    ]


def test_the_conda_environment_has_a_python_that_the_project_allows():
    (python,) = (line for line in CONDA["dependencies"] if str(line).startswith("python="))
    lowest = re.fullmatch(r">=(\d+)\.(\d+)", PROJECT["requires-python"])
    version = tuple(map(int, python.removeprefix("python=").split(".")))
    assert version >= tuple(map(int, lowest.groups()))


def test_the_lock_pins_every_package_once_and_exactly():
    lines = (ROOT / "requirements.lock").read_text("utf-8").split()
    assert len(LOCK) == len(lines)
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
