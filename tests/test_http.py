"""HTTP itself: strict framing, limits, timeouts, and behaviour under attack."""

import os
import resource
import socket
import time

import pytest

from host import SANITIZED, cpu_seconds, rss_bytes, wait_until
from raw_http import RawConnection, raw_head

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


def exchange(host, data: bytes, timeout: float = 15.0):
    with RawConnection(host, timeout) as connection:
        connection.send(data)
        return connection.answer()


# ---- ambiguous framing

def post(*lines, body=b"", version="HTTP/1.1", host_line="Host: x"):
    head = [f"POST /v1/exec {version}", *([host_line] if host_line else []), *lines]
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + body


CHUNKED = "Transfer-Encoding: chunked"
AMBIGUOUS = {
    "length and chunked": post("Content-Length: 5", CHUNKED, body=b"0\r\n\r\n"),
    "chunked and length": post(CHUNKED, "Content-Length: 5", body=b"0\r\n\r\n"),
    "two lengths": post("Content-Length: 5", "Content-Length: 6", body=b"12345"),
    "two equal lengths": post("Content-Length: 5", "Content-Length: 5", body=b"12345"),
    "length list": post("Content-Length: 5, 5", body=b"12345"),
    "length with sign": post("Content-Length: +5", body=b"12345"),
    "negative length": post("Content-Length: -5", body=b"12345"),
    "hex length": post("Content-Length: 0x5", body=b"12345"),
    "length with space": post("Content-Length: 5 5", body=b"12345"),
    "empty length": post("Content-Length:", body=b"12345"),
    "overflowing length": post("Content-Length: 99999999999999999999999", body=b"12345"),
    "gzip coding": post("Transfer-Encoding: gzip", body=b"12345"),
    "gzip then chunked": post("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "chunked then identity": post("Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"),
    "chunked twice": post("Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "two codings": post(CHUNKED, CHUNKED, body=b"0\r\n\r\n"),
    "identity": post("Transfer-Encoding: identity", "Content-Length: 5", body=b"12345"),
    "obscure chunked": post("Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "vertical tab": post("Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "space before colon": post("Content-Length : 5", body=b"12345"),
    "folded header": post("X-A: 1\r\n Content-Length: 5", body=b"12345"),
    "bare LF in head": b"POST /v1/exec HTTP/1.1\nHost: x\n\n",
    "bare CR in value": post("X-A: a\rb"),
    "NUL in value": post("X-A: a\x00b"),
    "NUL in name": post("X\x00A: b"),
    "no name": post(": value"),
    "no colon": post("JustText"),
    "no host": post(host_line=None),
    "two hosts": post("Host: y"),
    "HTTP/1.0 chunked": post(CHUNKED, version="HTTP/1.0", body=b"0\r\n\r\n"),
    "old version": b"GET /health HTTP/0.9\r\nHost: x\r\n\r\n",
    "no version": b"GET /health\r\n\r\n",
    "future version": b"GET /health HTTP/2.0\r\nHost: x\r\n\r\n",
    "two spaces": b"GET  /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "tab separator": b"GET\t/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "control in target": b"GET /hea\x01lth HTTP/1.1\r\nHost: x\r\n\r\n",
    "bad method": b"GE(T /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_requests_are_refused_and_the_connection_ends(host, request_bytes):
    """Whatever follows on such a connection must never be taken for a request."""
    with RawConnection(host) as connection:
        connection.send(request_bytes + SMUGGLED)
        answer = connection.answer()
        assert answer.status in (400, 505), answer
        assert answer.error
        assert b"HTTP/1.1" not in connection.until_close(), "a second answer"


BAD_CHUNKS = {
    "no size": b"\r\n\r\n",
    "letters": b"xyz\r\nabc\r\n0\r\n\r\n",
    "sign": b"+3\r\nabc\r\n0\r\n\r\n",
    "hex prefix": b"0x3\r\nabc\r\n0\r\n\r\n",
    "space before size": b" 3\r\nabc\r\n0\r\n\r\n",
    "too large": b"ffffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "missing CRLF": b"3\r\nabcd\r\n0\r\n\r\n",
    "bare LF": b"3\nabc\n0\n\n",
    "LF in extension": b"3;a\nb\r\nabc\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("chunks", BAD_CHUNKS.values(), ids=BAD_CHUNKS.keys())
def test_broken_chunks_are_refused(host, chunks):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "POST", "/v1/exec", CHUNKED) + chunks + SMUGGLED)
        assert connection.answer().status == 400
        assert b"HTTP/1.1" not in connection.until_close(), "a second answer"


def test_chunked_bodies_are_accepted(host):
    body = b'{"cmd":"echo hello"}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    with RawConnection(host) as connection:
        for _ in range(2):
            connection.send(raw_head(host, "POST", "/v1/exec", CHUNKED) + chunks)
            assert b"hello" in connection.answer().body


def test_extensions_and_trailers_are_accepted(host):
    chunks = b'14;name=v\r\n{"cmd":"echo hello"}\r\n0;last\r\nX-Trailer: 1\r\n\r\n'
    with RawConnection(host) as connection:
        for _ in range(2):
            connection.send(raw_head(host, "POST", "/v1/exec", CHUNKED) + chunks)
            assert b"hello" in connection.answer().body


# ---- ordinary life

def test_health(host):
    answer = host.client(token=None).get("/health")
    assert answer.status == 200
    document = answer.json()
    assert set(document) == {"status", "version", "protocol"}
    assert document["status"] == "ok" and document["protocol"] == 3
    assert document["version"].count(".") == 2


def test_health_with_tokens_of_any_kind(host):
    assert host.client(token="wrong").get("/health").status == 200


def test_pipelined_requests_are_answered_in_order(host):
    with RawConnection(host) as connection:
        connection.send(b"".join(raw_head(host, "GET", t) for t in ("/health", "/v1/processes", "/nothing")))
        assert [connection.answer().status for _ in range(3)] == [200, 200, 404]


def test_request_in_single_bytes(host):
    body = b'{"cmd":"echo hello"}'
    with RawConnection(host) as connection:
        for byte in raw_head(host, "POST", "/v1/exec", f"Content-Length: {len(body)}") + body:
            connection.send(bytes([byte]))
        assert b"hello" in connection.answer().body


def test_http_1_0(host):
    request = f"POST /v1/exec HTTP/1.0\r\nX-Sandbox-Token: {host.token}\r\nContent-Length: 14\r\n\r\n" + '{"cmd":"true"}'
    with RawConnection(host) as connection:
        connection.send(request.encode())
        text = connection.until_close()
    assert text.startswith(b"HTTP/1.") and b"chunked" not in text.split(b"\r\n\r\n")[0]
    assert b'"exited"' in text


def test_connection_close_is_honoured(host):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", "/health", "Connection: close"))
        answer = connection.answer()
        assert answer.headers["Connection"] == "close"
        assert connection.until_close() == b""


def test_keep_alive_after_a_pause(host):
    client = host.client(keep=True)
    client.get("/health")
    time.sleep(3)
    assert client.get("/health").status == 200


def test_keep_alive_after_errors(host):
    client = host.client(keep=True)
    for path, status in (("/nothing", 404), ("/v1/files/stat?path=/no/such", 404), ("/v1/exec", 405)):
        assert client.get(path).status == status
        assert client._kept.sock is not None, "an orderly error keeps the connection"


def test_head_requests(host):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "HEAD", "/health") + raw_head(host, "GET", "/health"))
        head, full = connection.answer(to_head=True), connection.answer()
        assert head.status == 200
        assert head.headers["Content-Length"] == full.headers["Content-Length"]


def test_head_errors_have_no_body(host):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "HEAD", "/nothing") + raw_head(host, "GET", "/health"))
        assert connection.answer(to_head=True).status == 404
        assert connection.answer().json()["status"] == "ok"


@pytest.mark.parametrize("path, method", [("/v1/exec", "POST"), ("/v1/files/read", "GET"),
                                          ("/v1/files/write", "PUT"), ("/v1/processes", "POST")])
def test_options(client, path, method):
    answer = client.request("OPTIONS", path)
    assert answer.status in (200, 204)
    assert method in answer.headers["Allow"]


def test_unknown_routes(client):
    for path in ("/", "/v1", "/v1/", "/v1/nothing", "/v2/exec", "/v1/files", "/v1/sandboxes",
                 "/v1/files/nothing", "/v1/../v1/exec"):
        answer = client.get(path)
        assert answer.status == 404, path
        assert answer.error


def test_wrong_methods(client):
    answer = client.request("PATCH", "/v1/files/read")
    assert answer.status == 405 and answer.error and "GET" in answer.headers["Allow"]


# ---- authorisation

@pytest.mark.parametrize("path", ["/v1/exec", "/v1/processes", "/v1/files/read?path=/etc/passwd", "/v1/nothing",
                                  "/nothing", "/v1/proxy/80/", "/v1/execs/x-0123456789abcdef"])
@pytest.mark.parametrize("headers", [{}, {"X-Sandbox-Token": "wrong"}, {"X-Sandbox-Token": ""},
                                     {"Authorization": "Bearer secret-token"},
                                     {"X-Sandbox-Token": "secret-token "[:-2]}],
                         ids=["none", "wrong", "empty", "bearer", "prefix"])
def test_every_route_needs_the_token(host, path, headers):
    answer = host.client(token=None).request("GET", path, headers=headers)
    assert answer.status == 403
    assert host.token not in answer.error


def test_the_bearer_of_the_hub_does_not_matter(host):
    answer = host.client().request("GET", "/v1/processes", headers={"Authorization": "Bearer hf_something"})
    assert answer.status == 200


def test_two_tokens_are_refused(host):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", "/v1/processes", "X-Sandbox-Token: wrong"))
        assert connection.answer().status in (400, 403)


def test_no_body_is_accepted_before_authorisation(host):
    """A stranger's upload is refused after its head, and never read."""
    head = raw_head(host, "PUT", "/v1/files/write?path=/tmp/x", "Content-Length: 52428800", token=False)
    with RawConnection(host) as connection:
        connection.send(head)
        assert connection.answer().status == 403
        sent = 0
        try:
            connection.socket.settimeout(5)
            while sent < 50 << 20:
                sent += connection.socket.send(b"x" * 65536)
        except OSError:
            pass
        assert sent < 50 << 20


def test_no_continue_before_authorisation(host):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "PUT", "/v1/files/write?path=/tmp/x", "Content-Length: 100",
                                 "Expect: 100-continue", token=False))
        assert connection.answer().status == 403


# ---- limits

def test_expect_continue(host, tmp_path):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "PUT", f"/v1/files/write?path={tmp_path}/f", "Content-Length: 3",
                                 "Expect: 100-continue"))
        assert connection.line() == b"HTTP/1.1 100 Continue"
        assert connection.line() == b""
        connection.send(b"abc")
        assert connection.answer().status == 200
    assert (tmp_path / "f").read_bytes() == b"abc"


def test_body_too_large(host):
    answer = exchange(host, raw_head(host, "POST", "/v1/exec", f"Content-Length: {1 << 30}"))
    assert answer.status == 413 and answer.error


def test_chunked_body_too_large(host):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "POST", "/v1/exec", CHUNKED))
        chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        try:
            for _ in range(200):
                connection.send(chunk)
        except OSError:
            pass
        assert connection.answer().status == 413


def test_head_too_large(host):
    answer = exchange(host, raw_head(host, "GET", "/health", *[f"X-{n}: {'x' * 1000}" for n in range(70)]))
    assert answer.status == 431 and answer.error


def test_one_header_too_large(host):
    assert exchange(host, raw_head(host, "GET", "/health", "X: " + "x" * 100_000)).status == 431


def test_target_too_long(host):
    assert exchange(host, raw_head(host, "GET", "/" + "x" * 100_000)).status in (414, 431)


def test_many_small_headers_fit(host):
    assert exchange(host, raw_head(host, "GET", "/health", *[f"X-{n}: 1" for n in range(100)])).status == 200


def test_connection_cap(start_host):
    host = start_host(flags=["--max-connections", "5"])
    kept = [RawConnection(host) for _ in range(5)]
    for connection in kept:
        connection.send(raw_head(host, "GET", "/health"))
        assert connection.answer().status == 200
    with RawConnection(host) as extra:
        extra.send(raw_head(host, "GET", "/health"))
        answer = extra.answer()
        assert answer.status == 503 and answer.error
    for connection in kept:
        connection.send(raw_head(host, "GET", "/health"))
        assert connection.answer().status == 200, "those inside are not harmed"
    kept.pop().socket.close()

    def works_again():
        with RawConnection(host) as another:
            another.send(raw_head(host, "GET", "/health"))
            return another.answer().status == 200

    wait_until(works_again)
    for connection in kept:
        connection.socket.close()


# ---- slow and hostile peers

@pytest.mark.slow
def test_head_that_never_ends(host):
    with RawConnection(host) as connection:
        began = time.monotonic()
        connection.send(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        answer = connection.answer()
        assert answer.status == 408 and answer.error
        assert 8 < time.monotonic() - began < 14
        assert connection.until_close() == b""


@pytest.mark.slow
def test_slowloris(own_host):
    """Heads that trickle in do not stay longer for it, and others are served meanwhile."""
    slow = [RawConnection(own_host) for _ in range(100)]
    began = time.monotonic()
    for connection in slow:
        connection.send(b"GET /health HTTP/1.1\r\n")
    client = own_host.client()
    while time.monotonic() - began < 11.5:
        for number, connection in enumerate(slow):
            try:
                connection.send(f"X-{number}: 1\r\n".encode())
            except OSError:
                pass
        assert client.exec("echo served").stdout == "served\n"
        time.sleep(0.5)
    for connection in slow:
        try:
            assert connection.answer().status == 408
        except (EOFError, OSError):
            pass
        connection.socket.close()
    wait_until(lambda: len(os.listdir(f"/proc/{own_host.pid}/fd")) < 60, what="closed connections")


def test_connections_that_say_nothing_cost_little(own_host):
    silent = [socket.create_connection((own_host.address, own_host.port)) for _ in range(300)]
    assert own_host.client().exec("echo served").stdout == "served\n"
    before = cpu_seconds(own_host.pid)
    time.sleep(1)
    assert cpu_seconds(own_host.pid) - before < 0.2
    for connection in silent:
        connection.close()


@pytest.mark.skipif(SANITIZED, reason="the sanitizer needs descriptors for its own checks")
def test_running_out_of_descriptors_does_not_spin(start_host):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    host = start_host(popen_options={"preexec_fn": few})
    crowd = []
    for _ in range(100):
        connection = socket.create_connection((host.address, host.port), timeout=10)
        crowd.append(connection)
    time.sleep(0.5)
    before = cpu_seconds(host.pid)
    time.sleep(2)
    used = cpu_seconds(host.pid) - before
    assert used < 0.3, f"{used} s of CPU in 2 s with a full table"
    for connection in crowd:
        connection.close()

    def works():
        try:
            answer = host.client().post("/v1/exec", {"cmd": "echo works"})
            return answer.status == 200 and b"works" in answer.body
        except OSError:
            return False  # one of the last of the crowd's resets

    wait_until(works, what="service after the crowd")


def test_connections_are_given_back(own_host):
    client = own_host.client()
    client.exec("true")
    before = len(os.listdir(f"/proc/{own_host.pid}/fd"))
    for number in range(200):
        with RawConnection(own_host) as connection:
            connection.send(raw_head(own_host, "GET", "/health")[: number])
    for _ in range(50):
        client.exec("true")
    wait_until(lambda: len(os.listdir(f"/proc/{own_host.pid}/fd")) <= before + 2, what="closed descriptors")


def test_garbage_does_not_harm(host):
    for _ in range(50):
        with RawConnection(host) as connection:
            try:
                connection.send(os.urandom(4000))
                connection.socket.shutdown(socket.SHUT_WR)
                connection.until_close()
            except OSError:
                pass
    assert host.client().exec("echo alive").stdout == "alive\n"


@pytest.mark.soak
def test_soak_ten_thousand_commands_leave_no_trace(own_host):
    client = own_host.client(keep=True)
    for _ in range(500):
        client.exec("true")
    processes = own_host.processes()
    fds = {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in processes}
    rss = {pid: rss_bytes(pid) for pid in processes}
    for _ in range(10_000):
        client.exec("echo hello")
    for pid in processes:
        assert len(os.listdir(f"/proc/{pid}/fd")) <= fds[pid] + 4
        if not SANITIZED:
            assert rss_bytes(pid) < rss[pid] + (8 << 20)
