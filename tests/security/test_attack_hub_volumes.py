"""Attacks by and on what is mounted into a hub's jobs: volumes, their links, and the two files of the network."""

from __future__ import annotations

import os

import pytest

from arena import Breach

GROUP = "hub: volumes"
KINDS = ("dedicated", "plain")


def bucket(arena, name: str, at: str = "/data", **fields) -> dict:
    return {"type": "bucket", "source": f"{arena.host.eve.name}/{name}", "mountPath": at, **fields}


WRITES = """
def tries(top):
    inner = [os.path.join(root, name) for root, _, names in os.walk(top) for name in names]
    print(top, inner)
    for name, act in (
            ("make", lambda: os.open(top + "/new", os.O_CREAT | os.O_WRONLY)), ("mkdir", lambda: os.mkdir(top + "/folder")),
            ("link", lambda: os.symlink("x", top + "/link")), ("chmod", lambda: os.chmod(top, 0o777)),
            ("chown", lambda: os.chown(top, 1, 1)), ("utime", lambda: os.utime(top)),
            ("xattr", lambda: os.setxattr(top, "user.x", b"x")), ("fifo", lambda: os.mkfifo(top + "/fifo")),
            ("rmdir", lambda: os.rmdir(top)), ("rename", lambda: os.rename(top, top + "-moved"))):
        def full(): act(); breach(name, "in", top)
        attempt(full)
    for path in inner:
        for name, act in (
                ("open", lambda: os.open(path, os.O_WRONLY)), ("append", lambda: os.open(path, os.O_WRONLY | os.O_APPEND)),
                ("truncate", lambda: os.truncate(path, 0)), ("unlink", lambda: os.unlink(path)),
                ("chmod", lambda: os.chmod(path, 0o777)), ("rename", lambda: os.rename(path, path + "-moved")),
                ("link out", lambda: os.link(path, "/tmp/linked")),
                ("again", lambda: os.open(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}", os.O_RDWR))):
            def full(): act(); breach(name, path)
            attempt(full)
    for flags in (32, 32 | 4096):
        if libc.mount(None, top.encode(), None, ctypes.c_ulong(flags), None) == 0: breach("mounted again", top)
    if libc.umount2(top.encode(), 2) == 0: breach("unmounted", top)
"""


@pytest.mark.parametrize("kind", ["model", "bucket", "server"])
def test_writing_to_a_volume_that_is_read_only(arena, kind):
    volume = {
        "model": {"type": "model", "source": f"{arena.host.owner.name}/model", "mountPath": "/data"},
        "bucket": bucket(arena, "read-only", readOnly=True),
        # What a plain job has there is the very program that serves sandboxes.
        "server": {"type": "bucket", "source": "huggingface/sbx-server", "mountPath": "/data"},
    }[kind]
    folder = arena.hub.state / "volumes/buckets" / arena.host.eve.name / "read-only"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "file").write_text("kept")
    attacker = arena.attacker(volumes=[volume])
    arena.script(attacker, WRITES + 'if os.path.isdir("/data"): tries("/data")\nelse: print("not mounted")')
    if (folder / "file").read_text() != "kept" or os.listdir(folder) != ["file"]:
        raise Breach("the bucket has changed")


def test_a_volume_that_can_be_written_gives_no_rights(arena):
    """Devices, setuid files and files of other owners in a bucket mean nothing, inside and outside."""
    attacker = arena.attacker(volumes=[bucket(arena, "own")])
    arena.script(
        attacker,
        """
import shutil
open("/data/file", "w").write("x")
for kind, major, minor in ((stat.S_IFCHR, 1, 1), (stat.S_IFBLK, 254, 0), (stat.S_IFCHR, 1, 3)):
    def act(): os.mknod("/data/node", kind | 0o666, os.makedev(major, minor)); os.open("/data/node", os.O_RDONLY); breach("opened a node")
    attempt(act)
shutil.copy("/usr/bin/id", "/data/id"); attempt(os.chown, "/data/id", 1000, 1000); attempt(os.chmod, "/data/id", 0o6755)
out = subprocess.run(["/data/id", "-u"], capture_output=True, text=True); print(out)
if out.stdout.strip() == "1000": breach("a setuid file of a volume works")
attempt(os.setxattr, "/data/id", "security.capability", struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0xffffffff, 0))
""",
    )
    folder = arena.hub.state / "volumes/buckets" / arena.host.eve.name / "own"
    assert (folder / "file").exists()
    if arena.hub.state.stat().st_mode & 0o077:
        raise Breach("others of the machine can pass the state folder, where files of jobs are root's")


def test_the_bucket_of_another_user(arena):
    owner = arena.host.owner
    for read_only in (True, False):
        attacker = arena.admitted(volumes=[
            {"type": "bucket", "source": f"{owner.name}/private", "mountPath": "/data", "readOnly": read_only}])
        if attacker is not None:
            arena.script(attacker, 'for name in attempt(os.listdir, "/data") or []: show(attempt(slurp, "/data/" + name))')
            raise Breach("mounted")


def test_making_a_bucket_of_another_user(arena):
    owner = arena.host.owner
    folder = arena.hub.state / "volumes/buckets" / owner.name / "planted"
    arena.admitted(volumes=[{"type": "bucket", "source": f"{owner.name}/planted", "mountPath": "/data"}])
    if folder.exists():
        folder.rmdir()
        raise Breach("made a bucket in the namespace of another")


LINKS = """
for name, target in zip(sys.argv[1::2], sys.argv[2::2]):
    attempt(os.unlink, "/data/" + name); os.symlink(target, "/data/" + name)
os.makedirs("/data/plain/deep", exist_ok=True); open("/data/plain/file", "w").write("mine")
"""
SEEK = """
print(attempt(os.listdir, "/data"))
for root, folders, files in os.walk("/data"):
    for name in files[:100]: show(attempt(slurp, os.path.join(root, name)))
    if root.count("/") > 4: folders[:] = []
for path in sys.argv[1:]: show(attempt(slurp, path))
"""


def test_links_in_a_bucket(arena):
    """They are laid by one job and lead a later mount nowhere; inside they lead where the job may look anyway."""
    state, owner = arena.hub.state, arena.host.owner
    targets = {
        "etc": "/etc", "root": "/", "state": str(state), "tokens": str(state / "tokens"), "up": "../../..",
        "private": f"../../{owner.name}/private", "file": str(arena.root_file), "proc": "/proc/self/root",
        "token": str(state / "tokens/admin"), "self": "self",
    }
    maker = arena.attacker(volumes=[bucket(arena, "links")])
    arena.script(maker, LINKS, *[part for pair in targets.items() for part in pair])
    assert arena.admitted(volumes=[bucket(arena, "links", path="plain")]) is not None, "a plain path works"
    for path in (*targets, "etc/ssl", "up/..", "plain/../etc", "state/tokens", "private/file", "proc/etc"):
        attacker = arena.admitted(volumes=[bucket(arena, "links", path=path)])
        if attacker is not None:
            arena.script(attacker, SEEK)
            raise Breach(f"mounted by the link {path}")
    whole = arena.attacker(volumes=[bucket(arena, "links")])
    arena.script(whole, SEEK, *[f"/data/{p}" for p in ("file", "token", "tokens/admin", "private/file", "up/tokens/admin")])


def test_links_that_are_swapped_while_they_are_mounted(arena):
    owner = arena.host.owner
    swapper = arena.attacker(volumes=[bucket(arena, "race")])
    code = """
import ctypes, os, sys
os.makedirs("/data/race", exist_ok=True)
if not os.path.lexists("/data/other"): os.symlink(sys.argv[1], "/data/other")
libc = ctypes.CDLL(None)
while True: libc.syscall(316, -100, b"/data/race", -100, b"/data/other", 2)
"""
    swapper.client().spawn(["/usr/bin/python3", "-c", code, f"../../{owner.name}/private"], timeout=30)
    admitted = 0
    for _ in range(12):
        attacker = arena.admitted(volumes=[bucket(arena, "race", path="race")])
        if attacker is None:
            continue
        arena.made.remove(attacker)
        try:
            arena.script(attacker, SEEK)
            admitted += 1
        except AssertionError as error:
            print("refused:", error)  # a plain job mounts once more for its script
        finally:
            attacker.delete()
    print(f"{admitted} of 12 were admitted")


@pytest.mark.parametrize("name", ["/etc/hosts", "/etc/resolv.conf"])
def test_the_files_of_the_network(arena, attacker, name):
    """They are the hub's, mounted over those of the image."""
    done = arena.script(
        attacker,
        """
path = sys.argv[1]
before = slurp(path)
for what, act in (
        ("open", lambda: os.open(path, os.O_WRONLY)), ("append", lambda: os.open(path, os.O_RDWR | os.O_APPEND)),
        ("truncate", lambda: os.truncate(path, 0)), ("unlink", lambda: os.unlink(path)), ("chmod", lambda: os.chmod(path, 0o666)),
        ("chown", lambda: os.chown(path, 1, 1)), ("rename", lambda: os.rename(path, path + ".old")),
        ("link", lambda: os.link(path, "/tmp/linked")), ("utime", lambda: os.utime(path)),
        ("again", lambda: os.open(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}", os.O_RDWR))):
    def full(): act(); breach(what, path)
    attempt(full)
open("/tmp/mine", "w").write("mine")
def over(): os.rename("/tmp/mine", path); breach("replaced", path)
attempt(over)
if libc.umount2(path.encode(), 2) == 0: breach("unmounted", path)
if libc.mount(None, path.encode(), None, ctypes.c_ulong(32 | 4096), None) == 0: breach("mounted again", path)
if libc.mount(b"/tmp/mine", path.encode(), None, ctypes.c_ulong(4096), None) == 0: breach("mounted over", path)
if slurp(path) != before: breach("changed", path)
# Its folder can be moved away and made anew, which changes what this job sees and nothing else.
attempt(os.rename, "/etc", "/etc-moved")
""",
        name,
    )
    assert "refused" in done.stdout


@pytest.mark.parametrize("at", ["/etc", "/etc/hosts", "/etc/resolv.conf", "/", "/proc", "/proc/self", "/dev", "/dev/shm", "/sys",
                                "/sys/fs/cgroup", "//etc", "/etc/../etc", "/./etc/hosts", "data", "", "/s", "/usr/bin"])
def test_volumes_in_odd_places(arena, at):
    """A bucket with links where files of the hub are mounted, over what the sandbox stands on."""
    maker = arena.attacker(volumes=[bucket(arena, "odd")])
    arena.script(
        maker, LINKS + 'for name in ("python3", "sh"): open("/data/" + name, "w").write("#!/bin/false")',
        "hosts", "/root/planted", "resolv.conf", str(arena.world_file), "passwd", str(arena.root_file))
    attacker = arena.admitted(volumes=[bucket(arena, "odd", at)])
    if at.startswith(("/proc", "/dev", "/sys", "/etc/hosts", "/etc/resolv")) or at in ("/", "data", "", "//etc", "/etc/../etc"):
        if attacker is not None:
            raise Breach(f"mounted at {at}")
    if attacker is not None and at != "/usr/bin":
        arena.script(attacker, 'show(attempt(slurp, "/etc/hosts")); show(attempt(slurp, "/etc/resolv.conf")); show(attempt(slurp, "/etc/passwd"))')
    if attacker is not None and at == "/usr/bin":
        arena.made.remove(attacker)  # its own programs are gone
        attacker.delete()


@pytest.mark.parametrize("field, value", [
    ("source", "eve/.."), ("source", "../eve"), ("source", "eve/."), ("source", "eve"), ("source", "/etc/x"), ("source", "eve/a/b"),
    ("source", "eve/a\0b"), ("source", "eve/%2e%2e"), ("path", "../own"), ("path", "/etc"), ("path", "a/../../own"),
    ("path", "a\0b"), ("path", "a//../.."), ("revision", "../x"), ("revision", "a/b"), ("type", "host"), ("type", "../buckets"),
])
def test_names_that_lead_out_of_the_volumes(arena, field, value):
    attacker = arena.admitted(volumes=[{**bucket(arena, "named"), field: value}])
    if attacker is None:
        return
    inside = arena.script(attacker, SEEK)
    raise Breach(f"{field} {value!r} was taken: {inside.stdout[:200]}")
