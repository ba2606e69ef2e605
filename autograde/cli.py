"""The `autograde` command: build a course, make a sample class, grade a level."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track

import autograde.quick  # noqa: F401 - first
from autograde.course import CourseError, find_course
from autograde.formats import Format
from autograde.table import summary, table
from autograde.verdict import Status

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Give out a course of notebooks, grade what a class hands in, give it back.",
    epilog="Exit codes: 0 done; 1 done, but a person must look at some submissions; 2 not done.",
)
console = Console()

CourseOption = Annotated[
    Path | None,
    typer.Option(
        "--course",
        metavar="DIR",
        help="The course repository; without it, the one around the working directory.",
    ),
]

LevelsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="LEVEL", help="Every level, if none is named.")
]

RosterOption = Annotated[
    Path | None,
    typer.Option(
        metavar="CSV",
        help="The students as the LMS lists them: Canvas's exported gradebook, Moodle's grading "
        "worksheet, or a file with the columns id,student.",
    ),
]


@contextmanager
def _plain_errors() -> Iterator[None]:
    """End in one sentence and exit code 2 where a person must put something right."""
    try:
        yield
    except CourseError as error:
        typer.echo(f"autograde: {error}", err=True)
        raise typer.Exit(2) from None
    except OSError as error:  # a full disk, a folder that may not be written, a name too long
        where = f"{error.filename}: " if error.filename else ""
        text = f"autograde: {where}{error.strerror or error}. Nothing that was finished is lost: "
        typer.echo(text + "mend this, then run the same command again.", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        text = "autograde: stopped. Nothing that was finished is lost: the same command goes on."
        typer.echo(text, err=True)
        raise typer.Exit(130) from None


@app.command(epilog="Example: autograde build level2")
def build(
    levels: LevelsArgument = None,
    course: CourseOption = None,
) -> None:
    """Make notebooks/ and solutions/ from the masters in autograde/source/, and prove them.

    Nothing is written unless every test passes on the solution and fails on the untouched release,
    and no line of a solution or a hidden test is in the release.
    """
    with _plain_errors():
        found = find_course(course)
        names = [found.level(name) for name in levels or found.levels()]
        from autograde.build import build_level  # nbgrader takes seconds: not for a typing error

        for level in names:
            build_level(found, level, partial(console.print, level))


@app.command(epilog="Example: autograde bundle primer level1 level2")
def bundle(
    levels: LevelsArgument = None,
    course: CourseOption = None,
) -> None:
    """Write the ZIP file to give to students: notebooks, course_lib, how to install and begin.

    It holds no solution, no hidden test and nothing of the grader.
    """
    with _plain_errors():
        found = find_course(course)
        names = [found.level(name) for name in levels or found.levels()]
        from autograde.bundle import write_bundle  # nbgrader takes seconds: not for a typing error

        path = write_bundle(found, names)
        text = f"{path.relative_to(found.root)}: {', '.join(names)}"
        console.print(text, highlight=False, soft_wrap=True)


@app.command(epilog="Example: autograde demo --students 30")
def demo(
    students: Annotated[int, typer.Option(min=1, max=999, help="The size of the class.")] = 30,
    force: Annotated[
        bool, typer.Option("--force", help="Add it to a classroom that holds other submissions.")
    ] = False,
    course: CourseOption = None,
) -> None:
    """Make a sample class in classroom/submitted/, the same one every time.

    Right answers in several styles, one student for each known mistake, untouched, half done and
    broken submissions; classroom/demo.json says who is what.
    """
    from autograde.demo import make_class

    with _plain_errors():
        console.print(make_class(find_course(course), students, force))


@app.command(epilog="Example: autograde collect level2 submissions.zip --roster gradebook.csv")
def collect(
    level: Annotated[str, typer.Argument(metavar="LEVEL", help="The level, for example level2.")],
    archives: Annotated[
        list[Path],
        typer.Argument(metavar="ZIP...", help="What Canvas, Moodle or Gradescope gives out."),
    ],
    roster: RosterOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace newer and uncollected submissions too.")
    ] = False,
    course: CourseOption = None,
) -> None:
    """Put the notebooks in ZIP files into classroom/submitted/, one for each student.

    The newest counts; what it replaces is kept in classroom/replaced/. Exit code 1 if something
    was passed over.
    """
    from autograde.collect import Collected, open_batch, overview
    from autograde.placing import State
    from autograde.roster import read_roster

    with _plain_errors():
        found = find_course(course)
        listed = read_roster(roster) if roster else None
        collected: list[Collected] = []
        for archive in archives:
            with open_batch(found, found.level(level), archive, listed, force) as batch:
                quiet = not console.is_terminal
                collected += track(batch, escape(archive.name), console=console, disable=quiet)
        console.print(overview(collected))
        if any(one.state == State.PASSED_OVER for one in collected):
            raise typer.Exit(1)


@app.command(epilog="Example: autograde grade level2 -j 4")
def grade(
    level: Annotated[
        str, typer.Argument(metavar="LEVEL", help="The level to grade, for example level2.")
    ],
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds of computing that a cell or a call may take.")
    ] = 30,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Submissions graded side by side.")
    ] = os.cpu_count() or 1,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Grade on the Dask cluster there, not on this host."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Grade those anew that have not changed, too.")
    ] = False,
    budget: Annotated[
        float, typer.Option(min=0, metavar="MINUTES", help="Begin no submission after so long.")
    ] = float("inf"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the last line only.")] = False,
    unsafe: Annotated[
        bool,
        typer.Option("--unsafe-no-sandbox", help="Run student code as yourself, unconfined."),
    ] = False,
    gpu: Annotated[
        bool,
        typer.Option(
            "--gpu", help="Let student code reach NVIDIA GPUs; their driver is then trusted."
        ),
    ] = False,
    course: CourseOption = None,
) -> None:
    """Grade the submissions of a level in classroom/submitted/ that are new or have changed.

    Keeps a verdict for each in classroom/verdicts/, prints a table, writes a page and a CSV file to
    classroom/report/ and fills nbgrader's gradebook. Stop it at any time: the same command goes on.
    Exit code 0 if every submission is graded, 1 if a person must look at some, 2 if something must
    be put right first.
    """
    with _plain_errors():
        found = find_course(course)
        students = found.submitted_students(found.level(level))
        # nbgrader takes seconds: not for a typing error
        from autograde.assignment import load_assignment
        from autograde.classroom import ClassRun, alone, local_workers
        from autograde.cluster import cluster_workers
        from autograde.export import write_csv
        from autograde.gradebook import fill_gradebook
        from autograde.limits import Limits
        from autograde.marks import read_marks
        from autograde.progress import Watch, changes
        from autograde.report import write_report
        from autograde.worker import Rules

        rules = Rules(Limits(cpu_s=timeout, wall_s=3 * timeout), confine=not unsafe, gpu=gpu)
        workers = cluster_workers(scheduler) if scheduler else local_workers(jobs)
        with alone(found, level):
            with workers as (executor, width):
                assignment = load_assignment(found, level)
                run = ClassRun(
                    found, assignment, students, executor, width, rules, force, 60 * budget
                )
                rows = list(Watch(run, console, found.log(level), quiet).rows())
            verdicts = sorted((row.verdict for row in rows), key=lambda verdict: verdict.student)
            try:
                entered = [v for v in verdicts if v.student in set(students)]
                fill_gradebook(found, level, entered)
                marked = {m.student: m.verdict for m in read_marks(found, level, entered)}
                verdicts = [marked.get(verdict.student, verdict) for verdict in verdicts]
            finally:  # what was found out is shown also where the gradebook can't be written
                write_csv(verdicts, found.report(level))
                page = write_report(verdicts, found, level).relative_to(found.root)
                if not quiet:
                    console.print(table(verdicts, level))
                    for line in changes(rows):
                        text = f"changed: {line}"
                        console.print(text, markup=False, highlight=False, soft_wrap=True)
                unchanged = sum(not row.fresh for row in rows)
                line = summary(verdicts) + (f"; {unchanged} unchanged" if unchanged else "")
                console.print(f"{line}; {found.report(level).relative_to(found.root)}, {page}")
        if run.left:
            console.print(f"{len(run.left)} not begun, the time was up: the same command goes on.")
        if run.left or any(verdict.status != Status.GRADED for verdict in verdicts):
            raise typer.Exit(1)


@app.command(epilog="Example: autograde report level2")
def report(
    level: Annotated[
        str, typer.Argument(metavar="LEVEL", help="The level to report on, for example level2.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers as JSON, and write no page.")
    ] = False,
    course: CourseOption = None,
) -> None:
    """Write a page about a graded class, classroom/report/LEVEL.html, for any browser.

    Scores, how hard each item is and how well it discriminates, misconceptions, every student, and
    what needs a person, with the marks that persons have given since: nothing is graded again.
    """
    from autograde.marks import read_marks
    from autograde.report import write_report
    from autograde.statistics import class_statistics

    with _plain_errors():
        found = find_course(course)
        verdicts = [marks.verdict for marks in read_marks(found, found.level(level))]
        if as_json:
            typer.echo(json.dumps(asdict(class_statistics(verdicts, level)), indent=1))
        else:
            path = write_report(verdicts, found, level)
            console.print(f"{summary(verdicts)}; {path.relative_to(found.root)}")


@app.command(epilog="Example: autograde feedback level2")
def feedback(
    level: Annotated[str, typer.Argument(metavar="LEVEL", help="The level, for example level2.")],
    students: Annotated[
        list[str] | None,
        typer.Argument(metavar="STUDENT", help="Everybody with a verdict, if none is named."),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Write a page for each student to classroom/feedback/, where nbgrader releases it from.

    Points, messages, what refutes a misunderstanding, a person's marks and comments, and the
    student's own work; never a test. Write it again after marking by hand.
    """
    from autograde.feedback import write_feedback

    with _plain_errors():
        found = find_course(course)
        pages = write_feedback(found, found.level(level), students or [])
        written = list(track(pages, level, console=console, disable=not console.is_terminal))
        if missing := set(students or []) - {page.parent.parent.name for page in written}:
            raise CourseError(f"No verdict on {level} by {', '.join(sorted(missing))}.")
        folder = found.folder("feedback").relative_to(found.root)
        console.print(f"{len(written)} pages in {folder}", highlight=False)


@app.command(epilog="Example: autograde export level2 --format canvas --roster gradebook.csv")
def export(
    level: Annotated[
        str, typer.Argument(metavar="LEVEL", help="The level to export, for example level2.")
    ],
    form: Annotated[Format, typer.Option("--format", help="Who is to read it.")] = Format.CSV,
    roster: RosterOption = None,
    title: Annotated[
        str, typer.Option(help="What Canvas calls the level, if not by its name here.")
    ] = "",
    course: CourseOption = None,
) -> None:
    """Write the marks on a level, or the answers for a plagiarism check, to classroom/export/.

    With a person's marks and after the late penalty. Exit code 1 if somebody had to be left out.
    """
    from autograde.export import export as write
    from autograde.roster import read_roster

    with _plain_errors():
        found = find_course(course)
        listed = read_roster(roster) if roster else None
        path, left_out = write(found, found.level(level), form, listed, title)
        console.print(f"{path.relative_to(found.root)}", highlight=False)
        for line in left_out:
            console.print(f"left out: {line}", markup=False, highlight=False, soft_wrap=True)
        if left_out:
            raise typer.Exit(1)


@app.command(epilog="Example: autograde gradebook level2")
def gradebook(
    level: Annotated[
        str, typer.Argument(metavar="LEVEL", help="The level to enter, for example level2.")
    ],
    course: CourseOption = None,
) -> None:
    """Make a level's scores in nbgrader's gradebook anew from classroom/verdicts/.

    A person's marks and comments stay as they are.
    """
    from autograde.gradebook import fill_gradebook
    from autograde.store import kept_verdicts

    with _plain_errors():
        found = find_course(course)
        verdicts = kept_verdicts(found, found.level(level))
        fill_gradebook(found, level, verdicts)
        console.print(f"{len(verdicts)} verdicts on {level} are in the gradebook")


@app.command()
def doctor() -> None:
    """Say what this host offers for confining student code, and what is missing."""
    from autograde.host import doctor as features

    found = features()
    for feature in found:
        console.print("[green]ok[/]     " if feature.ok else "[red]missing[/]", end=" ")
        console.print(f"{feature.name}: {feature.detail}", markup=False, highlight=False)
    if not all(feature.ok for feature in found):
        raise typer.Exit(1)
