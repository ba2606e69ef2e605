"""Files that a reader finds whole or not at all."""

import os
from pathlib import Path


def write_whole(text: str, path: Path) -> None:
    """Write a text file, and its folder if need be, so that it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, "utf-8", newline="")
    half.replace(path)
