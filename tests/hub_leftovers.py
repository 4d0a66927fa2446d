"""What a hub has in the machine: what must be gone once it has ended its jobs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from host import all_pids, is_running, wait_until

LEASES = Path("/run/cay/uplinks")
ID_LEASES = Path("/run/cay/ids")
GROUPS = Path("/sys/fs/cgroup")
# Which user ids a hub has: engine/id_lease.cc.
IDS_BASE, IDS_OF_A_LEASE = 0x1000_0000 + 4096 * 65536, 3072 * 65536
ENDED = ("COMPLETED", "ERROR", "CANCELED")


def leftovers(top: Path, state: Path, programs: list[Path], uplinks: list[int]) -> dict[str, list]:
    """By kind; only those of which there are some. `uplinks`: those that the hub had."""
    try:
        wait_until(lambda: not running(programs), 5.0)
    except AssertionError:
        pass
    names = [p.read_text().strip() for p in (state / "name", state / "sandboxes/name") if p.exists()]
    found = {
        "processes": [(p, _command(p)) for p in running(programs)],
        "processes with its ids": [(p, _command(p)) for p in _with_ids_of(state)],
        "mounts": _mounts_below(top),
        "loop devices": _loops_below(top),
        "groups": [g for n in names if n for g in _groups(n)],
        # Looked at before who has them: another hub may take a number as soon as it is free.
        "leases": [u for u in uplinks if (LEASES / f"uplink.{u}").exists() and not _is_leased(u)],
        "links": [n for u in uplinks if (n := f"cayup{u}") in os.listdir("/sys/class/net") and not _is_leased(u)],
        "tables": [t for u in uplinks if (t := f"cay_uplink{u}") in _tables() and not _is_leased(u)],
        "sandboxes": [str(p) for place in ("sandboxes/sandboxes", "sandboxes/trash", "sandboxes/new", "images/new")
                      for p in state.glob(f"{place}/*")],
        "jobs": _unfinished_jobs(state),
    }
    return {kind: items for kind, items in found.items() if items}


def running(programs: list[Path]) -> list[int]:
    """All that run one of these, by their inodes: cay-net and keepers too."""
    wanted = [os.stat(program) for program in programs]
    found = []
    for pid in all_pids():
        try:
            own = os.stat(f"/proc/{pid}/exe")
        except OSError:
            continue
        if is_running(pid) and any(os.path.samestat(own, program) for program in wanted):
            found.append(pid)
    return found


def uplinks_of(programs: list[Path]) -> list[int]:
    """The numbers of its links to the machine's network."""
    numbers = set()
    for pid in running(programs):
        try:
            names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        numbers.update(int(m[1]) for name in names if (m := re.fullmatch(rf"{LEASES}/uplink\.(\d+)", name)))
    return sorted(numbers)


def _with_ids_of(state: Path) -> list[int]:
    """Processes of jobs, whatever they run. Once the block of ids has become another hub's, nothing can be told."""
    try:
        number = int((state / "ids").read_text())
        if (ID_LEASES / str(number)).read_text() != str(state):
            return []
    except (OSError, ValueError):
        return []
    first = IDS_BASE + number * IDS_OF_A_LEASE
    found = []
    for pid in all_pids():
        try:
            ids = re.search(r"^Uid:\s+(\d+)\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        except OSError:
            continue
        if ids and is_running(pid) and any(first <= int(u) < first + IDS_OF_A_LEASE for u in ids.groups()):
            found.append(pid)
    return found


def _mounts_below(top: Path) -> list[str]:
    """In whatever namespace there still is one."""
    found = []
    for pid in all_pids():
        try:
            lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
        except OSError:
            continue
        found += [f"{pid}: {line}" for line in lines if str(top) in line]
    return found


def _loops_below(top: Path) -> list[str]:
    found = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = file.read_text().strip()
        except OSError:
            continue
        if backing.startswith(str(top)):
            found.append(f"{file.parent.parent.name}: {backing}")
    return found


def _unfinished_jobs(state: Path) -> list[str]:
    """Records of jobs stay, for those who ask how they ended; those that are half made or not over do not."""
    found = []
    for folder in state.glob("jobs/*"):
        try:
            stage = json.loads((folder / "state.json").read_text())["stage"]
        except (OSError, ValueError, KeyError) as error:
            stage = repr(error)
        if folder.name.startswith("new.") or stage not in ENDED:
            found.append(f"{folder.name}: {stage}")
    return found


def _groups(name: str) -> list[str]:
    """Control groups of that name; those of others may come and go meanwhile."""
    return [folder for folder, _, _ in os.walk(GROUPS) if name in os.path.basename(folder)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def _is_leased(uplink: int) -> bool:
    """Whether somebody, another hub by now, has the uplink of that number."""
    try:
        with open(LEASES / f"uplink.{uplink}", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _tables() -> str:
    nft = shutil.which("nft") or "/usr/sbin/nft"
    return subprocess.run([nft, "list", "tables"], capture_output=True, text=True, check=False).stdout
