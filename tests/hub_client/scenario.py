"""Drives the unmodified huggingface_hub of its own environment against a running cay-host or a hub.

    HF_ENDPOINT=… HF_TOKEN=… python scenario.py dedicated|pool FOLDER [hub]

Creates one dedicated sandbox or one of a pool, runs every function named case_* with it, and prints one JSON object per
case. Without a hub, only the resolver is helped: names below .localhost are loopback, as RFC 6761 has it.
"""

from __future__ import annotations

import io
import os
import random
import socket
import sys
import tarfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import end_after, report, run_all, wait_for

MIB = 1 << 20
HERE = Path(__file__).resolve().parent
SIZES = {"0": 0, "1": 1, "1MiB_less_1": MIB - 1, "1MiB": MIB, "1MiB_and_1": MIB + 1, "2MiB_less_1": 2 * MIB - 1,
         "2MiB": 2 * MIB, "2MiB_and_1": 2 * MIB + 1, "5MiB": 5 * MIB, "64MiB": 64 * MIB}


class Context:
    """What the cases share: the sandbox, a folder of theirs in it and one outside, the client's version."""

    def __init__(self, sandbox, folder: Path, version: str, pooled: bool, hub: bool) -> None:
        self.sandbox, self.local, self.pooled = sandbox, folder, pooled
        # Without a hub, a dedicated sandbox shares our files and is reached without TLS.
        self.apart, self.hub = pooled or hub, hub
        self.protocol_1 = version.startswith("1.31")
        self.ports: dict[str, int] = {}
        # A pooled sandbox has its file paths rooted at its home.
        self.base = "/work" if self.apart else str(folder / "inside")
        sandbox.files.mkdir(self.base)
        self.inner_base = sandbox.run("pwd -P", cwd=self.base).stdout.strip()

    def path(self, name: str) -> str:
        """As the file API has it."""
        return f"{self.base}/{name}"

    def inner(self, name: str) -> str:
        """As commands have it."""
        return f"{self.inner_base}/{name}"

    def url(self, port: int, path: str, secure: str, plain: str) -> str:
        return self.sandbox.proxy_url_for(port, path, scheme=secure if self.apart else plain)

    def port_of(self, kind: str) -> int:
        """A server inside the sandbox, started once as a background process."""
        if kind not in self.ports:
            files = self.sandbox.files
            python, environment = sys.executable, {}
            if self.apart:
                python, environment = "/usr/bin/python3", {"PYTHONPATH": self.inner("packages")}
                import websockets
                packed = io.BytesIO()
                with tarfile.open(fileobj=packed, mode="w") as tar:
                    tar.add(Path(websockets.__file__).parent, "websockets")
                files.write(self.path("packages.tar"), packed.getvalue())
                self.sandbox.run("mkdir -p packages && tar xf packages.tar -C packages", cwd=self.base)
            files.write(self.path("inner_app.py"), (HERE / "inner_app.py").read_bytes())
            self.sandbox.run([python, self.inner("inner_app.py"), kind, self.inner(f"port-{kind}")], background=True,
                             env=environment)
            wait_for(lambda: files.exists(self.path(f"port-{kind}")))
            self.ports[kind] = int(files.read(self.path(f"port-{kind}")))
        return self.ports[kind]


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


# ---- commands

def case_run(c):
    result = c.sandbox.run("echo out; echo err >&2")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "out\n", "err\n"), result
    assert result.ok and not result.timed_out and result.signal is None


def case_run_callbacks(c):
    out, err = [], []
    result = c.sandbox.run("for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.05; done", on_stdout=out.append,
                           on_stderr=err.append)
    assert "".join(out) == result.stdout == "1\n2\n3\n"
    assert "".join(err) == result.stderr == "e1\ne2\ne3\n"
    assert len(out) > 1, "as it comes, not all at the end"


def case_run_check(c):
    from huggingface_hub.errors import SandboxCommandError
    try:
        c.sandbox.run("echo out; exit 3")
    except SandboxCommandError as error:
        assert error.result.exit_code == 3 and error.result.stdout == "out\n"
    else:
        raise AssertionError("check=True must raise")
    assert c.sandbox.run("exit 3", check=False).exit_code == 3


def case_run_signal(c):
    result = c.sandbox.run("kill -9 $$", check=False)
    assert result.exit_code is None and result.signal == 9


def case_run_timeout(c):
    began = time.monotonic()
    result = c.sandbox.run("echo partial; sleep 60", timeout=0.5, check=False)
    assert result.timed_out and result.stdout == "partial\n"
    assert time.monotonic() - began < 10


def case_run_stdin(c):
    assert c.sandbox.run("cat", stdin="line 1\nline ä\n").stdout == "line 1\nline ä\n"
    text = "0123456789" * 100_000
    assert c.sandbox.run("cat", stdin=text).stdout == text


def case_run_env(c):
    result = c.sandbox.run("echo $A,$B,$C,$D", env={"A": "text", "B": 1, "C": True, "D": 1.5})
    assert result.stdout == "text,1,true,1.5\n", result


def case_run_cwd(c):
    assert c.sandbox.run("pwd -P", cwd=c.base).stdout == f"{c.inner_base}\n"


def case_run_argv(c):
    assert c.sandbox.run(["echo", "$HOME", "a b"]).stdout == "$HOME a b\n"
    assert c.sandbox.run(["echo", "x"], shell=False).stdout == "x\n"


def case_run_separators(c):
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei\r\nj"
    assert c.sandbox.run("cat", stdin=text).stdout == text


def case_run_characters_over_borders(c):
    text = "a" + "é" * 40_001
    assert c.sandbox.run("cat", stdin=text).stdout == text
    assert c.sandbox.run("printf '\\303'; sleep 0.2; printf '\\251'").stdout == "é"


def case_run_many(c):
    for _ in range(100):
        assert c.sandbox.run("echo hello").stdout == "hello\n"


def case_run_long_output(c):
    expected = "".join(f"{n}\n" for n in range(1, 100_001))
    assert c.sandbox.run("seq 1 100000").stdout == expected


def case_run_in_parallel(c):
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: c.sandbox.run(f"echo {n}; sleep 0.05").stdout, range(64)))
    assert results == [f"{n}\n" for n in range(64)]


def case_run_without_capture(c):
    if c.protocol_1:
        return  # came later
    seen = []
    result = c.sandbox.run("seq 1 50000", capture_output=False, on_stdout=seen.append)
    assert result.stdout == "" and "".join(seen) == "".join(f"{n}\n" for n in range(1, 50_001))


def case_run_not_found(c):
    assert c.sandbox.run(["no-such-command"], check=False).exit_code == 127


def case_run_bad_cwd(c):
    from huggingface_hub.errors import SandboxError
    try:
        result = c.sandbox.run("echo never", cwd="/no/such/folder", check=False)
        assert result.exit_code != 0 and "/no/such/folder" in result.stderr
    except SandboxError as error:
        assert "/no/such/folder" in str(error)


def own_sockets() -> set[str]:
    """Each connection of this process, by a name that is never used again."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")
        except FileNotFoundError:
            continue  # that of the list itself
        if target.startswith("socket:"):
            found.add(target)
    return found


def case_one_connection_for_fifty_commands(c):
    c.sandbox.run("true")
    seen = before = own_sockets()
    for _ in range(50):
        c.sandbox.run("echo hello")
        seen = seen | own_sockets()
    changed = len(seen - before) + len(before - own_sockets())
    assert changed <= 1, f"{changed} connections came or went in 50 commands"


# ---- background processes

def case_background(c):
    process = c.sandbox.run("sleep 300", background=True)
    listed = next(p for p in c.sandbox.processes() if p.pid == process.pid)
    assert listed.running and listed.cmd == "sleep 300" and listed.exit_code is None
    killed = listed.kill()
    assert killed is (None if c.protocol_1 else True)
    wait_for(lambda: not next(p for p in c.sandbox.processes() if p.pid == process.pid).running)
    assert process.kill() is (None if c.protocol_1 else False), "already gone is no error"


def case_background_ends_by_itself(c):
    process = c.sandbox.run(["sh", "-c", "exit 5"], background=True, env={"A": 1}, cwd=c.base)
    wait_for(lambda: not next(p for p in c.sandbox.processes() if p.pid == process.pid).running)
    assert next(p for p in c.sandbox.processes() if p.pid == process.pid).exit_code == 5


# ---- files

def transfer(c, name, size):
    data, files = content(size), c.sandbox.files
    path = c.path(f"file-{name}")
    files.write(path, data)
    assert files.stat(path).size == size and files.stat(path).type == "file"
    assert files.read(path) == data
    local = c.local / f"local-{name}"
    files.download(path, local)
    assert local.read_bytes() == data
    files.upload(local, path + "-up", mode="640")
    assert files.read(path + "-up") == data
    assert c.sandbox.run(["stat", "-c", "%a %s", c.inner(f"file-{name}-up")]).stdout == f"640 {size}\n"
    local.unlink()
    for leftover in (path, path + "-up"):
        files.delete(leftover)


def make_size_case(name, size):
    def case(c):
        transfer(c, name, size)

    return case


for _name, _size in SIZES.items():
    globals()[f"case_files_of_{_name}"] = make_size_case(_name, _size)


def case_files_smaller_over_bigger(c):
    path = c.path("shrinking")
    for size in (5 * MIB, 3 * MIB + 1, 4 * MIB, 2 * MIB + 1, 5 * MIB + 17, 100):
        data = content(size)
        c.sandbox.files.write(path, data)
        assert c.sandbox.files.read(path) == data, f"after writing {size} bytes"
        if c.protocol_1:
            time.sleep(1.2)  # this client names no size; bursts are told apart by a second of quiet


def case_files_text(c):
    c.sandbox.files.write(c.path("text"), "grüße\n")
    assert c.sandbox.files.read_text(c.path("text")) == "grüße\n"


def case_files_from_object(c):
    (c.local / "source").write_bytes(b"from an object")
    with open(c.local / "source", "rb") as f:
        c.sandbox.files.write(c.path("a/b/c/made"), f, mode="755")
    assert c.sandbox.run([c.inner("a/b/c/made")], check=False).exit_code != 0
    assert c.sandbox.files.stat(c.path("a/b/c/made")).mode.endswith("755")


def case_files_list(c):
    files = c.sandbox.files
    files.mkdir(c.path("listed/sub"))
    files.write(c.path("listed/one"), b"1")
    c.sandbox.run(["ln", "-s", "one", c.inner("listed/link")])
    entries = {e.name: e for e in files.list(c.path("listed"))}
    assert {n: e.type for n, e in entries.items()} == {"sub": "dir", "one": "file", "link": "symlink"}
    assert entries["one"].path == c.path("listed/one") and entries["one"].size == 1


def case_files_three_thousand(c):
    c.sandbox.run("mkdir many; cd many; for i in $(seq 3000); do : > f$i; done", cwd=c.base)
    names = {e.name for e in c.sandbox.files.list(c.path("many"))}
    assert names == {f"f{n}" for n in range(1, 3001)}


def case_files_exists_and_delete(c):
    files = c.sandbox.files
    files.write(c.path("doomed/file"), b"x")
    assert files.exists(c.path("doomed/file")) and not files.exists(c.path("doomed/other"))
    files.delete(c.path("doomed/file"))
    assert not files.exists(c.path("doomed/file"))
    files.write(c.path("doomed/file"), b"x")
    files.delete(c.path("doomed"), recursive=True)
    assert not files.exists(c.path("doomed"))


def case_files_missing(c):
    from huggingface_hub.errors import SandboxError
    for call in (c.sandbox.files.read, c.sandbox.files.stat, c.sandbox.files.list, c.sandbox.files.delete):
        try:
            call(c.path("not/there"))
        except SandboxError as error:
            assert error.status_code == 404, error
        else:
            raise AssertionError(f"{call} must raise")


def case_files_of_proc(c):
    if c.pooled:
        return  # its paths begin at its home
    data = c.sandbox.files.read("/proc/version")
    # Protocol 2 and 3 ask for as many bytes as stat tells, which are none.
    assert (b"Linux" in data) if c.protocol_1 else data == b""
    c.sandbox.files.download("/proc/version", c.local / "version")
    assert b"Linux" in (c.local / "version").read_bytes()


# ---- proxy

def get(c, port, path, data=None):
    request = urllib.request.Request(c.url(port, path, "https://", "http://"), data=data,
                                     headers=c.sandbox.proxy_headers)
    return urllib.request.urlopen(request, timeout=20)


def case_proxy_http(c):
    port = c.port_of("http")
    text = get(c, port, "/some/path?x=1").read().decode()
    assert text.startswith("/some/path?x=1 ")
    assert "authorization" not in text and "x-sandbox-token" not in text
    assert get(c, port, "/", data=b"abcdef").read() == b"fedcba"


def case_proxy_events(c):
    times = []
    for line in get(c, c.port_of("http"), "/events"):
        if line.startswith(b"data:"):
            times.append(time.monotonic())
    assert len(times) == 5 and times[-1] - times[0] > 0.2, "one by one"


def case_proxy_websocket(c):
    from websockets.sync.client import connect
    url = c.url(c.port_of("websocket"), "/ws", "wss://", "ws://")
    with connect(url, additional_headers=c.sandbox.proxy_headers, max_size=None,
                 proxy=True if "HTTPS_PROXY" in os.environ else None, open_timeout=60) as connection:
        for message in ("hello", b"\x00\xff", "ä" * 100_000, content(2 * MIB)):
            connection.send(message)
            assert connection.recv(timeout=20) == message


def case_proxy_nothing_there(c):
    try:
        get(c, 1, "/")
    except urllib.error.HTTPError as error:
        assert error.code == 502
    else:
        raise AssertionError("nothing listens there")


# ---- the sandbox itself

def case_connect(c):
    from huggingface_hub import Sandbox
    c.sandbox.files.write(c.path("shared"), b"x")
    with Sandbox.connect(c.sandbox.id) as other:
        assert other.run("echo again").stdout == "again\n"
        assert other.files.read(c.path("shared")) == b"x"
    assert c.sandbox.run("echo still there").stdout == "still there\n"


def case_wrong_token(c):
    from huggingface_hub import Sandbox
    from huggingface_hub.errors import HfHubHTTPError, SandboxError
    try:
        Sandbox.connect(c.sandbox.id, token="hf_somebody_else").run("echo never")
    except HfHubHTTPError as error:
        assert c.hub and error.response.status_code == 401
    except SandboxError as error:
        assert error.status_code == 403
    else:
        raise AssertionError("another token must be refused")


def case_create_environment(c):
    assert c.sandbox.run("echo $FROM_CREATE").stdout == "1\n"


def case_siblings_are_apart(c):
    """Another sandbox of the same pool sees none of this one's files."""
    if not c.pooled:
        return
    c.sandbox.files.write(c.path("private"), b"x")
    with c.pool.create() as sibling:
        assert sibling.id.split(".")[0] == c.sandbox.id.split(".")[0], "on the same host"
        assert not sibling.files.exists(c.path("private")) and sibling.run("echo hello").stdout == "hello\n"
        assert sibling.run(f"cat {c.inner('private')}", check=False).exit_code != 0


def resolve_localhost() -> None:
    original = socket.getaddrinfo

    def getaddrinfo(host, *arguments, **named):
        if isinstance(host, str) and host.endswith(".localhost"):
            host = "127.0.0.1"
        return original(host, *arguments, **named)

    socket.getaddrinfo = getaddrinfo


def main() -> None:
    hub = "hub" in sys.argv[3:]
    if not hub:
        resolve_localhost()
    end_after(240)
    import huggingface_hub
    from huggingface_hub import Sandbox, SandboxPool

    began, pooled, pool = time.monotonic(), sys.argv[1] == "pool", None
    if pooled:
        pool = SandboxPool(image="python:3.12", name="test-pool", sandboxes_per_host=8)
        sandbox = pool.create(env={"FROM_CREATE": 1})
    else:
        sandbox = Sandbox.create(image="python:3.12", env={"FROM_CREATE": 1})
    context = Context(sandbox, Path(sys.argv[2]).resolve(), huggingface_hub.__version__, pooled, hub)
    context.pool = pool
    report("case_create", began, None)
    run_all(globals(), context)
    began = time.monotonic()
    sandbox.kill()
    report("case_kill", began, None if sandbox._killed else "kill() did not work")
    if pool is not None:
        pool.close()
    os._exit(0)


if __name__ == "__main__":
    main()
