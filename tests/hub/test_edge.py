"""The edge with real clients: HTTP libraries, WebSockets, event streams, much data, and clients that cannot get in."""

import base64
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

import pytest
from websockets.sync.client import connect as ws_connect
from websockets.sync.server import serve as ws_serve

from host import BINARY, ROOT, SANITIZED
from inner_server import InnerServer, listen

SERVER = BINARY.parent / "hub_edge_server"
CLIENT = Path(__file__).parent / "edge_client.py"
VERSIONS = ["1.31.0", "2.0.0", "2.4.0"]
PLAIN, DEDICATED = 0, 1


class Edge:
    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen([SERVER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = json.loads(self.process.stdout.readline())
        self.alice, self.bob, self.proxy_token = (self.ready[name] for name in ("alice", "bob", "proxy"))
        self.api_port, self.tls_port, self.bundle = (self.ready[name] for name in ("port", "tls_port", "bundle"))
        self._lock = threading.Lock()

    def tell(self, what: str, job: str, **more) -> dict:
        with self._lock:
            self.process.stdin.write(json.dumps({"do": what, "job": job, **more}) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def serve(self, job: str, at: int, port: int = 8000, *, kind: int = PLAIN, public: bool = False) -> str:
        """A job that runs and has a server on `port`, which is really the local port `at`; gives its name."""
        self.tell("add", job, kind=kind, ports=[port], public=[port] if public else [])
        self.tell("start", job, port=port, at=at)
        return f"{job}--{port}.cay.localhost"

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.bundle)

    def connect(self, name: str, address: str = "127.0.0.1") -> ssl.SSLSocket:
        raw = socket.create_connection((address, self.tls_port), timeout=60)
        return self.context().wrap_socket(raw, server_hostname=name)

    def http(self, name: str, address: str = "127.0.0.1") -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(name, self.tls_port, timeout=60)
        connection.sock = self.connect(name, address)
        return connection

    def fields(self, token: str | None = None) -> dict:
        return {"Authorization": f"Bearer {token or self.alice}"}

    def proxy_url(self, token: str | None = None) -> str:
        return f"http://cay:{token or self.proxy_token}@127.0.0.1:{self.api_port}"

    def most_memory(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def end(self) -> int:
        self.process.stdin.close()
        return self.process.wait(60)


@pytest.fixture(scope="module")
def edge():
    edge = Edge()
    yield edge
    assert edge.end() == 0


def python_of(version: str) -> Path:
    return ROOT / ".venvs" / f"hub-{version}" / "bin" / "python"


def run_client(version: str, *arguments: str, **environment: str) -> dict:
    done = subprocess.run([python_of(version), CLIENT, *arguments], text=True, capture_output=True, timeout=120,
                          env={"PATH": os.environ["PATH"], **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- HTTP

@pytest.mark.parametrize("version", VERSIONS)
def test_the_libraries_of_the_clients_get_through(edge, version):
    with InnerServer() as inner:
        name = edge.serve("lib" + version.replace(".", ""), inner.port)
        url = f"https://{name}:{edge.tls_port}/a%20b?q=1"
        for way in (str(edge.tls_port), edge.proxy_url(), edge.proxy_url(edge.alice)):
            got = run_client(version, "get", way, edge.bundle, edge.alice, url)
            assert got["status"] == 200, got
            seen = json.loads(got["body"])
            assert seen["target"] == "/a%20b?q=1"
            assert ["host", f"{name}:{edge.tls_port}"] in [[k.lower(), v] for k, v in seen["headers"]]
        for token in (edge.alice, edge.proxy_token):
            assert token.encode() not in inner.received
        assert b"uthorization" not in inner.received and b"hf_cay" not in inner.received
        got = run_client(version, "get", str(edge.tls_port), edge.bundle, edge.bob, url)
        assert got["status"] == 404


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_both_addresses_and_a_kept_connection(edge, address):
    with InnerServer() as inner:
        name = edge.serve("addr" + str(len(address)), inner.port)
        connection = edge.http(name, address)
        for number in range(3):
            connection.request("POST", f"/{number}", body=b"x" * number, headers=edge.fields())
            answer = connection.getresponse()
            assert answer.status == 200 and json.loads(answer.read())["body_length"] == number
        connection.close()
        assert [r.target for r in inner.requests] == ["/0", "/1", "/2"]


def test_a_public_port_is_for_everybody(edge):
    with InnerServer() as inner:
        name = edge.serve("public", inner.port, public=True)
        connection = edge.http(name)
        for fields in ({}, {"Authorization": "Bearer own"}, edge.fields(), edge.fields("hf_cayold")):
            connection.request("GET", "/", headers=fields)
            assert connection.getresponse().read()
        assert [r.all("Authorization") for r in inner.requests] == [[], ["Bearer own"], [], []]
        assert b"hf_cay" not in inner.received


def test_a_job_that_is_over_says_so(edge):
    name = edge.serve("gone", 1)
    edge.tell("finish", "gone", stage="ERROR", message="Job failed with exit code: 3")
    connection = edge.http(name)
    connection.request("GET", "/", headers=edge.fields())
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)) == (
        410, {"error": "job gone is over: ERROR: Job failed with exit code: 3"})


def test_events_arrive_as_they_are_sent(edge):
    seen = threading.Event()

    def respond(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n")
        assert seen.wait(30)
        connection.sendall(b"data: second\n\n")

    with InnerServer(respond, takes_socket=True) as inner:
        connection = edge.http(edge.serve("events", inner.port))
        connection.request("GET", "/", headers=edge.fields())
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.readline() == b"data: first\n"
        seen.set()
        assert answer.read() == b"\ndata: second\n\n"


# ---- WebSockets

@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_websockets(edge, way):
    fields = []

    def handler(connection):
        fields.extend(connection.request.headers.raw_items())
        for message in connection:
            connection.send(message)

    with ws_serve(handler, "127.0.0.1", 0, max_size=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        name = edge.serve("ws" + way, server.socket.getsockname()[1])
        more = {"proxy": edge.proxy_url()} if way == "proxy" else {
            "sock": socket.create_connection(("127.0.0.1", edge.tls_port)), "proxy": None}
        with ws_connect(f"wss://{name}:{edge.tls_port}/chat", ssl=edge.context(), server_hostname=name,
                        additional_headers=edge.fields(), max_size=None, **more) as ws:
            for message in ("hello", b"\x00\xff" * 1000, os.urandom(3 << 20)):
                ws.send(message)
                assert ws.recv(timeout=60) == message
        server.shutdown()
    assert "authorization" not in {key.lower() for key, _ in fields}
    assert "hf_cay" not in str(fields)


# ---- much data, and little

class Mirror:
    """Takes `Content-Length` bytes, then sends as many of its own; both sums are kept."""

    def __init__(self) -> None:
        self.listener, self.port = listen()
        self.taken = self.sent = None
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as reader:
            size = 0
            while (line := reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            taken, sent, left = hashlib.sha256(), hashlib.sha256(), size
            while left:
                piece = reader.read(min(left, 1 << 20))
                taken.update(piece)
                left -= len(piece)
            self.taken = taken.hexdigest()
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
            piece = os.urandom(1 << 20)
            for _ in range(size >> 20):
                sent.update(piece)
                connection.sendall(piece)
            self.sent = sent.hexdigest()


@pytest.mark.skipif(SANITIZED, reason="sanitizers keep freed memory")
def test_much_data_costs_little_memory(edge):
    size = 100 << 20
    mirror = Mirror()
    connection = edge.http(edge.serve("much", mirror.port))
    piece = os.urandom(1 << 20)
    given, got = hashlib.sha256(), hashlib.sha256()
    before = edge.most_memory()
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", str(size))
    connection.putheader("Authorization", f"Bearer {edge.alice}")
    connection.endheaders()
    for _ in range(size >> 20):
        given.update(piece)
        connection.send(piece)
    answer = connection.getresponse()
    time.sleep(1)  # a reader that is slow to begin must not make the hub hold what comes
    while data := answer.read(1 << 20):
        got.update(data)
    assert (mirror.taken, got.hexdigest()) == (given.hexdigest(), mirror.sent)
    assert edge.most_memory() < before + (4 << 20)


def small_requests(connect: Callable[[], http.client.HTTPConnection], fields: dict) -> float:
    """The time of a request whose head and body leave in two writes, as many clients do: of a quick one, since a
    busy machine makes others slow, while a wait for an acknowledgement is in all of them."""
    times = []
    for _ in range(100):
        begun = time.perf_counter()
        connection = connect()
        connection.putrequest("POST", "/")
        for key, value in {**fields, "Content-Length": "2"}.items():
            connection.putheader(key, value)
        connection.endheaders()
        connection.send(b"ok")
        connection.getresponse().read()
        times.append(time.perf_counter() - begun)
    # Young connections are acknowledged at once, so the first ones tell nothing.
    return sorted(times[20:])[4]


def test_small_requests_wait_for_no_acknowledgement(edge):
    """With Nagle's delay somewhere on the way each would take 40 ms, a hundred times as long as without the hub."""

    def direct() -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", inner.port, timeout=60)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    with InnerServer() as inner:
        kept = edge.http(edge.serve("small", inner.port))
        kept.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        through, without = small_requests(lambda: kept, edge.fields()), small_requests(direct, {})
    assert through < 20 * without, (through, without)


# ---- CONNECT

def tunnel(edge: Edge, target: str, token: str | None) -> tuple[int, bytes, socket.socket]:
    """The status and the whole answer of CONNECT, and the socket."""
    raw = socket.create_connection(("127.0.0.1", edge.api_port), timeout=60)
    fields = ""
    if token:
        fields = f"Proxy-Authorization: Basic {base64.b64encode(f'cay:{token}'.encode()).decode()}\r\n"
    raw.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{fields}\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += raw.recv(1)
    status = int(head.split()[1])
    body = b"" if status == 200 else raw.recv(1 << 16)
    return status, head + body, raw


def test_the_proxy_answers_as_it_should(edge):
    listener, port = listen()
    status, answer, _ = tunnel(edge, f"127.0.0.1:{port}", None)
    assert status == 407 and b'Proxy-Authenticate: Basic realm="cay"' in answer
    assert tunnel(edge, "a--1.cay.localhost:22", edge.alice)[0] == 403
    status, answer, _ = tunnel(edge, "no-such-host.invalid:443", edge.alice)
    assert status == 502 and b"does not resolve" in answer
    status, _, raw = tunnel(edge, f"127.0.0.1:{port}", edge.proxy_token)
    assert status == 200
    other, _ = listener.accept()
    raw.sendall(b"up")
    raw.shutdown(socket.SHUT_WR)
    assert other.recv(10) == b"up" and other.recv(10) == b""
    other.sendall(b"down")
    other.close()
    assert raw.recv(10) == b"down" and raw.recv(10) == b""
    listener.close()


def test_the_machines_previous_proxy_is_used():
    listener, port = listen()
    edge = Edge(str(port))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(tunnel, edge, "example.com:443", edge.alice)
        proxy, _ = listener.accept()
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += proxy.recv(1)
        assert head.startswith(b"CONNECT example.com:443 HTTP/1.1\r\n") and b"hf_cay" not in head
        proxy.sendall(b"HTTP/1.1 200 Connection established\r\n\r\nfrom example.com")
        status, _, raw = answer.result()
        assert status == 200 and raw.recv(100) == b"from example.com"
    assert edge.end() == 0


# ---- clients that cannot get in

@pytest.mark.slow
def test_clients_that_cannot_get_in_are_told_why_and_others_stay(edge):
    """All three causes at the same time, by all three libraries, and a job that only strangers ask for."""
    bundle = {"SSL_CERT_FILE": edge.bundle}
    causes = {
        "distrust": {"HTTPS_PROXY": edge.proxy_url()},
        "refused": {"HTTPS_PROXY": edge.proxy_url("wrong"), **bundle},
        "nameless": {**bundle},
    }
    words = {"distrust": "SSL_CERT_FILE=", "refused": "HTTPS_PROXY", "nameless": "does not resolve"}
    port = 49983
    with InnerServer() as inner:
        jobs = {cause: edge.serve(cause, inner.port, port, kind=DEDICATED) for cause in causes}
        jobs["nameless"] = jobs["nameless"].replace("cay.localhost", "cay.invalid")
        edge.serve("foreign", inner.port, port, kind=DEDICATED)
        name = edge.serve("reached", inner.port, port, kind=DEDICATED)
        with ThreadPoolExecutor() as pool:
            waits = {cause: pool.submit(run_client, version, "wait", str(edge.api_port), edge.alice, cause,
                                        f"https://{jobs[cause]}:{edge.tls_port}", "90", **causes[cause])
                     for cause, version in zip(causes, VERSIONS)}
            stranger = pool.submit(run_client, VERSIONS[0], "wait", str(edge.api_port), edge.bob, "foreign",
                                   f"https://foreign--49983.cay.invalid:{edge.tls_port}", "20", **bundle)
            got = run_client(VERSIONS[2], "wait", str(edge.api_port), edge.alice, "reached",
                             f"https://{name}:{edge.tls_port}", "90", HTTPS_PROXY=edge.proxy_url(),
                             **bundle)
            assert got["status"] == 200
            for cause, future in waits.items():
                told = future.result()
                assert told["stage"] == "ERROR" and words[cause] in told["message"], (cause, told)
                assert told["seconds"] > 9, told
            assert stranger.result()["stage"] == "waited in vain"
        assert edge.tell("status", "foreign")["stage"] == "RUNNING"
        assert edge.tell("status", "reached")["stage"] == "RUNNING"
        assert inner.requests and all(r.target == "/health" for r in inner.requests)
