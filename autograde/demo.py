"""A sample class: submissions of every kind, the same bytes every time."""

import copy
import csv
import io
import json
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, cycle, islice, zip_longest

from nbformat import NotebookNode

from autograde.course import Course, CourseError
from autograde.files import write_whole
from autograde.lint import student_names
from autograde.master import (
    Answer,
    cells_by_id,
    items,
    read_answers,
    read_master,
    without_markers,
    without_region,
)
from autograde.notebook import notebook_text, read_notebook

NAMES = (
    "Aoife O'Brien, Björn Müller, Chiara Rossi, Dmitri Ivanov, Élodie D'Arcy, Fatima Haddad, "
    "Gábor Szabó, Håkon Østby, Ines Gonçalves, Jürgen Özdemir, Kwame Mensah, Léa Lefèvre, María "
    "Núñez, Nguyễn Trần, Oğuz Yılmaz, Priya Krishnan, Quentin O'Neill, Rūta Kazlauskaitė, Søren "
    "Sørensen, Tomáš Dvořák, Ujjwal Sharma, Valentina Fernández, Wanjiru Kamau, Xóchitl "
    "Hernández, Yuki Tanaka, Zoë Weiß, Amir Rahimi, Bruna Souza, Chidi Okafor, Dag Lindström"
)

PARTS = "a part full marks, a part not attempted"
MISTAKES = 4  # that one student makes, so that a class of thirty shows every known one
SYNTAX_ERROR = ")"
EXCEPTION = "import a_package_that_nobody_has\n"
ENDLESS = "while True:\n    pass\n"
TOO_LARGE = "hoard = bytearray(1 << 45)\n"  # refused at once: no grader has to fill its memory
SEGFAULT = "import ctypes\nctypes.string_at(0)\n"
NOISE = """

def loudly(function):
    def call(*args, **kwargs):
        import sys
        print("debug: called with", len(args), "arguments", file=sys.stderr)
        return function(*args, **kwargs)
    return call

"""


@dataclass(frozen=True)
class Plant:
    """One kind of submission, and what its grade should be."""

    planted: str
    answers: dict[str, str]  # what stands in the answer cells; the others are untouched
    expected: str = "full marks"
    flaws: dict[str, str] = field(default_factory=dict)  # answer -> what its student must be told
    as_text: Callable[[NotebookNode], str] = notebook_text


def make_class(course: Course, size: int, force: bool) -> str:
    """Write a class of `size` students into classroom/submitted/; say in one line what it is.

    The first students are the same whatever the size. Raises CourseError rather than touch a
    classroom that holds other submissions, unless `force`; even then, those are left as they are.
    """
    levels = [
        name
        for name in course.levels()
        if course.has_points(name) and course.notebook("release", name).is_file()
    ]
    if not levels:
        raise CourseError("No level has been built: run `autograde build` first.")
    _clear(course, force)
    people = list(islice(_people(), size))
    manifest: dict[str, dict[str, object]] = {
        student: {"first_name": first, "last_name": last} for student, first, last in people
    }
    for level in levels:
        release = read_notebook(course.notebook("release", level))
        plants = plan(course, level)
        for student, plant in zip(manifest, islice(_endlessly(plants), size), strict=True):
            path = course.notebook("submitted", level, student)
            write_whole(plant.as_text(_filled(release, plant.answers)), path)
            manifest[student][level] = {
                key: getattr(plant, key) for key in ("planted", "expected", "flaws")
            }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    write_whole(text + "\n", course.classroom / "demo.json")
    _write_roster(course, people)
    kinds = max(len(plan(course, level)) for level in levels)
    left = f"; {kinds - size} more kinds of submission need --students {kinds}"
    where = course.folder("submitted").relative_to(course.root)
    return f"{size} students in {where}{left if kinds > size else ''}"


def plan(course: Course, level: str) -> list[Plant]:
    """Every kind of submission once; right, mistaken and broken ones take turns."""
    master = course.masters / f"{level}.py"
    source = read_master(master)
    tries = read_answers(master.with_name(f"{level}_answers.py"))
    right = _right_answers(source)
    unknown = {answer.item for answer in tries} - set(right)
    if unknown:
        raise CourseError(
            f"{level}_answers.py answers {sorted(unknown)[0]!r}, which {level} lacks."
        )
    groups = (_right(right, tries), _mutants(right, tries), _broken(right, source))
    turns = chain.from_iterable(zip_longest(*groups))
    return [plant for plant in turns if plant is not None]


def _right(right: dict[str, str], tries: list[Answer]) -> Iterator[Plant]:
    """The reference, every other style of each answer, and right answers that are noisy."""
    yield Plant("reference", right)
    for styles in _packed([answer for answer in tries if answer.style], len(right)):
        planted = "styles " + ", ".join(f"{a.style} ({a.item})" for a in styles)
        yield Plant(planted, right | {a.item: a.source for a in styles})
    yield Plant("prints to stderr", {name: _noisy(text) for name, text in right.items()})


def _mutants(right: dict[str, str], tries: list[Answer]) -> Iterator[Plant]:
    """Every mutant once, a few to a student and no two in the same answer."""
    for mutants in _packed([answer for answer in tries if answer.mutant], MISTAKES):
        yield Plant(
            "mutants " + ", ".join(f"{a.mutant} ({a.item})" for a in mutants),
            right | {a.item: a.source for a in mutants},
            "wrong",
            {a.item: a.message for a in mutants},
        )


def _packed(answers: list[Answer], most: int) -> Iterator[list[Answer]]:
    """The answers in groups of at most `most`, of different items; the fullest items first."""
    left: dict[str, list[Answer]] = {}
    for answer in answers:
        left.setdefault(answer.item, []).append(answer)
    while left:
        fullest = sorted(left, key=lambda item: -len(left[item]))[:most]
        yield [left[item].pop(0) for item in fullest]
        left = {item: rest for item, rest in left.items() if rest}


def _broken(right: dict[str, str], source: NotebookNode) -> Iterator[Plant]:
    """What happens to files and people; the flaw is in one of the first two answers."""
    first, second = [item.answer for item in items(source) if "__" not in item.name][:2]
    tests = [item.graded for item in items(source) if not item.by_hand]

    def flawed(planted: str, name: str, text: str, expected: str) -> Plant:
        return Plant(planted, right | {name: text}, expected, {name: ""})

    yield Plant("untouched", {}, "not attempted")
    half = dict(list(right.items())[: len(right) // 2])
    yield Plant("half done", half, PARTS)
    yield flawed("syntax error", first, right[first] + "\n" + SYNTAX_ERROR, "error")
    yield flawed("infinite loop", second, ENDLESS + right[second], "timed out")
    yield flawed("exception", second, EXCEPTION + right[second], "error")
    yield flawed("too much memory", second, TOO_LARGE + right[second], "out of memory")
    yield flawed("segmentation fault", second, SEGFAULT + right[second], "crashed")
    yield Plant("truncated file", right, PARTS, as_text=_truncated)
    yield Plant("empty file", {}, "ungradable", as_text=lambda _: "")
    yield Plant("exit() in a cell", right | {second: right[second] + "\nexit()"})
    yield Plant("a test deleted, one copied", right, as_text=lambda nb: _muddled(nb, *tests[:2]))


def _right_answers(source: NotebookNode) -> dict[str, str]:
    """The reference answer of every cell that a student fills in."""
    answers = {}
    cells = cells_by_id(source)
    for name in dict.fromkeys(item.answer for item in items(source)):
        text = without_markers(without_region(cells[name].source, "MARK SCHEME"))
        answers[name] = text or "That is what the experiment above shows, in my own words."
    return answers


def _filled(release: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    notebook = copy.deepcopy(release)
    for name, cell in cells_by_id(notebook).items():
        cell.source = answers.get(name, cell.source)
    return notebook


def _noisy(source: str) -> str:
    """The same answer; its functions print to stderr whenever they are called."""
    try:
        names = sorted(name for name in student_names(source) if f"def {name}(" in source)
    except SyntaxError:  # a written answer
        return source
    return source + NOISE + "\n".join(f"{n} = loudly({n})" for n in names) if names else source


def _truncated(notebook: NotebookNode) -> str:
    text = notebook_text(notebook)
    return text[: len(text) // 2]


def _muddled(notebook: NotebookNode, deleted: str, copied: str) -> str:
    notebook.cells.remove(cells_by_id(notebook)[deleted])
    cell = cells_by_id(notebook)[copied]
    copy_of_it = copy.deepcopy(cell)
    copy_of_it.id = f"{cell.id}-copy"
    notebook.cells.insert(notebook.cells.index(cell) + 1, copy_of_it)
    return notebook_text(notebook)


def _endlessly(plants: list[Plant]) -> Iterator[Plant]:
    """Every kind once, then right answers without end."""
    yield from plants
    right = [plant for plant in plants if plant.planted == "reference" or "style" in plant.planted]
    while True:
        yield from right


def _people() -> Iterator[tuple[str, str, str]]:
    """An id that is safe in paths, a first name and a last name, without end."""
    for number, name in enumerate(cycle(NAMES.split(", ")), start=1):
        first, last = name.split()
        yield f"{_ascii(last)}-{number:03}", first, last


def _ascii(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.translate(str.maketrans("Øøıß", "Oois")))
    return "".join(c for c in letters if c.isascii() and c.isalpha()).lower()


def _clear(course: Course, force: bool) -> None:
    """Remove the class of an earlier run; refuse if anybody else's work is there."""
    manifest = course.classroom / "demo.json"
    ours = set(json.loads(manifest.read_text("utf-8"))) if manifest.is_file() else set()
    submitted = course.folder("submitted")
    there = {path.name for path in submitted.iterdir()} if submitted.is_dir() else set()
    if there - ours and not force:
        raise CourseError(
            f"{submitted} holds submissions that are not a sample class, such as "
            f"{sorted(there - ours)[0]}: move them away, or add the sample with --force."
        )
    for student in ours & there:
        shutil.rmtree(submitted / student)


def _write_roster(course: Course, people: list[tuple[str, str, str]]) -> None:
    """The names, as `nbgrader db student import classroom/students.csv` reads them."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("id", "first_name", "last_name"))
    writer.writerows(people)
    write_whole(text.getvalue(), course.classroom / "students.csv")
