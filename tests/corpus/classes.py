"""A class of hostile and broken submissions, graded once by the real command.

The level `walls` (fixture/walls.txt) has the items surprise, each, choices, softmax and empty.
"""

import copy
import csv
import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from filelock import FileLock
from nbformat import NotebookNode

from autograde.course import Course, find_course, is_storable
from autograde.notebook import read_notebook
from autograde.verdict import Verdict

HERE = Path(__file__).parent
LEVEL = "walls"
AUTOGRADE = Path(sysconfig.get_path("scripts")) / "autograde"
RIGHT = {
    "W_surprise": "def surprise(p):\n    return -math.log(p)",
    "W_choices": "choices = 8",
    "W_softmax": """
def softmax(logits):
    if len(logits) == 0:
        raise ValueError("no logits")
    return torch.softmax(logits, dim=-1)
""",
}
ITEMS = {
    "surprise": "W_surprise",
    "each": "W_surprise__each",
    "choices": "W_choices",
    "softmax": "W_softmax",
    "empty": "W_softmax__empty",
}
GOOD = ("0-good", "z-good")  # by name the first and the last of every class


@dataclass(frozen=True)
class Row:
    """One submission, and how it must end.

    `surprise`, `choices` and `softmax` are answers; one that is not given is right, and COURSE in
    it stands for the course's folder. `edit` changes the notebook, `data` its bytes, `files` the
    folder it is handed in with. Of the items those in `lost` have that outcome ("": any but
    correct), all others full marks, or where it `disturbs` what follows, any outcome; `says` is
    part of a lost item's message, of a note, or of the reason why nothing could be graded, which
    `ungradable` asks for.
    """

    id: str
    surprise: str | None = None
    choices: str | None = None
    softmax: str | None = None
    edit: Callable[[NotebookNode], object] | None = None
    data: Callable[[NotebookNode], bytes] | None = None
    files: Callable[[Path], object] | None = None
    lost: dict[str, str] = field(default_factory=dict)
    disturbs: bool = False
    says: str = ""
    ungradable: bool = False

    def __str__(self) -> str:
        return self.id

    @property
    def student(self) -> str:
        """A folder name for it."""
        return self.id.replace(" ", "-").replace("/", "-")

    def hand_in(self, course: Course) -> None:
        """Write the submission."""
        notebook = answered(read_notebook(course.notebook("release", LEVEL)), course, vars(self))
        if self.edit:
            self.edit(notebook)
        data = self.data(notebook) if self.data else json.dumps(notebook).encode()
        path = course.notebook("submitted", LEVEL, self.student)
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        if self.files:
            self.files(path)

    def check(self, verdict: Verdict) -> None:
        """Demand the end that the row asks for."""
        if self.ungradable:
            assert verdict.points is None
            assert self.says in verdict.reason, verdict.reason
            return
        found = {item.item: item for item in verdict.items}
        told = {name: (found[item].outcome, found[item].message) for name, item in ITEMS.items()}
        for name, item in ITEMS.items():
            outcome, wanted = found[item].outcome, self.lost.get(name, "correct")
            full = found[item].max_points if outcome == "correct" else 0
            assert found[item].points == full
            if wanted == "":
                assert outcome != "correct", told
            elif name in self.lost or not self.disturbs:
                assert outcome == wanted, told
        texts = [*(message for _, message in told.values()), *verdict.notes]
        assert any(self.says in text for text in texts), (told, verdict.notes)


def answered(release: NotebookNode, course: Course, answers: dict[str, str | None]) -> NotebookNode:
    """The release with answers in it, the right ones where none is given."""
    notebook = copy.deepcopy(release)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name in RIGHT:
            given = answers.get(name.removeprefix("W_"))
            cell.source = RIGHT[name] if given is None else given
            cell.source = cell.source.replace("COURSE", str(course.root)).strip()
    return notebook


def build(root: Path) -> None:
    """The course at `root`, built."""
    masters = root / "autograde" / "source"
    masters.mkdir(parents=True)
    shutil.copy(HERE / "fixture" / "walls.txt", masters / "walls.py")
    shutil.copy(HERE.parents[1] / "nbgrader_config.py", root)
    done = autograde("build", cwd=root)
    assert done.returncode == 0, done.stderr


def grade(root: Path, rows: Iterable[Row]) -> None:
    """Hand in the rows and two good submissions; grade them; keep what was printed."""
    course = find_course(root)
    for row in (*rows, *map(Row, GOOD)):
        row.hand_in(course)
    done = autograde("grade", LEVEL, "--timeout", "2", "-j", "1", cwd=root)
    (root / "printed").write_text(f"{done.stdout}\n{done.stderr}", "utf-8")
    (root / "exit").write_text(str(done.returncode), "utf-8")


def graded(module: ModuleType, walls: Path, factory: pytest.TempPathFactory) -> Path:
    """The root of the course at `walls` with a module's ROWS handed in and graded, once."""

    def make(root: Path) -> None:
        shutil.copytree(walls, root, ignore=shutil.ignore_patterns("made"))
        grade(root, module.ROWS)

    return once(factory, module.__name__, make)


def autograde(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the real command, with a folder for temporary files of its own."""
    temporary = cwd / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    environment["TMPDIR"] = str(temporary)
    return subprocess.run(
        [AUTOGRADE, *words], cwd=cwd, env=environment, capture_output=True, text=True
    )


def verdict(root: Path, student: str) -> Verdict:
    """The verdict that was kept on a student; of one that can't be kept, the row in the table."""
    course = find_course(root)
    if is_storable(student):
        return Verdict.from_json(course.verdict(LEVEL, student).read_text("utf-8"))
    with course.report(LEVEL).open(encoding="utf-8", newline="") as table:
        shown = ascii(student)[:100]
        (message,) = (r["message"] for r in csv.DictReader(table) if r["student"].endswith(shown))
    return Verdict(student, LEVEL, reason=message)


def check_good_ones(root: Path) -> None:
    """The run was completed and the good submissions, first and last, have full marks."""
    for name in GOOD:
        good = verdict(root, name)
        assert (good.points, good.status) == (8, "graded"), good
    printed = (root / "printed").read_text("utf-8")
    assert "Traceback" not in printed
    assert (root / "exit").read_text("utf-8") in "01", printed
    handed_in = find_course(root).submitted_students(LEVEL)
    assert f"{len(handed_in)} submissions" in printed


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
