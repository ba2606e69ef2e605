"""Ours against stock `nbgrader autograde`, from the cold start of each command."""

import shutil
import statistics
from pathlib import Path

from classes import LEVEL, a_class, ran

SIZE, ROUNDS = 200, 3
FEW, MORE = 3, 9  # submissions for stock in a round: the difference is what one costs
CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "stock"
c.CourseDirectory.root = {root!r}
c.ExecutePreprocessor.timeout = 60
c.IncludeHeaderFooter.enabled = False
"""


def stock_course(root: Path, ours: Path) -> None:
    """The same level and submissions in a course that knows nothing of this project."""
    root.mkdir()
    (root / "nbgrader_config.py").write_text(CONFIG.format(root=str(root)), "utf-8")
    shutil.copytree(ours / "build" / "source", root / "source")
    shutil.copytree(ours / "classroom" / "submitted", root / "submitted")
    ran("nbgrader", "generate_assignment", LEVEL, cwd=root, codes=(0,))


def stock_seconds(root: Path, students: int) -> float:
    """How long nbgrader takes for the first so many students."""
    everybody = root / "everybody"
    if not everybody.exists():
        (root / "submitted").rename(everybody)
    shutil.rmtree(root / "submitted", ignore_errors=True)
    for folder in sorted(everybody.iterdir())[:students]:
        shutil.copytree(folder, root / "submitted" / folder.name)
    return ran("nbgrader", "autograde", LEVEL, "--force", cwd=root, codes=(0,)).seconds


def report() -> str:
    """The table as Markdown."""
    ours, few, more = [], [], []
    with a_class(SIZE) as course:
        stock = course.root / "stock"
        stock_course(stock, course.root)
        for _ in range(ROUNDS):  # interleaved: all see the same weather
            few.append(stock_seconds(stock, FEW))
            ours.append(ran("autograde", "grade", LEVEL, "--force", cwd=course.root).seconds)
            more.append(stock_seconds(stock, MORE))
    one = (statistics.median(more) - statistics.median(few)) / (MORE - FEW)
    theirs = statistics.median(few) + (SIZE - FEW) * one
    mine = statistics.median(ours)
    return f"""| {SIZE} submissions of Level 2 | seconds | a submission, s |
|---|---|---|
| `autograde grade`, sandbox and judge on | {mine:.1f} | {mine / SIZE:.3f} |
| `nbgrader autograde` | {theirs:.0f} | {theirs / SIZE:.2f} |

Ours takes 1/{theirs / mine:.0f} of the time; each from the cold start of its command, median of
{ROUNDS} runs. nbgrader graded {FEW} and {MORE} submissions in each round, so {one:.2f} s for
one more; its time for {SIZE} is reckoned from that."""
