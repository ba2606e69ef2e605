"""Late submissions: when one was handed in, and what nbgrader's plugin takes off for it.

The time is that of timestamp.txt beside the notebook, as `autograde collect` and nbgrader's
exchange write it. The plugin is c.AssignLatePenalties.plugin_class, as in nbgrader.
"""

import sys
from datetime import datetime
from pathlib import Path

from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc

from autograde.course import Course, CourseError
from autograde.files import open_no_link

TIMESTAMP = "timestamp.txt"
MAX_LENGTH = 100  # bytes of a timestamp; nbgrader's have 30


def as_timestamp(time: datetime) -> str:
    """A time in UTC as nbgrader writes it.

    >>> as_timestamp(datetime(2026, 12, 1, 17))
    '2026-12-01 17:00:00.000000 UTC'
    """
    return f"{time:%Y-%m-%d %H:%M:%S.%f} UTC"


def submitted_at(folder: Path) -> datetime | None:
    """When the submission in a folder was handed in, in UTC; None if that is not known."""
    try:
        with open(folder / TIMESTAMP, "rb", opener=open_no_link) as file:
            text = file.read(MAX_LENGTH).decode().strip()
        time: datetime | None = parse_utc(text) if text else None
        return time
    except (OSError, ValueError, OverflowError):  # a damaged one counts as in time
        return None


class LatePolicy:
    """nbgrader's plugin for late submissions, as the course configures it."""

    def __init__(self, course: Course) -> None:
        sys.path.insert(0, str(course.root))  # as nbgrader does, for a plugin called by its name
        try:
            preprocessor = AssignLatePenalties(config=course.config)
        finally:
            sys.path.remove(str(course.root))
        preprocessor.init_plugin()
        self.plugin = preprocessor.plugin_inst

    def penalty(self, student: str, score: float, seconds_late: float) -> float | None:
        """What is taken off a score, between nothing and all of it; None if nothing is said."""
        if seconds_late <= 0:
            return None
        try:
            penalty = self.plugin.late_submission_penalty(student, score, seconds_late)
        except Exception as error:  # the instructor's own code
            raise CourseError(
                f"{type(self.plugin).__name__}, the plugin for late submissions, failed for "
                f"{student}: {type(error).__name__}: {error}."
            ) from error
        return None if penalty is None else min(max(float(penalty), 0.0), score)
