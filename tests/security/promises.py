"""The one table of what a mode does not promise to stop. docs/security.md says the same in words.

An attack that is named here must get through in that mode: if it is stopped, the table is out of date."""

from __future__ import annotations

_SOCKETS = "Landlock has no say over connecting to a unix socket by path; the socket's own mode decides"
_LISTEN = "the kernel gives a TCP socket that listens without bind() a random port, and Landlock is not asked"
_PROC = "no pid namespace: the list of processes and their arguments (not their environments) are the machine's"
_DISK = "disk_mb is refused: no disk can be mounted; only the reserve that the host keeps free is left"
_GROUPS = "no control group is delegated: each process is limited, not their sum"
_TOLD = "no control group is delegated: the kernel refuses the process and counts it nowhere"


def _without_disks() -> dict[str, str]:
    return {mode: _DISK for mode in ("restricted", "unprivileged")}


def _everywhere(reason: str) -> dict[str, str]:
    """In pools, where a sandbox may have the network of the machine."""
    return {mode: reason for mode in ("full", "restricted", "unprivileged")}


NOT_PROMISED: dict[str, dict[str, str]] = {
    "connect to a socket of the host that is open to everybody": {"restricted": _SOCKETS},
    "serving tcp on the hosts network (without-bind)": _everywhere(_LISTEN),
    "arguments of others": {"restricted": _PROC},
    **{f"disk fill ({how})": _without_disks() for how in ("write", "fallocate", "sparse", "shm-and-tmp")},
    "memory bomb of many processes": {"unprivileged": _GROUPS},
    "fork bomb is told": {"unprivileged": _TOLD},
    "disk fill through the api": _without_disks(),
    "inode fill": _without_disks(),
    "tar bomb (big-member)": _without_disks(),
    "zip bomb of ones own": _without_disks(),
}


def not_promised(attack: str, mode: str) -> str | None:
    return NOT_PROMISED.get(attack, {}).get(mode)
