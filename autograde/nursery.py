"""The warm parent: imports what students use, then forks one confined process for each of them.

It is started with an empty environment and talks to its grader over one socket (file descriptor
given on the command line). It never sees a test, an answer or a gradebook. It starts no thread,
since what it holds is forked:

    {"scratch": folder, "readable": [...], "gpu": false, "confine": true}   once, at the start
    {"fork": folder} with a socket  -> {"pid": n}     that process serves the socket (`student.py`)
    {"reap": pid}                   -> {"status": n}  its wait status, once it is dead
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import socket
import sys
from pathlib import Path
from typing import Any

PRELOAD = ("numpy", "torch", "torch.nn.functional", "matplotlib.figure", "matplotlib.font_manager",
           "matplotlib_inline.backend_inline", "ipywidgets", "tqdm", "tqdm.auto")  # fmt: skip


def main(control: socket.socket) -> None:
    """Serve `control` until the grader closes it."""
    setup = json.loads(control.recv(1 << 16))
    os.environ["IPYTHONDIR"] = os.environ["MPLCONFIGDIR"] = setup["scratch"]
    for name in PRELOAD:
        importlib.import_module(name)
    import course_lib

    for module in pkgutil.walk_packages(course_lib.__path__, "course_lib."):
        importlib.import_module(module.name)
    from autograde.sandbox import Confinement
    from autograde.student import Shell

    _warm_up()

    shell = Shell.instance()  # so that IPython.get_ipython() finds it
    confinement = Confinement([Path(p) for p in setup["readable"]], gpu=setup["gpu"])
    gc.collect()
    gc.freeze()  # a collection in a child then leaves the shared pages alone
    control.sendall(json.dumps({"ready": os.getpid()}).encode())
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not data:
            return
        request = json.loads(data)
        if "fork" in request:
            pid = os.fork()
            if pid == 0:
                control.close()
                channel = socket.socket(fileno=fds[0])
                _become_student(shell, channel, Path(request["fork"]), confinement, setup)
            os.close(fds[0])
            control.sendall(json.dumps({"pid": pid}).encode())
        else:
            _, status = os.waitpid(request["reap"], 0)
            control.sendall(json.dumps({"status": status}).encode())


def _become_student(
    shell: Any, channel: socket.socket, folder: Path, confinement: Any, setup: dict[str, Any]
) -> None:
    from autograde import wire
    from autograde.student import Student

    status = 1
    try:
        os.chdir(folder)
        for name in ("HOME", "TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR"):
            os.environ[name] = str(folder)
        _seed()  # here, since `random` seeds itself anew after a fork
        if setup["confine"]:
            confinement.apply(folder, keep_fds=[channel.fileno()])
        wire.send(channel, {"ready": True})
        Student(shell, channel).serve()
        status = 0
    except BaseException as error:  # nothing may return into the warm parent's loop
        wire.send(channel, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(status)


def _warm_up() -> None:
    """Do once what torch does only when first asked, about a second's worth of imports."""
    import torch

    from course_lib.model import TinyTransformer

    torch.set_num_threads(1)  # this process must not start a thread
    with torch.no_grad():
        TinyTransformer(8, generator=torch.Generator())(torch.zeros(1, 2, dtype=torch.long))


def _seed() -> None:
    """Every student starts from the same global random state, so grading twice agrees."""
    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global state is what students use
    torch.manual_seed(0)


if __name__ == "__main__":
    with contextlib.suppress(ConnectionError):  # the grader is gone
        main(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)  # IPython would tidy up a folder that is gone by now
