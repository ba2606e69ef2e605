"""ZIP files as learning management systems make them, and as nobody should."""

import time
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

DOWNLOADED = datetime(2026, 12, 5, 10)  # UTC: when the LMS made the ZIP
NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5, "by": "%s"}'


def notebook(who: str) -> str:
    """Something that stands for a notebook of theirs."""
    return NOTEBOOK % who


def entry(name: str, when: datetime = DOWNLOADED, mode: int = 0o100644) -> zipfile.ZipInfo:
    """An entry changed at a time in UTC, which a ZIP has by the local clock."""
    local = time.localtime(when.replace(tzinfo=UTC).timestamp())
    info = zipfile.ZipInfo(name, local[:6])
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def make_zip(
    path: Path, files: dict[str, str] | Iterable[tuple[str | zipfile.ZipInfo, str | bytes]]
) -> Path:
    """A ZIP file of these entries, in order."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items() if isinstance(files, dict) else files:
            archive.writestr(name if isinstance(name, zipfile.ZipInfo) else entry(name), text)
    return path


def canvas(person: int, file: int, name: str, late: bool = False, rest: str = "tiny.ipynb") -> str:
    """The name that Canvas gives a submitted file."""
    return f"{name}_{'LATE_' if late else ''}{person}_{file}_{rest}"


def moodle(person: int, name: str, rest: str = "tiny.ipynb", kind: str = "file") -> str:
    """The path that Moodle gives a submitted file."""
    return f"{name}_{person}_assignsubmission_{kind}_/{rest}"


def gradescope(*submissions: tuple[int, list[tuple[str, str, str]], str]) -> str:
    """Gradescope's submission_metadata.yml: number, (name, sid, email) of each, time."""
    lines = []
    for number, people, when in submissions:
        lines += [f"submission_{number}:", "  :submitters:"]
        for name, sid, email in people:
            lines += [f"  - :name: {name}", f"    :sid: '{sid}'", f"    :email: {email}"]
        lines += [f"  :created_at: {when}", "  :score: 0.0"]
    return "\n".join(lines) + "\n"
