"""A ZIP file that anybody may have made: its entries' names and times, and their bytes on demand.

Names are taken apart and never used as paths. Sizes are checked as declared and again as they come.
"""

import hashlib
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from autograde.course import CourseError
from autograde.slim import MAX_FILE

MAX_ENTRIES = 100_000
SMALL = 5_000_000  # bytes; a larger entry must not have been MAX_RATIO times smaller in the ZIP
MAX_RATIO = 100  # a notebook of repeated outputs comes to about 20
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
CHUNK = 1 << 20
UTF8_NAME, ENCRYPTED = 0x800, 0x41  # flags; the second: by password or by certificate
UNIX_TIME = 0x5455  # the extra field with seconds since 1970
# what zipfile and zlib raise, between them, over damaged files
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


class Refused(Exception):
    """An entry is not taken; the message says why."""


@dataclass(frozen=True)
class Entry:
    """A file in a ZIP: the parts of its path, and when it was last changed, in UTC if known."""

    parts: tuple[str, ...]
    time: datetime | None
    info: zipfile.ZipInfo

    @property
    def name(self) -> str:
        """The path as the ZIP has it, for messages."""
        return "/".join(self.parts)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The ZIP file at `path`. Raises CourseError if it is none, or has too many entries."""
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise CourseError(f"There is no file {path}.") from None
    except DAMAGE as error:
        raise CourseError(f"{path} is no ZIP file, or a damaged one ({error}).") from None
    with archive:
        if len(archive.infolist()) > MAX_ENTRIES:
            raise CourseError(f"{path} has more than {MAX_ENTRIES:,} entries; split it.")
        yield archive


def entries(archive: zipfile.ZipFile) -> list[Entry]:
    """The files of a ZIP, without folders and what operating systems add."""
    found = (Entry(_parts(info), _time(info), info) for info in archive.infolist())
    return [
        entry
        for entry in found
        if entry.parts[-1]  # a folder's is empty
        and not any((p.startswith(".") and p != "..") or p == "__MACOSX" for p in entry.parts)
    ]


def unpack(archive: zipfile.ZipFile, entry: Entry, path: Path) -> str:
    """Write an entry's bytes to `path`; return their SHA-256. Raises Refused."""
    _check(entry)
    digest = hashlib.sha256()
    try:
        stream = archive.open(entry.info)
    except DAMAGE as error:
        raise Refused(f"it is damaged ({error})") from None
    with stream, path.open("wb") as file:
        while chunk := _read(stream):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _read(stream: IO[bytes]) -> bytes:
    try:
        return stream.read(CHUNK)  # never beyond the declared size
    except DAMAGE as error:
        raise Refused(f"it is damaged ({error})") from None


def _check(entry: Entry) -> None:
    info = entry.info
    if ".." in entry.parts or entry.parts[0] == "" or entry.parts[0].endswith(":"):
        raise Refused("its name leads out of the ZIP")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind and not stat.S_ISREG(kind):
        raise Refused("it is a link or a device, not a file")
    if info.flag_bits & ENCRYPTED:
        raise Refused("it is encrypted")
    if info.compress_type not in METHODS:
        raise Refused("it is compressed in a way that no LMS uses; zip it again")
    if info.file_size > MAX_FILE:
        raise Refused(f"it has {info.file_size / 1e6:,.0f} MB, more than {MAX_FILE / 1e6:g} MB")
    if info.file_size > max(SMALL, MAX_RATIO * info.compress_size):
        raise Refused(f"it unpacks to more than {MAX_RATIO} times its size, as a ZIP bomb does")


def _parts(info: zipfile.ZipInfo) -> tuple[str, ...]:
    """The parts of a name; UTF-8 that was not marked as such is read as what it is."""
    name = info.filename
    if not info.flag_bits & UTF8_NAME:
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = info.filename
    return tuple(unicodedata.normalize("NFC", name).replace("\\", "/").split("/"))


def _time(info: zipfile.ZipInfo) -> datetime | None:
    """When an entry was changed: in UTC if the ZIP says so, else by this machine's clock."""
    try:
        if seconds := _unix_time(info.extra):
            return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
        if info.date_time[0] == 1980:  # where DOS time begins: nobody set it
            return None
        return datetime(*info.date_time).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None


def _unix_time(extra: bytes) -> int | None:
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == UNIX_TIME and size >= 5 and len(extra) >= 9 and extra[4] & 1:
            return int(struct.unpack_from("<i", extra, 5)[0])
        extra = extra[4 + size :]
    return None
