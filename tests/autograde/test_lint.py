"""The rules of a master."""

import pytest

from autograde.course import CourseError
from autograde.lint import lint_master, student_names
from autograde.master import cells_by_id, items, read_answers, read_master, settings

ANSWER = """
# %% answer="A"
def f(x):
    ### BEGIN SOLUTION
    return x
    ### END SOLUTION
"""


def problems(tmp_path, test, answer=ANSWER, header='test="A" points=1'):
    master = tmp_path / "level.py"
    master.write_text(f"{answer}\n# %% {header}\n{test}\n", "utf-8")
    return lint_master(read_master(master))


@pytest.mark.parametrize(
    "test",
    [
        "assert f(1) == 1",
        "from math import isclose\nassert isclose(f(1.0), 1.0)",
        "def twice(x):\n    return f(x) + x\nassert twice(1) == 2",
        "total = sum(f(x) for x in range(3))\nassert total == 3, f'{total=}'",
        "try:\n    f(1, 2)\nexcept TypeError as error:\n    message = str(error)",
        "assert [x for x in map(f, [1])] == [1]",
        "f",
    ],
)
def test_a_test_cell_may_use_its_own_names_builtins_and_answers(tmp_path, test):
    assert problems(tmp_path, test) == []


@pytest.mark.parametrize(
    ("test", "line", "words"),
    [
        ("assert isclose(f(1), 1)", 1, "'isclose' is neither imported"),
        ("x = 1\nassert f(helper) == x", 2, "'helper' is neither imported"),
        ("def g():\n    return hidden_state\ng()", 2, "'hidden_state' is neither imported"),
        ("x = 1\nassert f.__code__", 2, "'f.__code__' looks inside"),
        ("get_ipython()", 1, "'get_ipython' is neither imported"),
        ("assert In[-1]", 1, "'In' is neither imported"),
        ("globals()", 1, "'globals' is neither imported"),
        ("eval('f(1)')", 1, "'eval' is neither imported"),
        ("import inspect\ninspect.getsource(f)", 1, "'inspect' looks into"),
        ("from gc import get_objects", 1, "'gc' looks into"),
        ("f = abs\nassert f(1) == 1", 1, "'f' is the student's name"),
        ("def f(x):\n    return x", 1, "'f' is the student's name"),
        ("assert f(", 1, "plain Python"),
    ],
)
def test_a_test_cell_that_reaches_elsewhere_is_named_with_its_line(tmp_path, test, line, words):
    found = problems(tmp_path, test)
    assert len(found) == 1, found
    assert found[0].startswith(f"test_A, line {line}: ")
    assert words in found[0]


def test_magics_are_no_test(tmp_path):
    assert "without magics" in problems(tmp_path, "%timeit f(1)")[0]


def test_a_name_that_an_answer_only_imports_is_not_an_answer():
    assert student_names("import math\nfrom os import path as p\nx = math.pi") == {"x"}


@pytest.mark.parametrize(
    ("header", "answer", "words"),
    [
        ('test="B" points=1', ANSWER, "no answer cell 'B' before it"),
        ('test="A" points=1', ANSWER + ANSWER.replace('"A"', '"B"'), "no cell tests it"),
        ('locked="A"', ANSWER, "two cells have this name"),
        ('test="A" points=1', '\n# %% answer="A"\nf = ...\n', "no ### BEGIN SOLUTION"),
        ('test="A" points=1', '\n# %% answer="A"\nf = (\n', "correct it"),
    ],
)
def test_cells_that_do_not_fit_together_are_named(tmp_path, header, answer, words):
    assert any(words in problem for problem in problems(tmp_path, "pass", answer, header))


def test_an_answer_needs_no_test_where_nothing_has_points(tmp_path):
    assert problems(tmp_path, "f(1)", header='locked="C"') == []


def test_a_misconception_that_the_catalogue_lacks_is_named(tmp_path):
    test = 'from course_lib.teaching.check import demand\ndemand(f(1) == 1, "{}: No.")'
    assert problems(tmp_path, test.format("M6")) == []
    (problem,) = problems(tmp_path, test.format("M99"))
    assert "line 2: M99 is no misconception" in problem


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ('test="A"', "points=None"),
        ('test="A" points=0', "points=0"),
        ('test="A" points="many"', "points='many'"),
        ('test="A" locked="A" points=1', "both test and locked"),
        ('written="A" points=1', "make it markdown"),
        ('[markdown] answer="B"', "make it code"),
    ],
)
def test_a_header_that_makes_no_sense_is_an_error(tmp_path, header, words):
    with pytest.raises(CourseError, match=words):
        problems(tmp_path, "pass", header=header)


def test_a_test_may_look_at_one_more_side_of_an_answer(tmp_path):
    master = tmp_path / "level.py"
    cells = '# %% test="A" points=2\npass\n# %% test="A__side" points=1\npass\n'
    master.write_text(f"{ANSWER}\n{cells}", "utf-8")
    notebook = read_master(master)
    assert lint_master(notebook) == []
    assert [(i.name, i.answer, i.graded, i.points) for i in items(notebook)] == [
        ("A", "A", "test_A", 2),
        ("A__side", "A", "test_A__side", 1),
    ]


def test_the_same_master_gives_the_same_ids(tmp_path):
    master = tmp_path / "level.py"
    master.write_text(f'# %% [markdown]\n# Hello\n{ANSWER}\n# %% test="A" points=1\npass\n')
    first, second = read_master(master), read_master(master)
    assert first == second
    assert [cell.id for cell in first.cells] == ["markdown-000", "A", "test_A"]
    assert settings(cells_by_id(first)["test_A"])["schema_version"] == 3


@pytest.mark.parametrize(
    "header", ['mutant="m"', 'style="s" mutant="m" message="x"', 'message="x"']
)
def test_an_answer_is_either_a_style_or_a_mutant_with_its_message(tmp_path, header):
    path = tmp_path / "level_answers.py"
    path.write_text(f'# %% answer="A" {header}\npass\n')
    with pytest.raises(CourseError, match="answer to A needs either"):
        read_answers(path)
