"""Notebooks: read, written, and the errors in them.

nbformat comes without types for the calls used here; this is the one place that knows.
"""

from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograde.files import write_whole


def read_notebook(path: Path) -> NotebookNode:
    """The notebook in a file; raises whatever nbformat does if it is none."""
    notebook: NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def notebook_text(notebook: NotebookNode) -> str:
    """The notebook as it stands in a file."""
    return str(nbformat.writes(notebook)) + "\n"  # type: ignore[no-untyped-call]


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook; a reader sees the old one or the new one, never half of it."""
    write_whole(notebook_text(notebook), path)


def node(value: dict[str, Any]) -> NotebookNode:
    """Plain data as nbformat's dictionary with attributes."""
    result: NotebookNode = nbformat.from_dict(value)  # type: ignore[no-untyped-call]
    return result


def last_error(cell: NotebookNode) -> NotebookNode | None:
    """The error output that a cell ended with, if it did."""
    errors = [out for out in cell.get("outputs", []) if out.output_type == "error"]
    return errors[-1] if errors else None
