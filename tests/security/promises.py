"""The one table of what a mode does not promise to stop. docs/security.md says the same in words.

An attack that is named here must get through in that mode: if it is stopped, the table is out of date."""

from __future__ import annotations

_SOCKETS = "Landlock has no say over connecting to a unix socket by path; the socket's own mode decides"
_LISTEN = "the kernel gives a TCP socket that listens without bind() a random port, and Landlock is not asked"
_PROC = "no pid namespace: the list of processes and their arguments (not their environments) are the machine's"
_DISK = "disk_mb is refused: nothing can be mounted; only the reserve that the host keeps free is left"


def _everywhere(reason: str) -> dict[str, str]:
    return {mode: reason for mode in ("full", "restricted", "unprivileged")}


NOT_PROMISED: dict[str, dict[str, str]] = {
    "connect to a socket of the host that is open to everybody": {"restricted": _SOCKETS},
    "serving tcp on the hosts network (without-bind)": _everywhere(_LISTEN),
    "arguments of others": {"restricted": _PROC},
    **{f"disk fill ({how})": {"restricted": _DISK} for how in ("write", "fallocate", "sparse", "shm-and-tmp")},
    "disk fill through the api": {"restricted": _DISK},
    "inode fill": {"restricted": _DISK},
    "tar bomb (big-member)": {"restricted": _DISK},
    "zip bomb of ones own": {"restricted": _DISK},
}


def not_promised(attack: str, mode: str) -> str | None:
    return NOT_PROMISED.get(attack, {}).get(mode)
