"""What this host offers to confine student code with, and what to do where something lacks.

Sources: the Linux manual, landlock(7), seccomp(2).
"""

import os
import platform
from pathlib import Path
from typing import NamedTuple

from autograde.syscalls import MACHINES


class Feature(NamedTuple):
    """One line of `doctor`: what the host offers, or what to do about it."""

    name: str
    ok: bool
    detail: str


def doctor() -> list[Feature]:
    """Return what this host offers for confinement; `detail` says what to do where `ok` is False.

    >>> [feature.name for feature in doctor()]
    ['system', 'landlock', 'seccomp', 'user']
    """
    return [_system_feature(), _landlock_feature(), _seccomp_feature(), _user_feature()]


def _system_feature() -> Feature:
    system, machine = platform.system(), platform.machine()
    ok = system == "Linux" and machine in MACHINES
    advice = "" if ok else f"; student code can only be confined on Linux, {' or '.join(MACHINES)}"
    return Feature("system", ok, f"{system} {platform.release()} on {machine}{advice}")


def _landlock_feature() -> Feature:
    try:
        from landlockpy import abi_version
    except ImportError as error:
        return Feature("landlock", False, f"{error}; install landlockpy")
    abi = abi_version()
    if abi < 1:
        detail = "not there; it needs Linux 5.13 or newer, started with landlock among lsm="
        return Feature("landlock", False, detail)
    rights = {
        2: "renaming across folders",
        4: "TCP",
        5: "device ioctl",
        6: "signals, abstract sockets",
    }
    lacking = [right for needed, right in rights.items() if abi < needed]
    left = f"; left to seccomp alone: {', '.join(lacking)}" if lacking else ""
    return Feature("landlock", True, f"ABI {abi}{left}")


def _seccomp_feature() -> Feature:
    try:
        import pyseccomp
    except (ImportError, RuntimeError, OSError) as error:  # RuntimeError: no libseccomp to load
        advice = "install pyseccomp and libseccomp2 (Debian: apt install libseccomp2)"
        return Feature("seccomp", False, f"{error}; {advice}")
    if not Path("/proc/sys/kernel/seccomp/actions_avail").exists():
        return Feature("seccomp", False, "the kernel was built without seccomp filters")
    return Feature("seccomp", True, f"filters, libseccomp API level {pyseccomp.get_api()}")


def _user_feature() -> Feature:
    if not hasattr(os, "geteuid"):
        return Feature("user", True, "no user ids here")
    root = os.geteuid() == 0
    detail = (
        "root: student code keeps uid 0, without any capability" if root else "an ordinary user"
    )
    return Feature("user", True, detail)
