"""Which student of the class a person of an LMS is, and how the LMS knows a student.

What was collected from where is kept in classroom/collected/LEVEL/STUDENT.json, apart from the
submissions, whose files could say anything.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from autograde.course import Course, CourseError
from autograde.files import write_whole
from autograde.intake import Person
from autograde.roster import Roster

UNFIT = frozenset('/\\:*?"<>|[]{}+')  # in paths, in globs, in nbgrader's file names
MAX_NAME = 100  # characters, and with a number behind it still fit for the gradebook
MAX_BYTES = 180


@dataclass(frozen=True)
class Origin:
    """Where a collected notebook came from; `number` and `time` grow from older to newer ones."""

    person: Person
    archive: str
    file: str
    digest: str
    number: int
    time: str

    @property
    def order(self) -> tuple[int, str]:
        """What grows from older to newer notebooks of a person."""
        return self.number, self.time


def origins(course: Course, level: str) -> dict[str, Origin]:
    """Where each collected notebook of a level came from, by student."""
    return {path.stem: _read(path) for path in _path(course, level, "any").parent.glob("*.json")}


def keep_origin(course: Course, level: str, student: str, origin: Origin) -> None:
    """Keep where a student's notebook came from."""
    text = json.dumps(asdict(origin), indent=1, ensure_ascii=False) + "\n"
    write_whole(text, _path(course, level, student))


def _path(course: Course, level: str, student: str) -> Path:
    return course.classroom / "collected" / level / f"{student}.json"


def _read(path: Path) -> Origin:
    try:
        fields = json.loads(path.read_text("utf-8"))
        return Origin(**fields | {"person": Person(**fields["person"])})
    except (ValueError, TypeError, KeyError):
        raise CourseError(f"{path} is damaged: remove it, and collect again.") from None


def student_id(text: str) -> str:
    """A name as the id of a student, which is also that of a folder.

    >>> student_id(" Müller, A. (07)"), student_id("../a/b[1]"), student_id("-rf\u202e+")
    ('Müller, A. (07)', '_a_b_1_', 'rf__')
    """
    name = unicodedata.normalize("NFC", text)
    name = "".join("_" if c in UNFIT or not c.isprintable() else c for c in name)
    name = name.strip(" .").lstrip("-")[:MAX_NAME]
    return name.encode()[:MAX_BYTES].decode("utf-8", "ignore").strip(" .") or "nameless"


def alike(name: str) -> str:
    """What is the same for names that a person, or a file system, may take for one another."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def name_people(
    people: Collection[Person], known: Mapping[str, Origin], roster: Roster | None
) -> dict[Person, str]:
    """The student that each person is: as collected before, as listed, or else by their name.

    Two people of one name get the LMS's ids behind it. Who can't be told apart even so is left out.
    """
    before = {(o.person.lms, o.person.id): student for student, o in known.items()}
    wanted = {person: student_id(_listed(person, roster) or person.student) for person in people}
    counts = Counter(alike(name) for name in wanted.values())
    taken = {alike(student): origin.person for student, origin in known.items()}
    named = {}
    for person, name in wanted.items():
        other = taken.get(alike(name))
        if student := before.get((person.lms, person.id)):
            named[person] = student
        elif counts[alike(name)] > 1 or (other is not None and other.lms == person.lms):
            named[person] = student_id(f"{name}_{person.id}") if person.lms != "folder" else ""
        else:
            named[person] = name
    doubles = Counter(alike(name) for name in named.values())
    return {person: name for person, name in named.items() if name and doubles[alike(name)] == 1}


def _listed(person: Person, roster: Roster | None) -> str:
    listed = roster.find(person.lms, person.id) if roster else None
    return listed.student if listed else ""
