"""The command: help, and one clear sentence where something must be put right."""

import shutil

import pytest
from tiny_course import autograde

from autograde.host import doctor


@pytest.mark.parametrize(
    "command", ["build", "collect", "demo", "export", "grade", "gradebook", "report"]
)
def test_help_explains_each_command_with_an_example(command, tmp_path):
    done = autograde(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"Example: autograde {command}" in done.stdout
    assert "--course" in done.stdout


def test_help_lists_the_commands_and_the_exit_codes(tmp_path):
    done = autograde("--help", cwd=tmp_path)
    assert all(
        command in done.stdout for command in ("build", "demo", "grade", "gradebook", "Exit codes")
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["build", "level9"], "There is no level 'level9'; this course has tiny."),
        (["grade", "level9"], "There is no level 'level9'; this course has tiny."),
        (["grade", "../tiny"], "There is no level '../tiny'"),
        (["grade", "tiny"], "There is no folder"),
        (["grade", "tiny", "--course", "nowhere"], "nowhere is no course"),
        (["demo", "--students", "0"], "Invalid value for '--students'"),
        (["grade", "tiny", "--timeout", "soon"], "Invalid value for '--timeout'"),
        (["grade"], "Missing argument 'LEVEL'"),
        (["garde"], "No such command 'garde'"),
    ],
)
def test_a_bad_argument_ends_in_one_sentence_and_exit_code_2(built, words, sentence):
    done = autograde(*words, cwd=built.root)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stdout == ""


def test_an_empty_class_says_how_to_fill_it(built):
    built.folder("submitted").mkdir(parents=True)
    done = autograde("grade", "tiny", cwd=built.root)
    assert done.returncode == 2
    assert "Nobody has submitted tiny" in done.stderr
    assert "autograde demo" in done.stderr


def test_a_course_that_was_not_built_says_so(built):
    shutil.rmtree(built.root / "build")
    built.folder("submitted", "ada", "tiny").mkdir(parents=True)
    done = autograde("grade", "tiny", cwd=built.root)
    assert done.returncode == 2
    assert "run `autograde build tiny` first" in done.stderr


def test_a_level_whose_master_has_changed_must_be_built_again(built):
    with (built.masters / "tiny.py").open("a", encoding="utf-8") as file:
        file.write("\n# %% [markdown]\n# One more thing.\n")
    built.folder("submitted", "ada", "tiny").mkdir(parents=True)
    done = autograde("grade", "tiny", cwd=built.root)
    assert done.returncode == 2
    assert "The master of tiny has changed: run `autograde build tiny` first." in done.stderr
    assert not list(built.classroom.rglob("*.json"))


def test_what_was_graded_without_a_sandbox_says_so_on_every_output(built):
    student = "ada"
    handed_in = built.notebook("submitted", "tiny", student)
    handed_in.parent.mkdir(parents=True)
    shutil.copy(built.notebook("release", "tiny"), handed_in)
    done = autograde("grade", "tiny", "--unsafe-no-sandbox", cwd=built.root)
    assert done.returncode == 0  # nothing answered: nothing to mark by hand
    assert done.stdout.count("WITHOUT") == 2  # below the table, in the summary
    report = built.report("tiny").read_text("utf-8").splitlines()
    assert all(row.endswith('"no"') for row in report[1:])
    assert '"confined": false' in built.verdict("tiny", student).read_text("utf-8")
    assert '"confined": false' in built.notebook("autograded", "tiny", student).read_text("utf-8")


def test_the_doctor_names_every_layer_and_its_exit_code_says_if_one_is_missing(tmp_path):
    done = autograde("doctor", cwd=tmp_path)
    assert [line.split(":")[0].split()[-1] for line in done.stdout.splitlines()] == [
        feature.name for feature in doctor()
    ]
    assert done.returncode == (0 if all(feature.ok for feature in doctor()) else 1)


def test_outside_a_course_the_command_says_how_to_name_one(tmp_path):
    done = autograde("build", cwd=tmp_path)
    assert done.returncode == 2
    assert "--course DIR" in done.stderr


def test_the_course_is_found_from_a_folder_inside_it_and_from_outside(built, tmp_path):
    inside = autograde("demo", "--students", "2", cwd=built.root / "notebooks")
    outside = autograde("demo", "--students", "2", "--course", built.root, cwd=tmp_path)
    assert (inside.returncode, outside.returncode) == (0, 0)
    assert inside.stdout == outside.stdout != ""


def test_a_broken_master_is_explained_in_words(built):
    master = built.masters / "tiny.py"
    master.write_text(master.read_text().replace("2 ** 3", "2 ** 4"))
    done = autograde("build", cwd=built.root)
    assert done.returncode == 2
    assert "test_T_choices gives the reference 0 of 2 points" in done.stderr
    assert "three bits are eight choices" in done.stderr
