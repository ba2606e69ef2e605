"""A Dask cluster of separate processes on this host, for tests and benchmarks."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
from distributed import Client


@contextlib.contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The address of a scheduler with so many workers of one thread; logs go to the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    commands = [["scheduler", "--host", address, "--no-dashboard"]]
    commands += [["worker", address, "--nthreads", "1", "--no-dashboard"]] * workers
    environment = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(folder)}
    processes = []
    try:
        with (folder / "dask.log").open("ab") as log:
            for command in commands:
                words = [sys.executable, "-P", "-m", "dask", *command]
                options = {"stdout": log, "stderr": log, "env": environment, "cwd": folder}
                processes.append(psutil.Popen(words, **options))
        with Client(address, timeout=60, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(workers, timeout=60)
        yield address
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in process.children(recursive=True):
                    child.kill()
            process.kill()
        psutil.wait_procs(processes, timeout=20)


def dask_workers(folder: Path) -> list[psutil.Process]:
    """The processes that Dask workers run in, below their nannies."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if process.cwd() == str(folder) and "spawn_main" in " ".join(process.cmdline())
    ]
