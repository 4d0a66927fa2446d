"""The edge's TLS with real clients: strict Python, curl, a proxy's tunnel; and how much memory a download costs."""

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from host import BINARY, SANITIZED
from pythons import strict_python

SERVER = BINARY.parent / "hub_tls_server"
CLIENT = Path(__file__).parent / "strict_client.py"
NAME = "abc--8000.cay.localhost"


class Edge:
    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen([SERVER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.next_line()

    def next_line(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def strict(self, host: str, *cafile: str) -> str:
        done = subprocess.run([strict_python(), CLIENT, str(self.ready["tls_port"]), host, *cafile], text=True,
                              env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=120, check=False)
        return done.stdout.strip() or done.stderr

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ready["bundle"])

    def most_memory(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def end(self) -> int:
        self.process.stdin.close()
        return self.process.wait(30)


@pytest.fixture(scope="module")
def edge(tmp_path_factory):
    edge = Edge(tmp_path_factory.mktemp("edge"))
    yield edge
    assert edge.end() == 0


@pytest.mark.parametrize("trusted", ["bundle", "ca"])
def test_strict_clients_are_content(edge, trusted):
    for host in (NAME, "cay.localhost"):
        assert edge.strict(host, edge.ready[trusted]) == "TLSv1.3 http/1.1 127.0.0.1 by TLS"


def test_a_hashed_folder_is_enough(edge):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(capath=edge.ready["hashed"])
    with socket.create_connection(("127.0.0.1", edge.ready["tls_port"])) as raw, \
            context.wrap_socket(raw, server_hostname=NAME) as tls:
        assert tls.version() == "TLSv1.3"


def test_other_names_are_refused(edge):
    for host in ("localhost", "a.b.cay.localhost", "example.com"):
        assert edge.strict(host, edge.ready["bundle"]).startswith("refused: Hostname mismatch")
        assert edge.next_line()["refused"] == host


def test_a_client_that_does_not_trust_us_is_seen(edge):
    assert edge.strict(NAME) == "refused: unable to get local issuer certificate"
    assert edge.next_line() == {"refused": NAME, "unknown_ca": True}


def test_curl_is_content(edge):
    curl = shutil.which("curl")
    assert curl, "the tests need curl"
    address = f"https://{NAME}:{edge.ready['tls_port']}/"
    done = subprocess.run([curl, "-sS", "--cacert", edge.ready["bundle"], "--resolve",
                           f"{NAME}:{edge.ready['tls_port']}:127.0.0.1", address, address],
                          text=True, capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("127.0.0.1 by TLS" * 2, "")


def test_through_a_tunnel(edge):
    connection = http.client.HTTPSConnection("127.0.0.1", edge.ready["port"], context=edge.context(), timeout=60)
    connection.set_tunnel(NAME, 443)
    for _ in range(2):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"127.0.0.1 by TLS"
    connection.close()
    connection = http.client.HTTPSConnection("127.0.0.1", edge.ready["port"], context=edge.context(), timeout=60)
    connection.set_tunnel("example.com", 443)
    with pytest.raises(OSError, match="403"):
        connection.request("GET", "/")


def test_a_large_body_comes_back_whole(edge):
    body = os.urandom(1 << 20)
    connection = http.client.HTTPConnection("127.0.0.1", edge.ready["tls_port"], timeout=60)
    raw = socket.create_connection(("127.0.0.1", edge.ready["tls_port"]), timeout=60)
    connection.sock = edge.context().wrap_socket(raw, server_hostname=NAME)
    connection.request("POST", "/echo", body=body)
    assert connection.getresponse().read() == body
    connection.close()


@pytest.mark.skipif(SANITIZED, reason="sanitizers keep freed memory")
def test_a_slow_download_costs_little_memory(edge):
    with socket.create_connection(("127.0.0.1", edge.ready["tls_port"]), timeout=60) as raw, \
            edge.context().wrap_socket(raw, server_hostname=NAME) as tls:
        tls.sendall(f"GET /bytes?{256 << 20} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        tls.recv(1000)
        before = edge.most_memory()
        time.sleep(2)
        got = 0
        while got < 64 << 20:
            got += len(tls.recv(1 << 20))
        assert edge.most_memory() < before + (2 << 20)
