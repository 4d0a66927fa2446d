"""Attacks on files: other homes, the host's secrets, links, dots and races, from inside and through the file API."""

from __future__ import annotations

import io
import os
import tarfile
import threading
import time

import pytest

from arena import Breach

GROUP = "files"


def links(arena, attacker, **targets) -> None:
    """Symbolic links in the attacker's home."""
    arena.script(
        attacker,
        """
for pair in sys.argv[1:]:
    name, target = pair.split("=", 1)
    os.symlink(target, os.environ["HOME"] + "/" + name)
""",
        *[f"{name}={target}" for name, target in targets.items()],
    )


def api(arena, sandbox, method, route, path, body=None, **query):
    """One call of the file API, whose answer is searched for secrets."""
    answer = sandbox.client(timeout=20).request(method, f"/v1/files/{route}", query={"path": path, **query}, body=body)
    arena.search(answer.body)
    assert answer.status < 500 or answer.status == 507, (answer.status, answer.body)
    return answer


# ---- from inside


def test_read_the_host_by_its_paths(arena, attacker):
    arena.script(
        attacker,
        """
for path in sys.argv[1:]:
    show(attempt(slurp, path)); print(attempt(os.listdir, os.path.dirname(path)))
""",
        arena.root_file,
        arena.world_file,
        arena.shm,
        arena.state_file,
    )


def test_write_the_host_by_its_paths(arena, attacker):
    arena.script(
        attacker,
        """
for path in sys.argv[1:]:
    def act():
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)   # not created: only what is there already
        os.write(fd, b"defaced"); breach("wrote to", path)
    attempt(act)
    attempt(os.truncate, path, 3); attempt(os.chmod, path, 0o777); attempt(os.unlink, path)
""",
        arena.root_file,
        arena.world_file,
        arena.shm,
        arena.state_file,
    )


def test_the_victims_home_by_its_path(arena, attacker):
    state = arena.host.state
    folder = state / "sandboxes" / arena.victim.id
    arena.script(
        attacker,
        """
for path in sys.argv[1:]:
    show(attempt(slurp, path + "/secret")); print(attempt(os.listdir, path))
    for root, folders, files in os.walk(path):
        for name in files: show(attempt(slurp, os.path.join(root, name)))
""",
        state,
        folder,
        folder / "home",
        folder / "tops",
        folder / "record.json",
        arena.victim_home,
    )


def test_records_and_tokens_in_the_state_folder(arena, attacker):
    state = arena.host.state
    arena.script(
        attacker,
        """
for path in sys.argv[1:]: show(attempt(slurp, path))
""",
        state / "sandboxes" / arena.victim.id / "record.json",
        state / "sandboxes" / attacker.id / "record.json",
        state / "gone.jsonl",
        state / "name",
    )


def test_every_readable_file_of_the_machine(arena, attacker):
    """A walk over everything but /usr and /proc, for the secrets by content."""
    arena.script(
        attacker,
        """
seen = 0
for root, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(root, f) not in ("/proc", "/usr", "/sys")]
    for name in files:
        path = os.path.join(root, name)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode) and os.lstat(path).st_size < 4096 and seen < 20000:
                data = slurp(path, 4096); seen += 1
                for word in (b"host-", b"victim-"):
                    if word in data: show(data)
        except OSError: pass
""",
    )


def test_shadow_and_private_keys_of_the_host(arena, attacker):
    done = arena.script(
        attacker,
        r"""
for path in ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key", "/etc/sudoers"):
    data = attempt(slurp, path)
    if data: print("GOT", path, data.hex())
for path in glob.glob("/etc/ssl/private/*"): breach("a private key:", path)
""",
    )
    for line in done.stdout.splitlines():
        if line.startswith("GOT"):
            _, path, data = line.split()
            if (
                path != "/etc/sudoers"
                and os.path.exists(path)
                and open(path, "rb").read() == bytes.fromhex(data) != b""
            ):
                raise Breach(f"{path} of the host")


def test_homes_and_services_of_the_host(arena, attacker):
    """Folders that belong to the host's own life are not in the image."""
    done = arena.script(
        attacker,
        """
for path in ("/root", "/home", "/run", "/var/lib", "/srv", "/mnt", "/media", "/boot", "/var/log", "/var/spool", "/work"):
    for name in attempt(os.listdir, path) or []: print("NAME", path + "/" + name)
""",
    )
    names = {line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("NAME")}
    own = {
        "/var/lib/dpkg",
        "/var/lib/apt",
        "/var/lib/misc",
        "/var/lib/sgml-base",
        "/var/lib/xml-core",
        "/var/lib/python",
        "/var/lib/systemd",
        "/var/lib/ucf",
        "/var/lib/pam",
        "/var/lib/shells.state",
        "/run/lock",
        "/var/log/apt",
        "/root/.sbx",
        "/root/.bashrc",
        "/root/.profile",
        "/root/.local",
        "/root/.cache",
        "/root/.tmp",
    }
    foreign = sorted(n for n in names - own if os.path.lexists(n))
    if foreign:
        raise Breach(f"shown: {foreign[:10]}")


def test_tmp_and_shm_are_private(arena, attacker):
    arena.script(
        attacker,
        """
for folder in ("/tmp", "/var/tmp", "/dev/shm", os.environ["TMPDIR"]):
    for name in attempt(os.listdir, folder) or []:
        path = os.path.join(folder, name)
        if "victim" in name or "cay-" in name or "pytest" in name: breach("sees", path)
        show(attempt(slurp, path))
""",
    )


def test_hard_links_to_what_is_not_ours(arena, attacker):
    arena.script(
        attacker,
        """
for number, path in enumerate(sys.argv[1:]):
    link = os.environ["HOME"] + f"/hard{number}"
    def act(): os.link(path, link); show(slurp(link)); breach("linked", path)
    attempt(act)
""",
        arena.root_file,
        arena.world_file,
        arena.state_file,
        arena.host.binary,
    )


def test_file_handles(arena, attacker):
    """open_by_handle_at with guessed inode numbers reaches any file of a filesystem, if it is allowed."""
    arena.script(
        attacker,
        """
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 8)]
for start in ("/", "/usr", "/etc", os.environ["HOME"]):
    fd = attempt(os.open, start, os.O_RDONLY)
    if fd is None: continue
    for inode in (2, *map(int, sys.argv[1:])):
        handle = Handle(8, 1, (ctypes.c_ubyte * 8)(*struct.pack("<II", inode, 0)))
        result, name = syscall(304, fd, ctypes.byref(handle), os.O_RDONLY)
        if result >= 0: breach("opened inode", inode, os.listdir(result) if inode == 2 else slurp(f"/proc/self/fd/{result}"))
        else: print(name)
""",
        os.stat(arena.root_file).st_ino,
    )


def test_overlay_attributes(arena, attacker):
    """Attributes by which overlayfs is told to show another folder of its layers."""
    arena.script(
        attacker,
        """
home = os.environ["HOME"]
os.mkdir(home + "/trick")
for name in ("trusted.overlay.redirect", "trusted.overlay.opaque", "trusted.overlay.origin", "user.overlay.redirect",
             "user.overlay.metacopy", "security.capability"):
    attempt(os.setxattr, home + "/trick", name, b"/../../../../..")
print(os.listdir(home + "/trick"))
if os.listdir(home + "/trick"): breach("the folder shows", os.listdir(home + "/trick"))
""",
    )
    arena.script(attacker, "print(os.listdir(os.environ['HOME'] + '/trick'))")


def test_setuid_files_give_nothing(arena, attacker):
    """A setuid file of the attacker's own, and those of the image, run with no more than its own ids."""
    arena.script(
        attacker,
        """
import shutil
home = os.environ["HOME"]
for target in ("/usr/bin/id", "/usr/bin/cat"):
    copy = home + "/" + os.path.basename(target)
    shutil.copy(target, copy); attempt(os.chown, copy, 0, 0); attempt(os.chmod, copy, 0o6755)
    print(subprocess.run([copy, "/etc/hostname"] if "cat" in copy else [copy], capture_output=True).stdout)
    show(subprocess.run([copy, sys.argv[1]], capture_output=True).stdout)
if subprocess.run(["su", "-c", "cat " + sys.argv[1], "root"], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0: breach("su")
""",
        arena.root_file,
    )


def test_setuid_files_are_no_danger_outside(arena, attacker):
    """A setuid-root file made inside must not be one for the host's users."""
    arena.script(
        attacker,
        """
import shutil
path = os.environ["HOME"] + "/suid"
shutil.copy("/usr/bin/id", path); attempt(os.chown, path, 0, 0); attempt(os.chmod, path, 0o4755)
""",
    )
    for folder, _, names in os.walk(arena.host.state / "sandboxes"):
        for name in names:
            found = os.lstat(os.path.join(folder, name))
            if name == "suid" and found.st_mode & 0o4000 and found.st_uid == 0:
                raise Breach("a file of host root with the setuid bit")


# ---- through the file API

DOTS = (
    "..",
    "../",
    "/..",
    "../../../../../../../..",
    "a/../../../../../../..",
    "./../.",
    "..//..//..//..//..",
    "%2e%2e/%2e%2e",
    "..\\..\\..",
    "/proc/self/root",
    "/proc/1/root",
    "/proc/self/cwd/../../..",
    "/proc/thread-self/root",
)


@pytest.mark.parametrize("route", ["read", "stat", "list", "tar"])
def test_dots_and_proc_paths(arena, attacker, route):
    for dots in DOTS:
        for target in (
            arena.root_file,
            arena.world_file,
            arena.state_file,
            arena.host.state / "sandboxes" / arena.victim.id / "home" / "secret",
        ):
            path = f"{dots}{target.parent if route in ('list', 'tar') else target}"
            answer = api(arena, attacker, "GET", route, path)
            if answer.status == 200 and target.name.encode() in answer.body and route != "read":
                raise Breach(f"{route} of {path}")


def test_dots_in_writes(arena, attacker):
    for dots in DOTS:
        api(arena, attacker, "PUT", "write", f"{dots}{arena.world_file}", b"defaced")
        api(arena, attacker, "PUT", "write", f"{dots}{arena.world_folder}/new", b"defaced")
        api(arena, attacker, "POST", "mkdir", f"{dots}{arena.world_folder}/new-folder")
        api(arena, attacker, "DELETE", "delete", f"{dots}{arena.world_file}")
    if sorted(os.listdir(arena.world_folder)) != ["file", "host.sock"]:
        raise Breach("the folder of the host has changed")


@pytest.mark.parametrize("route", ["read", "stat", "list", "tar", "watch"])
def test_links_out_of_the_sandbox(arena, attacker, route):
    links(
        arena,
        attacker,
        file=arena.root_file,
        world=arena.world_file,
        folder=arena.world_folder,
        state=arena.host.state,
        victim=arena.host.state / "sandboxes" / arena.victim.id / "home",
        shm=arena.shm,
        root="/proc/1/root",
        cwd="/proc/1/cwd",
        up="../../../../../../../../..",
    )
    for name in (
        "file",
        "world",
        "folder",
        "folder/file",
        "state/host-secret",
        "victim/secret",
        "shm",
        "root" + str(arena.root_file),
        "cwd",
        "up" + str(arena.world_file),
        "root",
        "state",
        "victim",
    ):
        path = arena.path(attacker, name)
        if route == "watch":
            with attacker.client(timeout=2).stream("GET", "/v1/files/watch", query={"path": path}) as stream:
                if stream.status == 200 and name in ("folder", "state", "victim", "world", "shm"):
                    raise Breach(f"watches {name}")
            continue
        answer = api(arena, attacker, "GET", route, path)
        if route in ("list", "tar") and answer.status == 200 and b"host-secret" in answer.body:
            raise Breach(f"{route} of {name}")


def test_writes_through_links(arena, attacker):
    links(arena, attacker, file=arena.root_file, world=arena.world_file, folder=arena.world_folder)
    for name in ("file", "world", "folder/file", "folder/new"):
        api(arena, attacker, "PUT", "write", arena.path(attacker, name), b"defaced", mode="666")
        api(arena, attacker, "PUT", "write", arena.path(attacker, name), b"defaced", offset=0)
        api(arena, attacker, "PUT", "write", arena.path(attacker, name), b"defaced", offset=3, truncate_to=5)
    if arena.root_file.read_text() != arena.secrets["host-root-file"] or os.path.exists(arena.world_folder / "new"):
        raise Breach("wrote through a link")


def test_mkdir_through_links(arena, attacker):
    links(arena, attacker, folder=arena.world_folder, file=arena.world_file)
    for name in ("folder", "folder/made", "folder/made/deep", "file", "file/made"):
        api(arena, attacker, "POST", "mkdir", arena.path(attacker, name))
    if os.path.exists(arena.world_folder / "made") or os.stat(arena.world_folder).st_uid != 0:
        raise Breach("made or took over a folder of the host")


def test_deletes_through_links(arena, attacker):
    links(arena, attacker, folder=arena.world_folder, file=arena.world_file, up="../../../../../../..")
    for name in ("folder/file", "up" + str(arena.world_file), "folder", "file"):
        api(arena, attacker, "DELETE", "delete", arena.path(attacker, name), recursive=1)
    links(arena, attacker, again=arena.world_folder)
    arena.script(
        attacker,
        "os.mkdir(os.environ['HOME'] + '/d'); os.symlink(sys.argv[1], os.environ['HOME'] + '/d/l')",
        arena.world_folder,
    )
    api(arena, attacker, "DELETE", "delete", arena.path(attacker, "d"), recursive=1)
    if not arena.world_file.exists():
        raise Breach("deleted a file of the host")


def test_moves_through_links(arena, attacker):
    links(arena, attacker, folder=arena.world_folder)
    arena.put(attacker, "own", "x")
    client = attacker.client()
    for source, sink in (("folder/file", "stolen"), ("own", "folder/planted")):
        answer = client.post("/v1/files/move", {"from": arena.path(attacker, source), "to": arena.path(attacker, sink)})
        arena.search(answer.body)
    arena.search(api(arena, attacker, "GET", "read", arena.path(attacker, "stolen")).body)
    if os.path.exists(arena.world_folder / "planted") or not arena.world_file.exists():
        raise Breach("moved a file of the host")


def archive(*members) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data, changes in members:
            info = tarfile.TarInfo(name)
            for key, value in changes.items():
                setattr(info, key, value)
            info.size = len(data) if data is not None else 0
            tar.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def test_archives_that_break_out(arena, attacker):
    world, symlink, hard = str(arena.world_folder), {"type": tarfile.SYMTYPE}, {"type": tarfile.LNKTYPE}
    links(arena, attacker, folder=world)
    for members in (
        [(f"../../../../../../../..{world}/new", b"x", {})],
        [(f"{world}/new", b"x", {})],
        [("l", None, {**symlink, "linkname": world}), ("l/new", b"x", {})],
        [("folder/new", b"x", {})],
        [("h", None, {**hard, "linkname": str(arena.world_file)}), ("h", b"defaced", {})],
        [("h2", None, {**hard, "linkname": str(arena.root_file)})],
        [("h3", None, {**hard, "linkname": "folder/file"})],
        [("folder", None, {"type": tarfile.DIRTYPE, "mode": 0o700})],
        [
            (
                "disk",
                None,
                {
                    "type": tarfile.BLKTYPE,
                    "devmajor": os.major(os.stat("/").st_dev),
                    "devminor": os.minor(os.stat("/").st_dev),
                    "mode": 0o666,
                },
            )
        ],
    ):
        for target in ("into", "folder", "."):
            answer = attacker.client().put("/v1/files/tar", archive(*members), path=arena.path(attacker, target))
            assert answer.status < 500, answer.body
    for name in ("into/h", "into/h2", "h2", "h3", "into/h3"):
        api(arena, attacker, "GET", "read", arena.path(attacker, name))
    arena.script(
        attacker,
        """
for root, folders, files in os.walk(os.environ["HOME"]):
    for name in files:
        if stat.S_ISBLK(os.lstat(os.path.join(root, name)).st_mode): breach("a block device", name)
""",
    )
    if os.path.exists(arena.world_folder / "new"):
        raise Breach("unpacked outside")


@pytest.mark.parametrize("route", ["read", "write", "mkdir", "delete"])
def test_race_of_swapped_links(arena, attacker, route):
    """While the API is called, a name alternates between a folder and a link that leads outside."""
    process = attacker.client().spawn(
        [
            "/usr/bin/python3",
            "-c",
            """
import ctypes, os, sys
os.chdir(os.environ["HOME"])
os.mkdir("race"); open("race/file", "w").write("own")
os.symlink(sys.argv[1], "other")
print("up", flush=True)
libc = ctypes.CDLL(None)
while True: libc.syscall(316, -100, b"race", -100, b"other", 2)   # renameat2(RENAME_EXCHANGE)
""",
            str(arena.world_folder),
        ]
    )
    path = f"/v1/processes/{process['id']}"
    while "up" not in attacker.client().output(path).stdout:
        time.sleep(0.02)
    client, until = attacker.client(keep=True), time.monotonic() + 1.5
    base = arena.path(attacker, "race")
    try:
        while time.monotonic() < until:
            if route == "read":
                arena.search(client.get("/v1/files/read", path=f"{base}/file").body)
            elif route == "write":
                client.put("/v1/files/write", b"own", path=f"{base}/file")
                client.put("/v1/files/write", b"own", path=f"{base}/new")
            elif route == "mkdir":
                client.post("/v1/files/mkdir", path=f"{base}/new")
            else:
                client.delete("/v1/files/delete", path=f"{base}/file")
                client.put("/v1/files/write", b"own", path=f"{base}/file")
    finally:
        attacker.client().delete(path)
    if arena.world_file.read_text() != arena.secrets["host-world-file"] or len(os.listdir(arena.world_folder)) != 2:
        raise Breach("the race was won")


def test_magic_links_of_proc(arena, attacker):
    """Descriptors and roots of cay-host itself, if the API looked them up as its own."""
    names = [
        f"/proc/{who}/{what}"
        for who in ("self", "thread-self", "1", arena.host.pid)
        for what in ("environ", "cmdline", "root", "cwd", "exe", "maps", *[f"fd/{n}" for n in range(3, 24)])
    ]
    for name in names:
        for route in ("read", "list"):
            answer = attacker.client(timeout=10).get(f"/v1/files/{route}", path=name)
            arena.search(answer.body)
            if answer.status == 200 and (
                arena.victim.id.encode() in answer.body or str(arena.host.state).encode() in answer.body
            ):
                raise Breach(f"{route} of {name}: {answer.body[:80]!r}")


def test_special_files_do_not_hold_the_host(arena, attacker):
    """Reading and writing pipes, terminals and endless devices through the API ends at once."""
    arena.script(
        attacker,
        """
os.chdir(os.environ["HOME"]); os.mkfifo("fifo"); os.symlink("/dev/zero", "zero"); os.symlink("/dev/tty", "tty")
s = socket.socket(socket.AF_UNIX); s.bind("socket")
""",
    )
    for name in ("fifo", "zero", "tty", "socket"):
        began = time.monotonic()
        answer = attacker.client(timeout=15).get("/v1/files/read", path=arena.path(attacker, name))
        assert answer.status in (400, 403, 404, 409), (name, answer.status)
        attacker.client(timeout=15).put("/v1/files/write", b"x" * 100_000, path=arena.path(attacker, name))
        if time.monotonic() - began > 10:
            raise Breach(f"{name} holds a thread of the host")


@pytest.mark.parametrize(
    "cwd", ["/proc/self/fd/{n}", "/proc/self/fd/{n}/../../..", "/proc/1/fd/{n}", "/proc/self/cwd/../../../.."]
)
def test_working_folder_through_descriptors(arena, attacker, cwd):
    """A leaked descriptor of the starter as the working folder: the way out of older container runtimes."""
    for number in range(3, 16):
        answer = attacker.client().post(
            "/v1/exec",
            {
                "cmd": f"pwd; ls -a; cat secret {arena.root_file} .{arena.root_file} "
                f"../../../../../../..{arena.root_file}",
                "cwd": cwd.format(n=number),
            },
        )
        arena.search(answer.body)
        if answer.status == 200 and (arena.victim.id.encode() in answer.body or b"host-secret" in answer.body):
            raise Breach(f"stands in the host's folder with {cwd.format(n=number)}")
        if "{n}" not in cwd:
            break


def test_endless_reads_of_growing_files(arena, attacker):
    """A file that grows while it is read: the answer has the length that was told, then ends."""
    process = attacker.client().spawn("while :; do head -c 100000 /dev/zero; done > $HOME/grows")
    time.sleep(0.3)
    stop = threading.Timer(10, lambda: attacker.client().delete(f"/v1/processes/{process['id']}"))
    stop.start()
    answer = attacker.client(timeout=30).get("/v1/files/read", path=arena.path(attacker, "grows"))
    assert answer.status == 200 and int(answer.headers["Content-Length"] or len(answer.body)) == len(answer.body)
    stop.cancel()
    attacker.client().delete(f"/v1/processes/{process['id']}")
