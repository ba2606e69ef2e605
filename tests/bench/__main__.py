"""`python tests/bench [NAME]...`: speeds as ratios inside one run, printed and kept in docs/.

Without a name all of them but `gpu`, in about an hour; a section of docs/performance.md each.
"""

import argparse
import importlib
import os
import platform
import re
import sys
from pathlib import Path

import torch

SECTIONS = {
    "library": "The library, against its peers",
    "gpu": "The library on a GPU",
    "processes": "A student's process",
    "levels": "The levels",
    "stock": "A class, against nbgrader's own autograder",
    "overhead": "What grading costs beside the cells",
    "unchanged": "A class that has not changed",
    "scale": "A class of ten thousand",
    "cluster": "A Dask cluster",
}
PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
HEAD = "# Performance\n\nRatios within one run count; the machine is not a quiet one.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SECTIONS))
    names = parser.parse_args().names or [name for name in SECTIONS if name != "gpu"]
    if unknown := set(names) - set(SECTIONS):
        sys.exit(f"There is no benchmark {', '.join(unknown)}; there are {', '.join(SECTIONS)}.")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    for name in names:
        body = importlib.import_module(name).report()
        how = f"`make bench BENCH={name}` on {machine}; {versions}."
        section = f"## {SECTIONS[name]}\n\n{how}\n\n{body}\n"
        print(section, flush=True)
        keep(section)


def keep(section: str) -> None:
    """Put a section into the page, in the place of the one before it of this title."""
    text = PAGE.read_text("utf-8") if PAGE.exists() else HEAD
    _, *parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    found = {part.splitlines()[0]: part.rstrip() + "\n" for part in parts}
    found[section.splitlines()[0]] = section
    order = [f"## {title}" for title in SECTIONS.values()]
    titles = sorted(found, key=lambda title: order.index(title) if title in order else len(order))
    PAGE.write_text("\n".join([HEAD, *(found[title] for title in titles)]), "utf-8")


if __name__ == "__main__":
    main()
