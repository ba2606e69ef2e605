"""The gradebook in PostgreSQL, against a server of our own where one is installed."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from gradebook_rows import rows
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, text
from test_gradebook import VERDICTS, mark_by_hand, write_as_nbgrader_does
from tiny_course import autograde

from autograde.course import Course, CourseError, find_course, is_storable
from autograde.files import write_whole
from autograde.gradebook import Scores, enter_level, fill_gradebook
from autograde.marks import read_marks
from autograde.master import cells_by_id
from autograde.notebook import read_notebook, write_notebook

PASSWORD = "correct-horse-battery"
NUMBERS = count()


def program(name: str) -> str | None:
    """A program of PostgreSQL's, where Debian hides it too."""
    places = [os.environ["PATH"], *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    return shutil.which(name, path=os.pathsep.join(places))


def other_user() -> dict[str, object]:
    """For root, whom PostgreSQL refuses: somebody else to run it as."""
    if os.geteuid() != 0:
        return {}
    names = {user.pw_name for user in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in names else "nobody", "extra_groups": []}


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The folder of the socket of a private server, with the user `grader`."""
    initdb, postgres, ctl = map(program, ("initdb", "postgres", "pg_ctl"))
    if not (initdb and postgres and ctl):
        pytest.skip("needs PostgreSQL: initdb, postgres and pg_ctl are not installed")
    pytest.importorskip("psycopg", reason="needs the extra `postgres`")
    user = other_user()
    with tempfile.TemporaryDirectory(prefix="pg-") as name:  # a socket's path must be short
        folder = Path(name)
        if user:
            shutil.chown(folder, str(user["user"]))
        secret, data = folder / "secret", folder / "data"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)

        def run(*words: str | Path) -> None:
            done = subprocess.run(
                [str(word) for word in words], **user, cwd=folder, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr

        run(initdb, "-D", data, "-U", "grader", "-A", "scram-sha-256", f"--pwfile={secret}",
            "-E", "UTF8", "--no-locale", "--no-sync")  # fmt: skip
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run(ctl, "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
        try:
            yield folder
        finally:
            run(ctl, "-D", data, "-m", "immediate", "-w", "stop")


@pytest.fixture
def course(server: Path, built_once: Path, tmp_path: Path) -> Course:
    """A tiny course whose gradebook is a new database of the server's."""
    database = f"db{next(NUMBERS)}"
    url = f"postgresql+psycopg://grader:{PASSWORD}@/{{}}?host={server}"
    engine = create_engine(url.format("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as db:
        db.execute(text(f"create database {database}"))
    engine.dispose()
    root = tmp_path / "in_postgres"
    shutil.copytree(built_once, root)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(f"\nc.CourseDirectory.db_url = {url.format(database)!r}\n")
    return find_course(root)


@pytest.fixture
def entered(course: Course) -> Course:
    """That course with its level in the gradebook."""
    enter_level(course, "tiny")
    return course


def test_the_rows_are_those_of_nbgraders_own_calls_at_first_and_again(entered, built):
    enter_level(built, "tiny")
    for _ in range(2):
        with Scores(entered, "tiny") as scores:
            for verdict in VERDICTS:
                scores.write(verdict)
        for verdict in VERDICTS:
            write_as_nbgrader_does(built, verdict)
        mine = rows(entered.nbgrader.db_url)
        assert mine == rows(built.classroom / "gradebook.db")
        for each in (entered, built):
            mark_by_hand(each, "ada")
    assert ("ada", "T_words", "GradeCell", None, 0.5, None, True) in mine["grade"]


def test_late_penalties_and_marks_are_read_from_it(entered):
    with (entered.root / "nbgrader_config.py").open("a") as file:
        file.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    course = find_course(entered.root)
    with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as book:
        book.update_or_create_assignment("tiny", duedate="2026-12-01 17:00 UTC")
    late = course.folder("submitted", "ada", "tiny") / "timestamp.txt"
    write_whole("2026-12-01 18:00:00.000000 UTC", late)
    for verdict in VERDICTS:
        write_whole(verdict.to_json(), course.verdict("tiny", verdict.student))
    with Scores(course, "tiny") as scores:
        for verdict in VERDICTS:
            scores.write(verdict)
    ada, blank, lost = read_marks(course, "tiny")
    assert (ada.points, ada.penalty, ada.final) == (2, 2, None)  # T_words awaits a person
    assert (blank.points, blank.penalty, blank.final) == (0, 0, 0)
    assert lost.missing == "The file is empty."
    mark_by_hand(course, "ada")
    assert read_marks(course, "tiny")[0].final == 0


def test_the_longest_names_that_are_graded_fit(entered):
    names = [letter * 128 for letter in ("a", "ü")]
    assert [is_storable(name) for name in names] == [True, False]
    with Scores(entered, "tiny") as scores:
        scores.write(replace(VERDICTS[0], student=names[0]))
    assert [row[0] for row in rows(entered.nbgrader.db_url)["student"]] == names[:1]
    assert not is_storable("a" * 129)


def test_the_whole_command_grades_into_it_and_says_the_password_to_nobody(course, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    spy = "import os\nopen('/proc/self/environ').read()\nprint(dict(os.environ))\nchoices = 8"
    notebook = read_notebook(course.notebook("release", "tiny"))
    cells_by_id(notebook)["T_choices"].source = spy
    write_notebook(notebook, course.notebook("submitted", "tiny", "spy"))
    done = autograde("grade", "tiny", "--timeout", "5", cwd=course.root)
    assert (done.returncode, done.stderr) == (0, "")
    (spied,) = (row for row in rows(course.nbgrader.db_url)["grade"] if row[1] == "test_T_choices")
    assert spied[0] == "spy"
    written = [path for path in course.classroom.rglob("*") if path.is_file()]
    assert course.notebook("autograded", "tiny", "spy") in written
    assert not [path for path in written if PASSWORD.encode() in path.read_bytes()]
    assert PASSWORD not in done.stdout


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url: url.replace("grader:", "nobody:"), "authentication failed"),
        (lambda url: url.replace("/db", "/other"), "does not exist"),
        (lambda url: url.split("?")[0] + "?host=/nowhere", "connection"),
        (lambda url: url.replace("+psycopg", "+psycopg9"), r"run `pip install.*\[postgres\]"),
        (lambda url: url.replace("://", ":"), "db_url in nbgrader_config.py can't be used"),
    ],
    ids=["user", "database", "server", "driver", "URL"],
)
def test_a_server_that_refuses_is_one_sentence_without_the_password(course, change, reason):
    course.config.CourseDirectory.db_url = change(course.nbgrader.db_url)
    with pytest.raises(CourseError, match=reason) as error:
        fill_gradebook(replace(course), "tiny", VERDICTS)  # that has not read its settings yet
    assert "\n" not in str(error.value)
    assert PASSWORD not in str(error.value)
