"""Whatever is killed at whatever moment: the next run ends with the same verdicts and gradebook.

KILLS says how often each victim is killed, at as many random moments.
"""

import contextlib
import os
import random
import shutil
import subprocess
import time

import psutil
import pytest
from clusters import dask_cluster, dask_workers
from gradebook_rows import rows
from tiny_course import AUTOGRADE, autograde

from autograde.course import find_course
from autograde.store import kept_verdicts

KILLS = int(os.environ.get("KILLS", "1"))
STUDENTS = 8
LONGEST = 6.0  # seconds after its start until something is killed; a run takes about as long


def outcome(course):
    """What must be the same: all verdicts, and the rows of the gradebook."""
    return kept_verdicts(course, "tiny"), rows(course.classroom / "gradebook.db")


@pytest.fixture(scope="module")
def class_of_eight(built_once, tmp_path_factory):
    """The root of a course with submissions that are not graded; not to be changed."""
    root = tmp_path_factory.mktemp("eight") / "course"
    shutil.copytree(built_once, root)
    assert autograde("demo", "--students", str(STUDENTS), cwd=root).returncode == 0
    return root


@pytest.fixture(scope="module")
def undisturbed(class_of_eight, tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(class_of_eight, root)
    assert autograde("grade", "tiny", cwd=root).returncode == 1  # 1: the answers in words
    return outcome(find_course(root))


def below(process, module):
    """The processes below one that run a module of ours."""
    with contextlib.suppress(psutil.Error):
        return [p for p in process.children(recursive=True) if module in p.cmdline()]
    return []


def killed(victim, run, cluster):
    """Kill one process of a kind, if there is one at this moment."""
    candidates = {
        "coordinator": lambda: [run],
        "worker": lambda: below(run, "autograde.worker"),
        "warm parent": lambda: below(run, "autograde.nursery"),
        "Dask worker": lambda: dask_workers(cluster),
    }[victim]()
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in candidates[:1]:
            process.kill()


@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("victim", ["coordinator", "worker", "warm parent", "Dask worker"])
def test_the_next_run_ends_as_if_nothing_had_been_killed(
    victim, number, class_of_eight, undisturbed, tmp_path
):
    shutil.copytree(class_of_eight, tmp_path / "course")
    course = find_course(tmp_path / "course")
    on_cluster = victim == "Dask worker"
    with dask_cluster(tmp_path) if on_cluster else contextlib.nullcontext() as address:
        words = [AUTOGRADE, "grade", "tiny"] + (["--scheduler", address] if on_cluster else [])
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        run = psutil.Popen(
            words,
            cwd=course.root,
            env=os.environ | {"TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        moment = random.Random(f"{victim} {number}").uniform(0, LONGEST)
        time.sleep(moment)
        tree = [run, *run.children(recursive=True)]
        killed(victim, run, tmp_path)
        _, errors = run.communicate(timeout=120)
        assert errors == b"", f"killed after {moment:.2f} s"
        _, alive = psutil.wait_procs(tree, timeout=20)
        assert not alive, "a process outlived the run"
        assert list(temporary.iterdir()) == []
        if victim != "coordinator":
            assert run.returncode == 1
            assert outcome(course) == undisturbed
    assert autograde("grade", "tiny", cwd=course.root).returncode == 1
    assert outcome(course) == undisturbed
