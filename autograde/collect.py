"""Put what an LMS gives out as a ZIP file into classroom/submitted/, one notebook a student.

Nothing is lost: what is replaced moves to classroom/replaced/, and every file that is not taken is
named with the reason.
"""

import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from nbformat import NotebookNode
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autograde.archive import Refused, entries, open_zip, unpack
from autograde.course import Course, CourseError
from autograde.files import remove_tree
from autograde.identity import Origin, name_people
from autograde.intake import Handed, Person, whose
from autograde.late import TIMESTAMP
from autograde.notebook import read_notebook
from autograde.placing import Placer, State
from autograde.preflight import Unreadable, belongs_to, read_submission
from autograde.roster import Listed, Roster
from autograde.submission import SUFFIXES
from autograde.verdict import one_line

MAX_FILES = 20  # of a student that are looked at
ALIKE = "others in the ZIP have the same name; give the list of students with --roster"


@dataclass(frozen=True)
class Collected:
    """What became of a student's files, or of a file that is nobody's, and why."""

    student: str
    state: State
    why: str = ""


@dataclass(frozen=True)
class _Unpacked:
    handed: Handed
    path: Path
    digest: str


@dataclass
class Batch:
    """A ZIP file of submissions to a level; iterating collects them, one student after another."""

    course: Course
    level: str
    archive: zipfile.ZipFile
    scratch: Path
    roster: Roster | None
    force: bool

    def __post_init__(self) -> None:
        self.placer = Placer(self.course, self.level, self.scratch, self.force)
        found = entries(self.archive)
        handed = whose(self.archive, found, self.course.levels())
        self.files = defaultdict[Person, list[Handed]](list)
        for one in handed:
            self.files[one.person].append(one)
        theirs = {id(one.entry) for one in handed}
        others = (e.name for e in found if id(e) not in theirs and e.name.endswith(".ipynb"))
        self.strays = sorted(others)
        self.names = name_people(self.files, self.placer.known, self.roster)

    def __len__(self) -> int:
        return len(self.files) + len(self.strays)

    def __iter__(self) -> Iterator[Collected]:
        for name in self.strays:
            yield Collected(one_line(name), State.PASSED_OVER, "it is in no student's folder")
        for person, files in self.files.items():
            try:
                yield self._person(person, files)
            except Refused as refused:
                name = self.names.get(person) or one_line(person.name)
                yield Collected(name, State.PASSED_OVER, one_line(str(refused)))

    def _person(self, person: Person, files: list[Handed]) -> Collected:
        if person not in self.names:
            raise Refused(ALIKE)
        student = self.names[person]
        chosen, why = self._choose(files)
        try:
            origin, submitted = self._origin(chosen), self._submitted(chosen.handed)
            state, more = self.placer.place(student, chosen.path, origin, submitted)
        finally:
            chosen.path.unlink(missing_ok=True)
        return Collected(student, state, "; ".join(filter(None, (why, more))))

    def _choose(self, files: list[Handed]) -> tuple[_Unpacked, str]:
        """The newest notebook of the level among a person's files, and what is to be said of it."""
        suffixes = {one: Path(one.file.lower()).suffix for one in files}
        mine = [one for one in files if suffixes[one] in SUFFIXES and one.file != TIMESTAMP]
        mine = sorted(mine, key=lambda one: one.order)[-MAX_FILES:]
        if not mine:
            raise Refused("no notebook among " + ", ".join(one.file for one in files[:5]))
        folders = {tuple(p for p in one.entry.parts[:-1] if p != self.level) for one in mine}
        if mine[0].person.lms == "folder" and len(folders) > 1:
            raise Refused("its notebooks are in several folders; make the ZIP STUDENT/LEVEL.ipynb")
        unpacked, refused = [], []
        for number, one in enumerate(mine):
            path = self.scratch / str(number)
            try:
                unpacked.append(_Unpacked(one, path, unpack(self.archive, one.entry, path)))
            except Refused as error:
                refused.append(f"{one.file}: {error}")
        if not unpacked:
            raise Refused("; ".join(refused))
        if len(unpacked) > 1:
            unpacked.sort(
                key=lambda u: (self._fits(u), suffixes[u.handed] == ".ipynb", u.handed.order)
            )
        for other in unpacked[:-1]:
            other.path.unlink()
        chosen = unpacked[-1]
        if len(mine) > 1:
            refused.append(f"{chosen.handed.file} is the newest of {len(mine)} files")
        return chosen, "; ".join(refused)

    def _fits(self, unpacked: _Unpacked) -> bool:
        try:
            data = read_submission(unpacked.path)
        except Unreadable:
            return False
        return belongs_to(data, {self.level: self._release}) is not None

    @cached_property
    def _release(self) -> NotebookNode:
        path = self.course.notebook("release", self.level)
        if not path.is_file():
            raise CourseError(
                f"{self.level} has not been built: run `autograde build {self.level}`."
            )
        return read_notebook(path)

    def _origin(self, new: _Unpacked) -> Origin:
        number, time = new.handed.order
        time = self._submitted(new.handed) or time
        archive = Path(self.archive.filename or "").name
        person, listed = new.handed.person, self._listed(new.handed)
        if listed and listed.name:  # as people write it; in a file's name it is squeezed
            person = replace(person, name=listed.name)
        return Origin(person, archive, new.handed.file, new.digest, number, time.isoformat())

    def _submitted(self, handed: Handed) -> datetime | None:
        listed = self._listed(handed)
        return (listed.submitted if listed else None) or handed.submitted

    def _listed(self, handed: Handed) -> Listed | None:
        return self.roster.find(handed.person.lms, handed.person.id) if self.roster else None


@contextmanager
def open_batch(
    course: Course, level: str, path: Path, roster: Roster | None = None, force: bool = False
) -> Iterator[Batch]:
    """The submissions in a ZIP file, to be collected by iterating over them.

    A submission that is there is replaced by a newer one, with `force` by any; it moves aside.
    Raises CourseError if the ZIP can't be read, or the classroom can't be written.
    """
    course.classroom.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".collect-", dir=course.classroom))
    try:
        with open_zip(path) as archive:
            yield Batch(course, level, archive, scratch, roster, force)
    except OSError as error:
        raise CourseError(
            f"The submissions can't be written: {error}. What was collected stays; "
            "run the same command again once there is room."
        ) from None
    finally:
        remove_tree(scratch)


def overview(collected: list[Collected]) -> RenderableType:
    """A table of what is worth a look, and how many of what there were."""
    table = Table("student", "", "why")
    for one in collected:
        if one.why:
            table.add_row(Text(one.student), Text(one.state), Text(one.why))
    counts = (f"{sum(one.state == state for one in collected)} {state}" for state in State)
    line = Text(", ".join(counts))
    return Group(table, line) if table.row_count else line
