"""Attacks by exhaustion: whoever uses up something uses up its own."""

from __future__ import annotations

import io
import os
import socket
import tarfile
import threading
import time

import pytest

from arena import Breach
from host import SANITIZED, rss_bytes, wait_until

GROUP = "resource exhaustion"
pytestmark = pytest.mark.slow


class Neighbour:
    """The victim runs a small command again and again meanwhile; it must never fail and never wait long."""

    def __init__(self, arena, patience: float = 10.0) -> None:
        self.arena, self.patience = arena, patience
        self.slowest, self.errors, self.rounds = 0.0, [], 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        client = self.arena.victim.client(timeout=60)
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                if client.exec("echo $((40+2))").stdout != "42\n":
                    self.errors.append("wrong output")
            except Exception as error:  # pylint: disable=broad-except
                self.errors.append(repr(error))
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.rounds += 1
            time.sleep(0.02)

    def __enter__(self) -> "Neighbour":
        self._thread.start()
        return self

    def __exit__(self, kind, *unused) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:
            if self.errors:
                raise Breach(f"the neighbour suffered: {self.errors[:3]}")
            if self.slowest > self.patience:
                raise Breach(f"the neighbour waited {self.slowest:.1f} s")


def test_fork_bomb(arena):
    sandbox = arena.limited(pids=64)
    with Neighbour(arena):
        done = sandbox.client(timeout=60).exec(
            # The last one without a fork, which the bomb may leave no room for.
            "bomb() { bomb | bomb & sleep 0.05; bomb; }; bomb 2>/dev/null & exec sleep 60", timeout=4
        )
    assert done.exit["timed_out"], done.exit
    if len(sandbox.commands()) > 64:
        raise Breach(f"{len(sandbox.commands())} processes")
    wait_until(lambda: not sandbox.commands(), 20, "the end of the bomb after its timeout")


def test_fork_bomb_is_told(arena):
    sandbox = arena.limited(pids=32)
    done = sandbox.client().exec(
        [
            "/usr/bin/python3",
            "-c",
            """
import os, time
made = 0
try:
    for _ in range(200):
        if os.fork() == 0: time.sleep(30); os._exit(0)
        made += 1
except OSError as error: print(made, error)
print("END", flush=True)
os.killpg(0, 9)
""",
        ],
        timeout=30,
    )
    made = int(done.stdout.split()[0])
    if made > 32:
        raise Breach(f"{made} processes")
    if "pids" not in done.exit["limits_hit"]:
        raise Breach(f"the limit is not told: {done.exit['limits_hit']}")


def test_fork_bomb_against_its_deletion(arena):
    sandbox = arena.limited(pids=200)
    client = sandbox.client(timeout=60)
    client.spawn("bomb() { setsid sh -c 'trap \"\" TERM; sleep 100' & bomb & bomb; }; bomb 2>/dev/null")
    time.sleep(1)
    began = time.monotonic()
    assert sandbox.delete().status == 200
    try:
        wait_until(lambda: not sandbox.commands(), 10)
    except AssertionError as error:
        raise Breach(f"survivors: {len(sandbox.commands())}") from error
    if time.monotonic() - began > 10:
        raise Breach("the deletion took too long")


def test_memory_bomb(arena):
    sandbox = arena.limited(memory_mb=64)
    with Neighbour(arena):
        done = sandbox.client(timeout=60).exec(
            ["/usr/bin/python3", "-c", "x = [bytearray(1 << 20) for _ in range(600)]; print('got it')"], timeout=30
        )
    if "got it" in done.stdout:
        raise Breach("600 MiB in a sandbox of 64")
    if done.exit["signal"] == 9:
        assert done.exit["cause"] == "oom", done.exit


def test_memory_bomb_of_many_processes(arena):
    """Each stays small; together they are not."""
    sandbox = arena.limited(memory_mb=64, pids=100)
    with Neighbour(arena):
        done = sandbox.client(timeout=60).exec(
            "for i in $(seq 20); do python3 -c \"x = bytearray(20 << 20); import time; time.sleep(2); print('alive')\" & done; wait",
            timeout=30,
        )
    if done.stdout.count("alive") > 6:
        raise Breach(f"{done.stdout.count('alive') * 20} MiB in a sandbox of 64")


def test_memory_bomb_in_files(arena):
    """/dev/shm is memory too."""
    sandbox = arena.limited(memory_mb=64)
    with Neighbour(arena):
        done = sandbox.client(timeout=60).exec(
            "head -c 300000000 /dev/zero > /dev/shm/big; ls -l /dev/shm/big | awk '{print $5}'", timeout=30
        )
    size = int(done.stdout.split()[-1]) if done.stdout.split() and done.stdout.split()[-1].isdigit() else 0
    if size >= 200_000_000:
        raise Breach(f"{size} bytes of memory in a sandbox of 64 MiB")
    sandbox.client().exec("rm -f /dev/shm/big")


def test_processor_hog(arena):
    sandbox = arena.limited(cpus=0.2)
    with Neighbour(arena, patience=5):
        done = sandbox.client(timeout=60).exec(
            "for i in 1 2 3 4; do (while :; do :; done) & done; sleep 3; kill $(jobs -p)", timeout=10
        )
    used = done.exit["usage"]["user_ms"] + done.exit["usage"]["system_ms"]
    if used > 0.5 * done.exit["duration_ms"]:
        raise Breach(f"{used} ms of CPU in {done.exit['duration_ms']} ms with 0.2 processors")


@pytest.mark.parametrize("how", ["write", "fallocate", "sparse", "shm-and-tmp"])
def test_disk_fill(arena, how):
    sandbox = arena.limited(disk_mb=32)
    before = os.statvfs(arena.host.state)
    done = sandbox.client(timeout=60).exec(
        {
            "write": "head -c 200000000 /dev/zero > $HOME/big",
            "fallocate": "fallocate -l 200000000 $HOME/big",
            "sparse": "for i in $(seq 200); do head -c 1000000 /dev/zero > $HOME/big$i || break; done; du -sm $HOME",
            "shm-and-tmp": "head -c 100000000 /dev/zero > $TMPDIR/big; head -c 100000000 /dev/zero > $HOME/big",
        }[how],
        timeout=40,
    )
    after = os.statvfs(arena.host.state)
    used = (before.f_bfree - after.f_bfree) * before.f_frsize
    size = sandbox.client().exec("du -sm $HOME $TMPDIR 2>/dev/null | awk '{s += $1} END {print s}'").stdout
    if int(size or 0) > 40:
        raise Breach(f"{size.strip()} MiB in a sandbox of 32; {used >> 20} MiB of the host")
    assert "disk" in done.exit["limits_hit"], done.exit
    sandbox.client().exec("rm -rf $HOME/big* $TMPDIR/big*")


def test_disk_fill_through_the_api(arena):
    sandbox = arena.limited(disk_mb=32)
    answer = sandbox.client(timeout=60).put("/v1/files/write", bytes(100 << 20), path=arena.path(sandbox, "big"))
    if answer.status == 200:
        raise Breach("100 MiB in a sandbox of 32")
    assert answer.error
    sandbox.works()


def test_inode_fill(arena):
    sandbox = arena.limited(disk_mb=32)
    done = sandbox.client(timeout=60).exec(
        [
            "/usr/bin/python3",
            "-c",
            """
import os
os.chdir(os.environ["HOME"]); os.mkdir("many"); os.chdir("many")
made = 0
try:
    for number in range(150_000): os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY)); made += 1
except OSError as error: print(error)
print(made, "END")
""",
        ],
        timeout=50,
    )
    made = int(done.stdout.split("END")[0].split()[-1])
    if made >= 150_000:
        raise Breach("150 000 files in a sandbox of 32 MiB")
    sandbox.client(timeout=60).exec("rm -rf $HOME/many")


def test_descriptors(arena, attacker):
    with Neighbour(arena):
        arena.script(
            attacker,
            """
held = []
try:
    while len(held) < 200_000: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error: print(len(held), error)
if len(held) >= 200_000: breach("has no limit of descriptors")
children = [os.fork() for _ in range(8)]
if 0 in children: time.sleep(0.5); os._exit(0)
""",
        )


def test_pipes_and_sockets(arena):
    """Kernel memory in pipe and socket buffers."""
    sandbox = arena.limited(memory_mb=128)
    with Neighbour(arena):
        sandbox.client(timeout=60).exec(
            [
                "/usr/bin/python3",
                "-c",
                """
import fcntl, os, socket
held = []
try:
    for _ in range(3000):
        r, w = os.pipe(); held += [r, w]; os.set_blocking(w, False)
        try: fcntl.fcntl(w, 1031, 1 << 20)
        except OSError: pass
        try: os.write(w, bytes(1 << 20))
        except OSError: pass
except OSError as error: print(error)
""",
            ],
            timeout=30,
        )


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is no measure")
def test_output_flood_nobody_reads(arena, attacker):
    with Neighbour(arena):
        streams = [attacker.client().exec_stream(["yes"]) for _ in range(8)]
        for stream in streams:
            stream.next("start")
        time.sleep(2)
        sizes = {p: rss_bytes(p) for p in arena.host.processes()}
        for stream in streams:
            stream.close()
    if max(sizes.values()) > 128 << 20:
        raise Breach(f"a process of the host has grown to {max(sizes.values()) >> 20} MiB")


def test_output_flood_in_the_background(arena, attacker):
    process = attacker.client().spawn(["yes"])
    with Neighbour(arena):
        time.sleep(2)
    used = sum(
        os.lstat(os.path.join(r, f)).st_blocks * 512
        for r, _, fs in os.walk(arena.host.state / "sandboxes" / attacker.id / "execs")
        for f in fs
    )
    attacker.client().delete(f"/v1/processes/{process['id']}")
    if used > 256 << 20:
        raise Breach(f"{used >> 20} MiB of log")


def test_input_flood_nobody_reads(arena, attacker):
    process = attacker.client().spawn("exec sleep 60")
    before = rss_bytes(arena.host.pid)

    def pour():
        try:
            attacker.client(timeout=4).post(f"/v1/processes/{process['id']}/stdin", bytes(200 << 20))
        except OSError:
            pass

    thread = threading.Thread(target=pour)
    with Neighbour(arena):
        thread.start()
        time.sleep(2)
        grown = rss_bytes(arena.host.pid) - before
        attacker.client().delete(f"/v1/processes/{process['id']}")
        thread.join()
    if grown > 64 << 20 and not SANITIZED:
        raise Breach(f"the host has grown by {grown >> 20} MiB")


def test_folder_of_100000_files(arena, attacker):
    client = attacker.client(timeout=60)
    client.exec(
        [
            "/usr/bin/python3",
            "-c",
            """
import os
os.chdir(os.environ["HOME"]); os.mkdir("many"); os.chdir("many")
for number in range(100_000): os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))""",
        ],
        timeout=60,
    )
    with Neighbour(arena):
        answer = client.get("/v1/files/list", path=arena.path(attacker, "many"), limit=1000)
        assert answer.status == 200 and len(answer.json()["entries"]) == 1000
        assert client.get("/v1/files/list", path=arena.path(attacker, "many")).status in (200, 400, 413)
        with client.stream(
            "GET", "/v1/files/watch", query={"path": arena.path(attacker, ""), "recursive": 1}
        ) as stream:
            assert stream.status in (200, 400, 409, 507)
        began = time.monotonic()
        arena.made.remove(attacker)
        assert attacker.delete().status == 200
        if time.monotonic() - began > 5:
            raise Breach("the deletion holds its caller")


def test_deep_folder(arena, attacker):
    arena.script(
        attacker,
        """
os.chdir(os.environ["HOME"]); os.mkdir("deep"); os.chdir("deep")
for _ in range(5000): os.mkdir("d" * 20); os.chdir("d" * 20)
""",
    )
    client = attacker.client(timeout=60)
    with Neighbour(arena):
        with client.stream(
            "GET", "/v1/files/watch", query={"path": arena.path(attacker, "deep"), "recursive": 1}, timeout=15
        ) as stream:
            assert stream.status < 500 or stream.status == 507
        with client.stream("GET", "/v1/files/tar", query={"path": arena.path(attacker, "deep")}, timeout=15) as stream:
            assert stream.status < 500
        assert client.delete("/v1/files/delete", path=arena.path(attacker, "deep"), recursive=1).status < 500
    # A second one goes with the sandbox.
    arena.script(
        attacker,
        """
os.chdir(os.environ["HOME"]); os.makedirs("deep", exist_ok=True); os.chdir("deep")
for _ in range(5000): os.mkdir("e"); os.chdir("e")
""",
    )
    folder = arena.host.state / "sandboxes" / attacker.id
    arena.made.remove(attacker)
    attacker.works()
    assert attacker.delete().status == 200
    wait_until(lambda: not folder.exists(), 10, "the end of its folder")


def tar_of(*members) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, size, data in members:
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("bomb", ["big-member", "many-members", "endless-header", "sparse", "long-names"])
def test_tar_bomb(arena, bomb):
    sandbox = arena.limited(disk_mb=32) if bomb == "big-member" else arena.attacker()
    if bomb == "big-member":
        data = tar_of(("big", 80 << 20, bytes(80 << 20)))
    elif bomb == "many-members":
        data = b"".join(tarfile.TarInfo(f"d{n % 100}/f{n}").tobuf() for n in range(60_000)) + bytes(1024)
    elif bomb == "endless-header":
        head = tarfile.TarInfo("x")
        head.size = 1 << 50
        data = head.tobuf(format=tarfile.GNU_FORMAT) + bytes(1 << 20)
    elif bomb == "sparse":
        head = tarfile.TarInfo("holes")
        head.pax_headers = {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.realsize": str(1 << 45),
            "GNU.sparse.name": "holes",
        }
        head.size = 512
        data = head.tobuf(format=tarfile.PAX_FORMAT) + b"0\n".ljust(512, b"\0") + bytes(1024)
    else:
        head = tarfile.TarInfo("x")
        head.pax_headers = {"path": "n" * (20 << 20)}
        data = head.tobuf(format=tarfile.PAX_FORMAT) + bytes(1024)
    with Neighbour(arena):
        try:
            answer = sandbox.client(timeout=60).put("/v1/files/tar", data, path=arena.path(sandbox, "into"))
            assert answer.status < 500 or answer.status in (503, 507), answer.body
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while it was still coming
    size = int(sandbox.client(timeout=30).exec("du -sm $HOME | cut -f1").stdout)
    if size > (40 if bomb == "big-member" else 400):
        raise Breach(f"{size} MiB from {len(data) >> 20} MiB")
    if not SANITIZED and rss_bytes(arena.host.pid) > 256 << 20:
        raise Breach("the host has grown")


def test_zip_bomb_of_ones_own(arena):
    """Unpacked inside, where the limits are."""
    sandbox = arena.limited(disk_mb=32, memory_mb=128)
    with Neighbour(arena):
        done = sandbox.client(timeout=60).exec(
            [
                "/usr/bin/python3",
                "-c",
                """
import os, zipfile
os.chdir(os.environ["HOME"])
with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as z:
    with z.open("zeros", "w") as f:
        for _ in range(200): f.write(bytes(1 << 20))
try: zipfile.ZipFile("bomb.zip").extractall()
except OSError as error: print(error)
print(os.path.getsize("zeros") if os.path.exists("zeros") else 0)
""",
            ],
            timeout=40,
        )
    if int(done.stdout.split()[-1]) > 40 << 20:
        raise Breach("200 MiB in a sandbox of 32")


def test_many_commands_at_once(arena):
    """As many streams as the attacker likes: the neighbour still gets in."""
    sandbox = arena.limited(pids=400)
    streams = []
    with Neighbour(arena, patience=15):
        for _ in range(150):
            streams.append(sandbox.client().stream("POST", "/v1/exec", body={"cmd": ["sleep", "30"]}))
        time.sleep(0.5)
        for stream in streams:
            stream.close()


def test_requests_that_never_end(arena, attacker):
    """Half heads and half bodies on many connections."""
    held = []
    head = f"PUT {attacker.route('/v1/files/write')}?path=x HTTP/1.1\r\nHost: x\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in attacker.credentials().items())
    with Neighbour(arena):
        for number in range(150):
            one = socket.create_connection((arena.host.address, arena.host.port), timeout=10)
            one.sendall((head + ("Content-Length: 1000000000\r\n\r\nx" if number % 2 else "")).encode())
            held.append(one)
        time.sleep(1)
        for one in held:
            one.close()
