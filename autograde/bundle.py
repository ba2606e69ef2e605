"""The ZIP file that students are given: notebooks, the library, and how to install it."""

import io
import re
import zipfile
from collections.abc import Iterator
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from autograde.assignment import load_assignment
from autograde.course import Course
from autograde.files import write_whole
from autograde.notebook import notebook_text
from autograde.page import part

PROJECT = "pretraining-objectives"
# what course_lib imports, where students work, and the button that validates
NEEDED = ("torch", "numpy", "matplotlib", "ipywidgets", "tokenizers", "tqdm",
          "jupyterlab", "ipykernel", "nbgrader")  # fmt: skip
SHIPPED = (".py", ".toml", ".json")
WHEN = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP can say: the same course, the same bytes

PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "course-lib"
version = "{version}"
description = "The library of the course on pretraining objectives"
requires-python = "{python}"
license = "BSD-3-Clause"
dependencies = [
{ranges}
]

[tool.setuptools]
packages = [{packages}]

[tool.setuptools.package-data]
"course_lib.teaching" = ["*.toml", "*.json"]
"""
ENVIRONMENT = """\
# conda env create -f environment.yml
name: {name}
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
{pins}
      - .
"""


def write_bundle(course: Course, levels: list[str]) -> Path:
    """Write the ZIP file for students with these levels; return its path.

    Nothing of autograde/, no solution and no hidden test is in it. Raises CourseError if the build
    of a level is not current.
    """
    name = course.nbgrader.course_id or course.root.name
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, text in _contents(course, levels, name):
            about = zipfile.ZipInfo(f"{name}/{inside}", WHEN)
            about.external_attr = 0o644 << 16
            archive.writestr(about, text, zipfile.ZIP_DEFLATED)
    path = course.classroom / "bundle" / f"{name}.zip"
    write_whole(buffer.getvalue(), path)
    return path


def _contents(course: Course, levels: list[str], name: str) -> Iterator[tuple[str, str]]:
    """Path and text of each file."""
    for level in levels:
        release = load_assignment(course, level).release
        yield f"notebooks/{level}/{level}.ipynb", notebook_text(release)
    library = dict(_library(files("course_lib"), "course_lib"))
    yield from library.items()
    project = metadata.distribution(PROJECT)
    ranges = {re.split(r"[^\w-]", line)[0]: line for line in project.requires or []}
    packages = sorted({path.rpartition("/")[0].replace("/", ".") for path in library})
    yield (
        "pyproject.toml",
        PYPROJECT.format(
            version=project.version,
            python=project.metadata["Requires-Python"],
            ranges="\n".join(f'  "{ranges[name]}",' for name in NEEDED),
            packages=", ".join(f'"{package}"' for package in packages),
        ),
    )
    versions = {name: metadata.version(name).partition("+")[0] for name in NEEDED}
    pins = "\n".join(f"      - {name}=={version}" for name, version in versions.items())
    yield "environment.yml", ENVIRONMENT.format(name=name, pins=pins)
    readme = part("bundle.md")
    yield "README.md", readme.replace("NAME", name)
    yield "LICENSE", project.read_text("licenses/LICENSE") or ""


def _library(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _library(entry, f"{path}/{entry.name}")
        elif entry.name.endswith(SHIPPED):
            yield f"{path}/{entry.name}", entry.read_text("utf-8")
