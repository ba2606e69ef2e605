"""CSV text that a spreadsheet shows and does not run, and that can be read back as it was."""

import csv
import io
from collections.abc import Iterable

# What begins a formula, in the widths of East Asian spreadsheets too; and the apostrophe itself, so
# that the one put before these can be told from one's own. A lone hyphen is Moodle's empty field.
SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n", "'")

Field = str | float | None


def csv_text(rows: Iterable[Iterable[Field]]) -> str:
    """Rows as CSV: texts quoted and harmless, numbers bare, nothing for None."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    for row in rows:
        writer.writerow("" if field is None else harmless(field) for field in row)
    return text.getvalue()


def harmless(field: str | float) -> str | float:
    """A text with an apostrophe before it, if a spreadsheet would run it as a formula.

    >>> harmless("=1+1"), harmless("'tis"), harmless("Ada"), harmless("-"), harmless(-1.5)
    ("'=1+1", "''tis", 'Ada', '-', -1.5)
    """
    if not isinstance(field, str):
        return field
    return f"'{field}" if field.startswith(SIGNS) and field != "-" else str(field)


def original(field: str) -> str:
    """The text that `harmless` made this one from.

    >>> original("'=1+1"), original("''tis"), original("Ada")
    ('=1+1', "'tis", 'Ada')
    """
    return field[1:] if field.startswith("'") else field
