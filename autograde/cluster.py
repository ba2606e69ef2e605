"""Workers on other machines: an existing Dask cluster as an executor."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from autograde.course import CourseError

AHEAD = 2  # submissions sent to each thread, so that none waits for the network


@contextmanager
def cluster_workers(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """An executor on the Dask cluster at `address`, and how many submissions keep it busy.

    Workers may come and go meanwhile; Dask gives what a lost one was at to another. Raises
    CourseError if nobody answers, or if Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError:
        raise CourseError(
            "--scheduler needs Dask: pip install 'pretraining-objectives[cluster]'."
        ) from None
    if not re.fullmatch(r"\w+://\S+:\d+", address):  # Dask would hang over it at the end
        raise CourseError(f"{address!r} is no scheduler's address, like tcp://10.0.0.1:8786.")
    try:
        client: Any = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise CourseError(
            f"There is no Dask scheduler at {address} ({error}): start one with `dask scheduler`."
        ) from None
    with client:
        if not client.nthreads():
            raise CourseError(f"{address} has no workers: start one with `dask worker {address}`.")
        executor: Executor = client.get_executor(pure=False)
        yield executor, lambda: AHEAD * sum(client.nthreads().values())
