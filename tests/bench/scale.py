"""Ten times the class: time for each submission, and the coordinator's memory."""

from classes import LEVEL, a_class, ran

SMALL, LARGE = 1_000, 10_000


def report() -> str:
    """The table as Markdown."""
    rows = {}
    for size in (SMALL, LARGE):
        with a_class(size) as course:
            rows[size] = ran("autograde", "grade", LEVEL, "--quiet", cwd=course.root)
    lines = [
        "| submissions | seconds | a submission, ms | coordinator's CPU, ms | its memory, MB |",
        "|---|---|---|---|---|",
    ]
    for size, row in rows.items():
        each, own = row.seconds / size * 1e3, row.cpu / size * 1e3
        lines.append(
            f"| {size:,} | {row.seconds:.0f} | {each:.1f} | {own:.2f} | {row.memory / 1e6:.0f} |"
        )
    ratio = rows[LARGE].seconds / LARGE / (rows[SMALL].seconds / SMALL)
    return "\n".join(
        [*lines, "", f"A submission of the large class takes {ratio:.2f} times as long."]
    )
