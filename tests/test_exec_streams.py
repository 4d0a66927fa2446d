"""Output is complete, in order, well decoded, and bounded in memory."""

import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from client import Output
from host import SANITIZED, rss_bytes, wait_until

MODES = ("dedicated", "attached", "pool")

SEQ = "".join(f"{n}\n" for n in range(1, 20001))


def spread(host, count, clients, one):
    """Calls one(client) `count` times over `clients` connections at once."""
    def work(share):
        client = host.client(keep=True)
        return [one(client) for _ in range(share)]

    with ThreadPoolExecutor(clients) as pool:
        return [r for rs in pool.map(work, [count // clients] * clients) for r in rs]


# ---- nothing is lost

def test_a_hundred_echoes(host):
    client = host.client(keep=True)
    assert [client.exec("echo hello").stdout for _ in range(100)] == ["hello\n"] * 100


@pytest.mark.slow
def test_two_thousand_echoes(host):
    client = host.client(keep=True)
    assert all(client.exec("echo hello").stdout == "hello\n" for _ in range(2000))


@pytest.mark.slow
def test_five_hundred_long_outputs(host):
    assert all(spread(host, 500, 2, lambda c: c.exec("seq 1 20000").stdout == SEQ))


def test_long_output(client):
    assert client.exec("seq 1 20000").stdout == SEQ


def test_bursts_of_300_kilobytes(host):
    burst = "head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero | tr '\\0' y >&2"
    for done in spread(host, 32, 4, lambda c: c.exec(burst)):
        assert (done.stdout, done.stderr) == ("x" * 300_000, "y" * 300_000)
        assert done.exit["output_bytes"] == {"stdout": 300_000, "stderr": 300_000}


def test_sixteen_clients_at_once(host):
    answers = spread(host, 320, 16, lambda c: c.exec("echo out; echo err >&2"))
    assert all((a.stdout, a.stderr) == ("out\n", "err\n") for a in answers)


def test_output_of_a_command_that_kills_itself(host):
    client = host.client(keep=True)
    for _ in range(50):
        done = client.exec("seq 1 2000; kill -9 $$")
        assert done.stdout.endswith("\n2000\n") and done.exit["signal"] == 9


@pytest.mark.slow
def test_slow_reader_gets_everything(client):
    """A client that stalls for seconds must not lose the tail under a normal exit event."""
    with client.exec_stream("head -c 5000000 /dev/zero | tr '\\0' z") as stream:
        stream.next("start")
        time.sleep(4)
        done = stream.rest()
    assert len(done.stdout) == 5_000_000
    assert done.exit["exit_code"] == 0


# ---- the end of the stream keeps the connection

def raw_exec(host, sock, body=b'{"cmd":"echo hello"}'):
    head = (f"POST {host.route('/v1/exec')} HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {host.token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    sock.sendall(head.encode() + body)


def test_exit_has_no_newline_and_comes_with_the_last_chunk(host):
    with socket.create_connection((host.address, host.port), timeout=30) as sock:
        for _ in range(20):
            raw_exec(host, sock, b'{"cmd":"echo hello; sleep 0.05; echo end"}')
            data = b""
            while b'"event":"exit"' not in data:
                data += sock.recv(1 << 20)
            # Whoever has seen the exit event has the end of the body in the same read.
            assert data.endswith(b"}\r\n0\r\n\r\n"), data[-80:]


def test_one_connection_carries_many_commands(host):
    client = host.client(keep=True)
    client.exec("true")
    port = client._kept.sock.getsockname()[1]
    for _ in range(50):
        assert client.exec("echo hello").headers["Connection"] != "close"
        assert client._kept.sock.getsockname()[1] == port


# ---- text

def test_character_across_a_pause(client):
    assert client.exec("printf '\\303'; sleep 0.3; printf '\\251'").stdout == "é"


def test_characters_across_chunk_borders(client):
    text = "a" + "é" * 40_001
    assert client.exec("cat", stdin=text).stdout == text
    text = "ab" + "\N{GRINNING FACE}" * 70_001
    assert client.exec("cat", stdin=text).stdout == text


def test_streams_are_decoded_apart(client):
    done = client.exec("printf '\\303'; printf '\\303' >&2; sleep 0.2; printf '\\251'; printf '\\244' >&2")
    assert (done.stdout, done.stderr) == ("é", "ä")


@pytest.mark.parametrize("octal, expected", [
    (r"a\377b", "a\ufffdb"),
    (r"\303", "\ufffd"),  # cut off by the end
    (r"\355\240\200", "\ufffd\ufffd\ufffd"),  # a surrogate
    (r"\300\200", "\ufffd\ufffd"),  # an overlong zero
])
def test_invalid_bytes_become_replacement_characters(client, octal, expected):
    assert client.exec(f"printf '{octal}'").stdout == expected


def test_line_separators_and_controls_are_escaped(client):
    text = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\x7f\x00\r\n\"\\/\N{GRINNING FACE}"
    done = client.exec("cat", stdin=text)
    assert done.stdout == text
    # Python's line splitter, which the real client uses, must see one object per line.
    assert len(done.raw.decode().splitlines()) == len(done.raw.split(b"\n"))


def test_base64_gives_the_exact_bytes(client, folder):
    data = random.Random(7).randbytes(200_001) + bytes(range(256))
    (folder / "data").write_bytes(data)
    done = client.exec(f"cat {folder}/data; cat {folder}/data >&2", encoding="base64")
    assert done.stdout_bytes == data
    assert done.stderr_bytes == data
    assert all(e["encoding"] == "base64" for e in done.events if e["event"] in ("stdout", "stderr"))


def test_bytes_stay_available_after_a_text_answer(client):
    done = client.exec("printf 'a\\377b'")
    assert client.output(f"/v1/execs/{done.exec_id}", encoding="base64").stdout_bytes == b"a\xffb"


# ---- grandchildren that hold the pipes

def test_grandchild_neither_delays_the_exit_nor_dies(client, folder):
    flag = folder / "flag"
    began = time.monotonic()
    done = client.exec(f"(sleep 1.5; echo x; sleep 0.3; echo y; touch {flag}) & echo done")
    assert time.monotonic() - began < 1.2, "the exit event waits for a short grace only"
    assert done.stdout == "done\n"
    wait_until(flag.exists, what="the grandchild's last act, after writing into the pipe")
    wait_until(lambda: client.output(f"/v1/execs/{done.exec_id}").stdout == "done\nx\ny\n",
               what="the grandchild's output in the log")


def test_late_output_within_the_grace_is_delivered(client):
    # Written by a grandchild right after the leader's end, long before the grace is over.
    for _ in range(20):
        assert client.exec("(echo late) & ").stdout == "late\n"


# ---- a client that stops reading, a client that goes away

def written_bytes(pid):
    try:
        with open(f"/proc/{pid}/io") as f:
            return int(dict(line.split(": ") for line in f.read().splitlines())["wchar"])
    except OSError:
        return None


def test_unread_output_is_bounded_and_harms_nobody(own_host):
    client = own_host.client()
    with client.exec_stream(["yes"]) as stream:
        pid = stream.next("start")["pid"]
        outer = own_host.outer_pid(pid)
        time.sleep(2)
        before = written_bytes(outer)
        time.sleep(1)
        assert written_bytes(outer) - before < 8 << 20, "the command is slowed down"
        assert client.exec("echo others").stdout == "others\n"
        if not SANITIZED:
            assert all(rss_bytes(p) < 64 << 20 for p in own_host.processes())
    client.host.gone(pid, 5)


def test_disconnect_ends_everything_the_command_started(client):
    script = ("echo $$; setsid sh -c 'echo $$; exec sleep 300' & "
              "(sh -c 'echo $$; exec sleep 300' &) ; sleep 0.2; echo ready; exec sleep 300")
    with client.exec_stream(script) as stream:
        stream.until_text("ready\n")
        pids = [int(line) for line in Output(stream.seen).stdout.split() if line.isdigit()]
        assert len(pids) == 3 and all(client.host.is_running(p) for p in pids)
    for pid in pids:
        client.host.gone(pid, 3)
    record = wait_until(lambda: client.get(f"/v1/execs/{stream.seen[0]['exec_id']}").json()["exit"])
    assert record["cause"] == "disconnected"


def test_disconnect_of_a_silent_command_is_noticed(client):
    with client.exec_stream("exec sleep 300") as stream:
        pid = stream.next("start")["pid"]
    client.host.gone(pid, 3)


def test_on_disconnect_keep(client, folder):
    flag = folder / "flag"
    with client.exec_stream(f"echo before; sleep 1; echo after; touch {flag}", on_disconnect="keep") as stream:
        stream.until_text("before\n")
    wait_until(flag.exists)
    path = f"/v1/execs/{stream.seen[0]['exec_id']}"
    assert client.output(path, follow=1).stdout == "before\nafter\n"
    assert client.get(path).json()["exit"]["cause"] == "exited"


def test_idempotency_key_means_keep(client, folder):
    flag = folder / "flag"
    with client.exec_stream(f"sleep 1; touch {flag}", headers={"Idempotency-Key": str(folder)}) as stream:
        stream.next("start")
    wait_until(flag.exists)


def test_key_with_explicit_kill(client, folder):
    with client.exec_stream("exec sleep 300", on_disconnect="kill",
                            headers={"Idempotency-Key": str(folder)}) as stream:
        pid = stream.next("start")["pid"]
    client.host.gone(pid, 3)


@pytest.mark.soak
def test_soak_random_outputs(host):
    """Random sizes, pauses and streams from eight clients for two minutes; every byte is accounted for."""
    rng = random.Random(11)
    until = time.monotonic() + 120

    def work(seed):
        client, own = host.client(keep=True), random.Random(seed)
        rounds = 0
        while time.monotonic() < until:
            out, err = own.randrange(200_000), own.randrange(200_000)
            script = (f"head -c {out} /dev/zero | tr '\\0' o & head -c {err} /dev/zero | tr '\\0' e >&2; "
                      f"sleep 0.0{own.randrange(10)}; wait")
            done = client.exec(script)
            assert (len(done.stdout), len(done.stderr)) == (out, err)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, [rng.random() for _ in range(8)]))
