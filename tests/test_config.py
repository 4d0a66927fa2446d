"""Flags, variables, the token's secrecy, signals, and the places cay-host can run in."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest

from client import Client
from host import BINARY, SANITIZED, Host, descendants, gone, process_state, wait_until


def run(*flags, env=None, timeout=10):
    """cay-host to its end, for calls that do not serve."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SBX_")}
    return subprocess.run([str(BINARY), *flags], env={**clean, **(env or {})}, capture_output=True, text=True,
                          timeout=timeout, check=False)


# ---- flags and variables

def test_help():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for flag in ("--port", "--listen", "--token-file", "--idle-timeout", "--state", "--max-connections",
                 "--log-bytes-per-exec", "--log-bytes-total", "--log-level", "--help", "--version",
                 "--compat-host-token", "doctor"):
        assert flag in done.stdout, flag
    for variable in ("SBX_PORT", "SBX_TOKEN", "SBX_IDLE_TIMEOUT", "SBX_MAX_CONNECTIONS", "SBX_HOST_MODE",
                     "SBX_CAPACITY", "SBX_COMPAT_HOST_TOKEN", "CAY_WALLS"):
        assert variable in done.stdout, variable


def test_version():
    done = run("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"cay-host \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("flags, env, word", [
    (["--port", "x"], {}, "port"),
    (["--port", "65536"], {}, "port"),
    (["--port", "-1"], {}, "port"),
    (["--port"], {}, "port"),
    (["--listen", "not an address"], {}, "listen"),
    (["--token-file", "/no/such/file"], {}, "/no/such/file"),
    (["--idle-timeout", "soon"], {}, "idle"),
    (["--idle-timeout", "-5"], {}, "idle"),
    (["--idle-timeout", "10x"], {}, "idle"),
    (["--max-connections", "0"], {}, "max-connections"),
    (["--max-connections", "many"], {}, "max-connections"),
    (["--log-level", "loud"], {}, "log-level"),
    (["--log-bytes-per-exec", "x"], {}, "log-bytes-per-exec"),
    (["--log-bytes-total", "-1"], {}, "log-bytes-total"),
    (["--no-such-flag"], {}, "no-such-flag"),
    (["surplus"], {}, "surplus"),
    ([], {"SBX_PORT": "x"}, "SBX_PORT"),
    ([], {"SBX_HOST_MODE": "maybe"}, "SBX_HOST_MODE"),
    ([], {"SBX_HOST_MODE": "1", "SBX_TOKEN": ""}, "token"),
    ([], {"SBX_HOST_MODE": "1", "SBX_CAPACITY": "x"}, "SBX_CAPACITY"),
    ([], {"SBX_HOST_MODE": "1", "CAY_WALLS": "paper"}, "CAY_WALLS"),
    ([], {"SBX_COMPAT_HOST_TOKEN": "maybe"}, "SBX_COMPAT_HOST_TOKEN"),
    ([], {"CAY_TREE_KILL": "gently"}, "CAY_TREE_KILL"),
    (["--listen", "0.0.0.0"], {"SBX_TOKEN": ""}, "token"),
    ([], {"SBX_IDLE_TIMEOUT": "soon"}, "SBX_IDLE_TIMEOUT"),
    ([], {"SBX_MAX_CONNECTIONS": "x"}, "SBX_MAX_CONNECTIONS"),
])
def test_bad_values(flags, env, word, tmp_path):
    if flags != ["--port"]:
        flags = [*flags, "--state", str(tmp_path)]
    done = run(*flags, env={"SBX_TOKEN": "secret-token", **env})
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, "one line"
    assert word in done.stderr
    assert "secret-token" not in done.stderr


def test_state_that_is_no_folder():
    done = run("--port", "0", "--state", "/proc/version")
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1 and "/proc/version" in done.stderr


def test_port_that_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("--port", str(port), "--listen", "127.0.0.1", "--state", str(tmp_path))
    assert done.returncode not in (0, None)
    assert str(port) in done.stderr


def test_variables(tmp_path):
    """The names of the protocol work by themselves, as in a job."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "SBX_PORT": str(port), "SBX_TOKEN": "from-the-variable", "SBX_IDLE_TIMEOUT": "600",
           "SBX_MAX_CONNECTIONS": "100"}
    process = subprocess.Popen([str(BINARY), "--state", str(tmp_path / "state")], env=env,
                               stderr=subprocess.PIPE, text=True)
    try:
        first = json.loads(process.stderr.readline())
        while first["message"] != "listening":
            first = json.loads(process.stderr.readline())
        assert first["port"] == port
        client = Client("127.0.0.1", port, token="from-the-variable")
        assert client.exec("echo ok").stdout == "ok\n"
    finally:
        process.terminate()
        assert process.wait(15) == 0


def test_flags_win_over_variables(start_host):
    host = start_host(env={"SBX_PORT": "1", "SBX_MAX_CONNECTIONS": "7"}, flags=["--max-connections", "50"])
    assert host.port != 1
    assert host.client().exec("echo ok").stdout == "ok\n"


def test_token_file(start_host, tmp_path):
    (tmp_path / "token").write_text("from-the-file\n")
    host = start_host(token=None, flags=["--token-file", str(tmp_path / "token")])
    assert host.client(token="from-the-file").exec("echo ok").stdout == "ok\n"
    assert host.client().get("/v1/processes").status == 403


def test_empty_token_file_is_refused(tmp_path):
    (tmp_path / "token").write_text("\n")
    done = run("--token-file", str(tmp_path / "token"), "--state", str(tmp_path / "state"))
    assert done.returncode == 2


@pytest.mark.parametrize("text", ["5", "5s", "10m", "2h", "1d", "600"])
def test_durations(start_host, text):
    assert start_host(flags=["--idle-timeout", text]).client().get("/health").status == 200


def test_log_levels(start_host):
    quiet = start_host(flags=["--log-level", "info"])
    quiet.client().exec("true")
    entries = [json.loads(line) for line in quiet.lines]
    assert all({"time", "level", "message"} <= set(e) for e in entries)
    assert "debug" not in {e["level"] for e in entries}


def test_first_line_says_where_it_listens(own_host):
    entry = own_host.log_entries("listening")[0]
    assert entry["port"] == own_host.port and entry["address"]


# ---- the token

def test_token_is_nowhere_to_be_seen(own_host):
    client = own_host.client()
    assert client.exec('cat /proc/$PPID/environ /proc/$PPID/cmdline | tr "\\0" "\\n"').stdout.count("secret-token") == 0
    client.spawn("exec sleep 300")
    for pid in own_host.processes():
        for name in ("environ", "cmdline"):
            with open(f"/proc/{pid}/{name}", "rb") as f:
                assert b"secret-token" not in f.read(), (pid, name)
    with open(f"/proc/{own_host.pid}/environ", "rb") as f:
        assert b"secret-token" not in f.read()
    for path in own_host.state.rglob("*"):
        assert not path.is_file() or b"secret-token" not in path.read_bytes(), path
    client.request("GET", "/v1/processes", headers={"X-Sandbox-Token": "wrong-token"})
    assert "secret-token" not in own_host.log and "wrong-token" not in own_host.log


def test_state_is_private(own_host):
    own_host.client().exec("echo private output")
    assert stat.S_IMODE(own_host.state.stat().st_mode) & 0o077 == 0


# ---- without a token

@pytest.fixture
def open_host(start_host):
    return start_host(token=None)


def test_without_token_it_says_so_and_works(open_host):
    assert open_host.client().exec("echo ok").stdout == "ok\n"
    assert "loopback only" in open_host.log_entries("listening")[0]["token"]


def test_without_token_it_listens_on_loopback_only(open_host):
    with open("/proc/net/tcp") as f:
        lines = [line.split() for line in f.read().splitlines()[1:]]
    port = f"{open_host.port:04X}"
    addresses = {fields[1].split(":")[0] for fields in lines if fields[1].endswith(":" + port) and fields[3] == "0A"}
    assert addresses <= {"0100007F"}
    with open("/proc/net/tcp6") as f:
        lines = [line.split() for line in f.read().splitlines()[1:]]
    addresses = {fields[1].split(":")[0] for fields in lines if fields[1].endswith(":" + port) and fields[3] == "0A"}
    assert addresses <= {"00000000000000000000000001000000"}


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1"},
    {"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Host": "localhost.evil.example:49983"},
    {"Host": "10.0.0.1"}, {"Host": "127.0.0.1@evil.example"}, {"Host": ""},
])
def test_without_token_no_web_page_gets_through(open_host, headers):
    answer = open_host.client().request("POST", "/v1/exec", body={"cmd": "echo pwned"}, headers=headers)
    assert answer.status in (400, 403)
    assert b"pwned" not in answer.body
    if "Host" not in headers:
        assert answer.status == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "127.0.0.1:49983", "localhost:1", "LOCALHOST"])
def test_without_token_loopback_names_work(open_host, name):
    assert open_host.client().request("GET", "/v1/processes", headers={"Host": name}).status == 200


def test_with_token_any_name_works(host):
    headers = {"Host": "job--49983.example", "Origin": "https://example.com"}
    assert host.client().request("GET", "/v1/processes", headers=headers).status == 200


# ---- the end

def test_sigterm_ends_commands_in_order(own_host, tmp_path):
    client = own_host.client()
    stream = client.exec_stream(f"trap 'touch {tmp_path}/clean; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    stream.until_text("up\n")
    process = client.spawn("exec sleep 300")
    began = time.monotonic()
    own_host.process.terminate()
    done = stream.rest()
    assert own_host.wait() == 0
    assert time.monotonic() - began < 5
    assert (tmp_path / "clean").exists(), "it had time to clean up"
    assert done.exit["cause"] == "host_stopped"
    gone(process["pid"], 1)


def test_sigterm_with_deaf_commands(own_host):
    client = own_host.client()
    stream = client.exec_stream("trap '' TERM; echo up; while :; do sleep 0.05; done")
    stream.until_text("up\n")
    pid = stream.seen[0]["pid"]
    began = time.monotonic()
    own_host.process.terminate()
    assert own_host.wait() == 0
    assert time.monotonic() - began < 8
    gone(pid, 1)


def test_sigterm_right_after_the_start(start_host):
    """Whoever has read the line that it listens may already stop it in order."""
    for _ in range(20):
        start_host().stop()


def test_sigint_is_like_sigterm(own_host):
    own_host.process.send_signal(signal.SIGINT)
    assert own_host.wait() == 0


def test_sigterm_stops_accepting_and_closes_idle_connections(own_host):
    client = own_host.client(keep=True)
    client.get("/health")
    own_host.process.terminate()
    assert own_host.wait() == 0
    with pytest.raises(OSError):
        socket.create_connection((own_host.address, own_host.port), timeout=2).close()


# ---- places

def can_make_namespaces():
    return subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_make_namespaces(), reason="needs the right to make a pid namespace")
def test_as_pid_1_it_reaps_everything(start_host):
    host = start_host(wrapper=["unshare", "-pf", "--mount-proc"])
    client = host.client(keep=True)
    assert client.exec("cat /proc/1/comm").stdout == "cay-host\n"
    for _ in range(30):
        client.exec("(sh -c '(sleep 0.05 &)' &) ; setsid sh -c '(sleep 0.1 &) ; exit' &")
    inside = "for s in /proc/[0-9]*/stat; do cat $s 2>/dev/null; done | grep -c ') Z' || true"
    wait_until(lambda: client.exec(inside).stdout == "0\n", 10, "the end of all zombies")
    os.kill(host.pid, signal.SIGTERM)
    assert host.wait() == 0


@pytest.fixture
def bare_root(tmp_path):
    """A root with nothing in it but busybox and cay-host: no glibc, no loader."""
    busybox = next((p for p in ("/bin/busybox", "/usr/bin/busybox") if os.path.exists(p)), None)
    assert busybox, "busybox-static is missing"
    root = tmp_path / "root"
    for folder in ("bin", "tmp", "proc", "dev", "state", "etc"):
        (root / folder).mkdir(parents=True)
    shutil.copy(busybox, root / "bin/busybox")
    for name in ("sh", "echo", "cat", "ls", "sleep", "true", "id"):
        (root / "bin" / name).symlink_to("busybox")
    shutil.copy(BINARY, root / "cay-host")
    return root


@pytest.mark.skipif(SANITIZED, reason="a sanitizer build is not static")
def test_runs_where_there_is_no_libc(start_host, bare_root):
    wrapper = ["bwrap", "--bind", str(bare_root), "/", "--proc", "/proc", "--dev", "/dev", "--die-with-parent"]
    host = start_host(wrapper=wrapper, binary="/cay-host", state=bare_root / "state",
                      flags=["--state", "/state"], env={"PATH": "/bin"})
    client = host.client()
    assert client.exec("echo hello; ls /").stdout.split() == ["hello", *sorted(os.listdir(bare_root))]
    assert client.put("/v1/files/write", b"x", path="/tmp/f").status == 200
    assert (bare_root / "tmp/f").read_bytes() == b"x"
    process = client.spawn("exec sleep 300")
    assert client.delete(f"/v1/processes/{process['id']}").json()["killed"] is True
    os.kill(host.pid, signal.SIGTERM)
    assert host.wait() == 0


@pytest.mark.skipif(SANITIZED, reason="a sanitizer build is neither static nor small")
def test_executable_is_static_stripped_and_small():
    with open(BINARY, "rb") as f:
        data = f.read()
    assert b"/lib64/ld-linux" not in data, "no loader"
    readelf = subprocess.run(["readelf", "-S", "-d", str(BINARY)], capture_output=True, text=True, check=True).stdout
    assert ".symtab" not in readelf and "NEEDED" not in readelf
    # Larger where it had to be linked with glibc (scripts/static_runtime.sh).
    limit = 2_900_000 if b"glibc" in data else 2_100_000
    assert len(data) <= limit, f"{len(data)} bytes"


def test_without_root(tmp_path):
    """An ordinary user can run it: the kill of trees falls back where it must."""
    if os.getuid() != 0:
        pytest.skip("every other test shows it then")
    folder = tmp_path / "place"
    folder.mkdir()
    shutil.copy(BINARY, folder / "cay-host")
    for path in [folder, *folder.parents]:
        if path.owner() == "root" and str(path).startswith("/tmp/"):
            path.chmod(0o755)
    state = folder / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    host = Host(state, binary=folder / "cay-host", popen_options={"user": 65534, "group": 65534,
                                                                  "extra_groups": []})
    host.start()
    try:
        client = host.client()
        assert client.exec("id -u").stdout == "65534\n"
        done = client.exec("setsid sh -c 'echo $$; exec sleep 300' & sleep 0.2; exec sleep 300", timeout=0.6)
        assert done.exit["timed_out"] is True
        gone(int(done.stdout), 3)
        host.stop()
    finally:
        host.destroy()


def test_with_the_three_standard_descriptors_closed(start_host):
    """Started carelessly, it must not hand a socket of its own to a command as its output."""
    host = start_host(wrapper=["sh", "-c", 'exec "$@" <&- >&-', "sh"])
    assert host.client().exec("echo ok; ls /proc/self/fd").stdout.split() == ["ok", "0", "1", "2", "3"]
    os.kill(host.pid, signal.SIGTERM)
    assert host.wait() == 0


def test_no_process_is_left_waiting(own_host):
    own_host.client().exec("true")
    assert not [p for p in descendants(own_host.pid) if process_state(p) == "Z"]
