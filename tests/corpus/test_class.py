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

from autograde.classroom import _submission, grade_class, load_assignment
from autograde.course import find_course
from autograde.files import remove_tree
from autograde.kernel import Limits
from autograde.preflight import Unreadable


def test_a_class_outlives_its_nursery(walls: Path, tmp_path: Path) -> None:
    shutil.copytree(walls, tmp_path / "course")
    course = find_course(tmp_path / "course")
    for name in (*GOOD, "next"):
        Row(name).hand_in(course)
    students = course.submitted_students(LEVEL)
    verdicts = []
    for verdict in grade_class(
        course, load_assignment(course, LEVEL), students, jobs=1, limits=Limits()
    ):
        verdicts.append(verdict)
        if len(verdicts) == 1:
            below = psutil.Process().children(recursive=True)
            (nursery,) = (child for child in below if "autograde.nursery" in child.cmdline())
            nursery.kill()  # as the system does where memory is short
    assert [verdict.student for verdict in verdicts] == students
    assert [verdict.points for verdict in verdicts] == [8] * 3


def test_a_worker_that_hangs_is_ended() -> None:
    hanging = """
import time
from autograde import classroom
from autograde.kernel import Limits
classroom.MARGIN = 1
classroom.grade_student = lambda *_: time.sleep(30)
classroom._worker = classroom._Worker(None, None, Limits(notebook_wall_s=0), None)
classroom._grade_student("somebody")
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
        _submission(course, load_assignment(course, LEVEL), "locked")
