"""How soon a student's process is ready, against a plain kernel."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_client.manager import start_new_kernel

from autograde import sandbox
from autograde.kernel import Nursery

RUNS = 20


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plain_kernel() -> None:
    """Start an ipykernel that has imported what a level imports, and end it."""
    manager, client = start_new_kernel(extra_arguments=["--IPKernelApp.log_level=40"])
    client.execute_interactive("import torch, course_lib.model")
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def student_processes() -> list[tuple[str, list[float]]]:
    """Seconds until a student's process is ready: ours from warm, and a plain ipykernel's."""
    ours, plain = [], []
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with Nursery(Path(folder)) as nursery:
            warm = time.perf_counter() - start
            nursery.fork().close()
            for run in range(RUNS):
                kernels = []
                ours.append(timed(lambda kernels=kernels: kernels.append(nursery.fork())))
                kernels[0].close()
                if run % 4 == 0:  # interleaved: both see the same weather
                    plain.append(timed(plain_kernel))
        confined = sandbox.time_apply(sandbox.Confinement(), folder, RUNS)
    return [
        ("our process, forked warm and confined", ours),
        ("of which confinement", confined),
        ("plain ipykernel with torch imported", plain),
        ("our warm parent, once for a whole class", [warm]),
    ]


def report() -> str:
    """The table as Markdown."""
    rows = student_processes()
    lines = [
        "| until it is ready | median, ms | slowest, ms | runs |",
        "|---|---|---|---|",
    ]
    for name, seconds in rows:
        middle, worst = statistics.median(seconds) * 1e3, max(seconds) * 1e3
        lines.append(f"| {name} | {middle:.1f} | {worst:.1f} | {len(seconds)} |")
    ratio = statistics.median(rows[2][1]) / statistics.median(rows[0][1])
    return "\n".join([*lines, "", f"Ours is ready {ratio:.0f} times sooner than a plain kernel."])
