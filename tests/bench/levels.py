"""What each level costs: CPU seconds of its own cells under grading, and a run of its notebook."""

import tempfile
import time
from pathlib import Path

import nbformat
import torch
from classes import ROOT
from nbclient import NotebookClient
from overhead import own_seconds

from autograde.assignment import load_assignment
from autograde.course import find_course
from autograde.grade import grade
from autograde.kernel import Nursery

MOST_CPU, MOST_WALL = {"level3": 8.0}, 60.0  # seconds; other levels: USUAL_CPU
USUAL_CPU = 3.0


def executed(path: Path) -> float:
    """Seconds that a fresh kernel takes for a notebook."""
    notebook = nbformat.read(path, as_version=4)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["--IPKernelApp.log_level=40"]
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, resources=where, timeout=300, extra_arguments=quiet).execute()
    return time.perf_counter() - start


def report() -> str:
    """The table as Markdown."""
    torch.set_num_threads(1)
    course = find_course(ROOT)
    lines = [
        "| level | CPU of its cells, graded, s | bar | its solution, in a fresh kernel, s | bar |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder, Nursery(Path(folder)) as nursery:
        for level in course.levels():
            cpu = "–"
            if course.has_points(level):
                assignment = load_assignment(course, level)
                data = course.notebook("solution", level).read_bytes()
                with own_seconds() as seconds:
                    verdict = grade(data, assignment, nursery).verdict
                assert all(item.points in (item.max_points, None) for item in verdict.items)
                cpu = f"{sum(seconds):.1f}"
            wall = executed(course.notebook("solution", level))
            bar = MOST_CPU.get(level, USUAL_CPU)
            lines.append(f"| {level} | {cpu} | {bar:g} | {wall:.1f} | {MOST_WALL:g} |")
    return "\n".join(lines)
