"""The students' ZIP file: installed and worked with as they do, and nothing in it is secret."""

import hashlib
import subprocess
import sys
import zipfile

import pytest
from conftest import once
from tiny_course import REPOSITORY, autograde

from autograde.course import find_course
from autograde.master import read_master, secret_lines
from autograde.notebook import read_notebook, write_notebook

LEVELS = ("primer", "level1")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The real course's primer and first level, as they were built."""

    def make(root):
        (root / "autograde" / "source").mkdir(parents=True)
        (root / "nbgrader_config.py").write_bytes((REPOSITORY / "nbgrader_config.py").read_bytes())
        ours, theirs = find_course(REPOSITORY), find_course(root)
        for level in LEVELS:
            master = ours.masters / f"{level}.py"
            (theirs.masters / master.name).write_bytes(master.read_bytes())
            write_notebook(read_master(master), theirs.notebook("source", level))
            release = read_notebook(ours.notebook("release", level))
            write_notebook(release, theirs.notebook("release", level))
        done = autograde("bundle", cwd=root)
        assert done.returncode == 0, done.stderr

    return find_course(once(tmp_path_factory, "bundled", make))


@pytest.fixture(scope="module")
def bundle(course):
    return course.classroom / "bundle" / "pretraining-objectives.zip"


def test_it_holds_what_a_student_needs_and_no_more(bundle):
    with zipfile.ZipFile(bundle) as archive:
        names = {name.removeprefix("pretraining-objectives/") for name in archive.namelist()}
    beside = {"README.md", "LICENSE", "environment.yml", "pyproject.toml"}
    notebooks = {f"notebooks/{level}/{level}.ipynb" for level in LEVELS}
    assert names >= beside | notebooks
    assert all(name.startswith("course_lib/") for name in names - beside - notebooks)


def test_it_tells_no_secret(course, bundle):
    with zipfile.ZipFile(bundle) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist()]
    notebooks = "\n".join(text for text in texts if '"cells"' in text).replace('\\"', '"')
    for level in LEVELS:
        cells = read_master(course.masters / f"{level}.py").cells
        parts = [secret_lines(cell.source, ("HIDDEN TESTS", "MARK SCHEME")) for cell in cells]
        hidden, shown = ({line for part in parts for line in part[side]} for side in (0, 1))
        secret = [line for line in hidden - shown if len(line) > 40]
        assert (level == "primer") == (not secret)
        assert not [line for line in secret if line in notebooks]
    assert not any("### BEGIN" in text for text in texts)


def test_the_same_course_gives_the_same_bytes(course, bundle):
    before = hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert autograde("bundle", cwd=course.root).returncode == 0
    assert hashlib.sha256(bundle.read_bytes()).hexdigest() == before


def test_levels_can_be_given_out_one_by_one(course, bundle):
    done = autograde("bundle", "level1", cwd=course.root)
    assert done.stdout == "classroom/bundle/pretraining-objectives.zip: level1\n"
    with zipfile.ZipFile(bundle) as archive:
        given = [name for name in archive.namelist() if name.endswith(".ipynb")]
    assert given == ["pretraining-objectives/notebooks/level1/level1.ipynb"]
    assert autograde("bundle", cwd=course.root).returncode == 0


def test_a_level_that_was_not_built_is_not_given_out(built):
    master = built.masters / "tiny.py"
    master.write_text(master.read_text("utf-8") + "\n# %% [markdown]\n# More.\n", "utf-8")
    done = autograde("bundle", cwd=built.root)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run `autograde build tiny` first" in done.stderr
    assert not (built.classroom / "bundle").exists()


def test_a_student_installs_it_and_it_runs(bundle, tmp_path):
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    root, python = tmp_path / "pretraining-objectives", tmp_path / "venv" / "bin" / "python"

    def run(*words, folder=root):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "venv", tmp_path / "venv")
    # the versions of the lock: a test is no place to meet this morning's releases
    lock = REPOSITORY / "requirements.lock"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", lock, ".")
    execute = [python.with_name("jupyter"), "nbconvert", "--to", "notebook", "--execute"]
    for level in LEVELS:  # as they are when every prediction and answer is written
        run(*execute, "--output-dir", tmp_path, REPOSITORY / "solutions" / level / f"{level}.ipynb")
    run(python.with_name("jupyter"), "lab", "--version")
    work = root / "notebooks" / "level1"
    said = run(python.with_name("nbgrader"), "validate", "level1.ipynb", folder=work)
    assert "not attempted yet" in said
    missing = subprocess.run([python, "-c", "import autograde"], cwd=tmp_path)
    assert missing.returncode == 1
