"""Dask with two workers against two local ones; and what bounds a thousand, by simulation."""

import heapq
import json
import statistics
import sys
from collections.abc import Sequence
from itertools import cycle, islice

from classes import LEVEL, ROOT, a_class, ran

sys.path.append(str(ROOT / "tests" / "autograde"))
from clusters import dask_cluster

SIZE, FEW, ROUNDS = 200, 20, 3  # the difference is what a submission costs the coordinator
MANY = 100_000
WORKERS = (2, 10, 100, 300, 1_000)
START = 5.0  # seconds until a worker is warm, about what it takes here


def finish(times: Sequence[float], workers: int, serial: float) -> float:
    """When the last submission is done, if each costs the coordinator `serial` seconds first.

    Submissions go, in the order given, to whichever worker is free first.

    >>> finish([2, 2, 2, 2], workers=2, serial=0) - START
    4.0
    >>> finish([0] * 10, workers=5, serial=1) >= 10
    True
    """
    free = [START] * workers
    sent = last = 0.0
    for seconds in times:
        sent += serial
        end = max(heapq.heappop(free), sent) + seconds
        heapq.heappush(free, end)
        last = max(last, end)
    return last


def report() -> str:
    """The tables as Markdown."""
    local, dask, own = [], [], []
    with (
        a_class(SIZE) as course,
        a_class(FEW) as small,
        dask_cluster(course.root) as address,
    ):
        words = ("autograde", "grade", LEVEL, "--force", "--quiet")
        ran(*words, "--scheduler", address, cwd=course.root)  # its workers stay warm, as they do
        for _ in range(ROUNDS):
            there = ran(*words, "--scheduler", address, cwd=course.root)
            here = ran(*words, "-j", "2", cwd=course.root)
            few = ran(*words, "--scheduler", address, cwd=small.root)
            local.append(here.seconds), dask.append(there.seconds)
            own.append((there.cpu - few.cpu) / (SIZE - FEW))
        lines = course.log(LEVEL).read_text("utf-8").splitlines()
    times = [event["seconds"] for event in map(json.loads, lines) if event["event"] == "verdict"]
    ratio = statistics.median(local) / statistics.median(dask)
    serial = statistics.median(own)
    text = f"""| {SIZE} submissions of Level 2 | seconds, median of {ROUNDS} |
|---|---|
| two local workers, cold | {statistics.median(local):.1f} |
| two Dask workers of one thread, warm | {statistics.median(dask):.1f} |

Dask gives {ratio:.2f} of the local throughput.

What bounds a large cluster: {MANY:,} submissions with the times recorded above, and the
{serial * 1e3:.1f} ms that each costs the coordinator, in a simulation of a queue before so many
workers.

| workers | submissions/s | of what as many workers could do |
|---|---|---|
"""
    many = sorted(islice(cycle(times), MANY), reverse=True)
    for workers in WORKERS:
        rate = MANY / finish(many, workers, serial)
        text += f"| {workers:,} | {rate:,.0f} | {rate * statistics.mean(times) / workers:.0%} |\n"
    bound = statistics.mean(times) / serial
    return (
        text + f"\nThe coordinator keeps up with {bound:.0f} workers; beyond that it is the bound."
    )
