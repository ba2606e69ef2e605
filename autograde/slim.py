"""Read a submitted file without its saved outputs, which can be a thousand times the rest.

Outputs, attachments and widget state are cut out of the JSON text before anything parses it, by
regular expressions that run in C and look at each byte once, so that size and depth of what is cut
cost neither memory nor recursion.
"""

import mmap
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from autograde.files import open_no_link

MAX_FILE = 600_000_000  # bytes; a larger file is not read at all
MAX_TEXT = 8_000_000  # bytes beside what is cut; a course notebook has about 50,000
MAX_BRACKETS = 5_000_000  # in what is cut: about 3 seconds
LARGE = 5_000_000  # bytes; a larger file is cut while it is read

# Possessive (*+, ++): nothing is looked at twice, whatever the text.
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_NAME = rb'"(?:outputs|attachments|widgets)"\s*+:\s*+'
_KEY = re.compile(_NAME)
_UP_TO_KEY = re.compile(rb'(?:[^"]++|(?!' + _NAME + rb")" + _STRING + rb")*+", re.DOTALL)
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)
_SCALAR = re.compile(_STRING + rb'|[^",\[\]{}]*+', re.DOTALL)


class Unreadable(Exception):
    """Nothing in a submission can be graded; the message tells the student what to do."""


def read_submission(path: Path) -> bytes:
    """The bytes of a submitted file; those of a large notebook come without its outputs.

    A link, a folder, a pipe or a file of more than MAX_FILE bytes is not read: Unreadable.
    """
    try:
        stream = open(path, "rb", opener=open_no_link)  # noqa: SIM115 - Path has no opener
    except OSError as error:
        text = f"The file can't be opened ({error.strerror}); hand in the notebook file again."
        raise Unreadable(text) from None
    with stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("This is a pipe or a device; hand in the notebook file.")
        if status.st_size > MAX_FILE:
            raise Unreadable(
                f"The file has {status.st_size / 1e6:,.0f} MB, more than the {MAX_FILE / 1e6:g} MB "
                "that are read; clear all outputs, save, and hand it in again."
            )
        if status.st_size <= LARGE:
            return stream.read(LARGE)
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
            # these two are for the decoder to put right first, which needs all of it
            whole = b"\0" in view[:4] or view[:2] in (b"\xff\xfe", b"\xfe\xff")
            return view[:] if whole or view.find(b"\n<<<<<<<") >= 0 else without_outputs(view)


def without_outputs(data: bytes | mmap.mmap) -> bytes:
    """JSON text with `null` for every value of a key that a grader has no use for.

    The text need not be valid: what a damaged one holds after the damage stays as it is. Raises
    Unreadable if more than MAX_TEXT bytes would be left, or what is cut is a maze of brackets.

    >>> without_outputs(b'{"outputs": [{"text": "]"}], "source": "\\\\"outputs\\\\": [1]"}')
    b'{"outputs": null, "source": "\\\\"outputs\\\\": [1]"}'
    """
    kept: list[bytes] = []
    size = start = 0
    brackets = iter(range(MAX_BRACKETS))
    while start < len(data):
        found = _UP_TO_KEY.match(data, start)
        key = _KEY.match(data, found.end()) if found else None
        end = key.end() if key else len(data)
        size += end - start
        if size > MAX_TEXT:
            raise Unreadable(
                f"The file has more than {MAX_TEXT / 1e6:g} MB beside its outputs, "
                "far more than a notebook; hand in the notebook you were given, with your answers."
            )
        kept.append(data[start:end] + (b"null" if key else b""))
        start = _end_of_value(data, end, brackets) if key else end
    return b"".join(kept)


def _end_of_value(data: bytes | mmap.mmap, start: int, brackets: Iterator[int]) -> int:
    """Where the JSON value that begins at `start` ends; the end of the data if it never does."""
    if data[start : start + 1] not in (b"[", b"{"):
        scalar = _SCALAR.match(data, start)
        return scalar.end() if scalar else len(data)
    depth = 0
    for _ in brackets:
        bracket = _UP_TO_BRACKET.match(data, start)
        if bracket is None:
            return len(data)
        start = bracket.end()
        depth += 1 if bracket[1] in b"[{" else -1
        if depth == 0:
            return start
    raise Unreadable("The outputs of the file can't be read; clear them, save, hand it in again.")
