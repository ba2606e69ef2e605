"""Files that a reader finds whole or not at all, and folders that go whatever is in them."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path


def write_whole(content: str | bytes, path: Path) -> None:
    """Write a file, and its folder if need be, so that it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def open_no_link(path: str, flags: int) -> int:
    """An opener for `open` that follows no link, and waits for nobody at a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of one's own for a while."""
    folder = Path(tempfile.mkdtemp(prefix="autograde-"))
    try:
        yield folder
    finally:
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder that may be nested deeper than recursion and path lengths go.

    Each folder in it is moved to its side first, and so comes to lie under a short path.
    """
    waiting, numbers = [folder], count()
    while waiting:
        with contextlib.suppress(OSError):
            top = waiting.pop()
            for entry in list(os.scandir(top)):
                if entry.is_dir(follow_symlinks=False):
                    aside = folder.with_name(f"{folder.name}.{next(numbers)}")
                    Path(entry.path).chmod(0o700)  # it may have been made without any rights
                    waiting.append(Path(entry.path).rename(aside))
                else:
                    Path(entry.path).unlink()
            top.rmdir()
