"""The system calls that student code may make: tables of names, and rules for their arguments.

An allow-list: what is not named here is refused. `sandbox` puts it in force in each child.

Sources: the Linux manual, seccomp(2), syscalls(2), and the headers named beside the numbers.
"""

import errno
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyseccomp import SyscallFilter

MACHINES = ("x86_64", "aarch64")  # those this list was thought through for

# Harmless whatever the arguments. Names a machine lacks (open on aarch64) are skipped.
ALLOWED = """
    brk munmap mprotect mremap madvise msync
    read write readv writev pread64 pwrite64 preadv pwritev lseek sendfile copy_file_range
    close dup dup2 dup3 pipe pipe2 eventfd2 fsync fdatasync flock ftruncate fadvise64
    stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2
    readlink readlinkat getdents64 getcwd chdir fchdir umask
    mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2
    poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
    sendto recvfrom shutdown getsockname getpeername getsockopt
    futex set_robust_list rseq membarrier set_tid_address sched_yield sched_getaffinity
    sched_getparam sched_getscheduler getpriority getcpu exit exit_group wait4 waitid
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend
    sigaltstack restart_syscall pause alarm getitimer setitimer
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete
    nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times
    getpid gettid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getresuid getresgid
    getgroups getrusage getrlimit uname sysinfo getrandom capget
"""

# Refused with the answer that lets honest callers go on; all other calls get EPERM.
ANSWERED = {
    # glibc falls back to clone, whose flags can be looked at; others to older calls
    errno.ENOSYS: "clone3 openat2 io_uring_setup io_uring_enter io_uring_register",
    # shutil.copy2 lives without attributes, posix_fallocate writes zeros under the size limit
    errno.EOPNOTSUPP: "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr fallocate",
    # Pretended: they reach files that can only be read, and shutil.copy needs them to succeed.
    0: "chmod fchmod fchmodat fchmodat2 utime utimes utimensat futimesat",
}

# Calls that are harmless with one of these values of an argument. What is not here would signal
# others (F_SETOWN, F_SETSIG, FIOSETOWN), type for them (TIOCSTI), or undo the confinement.
OPTIONS = (
    # linux/fcntl.h: DUPFD, GETFD, SETFD, GETFL, SETFL, GETLK, SETLK, SETLKW, DUPFD_CLOEXEC
    ("fcntl", 1, (0, 1, 2, 3, 4, 5, 6, 7, 1030)),
    # asm-generic/ioctls.h: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
    ("ioctl", 1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    # linux/prctl.h: PR_SET_NAME, PR_GET_NAME
    ("prctl", 0, (15, 16)),
    # asm/prctl.h, x86 only: ARCH_GET_XCOMP_SUPP, _GET_XCOMP_PERM, _REQ_XCOMP_PERM: wide registers
    ("arch_prctl", 0, (0x1021, 0x1022, 0x1023)),
)
EVERY_BIT = 2**64 - 1


def allow_list(gpu: bool) -> "SyscallFilter":
    """Return the allow-list, but for signals to itself: only the child knows its process id."""
    from pyseccomp import ALLOW, ERRNO, KILL_PROCESS, Arch, Attr, SyscallFilter, resolve_syscall

    calls = SyscallFilter(ERRNO(errno.EPERM))
    calls.set_attr(Attr.ACT_BADARCH, KILL_PROCESS)  # x32 and 32-bit calls have other numbers
    actions = {ALLOW: ALLOWED} | {ERRNO(answer): names for answer, names in ANSWERED.items()}
    for action, names in actions.items():
        for name in names.split():
            if resolve_syscall(Arch.NATIVE, name) != -1:  # else newer than this libseccomp: EPERM
                calls.add_rule(action, name)
    _allow_threads_and_memory(calls, gpu)
    _allow_opening(calls)
    _allow_options(calls, gpu)
    return calls


def _allow(calls: "SyscallFilter", name: str, *tests: tuple[int, int, int]) -> None:
    """Allow a call if for each (argument number, mask, value): argument & mask == value."""
    from pyseccomp import ALLOW, MASKED_EQ, Arg

    calls.add_rule(ALLOW, name, *(Arg(n, MASKED_EQ, mask, value) for n, mask, value in tests))


def _allow_threads_and_memory(calls: "SyscallFilter", gpu: bool) -> None:
    # Threads as pthread_create makes them, sharing everything: no process, no new namespace, and
    # no second table of open files. 0x400000 is musl's CLONE_DETACHED, which does nothing.
    _allow(calls, "clone", (0, EVERY_BIT ^ 0x400000, 0x3D0F00))
    # Shared anonymous pages, stacks that grow and huge pages are not counted as data.
    shared, anonymous, uncounted = 0x01, 0x20, 0x100 | 0x40000  # MAP_GROWSDOWN | MAP_HUGETLB
    _allow(calls, "mmap", (3, shared | uncounted, 0))
    _allow(calls, "mmap", (3, anonymous | uncounted, 0))
    if gpu:
        _allow(calls, "mmap")


def _allow_opening(calls: "SyscallFilter") -> None:
    # O_RDONLY | O_TRUNC empties a file that can only be read, under a Landlock below ABI 3.
    # O_TMPFILE makes a file that no scan of the folder sees; tempfile then makes one with a name.
    nameless = os.O_TMPFILE & ~os.O_DIRECTORY
    for name, flags in (("open", 1), ("openat", 2)):
        _allow(calls, name, (flags, nameless | os.O_TRUNC, 0))
        for mode in (os.O_WRONLY, os.O_RDWR):
            mask = nameless | os.O_TRUNC | os.O_ACCMODE
            _allow(calls, name, (flags, mask, os.O_TRUNC | mode))
    # Connected stream pairs only: a datagram socket could be sent to any address.
    kind = EVERY_BIT ^ (socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    _allow(calls, "socketpair", (0, EVERY_BIT, socket.AF_UNIX), (1, kind, socket.SOCK_STREAM))


def _allow_options(calls: "SyscallFilter", gpu: bool) -> None:
    for name, argument, values in OPTIONS:
        for value in values:
            _allow(calls, name, (argument, EVERY_BIT, value))
    if gpu:
        _allow(calls, "ioctl")
    _allow(calls, "prlimit64", (0, EVERY_BIT, 0), (2, EVERY_BIT, 0))  # read its own


def restrict(calls: "SyscallFilter") -> None:
    """Put the allow-list in force, with signals to this process added."""
    from pyseccomp import ALLOW, EQ, Arg

    itself = Arg(0, EQ, os.getpid())  # not 0 or -1, which mean groups
    for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        calls.add_rule(ALLOW, name, itself)
    calls.load()
