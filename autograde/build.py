"""The build: a master becomes the release notebook and the executed solution notebook.

Nothing is published before it is proven: no line of a solution or a hidden test is in the release,
every test passes on the reference, and none on the untouched release.
"""

import asyncio
import copy
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from nbclient import NotebookClient
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.utils import determine_grade
from traitlets.config import Config

from autograde.course import Course, CourseError, run_nbgrader
from autograde.files import write_whole
from autograde.lint import lint_master
from autograde.master import (
    METADATA,
    REGIONS,
    cells_by_id,
    items,
    read_master,
    secret_lines,
    settings,
    without_markers,
    without_region,
)
from autograde.notebook import (
    last_error,
    node,
    read_notebook,
    write_notebook,
)

TIMED = "(Run this cell: what it shows depends on the machine.)\n"
CELL_SECONDS = 120  # for a cell of the reference; the grader has its own limit
WIDGET = "application/vnd.jupyter.widget-view+json"
SHOW_RECORDED = (
    "import json, sys\n"
    "print(json.dumps(getattr(sys.modules.get('course_lib.teaching.check'), 'recorded', {})))"
)


def build_level(course: Course, level: str, say: Callable[[str], None]) -> None:
    """Build one level and publish it; raise CourseError, with nothing published, if it is wrong."""
    master = course.masters / f"{level}.py"
    source = read_master(master)
    problems = lint_master(source)
    if problems:
        raise CourseError("\n".join([f"{master} breaks the rules for masters:", *problems]))
    graded = items(source)
    say(f"source: {len(graded)} items, {sum(item.points for item in graded):g} points")
    write_notebook(source, course.notebook("source", level))

    release = make_release(course, level)
    _refuse_leaks(source, release, REGIONS, "the release")
    say("release: no solution and no hidden test in it")

    (reference,) = run_notebooks(course, _with_epilogue(source))
    _demand_full_marks(reference)
    _keep_digests(course, reference)
    say("reference: it runs, and every test passes, hidden ones too")

    solution, untouched = run_notebooks(course, solution_source(source), release)
    _demand_no_marks(untouched)
    say("untouched release: no test passes")
    _demand_no_errors(solution)
    _refuse_leaks(source, solution, ("HIDDEN TESTS", "MARK SCHEME"), "the solution notebook")

    _tidy(solution)

    write_notebook(release, course.notebook("release", level))
    write_notebook(solution, course.notebook("solution", level))
    for step in ("release", "solution"):
        say(f"wrote {course.notebook(step, level).relative_to(course.root)}")


def make_release(course: Course, level: str) -> NotebookNode:
    """The release of the level's source notebook, made by nbgrader without a gradebook."""
    with tempfile.TemporaryDirectory() as folder:
        success, log = run_nbgrader(
            GenerateAssignment,
            course,
            level,
            CourseDirectory=Config(release_directory=folder),
            GenerateAssignment=Config(no_database=True),
            SaveCells=Config(enabled=False),
        )
        if not success:
            raise CourseError(f"nbgrader can't make the release of {level}:\n{log}")
        return read_notebook(Path(folder) / level / f"{level}.ipynb")


def solution_source(source: NotebookNode) -> NotebookNode:
    """The solution notebook before it runs: answers without markers, no hidden tests, no marking.

    nbgrader's own generate_solution keeps the markers and the hidden tests, and it succeeds when
    the solution fails.
    """
    notebook = copy.deepcopy(source)
    for cell in notebook.cells:
        cell.source = without_region(cell.source, "HIDDEN TESTS")
        cell.source = without_markers(without_region(cell.source, "MARK SCHEME"))
        cell.metadata.pop("nbgrader", None)
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    return notebook


def run_notebooks(course: Course, *notebooks: NotebookNode) -> list[NotebookNode]:
    """Executed copies, side by side, each in a fresh kernel; an error is kept as an output."""

    def sockets(folder: str, number: int) -> Config:
        """Unix sockets: a TCP port found free may be another process's by the time it is bound."""
        connection = {"transport": "ipc", "connection_file": f"{folder}/kernel{number}.json"}
        return Config({"KernelManager": connection})

    async def run_all(folder: str, room: str) -> list[NotebookNode]:
        clients = [
            NotebookClient(
                copy.deepcopy(notebook),
                timeout=CELL_SECONDS,
                kernel_name="python3",
                allow_errors=True,
                extra_arguments=course.config.Execute.extra_arguments,
                record_timing=False,
                store_widget_state=False,
                resources={"metadata": {"path": folder}},
                config=sockets(room, number),
            )
            for number, notebook in enumerate(notebooks)
        ]
        # `check` reads the digests of the course that is built, wherever course_lib is installed
        env = os.environ | {"PYTHONPATH": str(course.root)}
        return list(await asyncio.gather(*(client.async_execute(env=env) for client in clients)))

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as room:
        return asyncio.run(run_all(folder, room))


def _with_epilogue(source: NotebookNode) -> NotebookNode:
    notebook = copy.deepcopy(source)
    epilogue: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "epilogue",
        "metadata": {},
    }
    notebook.cells.append(node(epilogue | {"outputs": [], "source": SHOW_RECORDED}))
    return notebook


def _keep_digests(course: Course, reference: NotebookNode) -> None:
    """Keep what the tests of the reference recorded, so that `check` can recognise answers."""
    recorded = json.loads(reference.cells[-1].outputs[0].text)
    path = course.root / "course_lib" / "teaching" / "answers.json"
    if not recorded:
        return
    known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    text = json.dumps(known | recorded, indent=1, sort_keys=True, ensure_ascii=False)
    write_whole(text + "\n", path)


def _demand_full_marks(executed: NotebookNode) -> None:
    cells = cells_by_id(executed)
    for item in (item for item in items(executed) if not item.by_hand):
        cell = cells[item.graded]
        score, points = determine_grade(cell)
        if score != points:
            error = _error(cells[item.answer]) or _error(cell)
            raise CourseError(
                f"{cell.id} gives the reference {score:g} of {points:g} points: "
                f"{error or 'it prints to stderr, or its last line shows a value; neither may be'}"
            )


def _demand_no_marks(executed: NotebookNode) -> None:
    cells = cells_by_id(executed)
    for cell in (cells[item.graded] for item in items(executed) if not item.by_hand):
        score, _ = determine_grade(cell)
        error = _error(cell)
        if score or not error:
            raise CourseError(f"{cell.id} gives the untouched release {score:g} points; test more.")
        if error.startswith("NameError"):
            raise CourseError(
                f"{cell.id} ends on the untouched release with {error}; let the answer cell "
                "define the name outside its solution region, as a function or as `...`."
            )


def _demand_no_errors(executed: NotebookNode) -> None:
    for number, cell in enumerate(executed.cells):
        if error := _error(cell):
            raise CourseError(f"Cell {number} ({cell.id}) of the solution notebook fails: {error}")


def _error(cell: NotebookNode) -> str:
    """The error a cell ended with, as one line; empty if it ended well."""
    error = last_error(cell)
    return f"{error.ename}: {error.evalue}".splitlines()[0] if error else ""


def _refuse_leaks(
    source: NotebookNode, published: NotebookNode, regions: tuple[str, ...], what: str
) -> None:
    """Raise if a line that is only inside the regions of the source is anywhere in `published`."""
    split = [secret_lines(cell.source, regions) for cell in source.cells]
    if "SOLUTION" in regions:  # the whole of a written answer is one
        split = [
            (cell.source.split("\n"), []) if _by_hand(cell) else parts
            for cell, parts in zip(source.cells, split, strict=True)
        ]
    secret = {line.strip() for inside, _ in split for line in inside}
    public = "\n".join(line for _, outside in split for line in outside)
    shown = "\n".join(_texts(published))
    for line in sorted(secret):
        if line and line not in public and line in shown:
            raise CourseError(f"{what} would show a secret line of the master: {line!r}")


def _by_hand(cell: NotebookNode) -> bool:
    return bool(settings(cell).get("grade") and settings(cell)["solution"])


def _texts(value: object) -> Iterator[str]:
    """Every text in a notebook: sources, outputs and metadata."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _tidy(solution: NotebookNode) -> None:
    """Remove what changes from run to run or can't be shown without a kernel."""
    solution.metadata = node(METADATA)  # without the version of this Python
    CoalesceStreamsPreprocessor().preprocess(solution, {})  # type: ignore[no-untyped-call]
    for cell in solution.cells:
        if "timing" in cell.metadata.get("tags", []):
            cell.outputs = [node({"output_type": "stream", "name": "stdout", "text": TIMED})]
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
    text = "\n".join(_texts([cell.get("outputs", []) for cell in solution.cells]))
    for path in (sys.prefix, str(Path.home()), "/ipykernel_"):
        if path in text:
            raise CourseError(f"An output of the solution notebook shows a path here: {path}")
