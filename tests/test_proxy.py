"""The port proxy: HTTP, streams, WebSockets, and nothing that should not pass."""

import contextlib
import json
import os
import socket
import threading
import time

import pytest
from websockets.sync.client import connect as ws_connect
from websockets.sync.server import serve as ws_serve

from host import wait_until
from inner_server import answer, listen_inside
from raw_http import RawConnection, raw_head

MODES = ("dedicated", "attached", "pool", "pool-none")


@pytest.fixture
def inner(inner_server):
    with inner_server() as server:
        yield server


def proxy(port, path="/"):
    return f"/v1/proxy/{port}{path}"


# ---- requests

def test_target_is_passed_on_as_sent(client, inner):
    for path in ("/", "/a/b%20c?x=1&y=%2F", "/a//b/../c", "/%00%ff"):
        assert client.get(proxy(inner.port, path)).json()["target"] == path
    assert client.get(f"/v1/proxy/{inner.port}").json()["target"] == "/"
    assert client.get(f"/v1/proxy/{inner.port}?q=1").json()["target"] == "/?q=1"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods(client, inner, method):
    assert client.request(method, proxy(inner.port, "/m")).json()["method"] == method
    assert inner.requests[-1].target == "/m"


def test_head(client, inner):
    got = client.request("HEAD", proxy(inner.port))
    assert got.status == 200 and got.body == b""
    assert inner.requests[-1].method == "HEAD"


def test_body_with_a_length(client, inner):
    data = os.urandom(3_000_000)
    assert client.post(proxy(inner.port), data).json()["body_length"] == len(data)
    assert inner.requests[-1].body == data
    assert inner.requests[-1].all("Content-Length") == [str(len(data))]


def test_chunked_body(host, inner):
    got = host.client().request("POST", proxy(inner.port), body=iter([b"one", b"two" * 100_000]))
    assert got.status == 200
    assert inner.requests[-1].body == b"one" + b"two" * 100_000
    assert inner.requests[-1].all("Transfer-Encoding") == ["chunked"]


def test_request_trailers(host, inner):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "POST", proxy(inner.port), "Transfer-Encoding: chunked",
                                 "Trailer: X-Check") + b"3\r\nabc\r\n0\r\nX-Check: 42\r\n\r\n")
        assert connection.answer().status == 200
    assert inner.requests[-1].trailers == [("X-Check", "42")]


def test_credentials_stay_here(host, inner):
    got = host.client().request("GET", proxy(inner.port), headers={"Authorization": "Bearer hf-secret"})
    assert got.status == 200
    request = inner.requests[-1]
    assert not request.has("Authorization") and not request.has("X-Sandbox-Token")
    assert host.token.encode() not in inner.received and b"hf-secret" not in inner.received


def test_headers_are_kept_in_order_and_number(host, inner):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(inner.port), "X-D: one", "X-d: two", "Cookie: a=1",
                                 "X-D: three", "Accept: */*"))
        assert connection.answer().status == 200
    request = inner.requests[-1]
    assert request.all("X-D") == ["one", "two", "three"]
    assert request.all("Host") == ["sandbox.example"]
    assert request.all("Cookie") == ["a=1"]


def test_hop_by_hop_headers_are_dropped(host, inner):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(inner.port), "Connection: keep-alive, X-Hop", "X-Hop: 1",
                                 "Keep-Alive: timeout=5", "Proxy-Authorization: Basic eA==",
                                 "Proxy-Connection: keep-alive", "TE: trailers", "X-Stays: 1"))
        assert connection.answer().status == 200
    request = inner.requests[-1]
    for name in ("X-Hop", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Upgrade"):
        assert not request.has(name), name
    assert request.has("X-Stays")


def test_connection_header_cannot_remove_host(host, inner):
    """`Connection: host` or `content-length` must not change the framing or the addressee."""
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "POST", proxy(inner.port), "Connection: host, content-length",
                                 "Content-Length: 3") + b"abc")
        assert connection.answer().status in (200, 400)
    for request in inner.requests:
        assert request.has("Host") and request.body == b"abc"


def test_expect_continue_through_the_proxy(host, inner):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "POST", proxy(inner.port), "Content-Length: 3", "Expect: 100-continue"))
        assert connection.line() == b"HTTP/1.1 100 Continue"
        assert connection.line() == b""
        connection.send(b"abc")
        assert connection.answer().status == 200
    assert inner.requests[-1].body == b"abc"


# ---- answers

def test_answer_headers_and_status(inner_server, client):
    raw = (b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 3\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
           b"Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\n\r\nabc")
    with inner_server(lambda _: raw) as server:
        got = client.get(proxy(server.port))
    assert got.status == 418 and got.body == b"abc"
    assert got.headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert got.headers["X-Kept"] == "1" and got.headers["X-Hop"] is None


def test_chunked_answer_with_trailers(inner_server, host):
    raw = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
           b"3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n")
    with inner_server(lambda _: raw) as server, RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(server.port), "TE: trailers"))
        got = connection.answer()
        assert got.body == b"abcdefg"
        assert connection.trailers == [("X-Sum", "7")]


def test_answer_until_close(inner_server, client):
    def respond(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")

    with inner_server(respond, takes_socket=True) as server:
        assert client.get(proxy(server.port)).body == b"until the end"


def test_big_answer(inner_server, client):
    data = os.urandom(20 << 20)
    with inner_server(lambda _: answer(data)) as server:
        assert client.get(proxy(server.port)).body == data


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_answers_without_body(inner_server, host, status):
    raw = f"HTTP/1.1 {status}\r\nETag: x\r\n\r\n".encode()
    with inner_server(lambda _: raw) as server:
        client = host.client(keep=True)
        for _ in range(2):
            got = client.get(proxy(server.port))
            assert got.status == int(status[:3]) and got.body == b"" and got.headers["ETag"] == "x"


def test_interim_answers_are_no_answers(inner_server, client):
    raw = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer(b"final")
    with inner_server(lambda _: raw) as server:
        assert client.get(proxy(server.port)).body == b"final"


def test_answer_that_breaks_off_is_seen_as_broken(inner_server, host):
    def respond(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")

    with inner_server(respond, takes_socket=True) as server, RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(server.port)))
        with pytest.raises(EOFError):
            connection.answer()


def test_server_sent_events_are_not_held_back(inner_server, client):
    def respond(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number in range(5):
            connection.sendall(f"data: {number}\n\n".encode())
            time.sleep(0.2)

    with inner_server(respond, takes_socket=True) as server:
        stream = client.stream("GET", proxy(server.port))
        arrived = []
        while line := stream.response.readline():
            if line.startswith(b"data:"):
                arrived.append(time.monotonic())
        assert len(arrived) == 5
        assert arrived[-1] - arrived[0] > 0.5, "one by one, not all at the end"


def test_client_that_leaves_closes_the_inner_connection(inner_server, client):
    def respond(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"tick\n")
            time.sleep(0.05)

    with inner_server(respond, takes_socket=True) as server:
        with client.stream("GET", proxy(server.port)) as stream:
            stream.response.readline()
        assert server.closed.wait(5)


# ---- keep-alive and splicing

def test_keep_alive(host, inner):
    client = host.client(keep=True)
    client.get(proxy(inner.port))
    port = client._kept.sock.getsockname()[1]
    for _ in range(20):
        assert client.post(proxy(inner.port), b"abc").json()["body_length"] == 3
        assert client._kept.sock.getsockname()[1] == port


def test_next_request_on_the_connection_is_ours(host, inner):
    """The second request of a connection goes to cay-host, never raw to the inner server."""
    client = host.client(keep=True)
    client.get(proxy(inner.port, "/first"))
    assert client.exec("echo private-command").stdout == "private-command\n"
    assert client.get("/v1/processes").status == 200
    assert [r.target for r in inner.requests] == ["/first"]
    assert b"private-command" not in inner.received and host.token.encode() not in inner.received


def test_pipelined_request_is_ours(host, inner):
    body = b'{"cmd":"echo private-command"}'
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(inner.port, "/first")) +
                        raw_head(host, "POST", "/v1/exec", f"Content-Length: {len(body)}") + body)
        assert connection.answer().status == 200
        assert b"private-command" in connection.answer().body
    assert b"private-command" not in inner.received and host.token.encode() not in inner.received


def test_unauthorised_second_request_is_refused(host, inner):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(inner.port)))
        assert connection.answer().status == 200
        connection.send(raw_head(host, "GET", proxy(inner.port, "/second"), token=False))
        assert connection.answer().status == 403
    assert len(inner.requests) == 1


def test_upgrade_that_is_declined_does_not_splice(host, inner):
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(inner.port, "/ws"), "Connection: Upgrade",
                                 "Upgrade: websocket"))
        assert connection.answer().status == 200
        connection.send(raw_head(host, "GET", "/v1/processes"))
        assert connection.answer().status == 200
    assert len(inner.requests) == 1 and host.token.encode() not in inner.received


def test_upgrade_that_nobody_asked_for_is_refused(inner_server, host):
    raw = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: evil\r\n\r\n"
    with inner_server(lambda _: raw) as server, RawConnection(host) as connection:
        connection.send(raw_head(host, "GET", proxy(server.port)))
        assert connection.answer().status == 502
        connection.send(raw_head(host, "GET", "/health"))
        try:
            connection.answer()
        except EOFError:
            pass
    assert b"/health" not in server.received and host.token.encode() not in server.received


def test_body_bytes_are_not_requests(host, inner):
    """What looks like a request inside a body stays a body."""
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    with RawConnection(host) as connection:
        connection.send(raw_head(host, "POST", proxy(inner.port), f"Content-Length: {len(smuggled)}") + smuggled)
        assert connection.answer().status == 200
    assert len(inner.requests) == 1 and inner.requests[0].body == smuggled


def test_surplus_of_an_answer_is_dropped(inner_server, host):
    """An inner server cannot put an answer of its own before the answer to our next request."""
    raw = answer(b"ok") + answer(b"injected")
    with inner_server(lambda _: raw) as server:
        client = host.client(keep=True)
        assert client.get(proxy(server.port)).body == b"ok"
        assert client.get("/health").json()["status"] == "ok"


AMBIGUOUS = {
    "both framings": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "garbage": os.urandom(64).replace(b"\n", b"x") + b"\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 2_000_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("raw", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_answers_are_refused(inner_server, client, raw):
    def respond(_, connection):
        connection.sendall(raw)

    with inner_server(respond, takes_socket=True) as server:
        got = client.get(proxy(server.port))
        assert got.status == 502 and got.error


# ---- nothing there

def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_nothing_listens(client):
    port = unused_port()
    got = client.get(proxy(port))
    assert got.status == 502
    assert str(port) in got.error


def test_inner_server_that_hangs_up(inner_server, client):
    with inner_server(lambda request, connection: None, takes_socket=True) as server:
        got = client.get(proxy(server.port))
        assert got.status == 502 and got.error


@pytest.mark.parametrize("port", ["0", "65536", "99999999999", "abc", "-1", "", "80x", "%38%30"])
def test_bad_ports(client, port):
    assert client.get(f"/v1/proxy/{port}/").status in (400, 404)


@pytest.mark.dedicated
def test_the_hosts_own_port_is_refused(host, client):
    """It would be a loop."""
    assert client.get(proxy(host.port, "/health")).status == 403


def test_needs_the_token(host, inner):
    assert host.client(token=None).get(proxy(inner.port)).status == 403
    assert host.client(token="wrong").get(proxy(inner.port)).status == 403
    assert inner.requests == []


def test_ipv6_only_server(inner_server, client):
    with inner_server(family=socket.AF_INET6) as server:
        assert client.get(proxy(server.port)).status == 200


def test_server_started_by_a_command(where, client, folder):
    if where == "pool":
        pytest.skip("binding TCP is denied in the host's network; pool/test_pool_proxy.py has the way by a socket")
    (folder / "file.txt").write_text("served")
    port = unused_port()
    process = client.spawn(["/usr/bin/python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"],
                           cwd=str(folder))
    wait_until(lambda: client.get(proxy(port)).status == 200)
    assert client.get(proxy(port, "/file.txt")).body == b"served"
    client.delete(f"/v1/processes/{process['id']}")


# ---- WebSocket

@pytest.fixture
def ws_server(host, where):
    headers = []
    listener, port = listen_inside(host, where)

    def handler(connection):
        headers.append(list(connection.request.headers.raw_items()))
        for message in connection:
            connection.send(message)

    with ws_serve(handler, sock=listener, max_size=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.seen_headers, server.port_of_proxy = headers, port
        yield server
        server.shutdown()


def ws_url(host, server, path="/ws"):
    return f"ws://{host.address}:{host.port}" + host.route(proxy(server.port_of_proxy, path))


def test_websocket(host, ws_server):
    headers = {"X-Sandbox-Token": host.token, "Authorization": "Bearer hf-secret"}
    with ws_connect(ws_url(host, ws_server), additional_headers=headers, max_size=None, proxy=None) as connection:
        for message in ("hello", b"\x00\xff" * 10, "ä" * 100_000, os.urandom(3 << 20)):
            connection.send(message)
            assert connection.recv(timeout=20) == message
        connection.ping().wait(5)
    names = {name.lower() for name, _ in ws_server.seen_headers[0]}
    assert "authorization" not in names and "x-sandbox-token" not in names
    assert "hf-secret" not in json.dumps(ws_server.seen_headers)


def test_websocket_needs_the_token(host, ws_server):
    with pytest.raises(Exception, match="403"):
        with ws_connect(ws_url(host, ws_server), proxy=None):
            pass


def test_many_websockets(host, ws_server):
    headers = {"X-Sandbox-Token": host.token}
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(ws_connect(ws_url(host, ws_server), additional_headers=headers, proxy=None))
                       for _ in range(20)]
        for number, connection in enumerate(connections):
            connection.send(str(number))
        assert [c.recv(timeout=10) for c in connections] == [str(n) for n in range(20)]
    assert host.client().exec("echo alive").stdout == "alive\n"
