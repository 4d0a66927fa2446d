"""Attacks on namespaces, mounts and roots."""

from __future__ import annotations

import io
import os
import socket as sockets
import tarfile

import pytest

from arena import Breach

GROUP = "namespaces and mounts"

MOUNT = """
def mount(source, target, kind, flags=0, data=None):
    e = lambda x: x.encode() if x is not None else None
    if libc.mount(e(source), e(target), e(kind), ctypes.c_ulong(flags), e(data)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def unshare(flags):
    if libc.unshare(flags) != 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""
MOUNTS = {
    "tmpfs": ("none", "/tmp", "tmpfs", 0),
    "proc": ("none", "/tmp", "proc", 0),
    "sysfs": ("none", "/tmp", "sysfs", 0),
    "bind": ("/etc", "/tmp", None, 4096),
    "remount": (None, "/", None, 32),
    "remount-usr": (None, "/usr", None, 32 | 4096),
    "overlay": ("none", "/tmp", "overlay", 0),
    "devtmpfs": ("none", "/tmp", "devtmpfs", 0),
    "move": ("/proc", "/tmp", None, 8192),
    "cgroup": ("none", "/tmp", "cgroup", 0),
    "cgroup2": ("none", "/tmp", "cgroup2", 0),
    "debugfs": ("none", "/tmp", "debugfs", 0),
    "ext4": ("/dev/vda", "/tmp", "ext4", 1),
    "propagation": (None, "/", None, 1 << 20 | 16384),
}


@pytest.mark.parametrize("kind", MOUNTS)
def test_mount(arena, attacker, kind):
    arena.script(
        attacker,
        MOUNT
        + f"""
def act(): mount(*{MOUNTS[kind]!r}); breach("mounted {kind}")
attempt(act)
""",
    )


@pytest.mark.parametrize("target", ["/proc", "/dev", "/", "/usr", "/dev/shm"])
def test_unmount(arena, attacker, target):
    arena.script(
        attacker,
        """
for flags in (0, 2):
    if libc.umount2(sys.argv[1].encode(), flags) == 0: breach("unmounted")
""",
        target,
    )


def test_new_mount_calls(arena, attacker):
    """fsopen, fsconfig, fsmount, open_tree, move_mount, mount_setattr, fspick"""
    arena.script(
        attacker,
        """
for name, number, arguments in (("fsopen tmpfs", 430, (b"tmpfs", 0)), ("fsopen proc", 430, (b"proc", 0)),
        ("open_tree clone", 428, (-100, b"/", 1)), ("open_tree clone recursive", 428, (-100, b"/", 1 | 0x8000)),
        ("fspick", 433, (-100, b"/", 0)), ("move_mount", 429, (-100, b"/proc", -100, b"/tmp", 0)),
        ("mount_setattr", 442, (-100, b"/", 0x8000, struct.pack("=QQQQ", 0, 1, 0, 0), 32))):
    result, error = syscall(number, *arguments)
    print(name, result, error)
    if result >= 0: breach(name)
""",
    )


def test_pivot_root(arena, attacker):
    arena.script(
        attacker,
        """
os.makedirs(os.environ["HOME"] + "/new/old")
for new, old in ((os.environ["HOME"] + "/new", os.environ["HOME"] + "/new/old"), ("/", "/"), (".", ".")):
    result, error = syscall(155, new.encode(), old.encode())
    if result == 0: breach("pivoted to", new)
    print(error)
""",
    )


def test_chroot_escape_by_a_descriptor(arena, attacker):
    """chroot below, then up through a descriptor that was opened before."""
    arena.script(
        attacker,
        """
home = os.environ["HOME"]
os.makedirs(home + "/jail", exist_ok=True)
top = os.open("/", os.O_PATH)
attempt(os.chroot, home + "/jail")
os.fchdir(top)
for _ in range(64): os.chdir("..")
attempt(os.chroot, ".")
for path in sys.argv[1:]: show(attempt(slurp, "." + path)); show(attempt(slurp, path))
print(attempt(os.listdir, "."))
try:
    open("." + sys.argv[2]).close()
    breach("reads the state folder")
except OSError as error: print(error)
""",
        arena.root_file,
        arena.host.state / "host-secret",
    )


SPACES = {
    "mount": 0x20000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x8000000,
    "uts": 0x4000000,
    "cgroup": 0x2000000,
    "time": 0x80,
}


@pytest.mark.parametrize("space", SPACES)
def test_new_namespaces_without_a_user_namespace(arena, attacker, space):
    arena.script(
        attacker,
        MOUNT
        + f"""
def act(): unshare({SPACES[space]}); breach("a new {space} namespace")
attempt(act)
""",
    )


USER = """
def as_new_root(extra=0):
    uid, gid = os.getuid(), os.getgid()
    unshare(0x10000000 | extra)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        try: open("/proc/self/" + name, "w").write(text)
        except OSError as error: print(name, error)
"""


def test_user_namespace_then_mounts(arena, attacker):
    """With a user namespace of its own it may be root there: still nothing of the host comes into view."""
    arena.script(
        attacker,
        MOUNT
        + USER
        + """
def act():
    as_new_root(0x20000)
    home = os.environ["HOME"]; os.makedirs(home + "/m", exist_ok=True)
    for arguments in (("none", home + "/m", "proc"), ("none", home + "/m", "sysfs"), ("none", home + "/m", "cgroup2"),
                      (None, "/", None, 32 | 4096), (None, "/usr", None, 32 | 4096), ("none", home + "/m", "devtmpfs")):
        def one(): mount(*arguments); breach("mounted", arguments)
        attempt(one)
    for path in sys.argv[1:]: show(attempt(slurp, path))
attempt(act)
""",
        arena.root_file,
        arena.state_file,
    )


def test_user_namespace_maps_ids_of_others(arena, attacker):
    """Mapping the victim's or the host's ids into one's own namespace."""
    victim = {os.stat(f"/proc/{p}").st_uid for p in arena.victim_outer}
    arena.script(
        attacker,
        MOUNT
        + """
own = os.getuid()
for outer in (0, 1, 65534, 65536, *map(int, sys.argv[1:])):
    child = os.fork()
    if child == 0:
        try:
            unshare(0x10000000)
            open("/proc/self/uid_map", "w").write(f"0 {outer} 2")
            if outer != own: breach("mapped", outer)
        except OSError as error: print(error)
        os._exit(0)
    os.waitpid(child, 0)
""",
        *victim,
    )


def test_clone3_hides_its_flags_from_filters(arena, attacker):
    """clone3 takes its flags in memory, where seccomp cannot look."""
    arena.program(attacker, "clone3_user")


def test_entering_the_keepers_namespaces(arena, attacker):
    arena.script(
        attacker,
        """
for pid in (1, os.getppid(), *map(int, sys.argv[1:])):
    for name in ("mnt", "pid", "net", "user", "ipc", "uts", "cgroup"):
        def act():
            fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
            same = os.stat(f"/proc/self/ns/{name}").st_ino == os.fstat(fd).st_ino
            if libc.setns(fd, 0) == 0 and not same: breach("entered", name, "of", pid)
        attempt(act)
    handle, error = syscall(434, pid, 0)
    if handle >= 0 and libc.setns(handle, 0x20000 | 0x10000000) == 0: breach("entered all of", pid)
""",
        arena.host.pid,
        *arena.victim_outer,
    )


def test_control_groups(arena, attacker):
    """Leaving one's limits, and release_agent, which the kernel runs as root of the host."""
    arena.script(
        attacker,
        MOUNT
        + USER
        + """
for folder in glob.glob("/sys/fs/cgroup/*") + glob.glob("/sys/fs/cgroup/*/*") + ["/sys/fs/cgroup"]:
    for name in ("cgroup.procs", "tasks", "release_agent", "notify_on_release", "memory.max", "pids.max", "cgroup.kill"):
        def act():
            fd = os.open(os.path.join(folder, name), os.O_WRONLY)
            breach("opened for writing", folder, name)
        try: act()
        except OSError: pass
def release():
    as_new_root(0x20000 | 0x2000000)
    home = os.environ["HOME"]; os.makedirs(home + "/cg", exist_ok=True)
    mount("none", home + "/cg", "cgroup", 0, "memory")
    open(home + "/cg/release_agent", "a"); breach("release_agent is writable")
attempt(release)
""",
    )


def test_names_of_the_machine(arena, attacker):
    arena.script(
        attacker,
        """
attempt(socket.sethostname, "defaced")
result, error = syscall(171, b"defaced", 7); print("setdomainname", result, error)
""",
    )
    if sockets.gethostname() == "defaced":
        raise Breach("renamed the host")


def shared_memory(arena, attacker, mode):
    victim = arena.host.create()
    try:
        key = 0x5EC00 + mode
        made = victim.client().exec(
            [
                "/usr/bin/python3",
                "-c",
                f"""
import ctypes; c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p
i = c.shmget({key}, 4096, 0o1000 | {mode})
if i < 0: print(i); raise SystemExit
a = c.shmat(i, None, 0)
ctypes.memmove(a, b"{arena.secrets["victim-tmp"]}", 40); print(i)""",
            ]
        )
        if arena.walls == "restricted":
            # Without an IPC namespace such memory would be the whole machine's; nobody may make any.
            assert made.exit["exit_code"] != 0 or int(made.stdout) < 0, made.stdout
            return
        assert made.exit["exit_code"] == 0 and int(made.stdout) >= 0, made.stderr
        arena.script(
            attacker,
            f"""
libc.shmat.restype = ctypes.c_void_p
for segment in [libc.shmget({key}, 0, 0), *range(0, 40)]:
    if segment >= 0:
        address = libc.shmat(segment, None, 0o10000)
        if address and address != ctypes.c_void_p(-1).value: show(ctypes.string_at(address, 64))
print(slurp("/proc/sysvipc/shm"))
""",
        )
    finally:
        victim.delete()


def test_shared_memory_of_the_victim(arena, attacker):
    shared_memory(arena, attacker, 0o600)


def test_shared_memory_of_the_victim_that_is_open_to_everybody(arena, attacker):
    shared_memory(arena, attacker, 0o666)


def test_message_queues_of_others(arena, attacker):
    victim = arena.host.create()
    try:
        made = victim.client().exec(
            [
                "/usr/bin/python3",
                "-c",
                """
import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(240, b"victim-queue", 0o102, 0o600, 0)""",
            ]
        )
        assert made.exit["exit_code"] == 0
        arena.script(
            attacker,
            """
result, error = syscall(240, b"victim-queue", 0)
if result >= 0: breach("opened the victim's queue")
print(error, attempt(os.listdir, "/dev/mqueue"))
""",
        )
    finally:
        victim.delete()


def test_device_nodes(arena, attacker):
    """The host's disk, memory and ports, by nodes of one's own."""
    disk = os.stat("/").st_dev
    arena.script(
        attacker,
        """
home = os.environ["HOME"]
for name, kind, major, minor in (("disk", stat.S_IFBLK, int(sys.argv[1]), int(sys.argv[2])), ("mem", stat.S_IFCHR, 1, 1),
        ("kmsg", stat.S_IFCHR, 1, 11), ("port", stat.S_IFCHR, 1, 4), ("kvm", stat.S_IFCHR, 10, 232), ("fuse", stat.S_IFCHR, 10, 229),
        ("loop", stat.S_IFBLK, 7, 0), ("control", stat.S_IFCHR, 10, 237), ("tun", stat.S_IFCHR, 10, 200), ("null", stat.S_IFCHR, 1, 3)):
    def act():
        os.mknod(home + "/" + name, kind | 0o666, os.makedev(major, minor))
        fd = os.open(home + "/" + name, os.O_RDONLY); breach("opened its own node", name)
    attempt(act)
""",
        os.major(disk),
        os.minor(disk),
    )


def test_device_nodes_through_the_api(arena, attacker):
    """mknod by tar, as the host's root would do it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("mem")
        info.type, info.devmajor, info.devminor, info.mode = tarfile.CHRTYPE, 1, 1, 0o666
        tar.addfile(info)
    attacker.client().put("/v1/files/tar", out.getvalue(), path=arena.path(attacker, "made"))
    arena.script(
        attacker,
        """
path = os.environ["HOME"] + "/made/mem"
if os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode): breach("a device node was made")
""",
    )


def test_devices_that_are_there(arena, attacker):
    done = arena.script(
        attacker,
        """
for root, folders, files in os.walk("/dev"):
    for name in files:
        path = os.path.join(root, name)
        info = os.lstat(path)
        if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode):
            for flags in (os.O_RDONLY, os.O_WRONLY):
                try: os.close(os.open(path, flags | os.O_NONBLOCK)); print("OPENS", path)
                except OSError: pass
""",
    )
    harmless = {"/dev/" + n for n in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts/ptmx")}
    opened = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("OPENS")}
    if opened - harmless:
        raise Breach(f"opens {sorted(opened - harmless)}")
