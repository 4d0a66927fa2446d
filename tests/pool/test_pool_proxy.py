"""The port proxy in a pool: unix sockets in the host's network, TCP in a network of its own."""

from __future__ import annotations

import socket

import pytest

from host import wait_until

pytestmark = pytest.mark.slow

SERVER = """
import os, socket, sys
if sys.argv[1] == "unix":
    path = os.environ["SBX_PROXY_DIR"] + "/" + sys.argv[2] + ".sock"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    s = socket.socket(socket.AF_UNIX); s.bind(path)
elif sys.argv[1] == "tcp6":
    s = socket.socket(socket.AF_INET6); s.bind(("::1", int(sys.argv[2])))
else:
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(sys.argv[2])))
s.listen(); print("up", flush=True)
while True:
    c, _ = s.accept(); c.recv(65536)
    text = os.environ["SBX_SANDBOX_ID"].encode()
    c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(text) + text); c.close()
"""


def serve(client, kind, port):
    """The output of a server that is up, or of one that ended since it could not."""
    process = client.spawn(["/usr/bin/python3", "-c", SERVER, kind, str(port)])
    path = f"/v1/processes/{process['id']}"
    wait_until(lambda: "up" in client.output(path).stdout or not client.process(process["id"])["running"])
    return client.output(path)


def test_unix_socket(pool, sandbox):
    client = sandbox.client()
    assert "up" in serve(client, "unix", 8000).stdout
    answer = client.get("/v1/proxy/8000/x")
    assert (answer.status, answer.body.decode()) == (200, sandbox.id)
    assert client.get("/v1/proxy/8001/").status == 502
    sibling = pool.create()
    assert sibling.client().get("/v1/proxy/8000/").status == 502, "ports are each sandbox's own"
    serve(sibling.client(), "unix", 8000)
    assert sibling.client().get("/v1/proxy/8000/").body.decode() == sibling.id


def test_binding_tcp_is_denied_in_the_hosts_network(sandbox):
    assert "Permission" in serve(sandbox.client(), "tcp", 18999).stderr


def test_going_out_works_in_the_hosts_network(pool, sandbox):
    done = sandbox.client().exec(
        [
            "/usr/bin/python3",
            "-c",
            f"import socket; socket.create_connection(('127.0.0.1', {pool.port}), 5); print('connected')",
        ]
    )
    assert done.stdout == "connected\n", done.stderr


@pytest.mark.parametrize("kind, port", [("tcp", 80), ("tcp", 8080), ("tcp6", 9090)])
def test_network_none(pool, kind, port):
    one, two = pool.create(network="none"), pool.create(network="none")
    for sandbox in (one, two):
        output = serve(sandbox.client(), kind, port)
        assert "up" in output.stdout, output.stderr
    for sandbox in (one, two):
        assert sandbox.client().get(f"/v1/proxy/{port}/").body.decode() == sandbox.id
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0 or port == 80
    for sandbox in (one, two):
        sandbox.delete()


def test_network_none_may_have_the_hosts_own_port(pool):
    """It is another network: the number means nothing there."""
    sandbox = pool.create(network="none")
    serve(sandbox.client(), "tcp", pool.port)
    assert sandbox.client().get(f"/v1/proxy/{pool.port}/").body.decode() == sandbox.id


def test_network_none_nothing_listens(pool):
    sandbox = pool.create(network="none")
    assert sandbox.client().get("/v1/proxy/5555/").status == 502


def test_the_proxy_counts_as_activity(pool):
    sandbox = pool.create(idle_timeout_secs=1)
    client = sandbox.client()
    answer = client.get("/v1/proxy/1/")
    assert answer.status == 502
    wait_until(lambda: sandbox.id not in pool.listed(), 10)
    assert client.get("/v1/proxy/1/").status == 410


def test_a_socket_of_another_owner_is_refused(pool):
    """Only sockets of the sandbox's own root user's making."""
    sandbox = pool.create(paths="root")
    client = sandbox.client()
    client.exec(
        "mkdir -p $SBX_PROXY_DIR; chmod 777 $HOME/.sbx $SBX_PROXY_DIR; ln -s 8000.sock $SBX_PROXY_DIR/8002.sock"
    )
    serve(client, "unix", 8000)
    assert client.get("/v1/proxy/8000/").status == 200
    assert client.get("/v1/proxy/8002/").status in (403, 502), "links are not followed"
