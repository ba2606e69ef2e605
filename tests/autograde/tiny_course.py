"""A small course of one level, `tiny`: two answers in code and one in words."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

from autograde.course import Course, find_course

REPOSITORY = Path(__file__).parents[2]
FIXTURE = Path(__file__).parent / "fixture"
AUTOGRADE = Path(sysconfig.get_path("scripts")) / "autograde"


def make_course(root: Path, change: Callable[[str], str] = str, config: str = "") -> Course:
    """The tiny course at `root`, its master changed, lines added to its configuration."""
    masters = root / "autograde" / "source"
    masters.mkdir(parents=True)
    for path in FIXTURE.glob("*.txt"):  # not .py: they are text, for jupytext to read
        shutil.copy(path, masters / path.with_suffix(".py").name)
    text = (masters / "tiny.py").read_text("utf-8")
    changed = change(text)
    assert change is str or changed != text, "the change found nothing to change"
    (masters / "tiny.py").write_text(changed, "utf-8")
    settings = (REPOSITORY / "nbgrader_config.py").read_text("utf-8")
    (root / "nbgrader_config.py").write_text(settings + config, "utf-8")
    return find_course(root)


def autograde(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the real command; 80 columns and no colour, as in a log."""
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(
        [AUTOGRADE, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True
    )
