"""A class on a Dask cluster: the same call, the same verdicts."""

import shutil

import pytest
from clusters import dask_cluster
from gradebook_rows import rows
from tiny_course import autograde

from autograde.course import find_course
from autograde.store import kept_verdicts


@pytest.fixture
def ungraded(graded, tmp_path):
    """The class that other tests graded on this host, to be graded anew."""
    shutil.copytree(graded, tmp_path / "course")
    course = find_course(tmp_path / "course")
    shutil.rmtree(course.verdict("tiny", "any").parent)
    (course.classroom / "gradebook.db").unlink()
    return course


def test_a_cluster_gives_the_same_verdicts_and_gradebook(ungraded, graded, tmp_path):
    with dask_cluster(tmp_path) as address:
        words = ("grade", "tiny", "--timeout", "2", "--scheduler", address)
        done = autograde(*words, cwd=ungraded.root)
    assert (done.returncode, done.stderr) == (1, "")
    there = find_course(graded)
    assert kept_verdicts(ungraded, "tiny") == kept_verdicts(there, "tiny")
    books = [course.classroom / "gradebook.db" for course in (ungraded, there)]
    assert rows(books[0]) == rows(books[1])
    again = autograde("grade", "tiny", "--timeout", "2", cwd=ungraded.root)
    assert "17 unchanged" in " ".join(again.stdout.split())


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("tcp://127.0.0.1:9", "There is no Dask scheduler at tcp://127.0.0.1:9"),
        ("10.0.0.1", "'10.0.0.1' is no scheduler's address"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_one_sentence(ungraded, address, problem):
    done = autograde("grade", "tiny", "--scheduler", address, cwd=ungraded.root)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert problem in sentence


def test_a_cluster_without_workers_is_one_sentence(ungraded, tmp_path):
    with dask_cluster(tmp_path, workers=0) as address:
        done = autograde("grade", "tiny", "--scheduler", address, cwd=ungraded.root)
    assert done.returncode == 2
    assert done.stderr == (
        f"autograde: {address} has no workers: start one with `dask worker {address}`.\n"
    )
