"""The bytes of a submission → its cells, whatever an editor or an accident made of the file.

Only what a grader needs is read: the type, source, id and nbgrader metadata of each cell, in the
forms that notebook formats 1 to 4 give them. Nothing is validated, so nothing can fail to validate.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from autograde.encoding import merge_sides, to_ascii_superset, to_text
from autograde.slim import MAX_TEXT, Unreadable, without_outputs

MAX_CELLS = 2_000
SALVAGE_TRIES = 20  # places where a damaged file is searched for the next whole cell

CellKind = Literal["code", "markdown", "raw"]
NoteKind = Literal[
    "encoding",  # the text was not plain UTF-8
    "format",  # not the notebook format of today
    "damaged",  # something was lost
    "conflict",  # two versions in one file
    "limit",  # too much of something
    "matched",  # an answer was recognised by something else than its metadata
    "duplicate",  # several cells for one answer
    "missing",  # no cell for an answer
    "restored",  # an instructor's cell, or the metadata of an answer, was not the release's
]
SIGNATURES = {
    b"PK\x03\x04": "a zip archive: unpack it",
    b"%PDF": "a PDF: don't export",
    b"\x89PNG": "a picture: don't export",
    b"<!DO": "a web page: don't export",
    b"<!do": "a web page: don't export",
    b"<htm": "a web page: don't export",
}
KINDS: dict[object, CellKind] = {
    "code": "code",
    "markdown": "markdown",
    "raw": "raw",
    # formats 1 to 3
    "heading": "markdown",
    "html": "markdown",
    "text": "markdown",
    "plaintext": "raw",
}
# the keys that a cell can begin with, for finding one in a damaged file
_CELL = re.compile(
    r'\{(?=\s*+"(?:attachments|cell_type|code|collapsed|execution_count|id|input|language'
    r'|metadata|outputs|prompt_number|source|text)")'
)
_PERCENT = re.compile(r"^# (?:%%|In\[[\d ]*+\]:)(.*)$", re.MULTILINE)  # py:percent, nbconvert
_GRADE_ID = re.compile(r'"grade_id": ?"([^"]++)"')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can name them, UTF-8 can't hold them


@dataclass(frozen=True)
class Note:
    """One repair, in a sentence for student and instructor; `cell` names whom it concerns."""

    kind: NoteKind
    message: str
    cell: str = ""


@dataclass(frozen=True)
class StudentCell:
    """What a submission says about one cell. All of it is the student's word."""

    kind: CellKind
    source: str
    id: str = ""
    nbgrader: dict[str, Any] = field(default_factory=dict)
    tags: bool = False

    @property
    def grade_id(self) -> str:
        """The name that nbgrader's metadata give; empty without."""
        grade_id = self.nbgrader.get("grade_id")
        return grade_id if isinstance(grade_id, str) else ""


def decode(data: bytes) -> tuple[list[StudentCell], list[Note]]:
    """The cells of a submission, and a note for each thing that had to be put right.

    Raises Unreadable for an empty file and for one without a single whole cell.

    >>> cells, notes = decode(b'{"cells": [{"cell_type": "code", "source": ["x = 1"]}, {"cell_ty')
    >>> cells[0].source, notes[0].kind
    ('x = 1', 'damaged')
    """
    text, value, notes = _read(data)
    if value is not None:
        raw, more = _raw_cells(value)
    elif '"cell_type"' in text or text.lstrip().startswith("{"):
        raw, more = _salvage(text)
    else:
        raw, more = _script_cells(text)
    cells = [cell for cell in map(_student_cell, raw[:MAX_CELLS]) if cell]
    if not cells:
        raise Unreadable("The file holds no notebook cells; save the notebook, hand it in again.")
    if len(raw) > MAX_CELLS:
        more.append(Note("limit", f"Of {len(raw)} cells the first {MAX_CELLS} were read."))
    if lost := len(raw[:MAX_CELLS]) - len(cells):
        more.append(Note("damaged", f"Things that are no cells were left out: {lost}."))
    return cells, notes + more


def _read(data: bytes) -> tuple[str, Any, list[Note]]:
    """The text of a file without outputs, its JSON value (None if it isn't JSON), and notes."""
    for signature, what in SIGNATURES.items():
        if data.startswith(signature):
            raise Unreadable(f"The file is {what}, and hand in the notebook (.ipynb).")
    data, first = to_ascii_superset(data)
    if not data[:MAX_TEXT].strip():
        raise Unreadable("The file is empty; save the notebook and hand it in again.")
    sides = merge_sides(data)
    versions = []
    for side in sides:
        text, second = to_text(without_outputs(side))
        versions.append((text, _parse(text), second))
    whole = [version for version in versions if version[1] is not None]
    text, value, second = (whole or versions)[0]
    notes = [Note("encoding", f"The text was read as {name}.") for name in (first, second) if name]
    if len(sides) > 1:
        notes.append(Note("conflict", "The file holds two versions from a merge; one was taken."))
    return text, value, notes


def _decoder() -> json.JSONDecoder:
    # a huge int is an error for int(), and nothing here needs one exactly
    return json.JSONDecoder(strict=False, parse_int=float)


def _parse(text: str) -> Any:
    """The JSON value of a text; None if it isn't JSON, or nested too deeply to be a notebook."""
    try:
        return _decoder().decode(text)
    except (ValueError, RecursionError):
        return None


def _raw_cells(value: Any) -> tuple[list[Any], list[Note]]:
    """The cells of a notebook in any format, as they stand."""
    if isinstance(value, list):
        return value, [Note("format", "The file is a bare list of cells, not a notebook.")]
    if not isinstance(value, dict):
        return [], []
    notes = []
    if value.get("nbformat") != 4:
        notes.append(Note("format", "The notebook is in an old or unknown format; it was read."))
    if isinstance(value.get("cells"), list):
        return value["cells"], notes
    sheets = value.get("worksheets")  # formats 2 and 3
    lists = [sheet.get("cells") for sheet in _list(sheets) if isinstance(sheet, dict)]
    return [cell for cells in lists for cell in _list(cells)], notes


def _salvage(text: str) -> tuple[list[Any], list[Note]]:
    """The whole cells of a damaged or cut off notebook."""
    decoder, cells = _decoder(), []
    position = failures = 0
    while failures < SALVAGE_TRIES and (found := _CELL.search(text, position)):
        try:
            value, position = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            failures += 1
            position = found.end()
            continue
        if "cell_type" in value:
            cells.append(value)
    message = f"The file is damaged or cut off; {len(cells)} whole cells were found in it."
    return cells, [Note("damaged", f"{message} Check that none of yours is missing.")]


def _script_cells(text: str) -> tuple[list[Any], list[Note]]:
    """The cells of a Python file: those between py:percent's or nbconvert's marks, or one."""
    parts = _PERCENT.split(text, MAX_CELLS)
    cells = [{"cell_type": "code", "source": parts[0]}] if parts[0].strip() else []
    for header, body in zip(parts[1::2], parts[2::2], strict=True):
        prose = "[markdown]" in header
        cell: dict[str, Any] = {"cell_type": "markdown" if prose else "code"}
        body = body.strip("\n")
        cell["source"] = re.sub(r"^# ?", "", body, flags=re.MULTILINE) if prose else body
        grade_id = _GRADE_ID.search(header)
        cell["metadata"] = {"nbgrader": {"grade_id": grade_id[1]}} if grade_id else {}
        cells.append(cell)
    return cells, [Note("format", "The file is not a notebook; it was read as a Python script.")]


def _student_cell(raw: Any) -> StudentCell | None:
    """What a cell says; None if it is none."""
    if not isinstance(raw, dict):
        return None
    kind = raw.get("cell_type")
    given = [raw[key] for key in ("source", "input", "code", "text") if key in raw]
    metadata = _dict(raw.get("metadata"))
    cell_id = raw.get("id", metadata.get("id"))  # Colab keeps it in the metadata
    return StudentCell(
        kind=KINDS.get(kind, "code") if isinstance(kind, str) else "code",
        source=_source(given[0] if given else ""),
        id=cell_id if isinstance(cell_id, str) else "",
        nbgrader=_dict(metadata.get("nbgrader")),
        tags=bool(metadata.get("tags")),
    )


def _source(value: Any) -> str:
    """A cell's source from a text or a list of lines, fit to be written as UTF-8."""
    lines = [value] if isinstance(value, str) else [x for x in _list(value) if isinstance(x, str)]
    bare = len(lines) > 1 and not any(line.endswith("\n") for line in lines)
    text = ("\n" if bare else "").join(lines)
    return _LONE_SURROGATE.sub(
        "\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\0", "")
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
