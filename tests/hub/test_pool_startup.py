"""A pool host as a hub starts it: images, mounts, user ids and walls are told to it."""

import json
import os
import secrets
import shlex
import shutil
import socket
import stat
import time
from pathlib import Path

import pytest

from attached_host import Maker, listen_tcp, start_with
from host import BINARY, hosts_of_a_test
from pool_host import WRAPPERS, Place, PoolHost, unprivileged_pool

pytestmark = pytest.mark.slow

TOKEN = "pool-token-of-a-hub"
STEP = 65536
FIRST = 0x6000_0000 + secrets.randbelow(400) * 8 * STEP  # tests run side by side


@pytest.fixture(scope="module")
def hub_folder(tmp_path_factory) -> Path:
    """What the pool hosts of one hub have in common: their program, and the note on the walls that the first one tries."""
    folder = tmp_path_factory.mktemp("hub")
    shutil.copy(BINARY, folder / "cay-host")
    return folder


class HubPool(PoolHost):
    """A pool host that is told everything by a document."""

    def __init__(self, hub_folder: Path, place=None, **settings) -> None:
        super().__init__(place, token=TOKEN)
        self.binary = str(hub_folder / "cay-host")
        self.program = self.binary
        self.listener = listen_tcp()
        self.image = Maker.get().ask(image=True)
        self.image["env"] = ["PATH=/opt/tool/bin:/usr/bin:/bin", "HOME=/elsewhere", "FROM_IMAGE=yes"]
        self.document = {
            "token": TOKEN, "compat_host_token": False, "idle_timeout_ms": 0, "lifetime_ms": 0, "end_note": "",
            "attached": None, "state_folder": str(self.place.state),
            "pool": {"capacity": 3, "ready": 2, "walls": "full", "image": self.image, "binds": [], "devices": [],
                     "ids": {"base": FIRST, "step": STEP, "count": STEP, "slots": 8}, "walls_note": str(hub_folder / "walls.json"),
                     **settings},
        }

    def start(self) -> "HubPool":
        self.process, ready = start_with(self.document, self.listener, binary=self.program)
        with os.fdopen(ready, "rb") as stream:
            told = stream.read()
        assert told == b"ready\n", self.process.communicate(timeout=10)[1]
        self.port = self.listener.getsockname()[1]
        return self


@pytest.fixture
def hub_pool(hub_folder):
    with hosts_of_a_test() as made:
        def one(**options) -> HubPool:
            made.append(HubPool(hub_folder, **options))
            return made[-1].start()

        yield one


def has_tried(host: HubPool) -> bool:
    """It has made throw-away sandboxes."""
    dead = host.state / "gone.jsonl"
    return dead.exists() and dead.read_bytes() != b""


def test_nothing_is_prepared(hub_pool):
    host = hub_pool()
    sandbox = host.create()
    assert not list((host.state / "images").iterdir()), "an image of its own"
    assert sandbox.client().exec("echo made; id -u").stdout == "made\n0\n"


def test_what_one_has_found_out_about_the_walls_is_not_tried_again(hub_pool, tmp_path):
    note = tmp_path / "walls.json"
    first = hub_pool(walls_note=str(note))
    assert has_tried(first)
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    found = json.loads(note.read_text())
    first.stop()
    second = hub_pool(walls_note=str(note))
    assert not has_tried(second)
    assert second.create().info()["walls"] == found["walls"], "told, though not tried here"
    # The same host after a crash.
    second.kill9()
    second.start()
    assert not has_tried(second)


@pytest.mark.parametrize("change", [{"boot": "another"}, {"memory_group": False}, {"program": {}}],
                         ids=["another-boot", "other-groups", "another-program"])
def test_what_was_tried_elsewhere_does_not_count(hub_pool, hub_folder, tmp_path, change):
    hub_pool().stop()
    found = json.loads((hub_folder / "walls.json").read_text())
    note = tmp_path / "walls.json"
    note.write_text(json.dumps(found | {"tried": found["tried"] | change}))
    assert has_tried(hub_pool(walls_note=str(note)))
    assert json.loads(note.read_text())["tried"] == found["tried"]


def test_sandboxes_have_the_ids_of_the_block(hub_pool):
    host = hub_pool()
    uids = set()
    for _ in range(3):
        sandbox = host.create()
        sandbox.works()
        uids.add(sandbox.first_uid())
    assert len(uids) == 3 and all(FIRST <= uid < FIRST + 8 * STEP for uid in uids), uids
    assert all((uid - FIRST) % STEP == 0 for uid in uids)
    assert host.create_answer().json()["rejected"] == 1, "its capacity is told too"


def test_mounts_are_in_every_sandbox(hub_pool, tmp_path):
    (tmp_path / "hosts").write_text("10.0.0.1 friend\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("of the hub\n")
    host = hub_pool(binds=[
        {"source": str(tmp_path / "hosts"), "at": "/etc/hosts", "read_only": True, "is_file": True},
        {"source": str(tmp_path / "data"), "at": "/data", "read_only": True, "is_file": False},
    ])
    for _ in range(3):  # also in those that stood ready
        sandbox = host.create()
        done = sandbox.client().exec("cat /etc/hosts /data/file; touch /data/x; echo >> /etc/hosts; true")
        assert done.stdout == "10.0.0.1 friend\nof the hub\n"
        sandbox.delete()
        time.sleep(0.2)
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == ["file"]


@pytest.mark.parametrize("walls", ["full", pytest.param("unprivileged", marks=unprivileged_pool)])
def test_devices_are_in_every_sandbox(hub_folder, walls):
    place = Place(walls)
    os.mknod(place.top / "nvidia7", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    (place.top / "nvidia7").chmod(0o666)
    settings = {"ids": None, "image": None} if walls == "unprivileged" else {}
    host = HubPool(hub_folder, place, walls=walls, devices=[str(place.top / "nvidia7")], **settings)
    host.binary = str(place.binary)  # where that user can have it
    wrapper = place.top / "as-user"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(WRAPPERS[walls])} {host.binary} "$@"\n')
    wrapper.chmod(0o755)
    host.program = wrapper
    try:
        host.start()
        for _ in range(3):  # also in those that stood ready
            done = host.create().client().exec(
                "ls /dev | grep nvidia; head -c2 /dev/nvidia7 | od -An -tx1; head -c1 /dev/zero | wc -c; "
                "(mknod /root/x c 1 5 || rm /dev/nvidia7 || touch /dev/x) 2>/dev/null && echo possible")
            assert done.stdout == "nvidia7\n 00 00\n1\n"
            time.sleep(0.2)
    finally:
        host.destroy()
        place.remove()


def test_the_images_variables_are_those_of_sandboxes(hub_pool):
    host = hub_pool()
    sandbox = host.create(env={"OWN": "1"})
    names = dict(line.split("=", 1) for line in sandbox.client().exec("env").stdout.splitlines() if "=" in line)
    assert names["FROM_IMAGE"] == "yes" and names["OWN"] == "1"
    assert names["HOME"] == "/root", "where the home is is ours to say"
    assert names["PATH"] == "/root/.local/bin:/opt/tool/bin:/usr/bin:/bin"
    other = host.create(env={"FROM_IMAGE": None, "PATH": "/bin"})
    assert other.client().exec("echo $FROM_IMAGE; echo $PATH").stdout == "\n/bin\n"


def test_a_restart_loses_nothing(hub_pool):
    host = hub_pool()
    sandbox = host.create()
    process = sandbox.client().spawn("echo up; exec sleep 300")
    sandbox.client().exec("echo kept > /root/file")
    uid = sandbox.first_uid()
    host.kill9()
    host.start()
    assert sandbox.client().process(process["id"])["running"]
    assert sandbox.client().exec("cat /root/file").stdout == "kept\n"
    assert sandbox.first_uid() == uid


def test_the_token_is_in_no_sandbox(hub_pool):
    host = hub_pool()
    sandbox = host.create()
    search = (f'p="{TOKEN[:6]}""{TOKEN[6:]}"; for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do '
              'tr "\\0" "\\n" < $f 2>/dev/null | grep -F "$p" && echo FOUND; done; ls -l /proc/self/fd; echo searched')
    said = sandbox.client().exec(search).stdout
    assert "searched" in said and "FOUND" not in said
    assert "memfd" not in said and "socket" not in said, said


def test_the_network_it_was_started_in_is_the_one_of_its_sandboxes(hub_folder):
    """Started where there is only a loopback, its sandboxes have no other either."""
    host = HubPool(hub_folder)
    wrapper = host.place.top / "in-network"
    wrapper.write_text(f'#!/bin/sh\nexec unshare -n {host.binary} "$@"\n')
    wrapper.chmod(0o755)
    path = host.place.top / "host.sock"
    host.listener = socket.socket(socket.AF_UNIX)
    host.listener.bind(str(path))
    host.listener.listen(8)
    process, ready = start_with(host.document, host.listener, binary=wrapper)
    host.process = process
    try:
        with os.fdopen(ready, "rb") as stream:
            assert stream.read() == b"ready\n", process.communicate(timeout=10)[1]

        def ask(method: str, route: str, token: str, body: dict) -> bytes:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                text = json.dumps(body).encode()
                connection.sendall(f"{method} {route} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Sandbox-Token: {token}\r\n"
                                   f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
                return b"".join(iter(lambda: connection.recv(65536), b"")).split(b"\r\n\r\n", 1)[1]

        made = json.loads(ask("POST", "/v1/sandboxes", TOKEN, {}))["sandboxes"][0]
        links = ask("POST", f"/v1/sandboxes/{made['id']}/exec", made["token"],
                    {"cmd": "tail -n +3 /proc/net/dev | cut -d: -f1"})
        events = [json.loads(line) for line in links.split(b"\n") if line.startswith(b"{")]
        assert "".join(e["data"] for e in events if e["event"] == "stdout").split() == ["lo"], links
        host.stop()
    finally:
        host.destroy()
