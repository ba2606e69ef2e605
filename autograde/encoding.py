"""The bytes of a text file → text, in whatever encoding, with or without a merge conflict in it."""

import json

UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def to_ascii_superset(data: bytes) -> tuple[bytes, str]:
    """Bytes in which ASCII is single bytes, and the encoding they had if that was not so.

    UTF-16 and UTF-32 become UTF-8, with or without a byte order mark; all else stays.

    >>> to_ascii_superset('{"a": 1}'.encode("utf-16"))
    (b'{"a": 1}', 'UTF-16')
    """
    encoding = json.detect_encoding(data[:4])
    if encoding == "utf-8":
        return data, ""
    if encoding == "utf-8-sig":
        return data[3:], "UTF-8 with a byte order mark"
    return data.decode(encoding, "replace").encode("utf-8", "replace"), encoding.upper()


def merge_sides(data: bytes) -> list[bytes]:
    """Both versions of a file with merge conflict markers, ours first; else the file alone.

    >>> merge_sides(b"a\\n<<<<<<< HEAD\\nb\\n=======\\nc\\n>>>>>>> theirs\\nd")
    [b'a\\nb\\nd', b'a\\nc\\nd']
    """
    if not (data.startswith(b"<<<<<<<") or b"\n<<<<<<<" in data) or b"\n>>>>>>>" not in data:
        return [data]
    ours, theirs, side = [], [], "both"
    for line in data.split(b"\n"):
        if line.startswith(b"<<<<<<<"):
            side = "ours"
        elif line.startswith(b"|||||||") and side == "ours":
            side = "base"
        elif line.startswith(b"=======") and side in ("ours", "base"):
            side = "theirs"
        elif line.startswith(b">>>>>>>") and side == "theirs":
            side = "both"
        else:
            ours += [line] if side in ("both", "ours") else []
            theirs += [line] if side in ("both", "theirs") else []
    return [b"\n".join(ours), b"\n".join(theirs)]


def to_text(data: bytes) -> tuple[str, str]:
    """Text, and the encoding it had if that was not UTF-8: one bad byte does not make it another.

    >>> to_text("naïve".encode("latin-1")), to_text("“naïve”".encode()[:-1])
    (('naïve', 'Windows-1252'), ('“naïve�', 'UTF-8 with 1 unreadable characters'))
    """
    text = data.decode("utf-8", "replace")
    broken = text.count(UNKNOWN) - data.count(UNKNOWN.encode())
    if not broken:
        return text, ""
    if 2 * broken <= len(text) - len(text.encode("ascii", "ignore")):
        return text, f"UTF-8 with {broken} unreadable characters"
    try:
        return data.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "Latin-1"
