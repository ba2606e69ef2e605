"""What a confined process can't do, and what it still can.

Run as a script this file is the warm parent: it forks a child for each attempt named on stdin.
Each attempt is a function of the child's own folder; beside that folder lies a gradebook.
"""

import asyncio
import contextlib
import ctypes
import errno
import json
import mmap
import os
import platform
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograde import sandbox
from autograde.host import doctor
from autograde.sandbox import CannotConfine, Confinement, Limits, default_readable

LACKING = [f"{name}: {detail}" for name, ok, detail in doctor() if not ok]
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"cannot confine here: {LACKING}")

X86 = platform.machine() == "x86_64"
MAIN = Path(__file__).parents[2]
LIBC = ctypes.CDLL(None, use_errno=True)
LIMITS = Limits(memory=2**29, cpu_time=30)
USERS = ["myself", "nobody"] if os.geteuid() == 0 else ["myself"]
NOBODY = 65534


def called(result: int) -> int:
    """Raise what the C library reports as an errno."""
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def raw(number: int, *arguments: int) -> int:
    """Make a system call by its number, past every wrapper."""
    return called(LIBC.syscall(*map(ctypes.c_long, (number, *arguments))))


# --- What must be refused. ---


def names_in(folder: str | Path) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def gradebook(room: Path) -> Path:
    return room.parent / "gradebook.db"


def through_symlink(room: Path) -> str:
    (room / "link").symlink_to(gradebook(room))
    return (room / "link").read_text()


def through_planted_symlink(room: Path) -> str:
    return (room / "planted").read_text()  # made by the submission's archive, before confinement


def through_dotdot(room: Path) -> str:
    return (room / "deeper/../../gradebook.db").read_text()


def hard_link(room: Path) -> str:
    os.link(gradebook(room), room / "link")
    return (room / "link").read_text()


def through_path_descriptor(room: Path) -> None:
    """O_PATH asks for no right; what it names is then opened anew."""
    fd = os.open(gradebook(room), os.O_PATH)
    os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)


def through_open_folder(room: Path) -> None:
    os.chdir(room.parent)
    os.open("gradebook.db", os.O_RDONLY)


def empty_readable_file(room: Path) -> None:
    os.close(os.open(room.parent / "library/module.py", os.O_RDONLY | os.O_TRUNC))


def udp(room: Path) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))


def abstract_unix(room: Path) -> None:
    socket.socket(socket.AF_UNIX).connect(f"\0gradebook-{os.getppid()}")


def unix_without_socket(room: Path) -> None:
    """A datagram pair can be sent to any address, without a call to socket()."""
    left, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.sendto(b"x", f"\0gradebook-{os.getppid()}")


def signal_by_fcntl(room: Path) -> None:
    """Have the kernel send the parent a signal whenever a byte arrives."""
    import fcntl

    left, _ = socket.socketpair()
    fcntl.fcntl(left, fcntl.F_SETOWN, os.getppid())


def signal_by_ioctl(room: Path) -> None:
    import fcntl

    left, _ = socket.socketpair()
    fcntl.ioctl(left, 0x8901, os.getppid().to_bytes(4, sys.byteorder))  # FIOSETOWN


def peek_parent(room: Path) -> None:
    buffer = ctypes.create_string_buffer(8)

    class Span(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    here, there = (Span(ctypes.addressof(buffer), 8) for _ in range(2))  # a fork: same addresses
    called(LIBC.process_vm_readv(os.getppid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0))


def trace_parent(room: Path) -> None:
    called(LIBC.ptrace(0x4206, os.getppid(), 0, 0))  # PTRACE_SEIZE: does not stop it


def hidden_memory(room: Path) -> int:
    """Memory made read-only is data no longer: take it until something stops us."""
    chunk = 2**26
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    for taken in range(0, 2**33, chunk):
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        address = LIBC.mmap(None, chunk, mmap.PROT_READ | mmap.PROT_WRITE, private, -1, 0)
        if address == ctypes.c_void_p(-1).value:
            assert taken <= 3 * LIMITS.memory
            raise OSError(ctypes.get_errno(), f"stopped at {taken}")
        called(LIBC.mprotect(ctypes.c_void_p(address), chunk, mmap.PROT_READ))
    return taken


def shared_memory(room: Path) -> None:
    mmap.mmap(-1, 2**20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)


def growing_stack(room: Path) -> None:
    mmap.mmap(-1, 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100)  # MAP_GROWSDOWN


def many_files(room: Path) -> None:
    files = [(room / str(n)).open("w") for n in range(200)]
    for file in files:
        file.close()


def big_file(room: Path) -> None:
    with (room / "big").open("wb") as file:
        for _ in range(50):
            file.write(bytes(10**6))


def big_sparse_file(room: Path) -> None:
    with (room / "big").open("wb") as file:
        file.truncate(5 * 10**7)


def reserved_file(room: Path) -> None:
    """FALLOC_FL_KEEP_SIZE takes blocks past the file size limit."""
    with (room / "big").open("wb") as file:
        called(LIBC.fallocate(file.fileno(), 1, ctypes.c_long(0), ctypes.c_long(5 * 10**7)))


def nameless_file(room: Path) -> None:
    os.close(os.open(room, os.O_TMPFILE | os.O_RDWR))


def empty_nameless_file(room: Path) -> None:
    os.close(os.open(room, os.O_TMPFILE | os.O_RDWR | os.O_TRUNC))


def raise_limit(room: Path) -> None:
    pair = (ctypes.c_ulong * 2)(10**6, 10**6)
    called(LIBC.setrlimit(resource.RLIMIT_FSIZE, pair))


def outlive_parent(room: Path) -> None:
    called(LIBC.prctl(1, 0, 0, 0, 0))  # PR_SET_PDEATHSIG off


def allow_core_dumps(room: Path) -> None:
    called(LIBC.prctl(4, 1, 0, 0, 0))  # PR_SET_DUMPABLE on


def own_file_table(room: Path) -> None:
    """A thread with its own open files would have a limit of its own."""
    flags = 0x100 | 0x800 | 0x10000  # CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, not CLONE_FILES
    raw(56 if X86 else 220, flags | 0x10000000)  # and CLONE_NEWUSER: never runs, refused or not


Attempt = Callable[[Path], Any]
PERMISSION = {errno.EPERM, errno.EACCES}

# These go through on any Linux host: that they are refused is the confinement's doing.
OTHERWISE_OPEN: dict[str, Attempt] = {
    "read the gradebook": lambda room: gradebook(room).read_text(),
    "write the gradebook": lambda room: gradebook(room).write_text("100"),
    "remove the gradebook": lambda room: gradebook(room).unlink(),
    "truncate the gradebook": lambda room: os.truncate(gradebook(room), 0),
    "read through a new symlink": through_symlink,
    "read through a planted symlink": through_planted_symlink,
    "read through ..": through_dotdot,
    "read through O_PATH": through_path_descriptor,
    "read from the folder above": through_open_folder,
    "replace the gradebook": lambda room: (room / "own.txt").replace(gradebook(room)),
    "rename the room": lambda room: room.rename(room.parent / "x"),
    "move a file out": lambda room: shutil.move(room / "own.txt", room.parent / "moved"),
    "write outside": lambda room: (room.parent / "new").write_text("x"),
    "write into a library": lambda room: (room.parent / "library/module.py").write_text("x"),
    "empty a library by opening it": empty_readable_file,
    "list the class": lambda room: names_in(room.parent),
    "list /": lambda room: names_in("/"),
    "list /etc": lambda room: names_in("/etc"),
    "list /tmp": lambda room: names_in("/tmp"),
    "read the user list": lambda room: Path("/etc/passwd").read_text(),
    "make a fifo": lambda room: os.mkfifo(room / "fifo"),
    "list processes": lambda room: names_in("/proc"),
    "read the network table": lambda room: Path("/proc/self/net/unix").read_text(),
    "signal the parent": lambda room: os.kill(os.getppid(), signal.SIGURG),
    "signal a thread of the parent": lambda room: raw(
        234 if X86 else 131, os.getppid(), os.getppid(), signal.SIGURG
    ),
    "signal the parent by pidfd": lambda room: os.pidfd_open(os.getppid()),
    "signal the parent by F_SETOWN": signal_by_fcntl,
    "signal the parent by FIOSETOWN": signal_by_ioctl,
    "outlive the parent": outlive_parent,
    "fork": lambda room: os.fork() or os._exit(0),
    "start a program": lambda room: subprocess.run(["/bin/true"], check=True),
    "spawn a program": lambda room: os.posix_spawn("/bin/true", ["true"], {}),
    "send UDP": udp,
    "reach an abstract socket": abstract_unix,
    "reach one without socket()": unix_without_socket,
    "talk to the kernel by netlink": lambda room: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "make memory files": lambda room: os.memfd_create("x"),
    "take more than the limit": lambda room: len(bytearray(LIMITS.memory)),
    "take hidden memory": hidden_memory,
    "take shared memory": shared_memory,
    "take a growing stack": growing_stack,
    "write 50 MB": big_file,
    "stretch a file": big_sparse_file,
    "make a nameless file": nameless_file,
    "make a nameless file, emptied": empty_nameless_file,
    "open 200 files": many_files,
    "change a limit": raise_limit,
    "allow core dumps": allow_core_dumps,
}
# These a host may refuse by itself, or they would do harm where they are not refused.
OTHERWISE_UNKNOWN: dict[str, Attempt] = {
    "link the gradebook": hard_link,
    "read the masters": lambda room: (MAIN / "autograde/source/level2.py").read_text(),
    "make a device": lambda room: os.mknod(room / "null", 0o20666, 0x103),
    "set an attribute": lambda room: os.setxattr(room, "user.x", b"x"),
    "change an owner": lambda room: os.chown(room, 1, 1),
    "leave by chroot": lambda room: os.chroot(room),
    "read the parent's environ": lambda room: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "open the parent's memory": lambda room: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
    "see the parent's files": lambda room: names_in(f"/proc/{os.getppid()}/fd"),
    "open a file of the parent": lambda room: os.open(f"/proc/{os.getppid()}/fd/0", os.O_RDONLY),
    "trace the parent": trace_parent,
    "read the parent's memory by call": peek_parent,
    "signal everyone": lambda room: os.kill(0, signal.SIGURG),
    "pin the parent to a core": lambda room: os.sched_setaffinity(
        os.getppid(), os.sched_getaffinity(0)
    ),
    "lower a limit of the parent": lambda room: resource.prlimit(
        os.getppid(), resource.RLIMIT_CORE, (0, 0)
    ),
    "become a program": lambda room: os.execv("/bin/true", ["true"]),
    "make a thread with its own files": own_file_table,
    "make a user namespace": lambda room: called(LIBC.unshare(0x10000000)),
    "open a TCP connection": lambda room: socket.socket().connect(("127.0.0.1", 9)),
    "a call no kernel has yet": lambda room: raw(4000),
    "become root": lambda room: os.setuid(0),
    "become another user": lambda room: os.setresuid(1, 1, 1),
    "mount": lambda room: called(LIBC.mount(b"x", b"/", b"tmpfs", 0, None)),
    "take 5 GB": lambda room: bytearray(5 * 10**9),
    "map /dev/shm": lambda room: Path("/dev/shm/x").write_text("x"),
    "reserve blocks": reserved_file,
}
REFUSED = OTHERWISE_OPEN | OTHERWISE_UNKNOWN
# Where a refusal may be, or is, another than one of permission.
ERRNOS = {
    "replace the gradebook": PERMISSION | {errno.EXDEV},
    "rename the room": PERMISSION | {errno.EXDEV},
    "spawn a program": PERMISSION | {errno.ENOSYS},
    "take 5 GB": {errno.ENOMEM},
    "take more than the limit": {errno.ENOMEM},
    "take hidden memory": {errno.ENOMEM},
    "write 50 MB": {errno.EFBIG},
    "stretch a file": {errno.EFBIG},
    "reserve blocks": {errno.EOPNOTSUPP},
    "open 200 files": {errno.EMFILE},
}

# Calls by name, for whatever wrapper a student finds to them.
FORBIDDEN_CALLS = """
    fork vfork clone3 execve execveat ptrace kcmp process_vm_readv process_vm_writev
    process_madvise process_mrelease pidfd_open pidfd_getfd pidfd_send_signal tkill kill tgkill
    socket connect bind listen accept accept4 sendmsg recvmsg sendmmsg recvmmsg setsockopt
    unshare setns mount umount2 move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr
    pivot_root chroot open_by_handle_at name_to_handle_at openat2 mknod mknodat symlink symlinkat
    link linkat truncate chown lchown fchown fchownat setxattr lsetxattr fsetxattr fallocate
    inotify_init1 inotify_add_watch fanotify_init quotactl memfd_create memfd_secret
    shmget shmat shmctl semget semop msgget msgsnd mq_open mlock mlock2 mlockall
    io_uring_setup io_uring_enter io_uring_register io_setup bpf perf_event_open userfaultfd
    keyctl add_key request_key personality modify_ldt seccomp landlock_restrict_self capset
    setuid setgid setresuid setresgid setreuid setregid setgroups setfsuid setsid setpgid
    setrlimit sched_setaffinity sched_setscheduler sched_setattr setpriority ioprio_set
    mbind set_mempolicy migrate_pages move_pages remap_file_pages vmsplice splice tee
    init_module finit_module delete_module kexec_load reboot swapon swapoff iopl ioperm syslog
    settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname acct vhangup
"""


def unrefused_calls(room: Path) -> list[str]:
    """Return those of FORBIDDEN_CALLS that this machine has and that are let through."""
    from pyseccomp import Arch, resolve_syscall

    through = []
    for name in FORBIDDEN_CALLS.split():
        number = resolve_syscall(Arch.NATIVE, name)
        try:
            if number >= 0:
                raw(number, 0, 0, 0, 0, 0, 0)
                through.append(name)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP):
                through.append(name)
    return through


# --- What must end the process. ---


def x32_call(room: Path) -> None:
    raw(0x40000000 | 39)  # getpid under the x32 numbering


def i386_call(room: Path) -> None:
    """Machine code for a 32-bit getpid: mov eax, 20; int 0x80; ret."""
    page = mmap.mmap(
        -1,
        4096,
        flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC,
    )
    page.write(bytes.fromhex("b814000000cd80c3"))
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def burn_processor(room: Path) -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


FATAL: dict[str, tuple[Attempt, set[int]]] = {
    "abort": (lambda room: os.abort(), {signal.SIGABRT}),
    "kill itself": (lambda room: os.kill(os.getpid(), signal.SIGKILL), {signal.SIGKILL}),
    "crash": (lambda room: ctypes.string_at(8), {signal.SIGSEGV}),
    "burn the processor": (burn_processor, {signal.SIGKILL}),
    "an x32 call": (x32_call, {signal.SIGSYS}),
    "a 32-bit call": (i386_call, {signal.SIGSYS, signal.SIGSEGV}),
}

# --- What honest work needs: each returns True. ---


def multiply_on_threads(room: Path) -> bool:
    import torch

    torch.set_num_threads(3)
    ones = torch.ones(700, 700)
    return bool((ones @ ones == 700).all()) and len(list_threads()) > 1


def list_threads() -> list[str]:
    status = Path("/proc/self/status").read_text()
    return ["thread"] * int(status.partition("Threads:")[2].split()[0])


def learn(room: Path) -> bool:
    import torch

    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.randn(256, 64)).square().mean().backward()
    optimizer.step()
    torch.save(layer.state_dict(), room / "layer.pt")
    return set(torch.load(room / "layer.pt")) == {"weight", "bias"}


def linear_algebra(room: Path) -> bool:
    import numpy as np

    matrix = np.random.default_rng(0).random((200, 200))
    np.save(room / "matrix.npy", matrix)
    loaded = np.load(room / "matrix.npy", mmap_mode="r+")
    return bool(np.allclose(loaded @ np.linalg.inv(matrix), np.eye(200)))


def plot(room: Path) -> bool:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 2], label="loss")
    axes.set_title("$p(x_t | x_{<t})$")
    axes.legend()
    for kind in ("png", "pdf", "svg"):
        figure.savefig(room / f"plot.{kind}")
    return (room / "plot.png").stat().st_size > 1000


def train_tokenizer(room: Path) -> bool:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=60, show_progress=False)
    tokenizer.train_from_iterator(["the cat sat on the mat"] * 1000, trainer)
    tokenizer.save(str(room / "tokenizer.json"))
    again = Tokenizer.from_file(str(room / "tokenizer.json"))
    return again.decode(again.encode_batch(["the cat"] * 100)[0].ids).replace(" ", "") == "thecat"


def most_of_the_memory(room: Path) -> bool:
    return len(bytearray(LIMITS.memory - 2**26)) > 0


def own_files(room: Path) -> bool:
    (room / "a/b").mkdir(parents=True)
    (room / "a/b/one").write_text("1")
    shutil.copy2(room / "a/b/one", room / "two")
    shutil.copytree(room / "a", room / "c")
    (room / "c/b/one").rename(room / "a/three")
    shutil.rmtree(room / "c")
    (room / "two").chmod(0o600)
    with (room / "two").open("r+") as file:
        file.truncate(0)
    left = {str(path) for path in Path().rglob("*")} - {"own.txt", "planted", "deeper"}
    return left == {"a", "a/b", "a/b/one", "a/three", "two"}


def temporary_files(room: Path) -> bool:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as file:
        file.write(b"x")
        return Path(folder).is_relative_to(room) and Path.home() == room


def asynchronous(room: Path) -> bool:
    async def work() -> int:
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(lambda: 7)

    return asyncio.run(work()) == 7


def threads(room: Path) -> bool:
    seen: list[int] = []
    workers = [threading.Thread(target=seen.append, args=(n,)) for n in range(20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(5)
    return sorted(seen) == list(range(20))


def interrupt_itself(room: Path) -> bool:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
        time.sleep(5)
        return False
    return True


def alarm_clock(room: Path) -> bool:
    rung: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    deadline = time.monotonic() + 5
    while not rung and time.monotonic() < deadline:
        time.sleep(0.01)
    return rung == [signal.SIGALRM]


def small_things(room: Path) -> bool:
    import datetime
    import zoneinfo

    print("lost, but no error")
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    noon = datetime.datetime(2024, 7, 1, 12, tzinfo=zone)
    packed = zlib.compress(random.Random(0).randbytes(1000))
    return noon.utcoffset() == datetime.timedelta(hours=2) and len(zlib.decompress(packed)) == 1000


def import_more(room: Path) -> bool:
    import sqlite3

    import scipy.optimize
    import torch.distributions
    import torch.nn.utils.parametrize

    sqlite3.connect(":memory:").execute("select 1")
    root = scipy.optimize.brentq(lambda x: x - 1, 0, 3)
    return bool(torch.distributions.Categorical(torch.ones(4)).entropy() > root)


HONEST: dict[str, Attempt] = {
    function.__name__: function
    for function in (
        multiply_on_threads,
        learn,
        linear_algebra,
        plot,
        train_tokenizer,
        most_of_the_memory,
        own_files,
        temporary_files,
        asynchronous,
        threads,
        interrupt_itself,
        alarm_clock,
        small_things,
        import_more,
    )
}

# --- What a confined process looks like from inside. ---


def open_fds(room: Path) -> list[int]:
    return [fd for fd in range(64) if is_open(fd)]


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def standard_streams(room: Path) -> bool:
    null = Path("/dev/null").stat()
    return all(os.path.samestat(os.fstat(fd), null) for fd in (0, 1, 2))


def change_modes(room: Path) -> bool:
    """Try to lock the grader out of its gradebook, and to forge its time."""
    before = gradebook(room).stat()
    gradebook(room).chmod(0)
    os.utime(gradebook(room), (0, 0))
    with (room.parent / "library/module.py").open() as file:
        os.fchmod(file.fileno(), 0)
        library = os.fstat(file.fileno())
    after = gradebook(room).stat()
    return (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime) and bool(
        library.st_mode & 0o400
    )


SEEN: dict[str, Attempt] = {
    "unrefused calls": unrefused_calls,
    "change modes": change_modes,
    "open fds": open_fds,
    "standard streams": standard_streams,
    "environment": lambda room: sorted(os.environ),
    "folder": lambda room: Path.cwd() == room,
    "session": lambda room: os.getsid(0) == os.getpid() == os.getpgrp(),
    "status": lambda room: sandbox._status(),
    "limits": lambda room: [
        resource.getrlimit(name)
        for name in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)
    ],
    "parent": lambda room: os.getppid(),
}
ATTEMPTS = REFUSED | {name: attempt for name, (attempt, _) in FATAL.items()} | HONEST | SEEN

# --- The warm parent. ---


def make_class(owner: int) -> Path:
    """Make a class folder with a gradebook, a library and a student's room, all `owner`'s."""
    folder = Path(tempfile.mkdtemp(prefix="class-"))
    (folder / "library").mkdir()
    (folder / "room/deeper").mkdir(parents=True)
    (folder / "gradebook.db").write_text("secret")
    (folder / "library/module.py").write_text("x = 1")
    (folder / "room/own.txt").write_text("mine")
    (folder / "room/planted").symlink_to(folder / "gradebook.db")
    folder.chmod(0o755)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, -1, follow_symlinks=False)
    return folder


def open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 1 for folder in path.resolve().parents)


def become(user: str) -> None:
    if user == "nobody":
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def attempt_once(order: dict[str, Any]) -> dict[str, Any]:
    """Fork, confine, attempt, and return what came of it."""
    user, name = order["user"], order["name"]
    folder = make_class(NOBODY if user == "nobody" else os.getuid())
    paths = [path for path in default_readable() if user == "myself" or open_to_all(path)]
    limits = Limits(LIMITS.memory, cpu_time=order.get("cpu_time", LIMITS.cpu_time))
    gpu = order.get("gpu", False)
    confinement = Confinement([*paths, folder / "library"], limits, gpu=gpu)
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        if order.get("seccomp_alone"):
            sandbox._restrict_files = sandbox._verify = lambda *arguments: None
        run_attempt(confinement if order["confined"] else None, user, name, folder, send)
    os.close(send)
    with os.fdopen(receive) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    shutil.rmtree(folder)
    ended = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {}
    return (json.loads(answer) if answer else {}) | ended


def run_attempt(
    confinement: Confinement | None, user: str, name: str, folder: Path, send: int
) -> None:
    """Be the child: never returns."""
    signal.alarm(30)
    room = folder / "room"
    became = False
    try:
        become(user)
        if confinement:
            confinement.apply(room, [send])
        became = True
        answer = {"result": ATTEMPTS[name](room)}
    except MemoryError:
        answer = {"errno": errno.ENOMEM}
    except OSError as error:
        answer = {"errno": error.errno, "text": str(error)}
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    os.write(send, json.dumps(answer | {"confined": became}, default=str).encode())
    os._exit(0)


def be_warm_parent() -> None:
    import matplotlib as mpl
    import numpy as np  # noqa: F401  imported for the children
    import tokenizers  # noqa: F401
    import torch  # noqa: F401

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: F401

    signal.signal(signal.SIGURG, signal.SIG_IGN)
    listeners = [socket.socket(socket.AF_UNIX, kind) for kind in (1, 2)]  # stream, datagram
    for listener in listeners:
        listener.bind(f"\0gradebook-{os.getpid()}")
    listeners[0].listen()
    for line in sys.stdin:
        print(json.dumps(attempt_once(json.loads(line))), flush=True)


Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def ask() -> Iterator[Ask]:
    """A function that has a warm parent make one attempt and returns what came of it."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as parent:
        assert parent.stdin
        assert parent.stdout
        stdin, stdout = parent.stdin, parent.stdout

        def ask(name: str, user: str = "myself", *, confined: bool = True, **more: Any) -> Any:
            order = {"name": name, "user": user, "confined": confined, **more}
            stdin.write(json.dumps(order) + "\n")
            stdin.flush()
            return json.loads(stdout.readline())

        yield ask
        stdin.close()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", REFUSED)
def test_refused(ask: Ask, name: str, user: str) -> None:
    answer = ask(name, user)
    assert answer["confined"], answer
    assert answer.get("errno") in ERRNOS.get(name, PERMISSION), answer


@pytest.mark.parametrize("name", OTHERWISE_OPEN)
def test_goes_through_without_confinement(ask: Ask, name: str) -> None:
    answer = ask(name, confined=False)
    assert "result" in answer, answer


@pytest.mark.parametrize(
    "name",
    [
        "truncate the gradebook",
        "empty a library by opening it",
        "signal the parent",
        "signal a thread of the parent",
        "signal the parent by F_SETOWN",
        "signal the parent by FIOSETOWN",
        "reach an abstract socket",
        "reach one without socket()",
        "start a program",
        "make a nameless file",
        "make a nameless file, emptied",
    ],
)
def test_seccomp_refuses_alone_what_an_old_landlock_does_not_know(ask: Ask, name: str) -> None:
    assert ask(name, seccomp_alone=True).get("errno") in PERMISSION
    assert "result" in ask("read the gradebook", seccomp_alone=True)  # Landlock is off


@pytest.mark.parametrize("user", USERS)
def test_no_forbidden_call_is_let_through(ask: Ask, user: str) -> None:
    assert ask("unrefused calls", user)["result"] == []


@pytest.mark.parametrize("name", FATAL)
def test_ends_the_process_and_nothing_else(ask: Ask, name: str) -> None:
    if not X86 and name.endswith("call"):
        pytest.skip("x86 has other numberings of system calls, this machine has not")
    assert ask(name, cpu_time=1).get("signal") in FATAL[name][1]
    assert ask("threads")["result"] is True


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_goes_on(ask: Ask, name: str) -> None:
    assert ask(name).get("result") is True


@pytest.mark.skipif("nobody" not in USERS, reason="only root can become another user")
@pytest.mark.parametrize(
    "name",  # those that import nothing more: Python may live where only root can go
    [
        "multiply_on_threads",
        "own_files",
        "temporary_files",
        "asynchronous",
        "threads",
        "interrupt_itself",
    ],
)
def test_honest_work_goes_on_as_another_user(ask: Ask, name: str) -> None:
    assert ask(name, "nobody").get("result") is True


def test_modes_and_times_of_others_files_never_change(ask: Ask) -> None:
    assert ask("change modes")["result"] is True
    assert ask("change modes", confined=False)["result"] is False


def test_only_the_standard_streams_and_the_channel_stay_open(ask: Ask) -> None:
    fds = ask("open fds")["result"]
    assert fds[:3] == [0, 1, 2]
    assert len(fds) == 4
    assert len(ask("open fds", confined=False)["result"]) > 4
    assert ask("standard streams")["result"] is True


def test_home_is_the_room_and_the_environment_says_nothing_else(ask: Ask) -> None:
    assert ask("environment")["result"] == ["HOME", "LANG", "MPLCONFIGDIR", "TMPDIR", "USER"]
    assert ask("folder")["result"] is True
    assert ask("session")["result"] is True


@pytest.mark.parametrize("user", USERS)
def test_no_privilege_is_left(ask: Ask, user: str) -> None:
    status = ask("status", user)["result"]
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"] + ["CapBnd"] * (user == "myself")
    assert {int(status[name], 16) for name in sets} == {0} or os.geteuid() != 0


def test_limits_are_hard(ask: Ask) -> None:
    assert ask("limits")["result"] == [[20_000_000] * 2, [128] * 2, [0] * 2]


@pytest.mark.parametrize("name", ["read the gradebook", "fork", "send UDP", "signal the parent"])
def test_a_gpu_opens_no_other_door(ask: Ask, name: str) -> None:
    answer = ask(name, gpu=True)
    assert answer["confined"], answer
    assert answer.get("errno") in ERRNOS.get(name, PERMISSION), answer
    assert ask("multiply_on_threads", gpu=True)["result"] is True


def in_child(work: Callable[[], None]) -> str:
    """Fork, work, and return what was raised there, or nothing."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            os.write(send, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def test_a_process_with_threads_is_not_confined_halfway(tmp_path: Path) -> None:
    confinement = Confinement()

    def start_thread_first() -> None:
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        confinement.apply(tmp_path)

    assert in_child(start_thread_first).startswith("CannotConfine: the process has 2 threads")


def test_only_the_parent_that_prepared_it_can_fork_for_it(tmp_path: Path) -> None:
    confinement = Confinement()
    grandchild = "CannotConfine: apply() is for children forked by the process that prepared it"

    def fork_again() -> None:
        raise RuntimeError(in_child(lambda: confinement.apply(tmp_path)))

    assert in_child(fork_again) == f"RuntimeError: {grandchild}"


def test_a_missing_room_is_named(tmp_path: Path) -> None:
    confinement = Confinement()
    text = in_child(lambda: confinement.apply(tmp_path / "absent"))
    assert text.startswith("CannotConfine")
    assert "absent" in text


def test_a_relative_room_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "room").mkdir()
    confinement = Confinement()

    def write() -> None:
        confinement.apply("room", [1, 2])
        Path("file").write_text("x")

    assert in_child(write) == ""
    assert (tmp_path / "room/file").read_text() == "x"


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    """A parent forks a confined child that sleeps, and is killed: the pipe closes with both."""
    script = f"""
import os, signal, time
from autograde.sandbox import Confinement
confinement = Confinement()
if os.fork() == 0:
    confinement.apply({str(tmp_path)!r}, [1])
    os.write(1, b"ready")
    time.sleep(20)
time.sleep(20)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=-1, cwd=MAIN) as parent:
        assert parent.stdout
        assert parent.stdout.read(5) == b"ready"
        began = time.monotonic()
        parent.kill()
        assert parent.stdout.read() == b""
        assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("layer", "complaint"),
    [
        ("sandbox._restrict_files", "Landlock is not in force"),
        ("syscalls.restrict", "seccomp is not in force"),
        ("sandbox._drop_privileges", "capabilities are left"),
    ],
)
def test_a_missing_layer_is_found_out(
    layer: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if layer == "sandbox._drop_privileges" and os.geteuid() != 0:
        pytest.skip("an ordinary user has no capabilities to leave")
    confinement = Confinement()
    monkeypatch.setattr(f"autograde.{layer}", lambda *arguments: None)
    report = tmp_path / "report"

    def confine() -> None:
        try:
            confinement.apply(tmp_path)
        except CannotConfine as error:
            report.write_text(str(error))

    in_child(confine)
    assert complaint in report.read_text()


def test_readable_paths_hold_nothing_of_the_course_or_the_user() -> None:
    paths = [path.resolve() for path in default_readable()]
    secrets = [MAIN / "autograde/source/level2.py", MAIN / "tests", MAIN / "classroom/gradebook.db"]
    secrets += [
        Path.home(),
        Path("/etc/passwd"),
        Path("/tmp"),
        Path("/root/.ssh"),
        Path("/var/log"),
    ]
    for secret in secrets:
        assert not any(secret.resolve().is_relative_to(path) for path in paths), secret


def test_the_doctor_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> list[str]:
        return [f"{name}: {detail}" for name, ok, detail in doctor() if not ok]

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyseccomp", None)
        assert "apt install libseccomp2" in lacking()[0]
    with monkeypatch.context() as patch:
        patch.setattr("landlockpy.abi_version", lambda: 0)
        assert "Linux 5.13" in lacking()[0]
        with pytest.raises(CannotConfine, match=r"landlock: .* Linux 5\.13"):
            Confinement()
    with monkeypatch.context() as patch:
        patch.setattr("landlockpy.abi_version", lambda: 3)
        assert not lacking()
        assert "left to seccomp alone: TCP" in doctor()[1].detail
    with monkeypatch.context() as patch:
        patch.setattr("platform.system", lambda: "Darwin")
        assert "only be confined on Linux" in lacking()[0]


def test_the_time_of_confinement_can_be_measured(tmp_path: Path) -> None:
    seconds = sandbox.time_apply(Confinement(), tmp_path, runs=3)
    assert len(seconds) == 3
    assert all(0 < second < 5 for second in seconds)


if __name__ == "__main__":
    be_warm_parent()
