"""cay-host in front of a sandbox that somebody else has made: how it starts, how it ends, and what the sandbox sees of
it. What it serves is tried by the tests of the other modes (MODES "attached")."""

import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from attached_host import AttachedHost, Given, listen_tcp, start_with
from host import BINARY, hosts_of_a_test, is_running, wait_until

pytestmark = pytest.mark.slow

TOKEN = "TOKEN-that-nobody-inside-may-see"


@pytest.fixture
def attach():
    """attach(…): an AttachedHost that is ended and checked with the test; start=False leaves it to the test."""
    with hosts_of_a_test() as made:
        def one(*, after: AttachedHost | None = None, start: bool = True, **options) -> AttachedHost:
            made.append(after.again(**options) if after else AttachedHost(token=TOKEN, **options))
            return made[-1].start() if start else made[-1]

        yield one


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self.path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, token=TOKEN):
    connection.request(method, path, body=body, headers={"X-Sandbox-Token": token} if token else {})
    response = connection.getresponse()
    return response.status, response.read()


def outcome(document, listener=None, flags=()) -> tuple[int, str]:
    """Exit status and last words of a cay-host that does not come up."""
    process, ready = start_with(document, listener or listen_tcp(), flags=flags)
    with os.fdopen(ready, "rb") as stream:
        assert stream.read() == b"", "it says that it is ready"
    errors = process.communicate(timeout=20)[1]
    return process.returncode, errors.strip()


# ---- how it starts

def test_listens_on_an_inherited_unix_socket(attach):
    given = Given()
    path = given.folder / "host.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)
    host = attach(given=given, listener=listener)
    connection = UnixConnection(path)
    status, body = ask(connection, "GET", "/health", token=None)
    assert status == 200 and json.loads(body)["status"] == "ok"
    assert ask(connection, "GET", "/v1/processes", token=None)[0] == 403
    status, body = ask(connection, "POST", "/v1/exec", json.dumps({"cmd": "echo inside"}).encode())
    assert status == 200 and b"inside" in body
    # Whoever comes while it is dead waits for the next one.
    host.kill9()
    waiting = UnixConnection(path)
    waiting.request("GET", "/health")
    attach(after=host)
    assert waiting.getresponse().status == 200


def test_the_document_is_read_once_and_closed(attach):
    host = attach()
    links = [os.readlink(f"/proc/{host.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{host.pid}/fd")]
    assert not [link for link in links if "memfd" in link], links
    shown = Path(f"/proc/{host.pid}/cmdline").read_bytes() + Path(f"/proc/{host.pid}/environ").read_bytes()
    assert TOKEN.encode() not in shown


def test_waits_until_the_keeper_is_given(attach):
    """Its maker talks to the keeper until then, and must not be interrupted."""
    host = attach(start=False)
    mark, away = host.given.folder / "keeper.mark", host.given.folder / "keeper.mark.away"
    mark.rename(away)
    starting = threading.Thread(target=host.start)
    starting.start()
    time.sleep(0.5)
    assert host.port == 0 and host.process.poll() is None
    away.rename(mark)
    starting.join(10)
    assert host.client().exec("echo ok").stdout == "ok\n"


def test_a_second_one_is_refused_and_the_first_unharmed(attach):
    host = attach()
    status, words = outcome(host.document)
    assert status == 1 and "served by another host" in words
    assert host.client().exec("echo unharmed").stdout == "unharmed\n"
    assert not host.end_note.exists()


def good_document() -> dict:
    return {"token": TOKEN, "compat_host_token": False, "idle_timeout_ms": 0, "lifetime_ms": 0, "end_note": "",
            "pool": None, "state_folder": "",
            "attached": {"folder": "/nowhere", "walls": "full", "first_uid": 1, "cwd": "/", "env": [],
                         "log_head_bytes": 1 << 20, "log_ring_bytes": 1 << 20}}


@pytest.mark.parametrize("change, words", [
    ({"token": ""}, "'token' must be"),
    ({"attached": None}, "'attached' or 'pool'"),
    ({"surprise": 1}, "'surprise'"),
    ({"idle_timeout_ms": "1"}, "'idle_timeout_ms' must be"),
])
def test_a_wrong_document_is_named_and_not_shown(change, words):
    status, said = outcome({**good_document(), **change})
    assert status == 2 and words in said and "--config-fd" in said
    assert TOKEN not in said and "\n" not in said


def test_hostile_documents_are_refused():
    for text in (b"", b"\0" * 100, b"[" * 100_000, b'{"token":"' + TOKEN.encode() + b'"', b"{" + b" " * (17 << 20)):
        status, said = outcome(text)
        assert status == 2 and TOKEN not in said and len(said) < 500


def test_descriptors_that_are_none():
    process, ready = start_with(good_document(), listen_tcp(), flags=["--listen-fd", "777"])
    os.close(ready)
    assert "--listen-fd" in process.communicate(timeout=10)[1] and process.returncode == 2
    status, said = outcome({**good_document(), "attached": {**good_document()["attached"], "folder": "/nowhere"}})
    assert status == 1 and "/nowhere" in said


def test_a_socket_that_does_not_listen(attach):
    host = attach(start=False)
    status, said = outcome(host.document, socket.socket())
    assert status == 1 and "--listen-fd" in said and "listens" in said


# ---- how it ends

def test_the_end_of_the_keeper_is_the_end(attach):
    host = attach()
    client = host.client()
    stream = client.exec_stream("echo before; exec sleep 300")
    stream.until_text("before\n")
    os.kill(host.given.keeper, signal.SIGKILL)
    assert stream.rest().exit["cause"] == "host_lost", "what is under way is answered"
    assert host.wait(10) == 70
    assert host.note() == {"why": "sandbox ended", "message": "the sandbox's first process has ended"}
    # And again: there is nothing to serve.
    host.end_note.unlink()
    status, said = outcome(host.document)
    assert status == 70 and "has ended" in said
    assert host.note()["why"] == "sandbox ended"


def test_a_keeper_that_is_being_killed_is_not_taken_for_a_living_one(attach):
    """The kernel closes its sockets one after another: it can still be reached when it has let go of its host."""
    host = attach()
    name = host.given.folder / "keeper.sock"
    name.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listens:
        listens.bind(str(name))
        listens.listen(8)
        os.kill(host.given.keeper, signal.SIGKILL)
        time.sleep(0.3)
    assert host.wait(10) == 70
    assert host.note()["why"] == "sandbox ended"


def test_idle_ends_it_in_order(attach):
    host = attach(idle_ms=1000)
    process = host.client().spawn("exec sleep 2")
    began = time.monotonic()
    assert host.wait(15) == 0
    assert time.monotonic() - began > 2, "a process is use"
    note = host.note()
    assert note["why"] == "idle" and re.fullmatch(r"idle for \d+ s", note["message"]), note
    wait_until(lambda: not is_running(host.given.keeper), what="the end of the keeper")
    assert not host.is_running(process["pid"])


def test_lifetime_ends_it_in_order(attach):
    host = attach(lifetime_ms=1500)
    stream = host.client().exec_stream("exec sleep 300")
    stream.next("start")
    assert host.wait(15) == 0
    assert host.note()["why"] == "lifetime"


def test_sigterm_ends_the_sandbox_without_a_note(attach):
    host = attach()
    process = host.client().spawn("exec sleep 300")
    outer = host.outer_pid(process["pid"])
    host.stop()
    assert not is_running(outer) and not is_running(host.given.keeper)
    assert not host.end_note.exists()


def test_an_old_note_does_not_stay(attach):
    host = attach(start=False)
    host.end_note.write_text('{"why":"idle","message":"of another time"}')
    host.start()
    assert not host.end_note.exists()


@pytest.mark.slow
def test_the_keeper_waits_longer_for_a_host_than_others_do(attach):
    host = attach()
    process = host.client().spawn("i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done")
    idle = attach()
    for one in (host, idle):
        one.kill9()
    time.sleep(15)  # others give up after ten seconds
    assert is_running(idle.given.keeper)
    client = attach(after=host).client()
    assert client.process(process["id"])["running"]
    numbers = client.output(f"/v1/processes/{process['id']}").stdout.split()
    assert len(numbers) > 100 and numbers == [str(i) for i in range(len(numbers))]
    assert attach(after=idle).client().exec("echo still").stdout == "still\n"


# ---- what is seen inside

def test_commands_inherit_nothing(attach):
    host = attach()
    for cmd in ("ls -l /proc/self/fd", ["/usr/bin/python3", "-c", "import os; print(os.listdir('/proc/self/fd'))"]):
        listed = host.client().exec(cmd).stdout
        assert "memfd" not in listed and "host.sock" not in listed and "keeper" not in listed
        assert "socket" not in listed, listed


def test_the_token_is_nowhere_inside(attach):
    given = Given()
    path = given.folder / "host.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)
    host = attach(given=given, listener=listener)
    # Broken in two, so that the search does not find itself.
    search = f'''
        pattern="{TOKEN[:9]}""{TOKEN[9:]}"
        for folder in /proc/[0-9]*; do
          for file in environ cmdline maps status; do
            tr '\\0' '\\n' < $folder/$file 2>/dev/null | grep -F "$pattern" && echo "FOUND $folder/$file"
          done
        done
        grep -rlsF "$pattern" /root /tmp /etc /var /run /home /dev/shm 2>/dev/null && echo FOUND a file
        env | grep -F "$pattern" && echo FOUND the environment
        echo searched
    '''
    connection = UnixConnection(path)
    status, body = ask(connection, "POST", "/v1/exec", json.dumps({"cmd": search}).encode())
    assert status == 200 and b"searched" in body and b"FOUND" not in body, body


def test_the_socket_cannot_be_reached_from_inside(attach):
    given = Given()
    path = given.folder / "host.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)
    host = attach(given=given, listener=listener)
    program = f'''
import os, socket
tried = []
def attempt(name, address, family=socket.AF_UNIX):
    try:
        s = socket.socket(family); s.settimeout(1); s.connect(address); tried.append(name)
    except OSError:
        pass
path = {str(path)!r}
attempt("by its path", path)
attempt("by its name", "host.sock")
attempt("by an abstract name", "\\0" + path)
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    for place in ("cwd", "root", "fd"):
        folder = f"/proc/{{pid}}/{{place}}"
        attempt(folder, (folder + path)[:107])
    try:
        for fd in os.listdir(f"/proc/{{pid}}/fd"):
            attempt(f"{{pid}}/fd/{{fd}}", f"/proc/{{pid}}/fd/{{fd}}/host.sock")
            attempt(f"{{pid}}/fd/{{fd}}", f"/proc/{{pid}}/fd/{{fd}}")
    except OSError:
        pass
listed = open("/proc/net/unix").read()
print("tried", tried, "host.sock" in listed or "keeper.sock" in listed)
'''
    connection = UnixConnection(path)
    body = json.dumps({"cmd": ["/usr/bin/python3", "-c", program]}).encode()
    status, answer = ask(connection, "POST", "/v1/exec", body)
    assert status == 200 and b"tried [] False" in answer, answer
    found = ask(connection, "POST", "/v1/exec",
                json.dumps({"cmd": "find / -xdev -name '*.sock' -o -name 'keeper.*' -o -name 'host.end'"}).encode())
    assert b"host.sock" not in found[1] and b"keeper." not in found[1] and b"host.end" not in found[1], found


def test_ports_are_those_of_the_sandbox_alone(attach):
    """A server of the machine's own is not what the proxy finds on that port."""
    host = attach()
    with socket.create_server(("127.0.0.1", 0)) as outside:
        answer = host.client().get(f"/v1/proxy/{outside.getsockname()[1]}/")
        assert answer.status == 502
        # The host's own port is no special one inside either.
        assert host.client().get(f"/v1/proxy/{host.port}/").status == 502


def test_files_cannot_lead_out(attach):
    host = attach()
    client = host.client()
    client.exec("ln -s / /root/top; ln -s /proc/1/root /root/keeper; mkdir -p /root/a; ln -s ../../../.. /root/a/up")
    secret = host.given.folder / "record.json"
    for start in ("/root/top", "/root/keeper", "/root/a/up", "/root/../../../.."):
        answer = client.get("/v1/files/read", path=f"{start}{secret}")
        assert answer.status in (400, 403, 404), (start, answer.status)
    assert client.put("/v1/files/write", b"x", path="/root/mine").status in (200, 201, 204)
    assert client.exec("stat -c %u:%g /root/mine").stdout == "0:0\n"
    assert client.exec("id -u").stdout == "0\n"
    assert BINARY.exists()
