"""Verdicts, kept in a file each: the truth that gradebook, reports and exports are made from."""

from autograde.course import Course, CourseError
from autograde.files import write_whole
from autograde.verdict import Verdict


def keep(course: Course, verdict: Verdict, notebook: str | None = None) -> None:
    """Keep a verdict, and the notebook as it ran, as text; each file appears whole or not at all.

    The verdict comes last: where there is one, what belongs to it is there too.
    """
    path = course.notebook("autograded", verdict.level, verdict.student)
    if notebook is None:
        path.unlink(missing_ok=True)
    else:
        write_whole(notebook, path)
    write_whole(verdict.to_json(), course.verdict(verdict.level, verdict.student))


def kept_verdict(course: Course, level: str, student: str) -> Verdict | None:
    """The verdict that was kept on a student; None if there is none, or only a damaged one."""
    try:
        return Verdict.from_json(course.verdict(level, student).read_text("utf-8"))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def kept_verdicts(course: Course, level: str) -> list[Verdict]:
    """The verdicts that were kept on a level, by student. Raises CourseError if there are none."""
    paths = sorted(course.verdict(level, "any").parent.glob("*.json"))
    if not paths:
        raise CourseError(
            f"No submission of {level} has been graded: run `autograde grade {level}`."
        )
    verdicts = []
    for path in paths:
        try:
            verdicts.append(Verdict.from_json(path.read_text("utf-8")))
        except (ValueError, TypeError, KeyError):
            raise CourseError(f"{path} is damaged: run `autograde grade {level}` again.") from None
    return verdicts
