"""What ends a process of the grader's own costs no other submission anything."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path

import psutil
import pytest
from classes import GOOD, LEVEL, Row

from autograde.assignment import load_assignment
from autograde.classroom import ClassRun, local_workers
from autograde.course import find_course
from autograde.files import remove_tree
from autograde.limits import Limits
from autograde.preflight import Unreadable
from autograde.submission import handed_in
from autograde.worker import Rules


def test_a_class_outlives_its_nursery(walls: Path, tmp_path: Path) -> None:
    shutil.copytree(walls, tmp_path / "course")
    course = find_course(tmp_path / "course")
    for name in (*GOOD, "next"):
        Row(name).hand_in(course)
    students = course.submitted_students(LEVEL)
    verdicts = []
    with local_workers(1) as (executor, width):
        for row in ClassRun(
            course, load_assignment(course, LEVEL), students, executor, width, Rules(Limits())
        ):
            verdicts.append(row.verdict)
            if len(verdicts) == 1:
                mine = psutil.Process().children()
                (worker,) = (child for child in mine if "autograde.worker" in child.cmdline())
                worker.children()[0].kill()  # its nursery; as the system does, short of memory
    assert [verdict.student for verdict in verdicts] == students
    assert [verdict.points for verdict in verdicts] == [8] * 3


def test_a_worker_that_hangs_is_ended() -> None:
    hanging = """
import time
from autograde import worker
with worker._alarm(1):
    time.sleep(30)
"""
    done = subprocess.run([sys.executable, "-c", hanging], timeout=60)
    assert done.returncode == -signal.SIGALRM


def test_a_folder_of_any_depth_is_removed(tmp_path: Path) -> None:
    making = "import os\nfor _ in range(3000):\n    os.mkdir('x' * 200)\n    os.chdir('x' * 200)"
    (tmp_path / "deep").mkdir()
    (tmp_path / "beside.txt").touch()
    subprocess.run([sys.executable, "-c", making], cwd=tmp_path / "deep", check=True)
    remove_tree(tmp_path / "deep")
    assert [path.name for path in tmp_path.iterdir()] == ["beside.txt"]


def test_a_folder_without_rights_is_removed(tmp_path: Path) -> None:
    """As another user: root needs no rights."""
    removing = """
import os, sys
from pathlib import Path
from autograde.files import remove_tree
if os.getuid() == 0:
    os.setuid(65534)
for name, mode in (("student/locked/inner", 0), ("student/blind", 0o300), ("student/a", 0o700)):
    Path(name).mkdir(parents=True)
    Path(name, "x").touch()
    Path(name).chmod(mode)
remove_tree(Path("student"))
sys.exit(any(Path().iterdir()))
"""
    room = tmp_path / "room"
    room.mkdir()
    room.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", "import autograde.files\n" + removing], cwd=room, timeout=60
    )
    assert done.returncode == 0


def test_a_locked_folder_is_a_row_of_its_own(
    walls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(walls, tmp_path / "course")
    course = find_course(tmp_path / "course")
    for name in ("a", "locked", "z"):
        Row(name).hand_in(course)

    def looked(path: Path, *, look: Callable[[Path], bool]) -> bool:
        if "locked" in path.parent.parts:  # as the system does to whoever is not root
            raise PermissionError
        return look(path)

    for name in ("is_dir", "is_symlink"):
        monkeypatch.setattr(Path, name, partialmethod(looked, look=getattr(Path, name)))
    assert course.submitted_students(LEVEL) == ["a", "locked", "z"]
    with pytest.raises(Unreadable, match="can't be opened"):
        handed_in(course, load_assignment(course, LEVEL), "locked")
