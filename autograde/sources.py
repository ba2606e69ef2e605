"""Students' answers as Python files, for programs that look for plagiarism.

Beside them stands the code that everybody was given, so that it does not count as likeness:

    students/STUDENT/level2.py   the answers of one student, and code cells of their own
    base/level2.py               the answer cells as they were given out
"""

from collections.abc import Iterator

from nbformat import NotebookNode

from autograde.course import Course
from autograde.master import settings
from autograde.notebook import read_notebook
from autograde.store import kept_verdicts


def source_files(course: Course, level: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each file. Raises CourseError if nothing has been graded.

    The notebooks are those that grading left in classroom/graded/, repaired and in order.
    """
    yield f"base/{level}.py", _code(read_notebook(course.notebook("release", level)))
    for verdict in kept_verdicts(course, level):
        path = course.notebook("autograded", level, verdict.student)
        if path.is_file():
            yield f"students/{verdict.student}/{level}.py", _code(read_notebook(path))


def _code(notebook: NotebookNode) -> str:
    """The answers in code, and what a student added; under the name of each cell."""
    cells = [
        f"# {cell.id}\n{cell.source.rstrip()}\n"
        for cell in notebook.cells
        if cell.cell_type == "code"
        and (settings(cell).get("solution") or cell.id.startswith("student-"))
    ]
    return "\n\n".join(cells)
