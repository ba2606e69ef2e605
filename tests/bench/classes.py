"""Classes of any size, and commands over them; what several benchmarks share.

`make build` first: the level is taken as it was built.
"""

import contextlib
import json
import os
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from autograde.course import Course, find_course
from autograde.demo import make_class
from autograde.files import scratch_folder

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(sysconfig.get_path("scripts"))
LEVEL = "level2"
MODELS = 60  # of the sample class; more students hand in the same with a comment of their own
USUAL = ("reference", "styles", "mutants")  # others cost what the limits say


@contextmanager
def a_class(size: int) -> Iterator[Course]:
    """A course with so many usual submissions of Level 2: right in several styles, and mistaken."""
    with scratch_folder() as folder:
        shutil.copy(ROOT / "nbgrader_config.py", folder)
        shutil.copytree(ROOT / "autograde" / "source", folder / "autograde" / "source")
        for name in ("build/source", "notebooks"):
            shutil.copytree(ROOT / name / LEVEL, folder / name / LEVEL)
        course = find_course(folder)
        make_class(course, MODELS, force=False)
        planted = json.loads((course.classroom / "demo.json").read_text("utf-8"))
        models = [
            course.notebook("submitted", LEVEL, student).read_text("utf-8")
            for student, about in planted.items()
            if about[LEVEL]["planted"].startswith(USUAL)
        ]
        shutil.rmtree(course.folder("submitted"))
        for number in range(size):
            hand_in(course, models[number % len(models)], number)
        yield course


def hand_in(course: Course, model: str, number: int) -> None:
    """A submission like the model, with a comment in an answer that no other has."""
    notebook = json.loads(model)
    answers = (
        cell
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution")
    )
    next(answers)["source"] += f"\n# student {number}"
    path = course.notebook("submitted", LEVEL, f"student-{number:05}")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), "utf-8")


class Ran(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float  # of its own process
    memory: int  # bytes, at most, of its own process


def ran(*words: str | Path, cwd: Path, codes: tuple[int, ...] = (0, 1)) -> Ran:
    """Run a command of this environment, from a cold start to its end."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = psutil.Popen(
            [SCRIPTS / words[0], *map(str, words[1:])],
            cwd=cwd,
            env=os.environ | {"TERM": "dumb", "PATH": f"{SCRIPTS}:{os.environ['PATH']}"},
            stdout=output,
            stderr=output,
        )
        cpu, memory = 0.0, 0
        while process.poll() is None:
            with contextlib.suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                cpu = times.user + times.system
                memory = max(memory, process.memory_info().rss)
            time.sleep(0.02)
        seconds = time.perf_counter() - began
        output.seek(0)
        assert process.returncode in codes, output.read()
    return Ran(seconds, cpu, memory)
