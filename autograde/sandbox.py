"""Confine the current process for good: few files, few system calls, hard limits, no privileges.

A warm parent prepares one `Confinement`; each child it forks calls `apply` before student code.
Linux with Landlock (5.13 or newer); needs no root and no container. What stops what:

- Landlock: which files can be opened, made, removed. It does not rule stat, chdir, chmod, utime.
- seccomp: `syscalls`, an allow-list: no process, program, socket, foreign signal, chmod.
- rlimits: data, file size, open files, CPU time. Capabilities: none left, also for uid 0.

Not stopped here: someone who knows a path can ask for its size and times (stat). Totals are for
the supervisor outside to watch: resident memory (pages hidden from the data limit reach three
times `Limits.memory`), threads, wall time, disk. What no folder shows is freed when the process
ends: deleted files that are open, at most `open_files` × `file_size`, or mapped.

Sources: the Linux manual, landlock(7), seccomp(2), prctl(2), setrlimit(2), capabilities(7).
"""

import contextlib
import ctypes
import functools
import importlib.util
import os
import signal
import socket
import struct
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograde import syscalls
from autograde.host import doctor

if TYPE_CHECKING:
    from landlockpy import AccessFS

# What numpy, torch, matplotlib and tokenizers read beside Python's own libraries.
SYSTEM_READABLE = """
    /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /etc/ld.so.cache
    /usr/share/zoneinfo /etc/localtime /usr/share/locale
    /usr/share/fonts /usr/local/share/fonts /etc/fonts
    /proc/meminfo /proc/cpuinfo /sys/devices/system/cpu /sys/devices/system/node
    /dev/urandom /dev/random
"""

# Of /proc/self only these: its environ, net and mounts tell about the host.
SELF_READABLE = "/proc/self/status /proc/self/stat /proc/self/statm /proc/self/maps"

# linux/prctl.h, linux/capability.h
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
CAP_SETPCAP = 8


class CannotConfine(RuntimeError):
    """A layer of the confinement is not in force; the message says which and what to do."""


@dataclass(frozen=True)
class Limits:
    """What one confined process may use: sizes in bytes, times in seconds.

    >>> Limits(file_size=1000).open_files
    128
    """

    memory: int = 2 * 2**30  # data above what the process holds when it is confined
    file_size: int = 20_000_000  # of each file
    open_files: int = 128
    cpu_time: int = 600  # a backstop: the supervisor's limits are tighter


DEFAULT_LIMITS = Limits()


def default_readable() -> tuple[Path, ...]:
    """Return the files and folders that student code reads: Python's libraries and course_lib.

    Nothing else of the course is among them; no home, no /etc as a whole, no /tmp.

    >>> Path.home() in default_readable()
    False
    """
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    course = importlib.util.find_spec("course_lib")
    paths = [
        *(sysconfig.get_path(name) for name in names),
        *(course.submodule_search_locations or () if course else ()),
        f"{sys.base_prefix}/lib",  # libpython, and every shared library under conda
        *SYSTEM_READABLE.split(),
    ]
    return tuple(dict.fromkeys(Path(path) for path in paths if Path(path).exists()))


class Confinement:
    """The confinement of each child that this process forks.

    `readable` are files and folders to read (default: `default_readable()`). `gpu` adds NVIDIA's
    devices, any ioctl and shared mappings, and drops the address space limit, which the driver
    breaks; its kernel module is then part of what is trusted.

    Raises CannotConfine where the host lacks a layer; `doctor` lists them all.

    >>> Confinement(["/no/such/library"])
    Traceback (most recent call last):
    FileNotFoundError: readable path /no/such/library does not exist
    """

    def __init__(
        self,
        readable: Iterable[str | Path] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        *,
        gpu: bool = False,
    ) -> None:
        paths = default_readable() if readable is None else [Path(path) for path in readable]
        for path in paths:
            if not path.exists():
                raise FileNotFoundError(f"readable path {path} does not exist")
        if lacking := [feature for feature in doctor() if not feature.ok]:
            raise CannotConfine("; ".join(f"{name}: {detail}" for name, _, detail in lacking))
        self._parent = os.getpid()
        self._limits = limits
        self._gpu = gpu
        self._rights = _file_rights(paths, gpu)
        self._calls = syscalls.allow_list(gpu)

    def apply(self, writable: str | Path, keep_fds: Sequence[int] = ()) -> None:
        """Confine this process, a single-threaded child just forked, and move to `writable`.

        Afterwards `writable` is the only folder it can change, its home and its temporary folder;
        of the file descriptors `keep_fds` are left, and 0, 1, 2, on /dev/null unless kept.
        Takes a few milliseconds and can't be undone. Raises CannotConfine if any layer is not in
        force: the process must then end without running student code.
        """
        room = Path(writable).absolute()
        try:
            self._check_fresh()
            _leave_session(room)
            _close_fds(keep_fds)
            _drop_privileges()
            _die_with(self._parent)
            _limit(self._limits, address_space=not self._gpu)
            _restrict_files(self._rights, room)
            syscalls.restrict(self._calls)
            _verify()
        except OSError as error:
            raise CannotConfine(
                f"the kernel refused: {error}; see what `autograde doctor` says of this host"
            ) from error

    def _check_fresh(self) -> None:
        # Landlock and seccomp rule the calling thread and those it starts, not its siblings.
        threads = _status()["Threads"]
        if threads != "1":
            raise CannotConfine(f"the process has {threads} threads; fork from one that has none")
        if os.getppid() != self._parent:
            raise CannotConfine("apply() is for children forked by the process that prepared it")


def _file_rights(readable: Iterable[Path], gpu: bool) -> dict[Path, "AccessFS"]:
    """Return what may be done with each path, but for the writable folder and /proc/self."""
    from landlockpy import AccessFS

    read = AccessFS.READ_FILE | AccessFS.READ_DIR
    use = AccessFS.READ_FILE | AccessFS.WRITE_FILE
    rights = {path: read if path.is_dir() else AccessFS.READ_FILE for path in readable}
    rights[Path("/dev/null")] = use
    if gpu:
        devices = [path for path in Path("/dev").glob("nvidia*") if not path.is_dir()]
        rights |= dict.fromkeys(devices, use | AccessFS.IOCTL_DEV)
    return rights


def _restrict_files(rights: dict[Path, "AccessFS"], writable: Path) -> None:
    """Let Landlock refuse every other file, TCP, abstract sockets and signals to others."""
    # landlockpy is typed, needs nothing, and knows ABI 1 to 11: file rights, TCP and scopes.
    from landlockpy import AccessFS, Ruleset, Scope

    edit = AccessFS.READ_FILE | AccessFS.READ_DIR | AccessFS.WRITE_FILE | AccessFS.TRUNCATE
    make = AccessFS.MAKE_REG | AccessFS.MAKE_DIR  # no symlink, fifo, socket or device
    move = AccessFS.REMOVE_FILE | AccessFS.REMOVE_DIR | AccessFS.REFER
    with Ruleset(scoped=Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL) as ruleset:
        for path, access in rights.items():
            ruleset.allow_path(path, access)
        for name in SELF_READABLE.split():
            ruleset.allow_path(name, AccessFS.READ_FILE)
        ruleset.allow_path(writable, edit | make | move)
        ruleset.restrict()


def _leave_session(home: Path) -> None:
    """Forget terminal and environment; live in `home`."""
    if os.getsid(0) != os.getpid():
        os.setsid()  # no terminal, and one group for the supervisor to kill
    os.chdir(home)
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), str(home)))
    os.environ.update(USER="student", LANG="C.UTF-8")
    tempfile.tempdir = None  # looked up anew


def _close_fds(keep: Sequence[int]) -> None:
    """Close every file descriptor but `keep`; 0, 1 and 2 lead to /dev/null unless kept."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in {0, 1, 2} - set(keep):
        os.dup2(null, fd)
    edges = sorted({2, *(fd for fd in keep if fd > 2)})
    for below, above in zip(edges, [*edges[1:], 2**32], strict=True):
        if above > below + 1:
            _syscall(436, below + 1, above - 1, 0)  # close_range, the same number everywhere


def _drop_privileges() -> None:
    """Give up every capability, also those a program could regain; no core dumps.

    The user id stays, also 0: Python may live in a folder that only root can enter.
    """
    if int(_status()["CapEff"], 16) >> CAP_SETPCAP & 1:
        last_capability = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
        for capability in range(last_capability + 1):
            _prctl(PR_CAPBSET_DROP, capability)
    _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    _check(_libc().capset(header, bytes(24)))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_DUMPABLE, 0)  # RLIMIT_CORE alone does not stop a core piped to a program


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above
        raise CannotConfine("the parent process ended meanwhile; start the grader again")


def _limit(limits: Limits, *, address_space: bool) -> None:
    """Set the resource limits, soft and hard, never above the present hard ones."""
    import resource  # Windows has none, and this module can be imported there

    held = _status()
    data, size = (int(held[key].split()[0]) * 1024 for key in ("VmData", "VmSize"))
    wanted = {
        resource.RLIMIT_DATA: data + limits.memory,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.cpu_time,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    if address_space:
        # Pages filled, then made read-only, are data no longer; this bounds them. Three times,
        # because each thread's allocator reserves address space that it does not use.
        wanted[resource.RLIMIT_AS] = size + 3 * limits.memory
    for name, value in wanted.items():
        _, hard = resource.getrlimit(name)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))


def _verify() -> None:
    """Check from inside that the layers are in force.

    /proc/self/status says that some filter is there, in a container always; so two probes.
    """
    status = _status()
    if status["NoNewPrivs"] != "1":
        raise CannotConfine("no_new_privs is not set after confinement")
    for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        if int(status[key], 16):
            raise CannotConfine(f"capabilities are left after confinement: {key} {status[key]}")
    probes: dict[str, Callable[[], object]] = {
        "Landlock": lambda: next(Path("/").iterdir()),
        "seccomp": socket.socket,
    }
    for layer, probe in probes.items():
        with contextlib.suppress(PermissionError):
            probe()
            raise CannotConfine(f"{layer} is not in force after confinement")


def _status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _prctl(option: int, value: int) -> None:
    _check(_libc().prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0))))


def _syscall(number: int, *arguments: int) -> None:
    _check(_libc().syscall(*map(ctypes.c_long, (number, *arguments))))


def time_apply(confinement: Confinement, writable: str | Path, runs: int = 20) -> list[float]:
    """Return the seconds `apply` takes in each of `runs` forked children, for the benchmark."""
    seconds = []
    for _ in range(runs):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                start = time.perf_counter()
                confinement.apply(writable, [send])
                os.write(send, struct.pack("d", time.perf_counter() - start))
            finally:
                os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        if not answer:
            raise CannotConfine("a child could not be confined; see what `autograde doctor` says")
        seconds.append(struct.unpack("d", answer)[0])
    return seconds
