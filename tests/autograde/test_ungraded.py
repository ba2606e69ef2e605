"""A level without points, such as the primer, is built, and never graded."""

import pytest
from tiny_course import autograde, make_course

from autograde.build import build_level
from autograde.course import CourseError
from autograde.demo import make_class
from autograde.notebook import last_error, read_notebook

PRIMER = """# %% answer="P_guess"
guess = (
    ### BEGIN SOLUTION
    6 * 7
    ### END SOLUTION
)

# %% locked="P_run"
print("you said", guess)
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = make_course(tmp_path_factory.mktemp("course"))
    (course.masters / "primer.py").write_text(PRIMER, "utf-8")
    build_level(course, "primer", lambda step: None)
    return course


def test_it_is_released_with_a_stub_and_solved_with_an_answer(course):
    release = read_notebook(course.notebook("release", "primer"))
    assert "6 * 7" not in release.cells[0].source
    assert "..." in release.cells[0].source
    solution = read_notebook(course.notebook("solution", "primer"))
    assert not any(last_error(cell) for cell in solution.cells)
    assert solution.cells[1].outputs[0].text == "you said 42\n"


def test_there_is_nothing_to_grade_in_it(course):
    done = autograde("grade", "primer", cwd=course.root)
    assert done.returncode == 2
    assert done.stderr == "autograde: There is nothing to grade in primer: it has no points.\n"


def test_a_sample_class_does_not_hand_it_in(course):
    with pytest.raises(CourseError, match="No level has been built"):
        make_class(course, 3, force=False)
