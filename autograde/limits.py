"""What one student's process may use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of one student's process; a process that breaks one costs an answer."""

    cpu_s: float = 30.0  # of one cell or one call
    wall_s: float = 90.0  # the same; generous, so that a busy grader fails nobody
    notebook_wall_s: float = 600.0  # of everything, restarts included
    grace_s: float = 1.0  # between the interrupt and the kill
    memory: int = 2 << 30  # bytes above the warm parent's
    disk: int = 64 << 20  # bytes in the student's folder
    files: int = 2_000
    threads: int = 64
    output: int = 4 << 20  # bytes of output of one cell
    notebook_output: int = 16 << 20  # of all cells
