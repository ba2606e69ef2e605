"""What marks can be exported as; apart from how, which takes seconds to import."""

from enum import StrEnum


class Format(StrEnum):
    """A format of `autograde export`."""

    CSV = "csv"
    JSON = "json"
    CANVAS = "canvas"
    MOODLE = "moodle"
    GRADESCOPE = "gradescope"
    SOURCES = "sources"
