"""The idle timeout: what counts as activity, and the end after quiet."""

import threading
import time

import pytest
from websockets.sync.client import connect as ws_connect
from websockets.sync.server import serve as ws_serve

from host import wait_until
from inner_server import listen_inside
from raw_http import RawConnection, raw_head

pytestmark = pytest.mark.slow

MODES = ("dedicated", "pool")

IDLE = 1.0
HOLD = 3.0  # well over the timeout


@pytest.fixture
def idle_host(where, start_host, start_pool):
    """A dedicated host, or one sandbox of a pool host that itself never ends, idle after a second."""
    if where == "dedicated":
        return start_host(flags=["--idle-timeout", "1s"])
    return start_pool().create(paths="root", idle_timeout_secs=1)


@pytest.fixture
def host(idle_host):
    return idle_host


def assert_ends(host):
    if host.in_pool:
        wait_until(lambda: host.id not in host.host.listed(), 10, "its eviction")
        answer = host.client().get("/v1/processes")
        assert answer.status == 410 and answer.json()["cause"] == "evicted"
        wait_until(lambda: not host.commands(), 5, "the end of its commands")
        return
    assert host.wait(10) == 0
    assert [e for e in host.log_entries("stopping") if "idle" in e["reason"]], host.log
    assert not host.processes()


def assert_alive_for(host, seconds):
    time.sleep(seconds)
    if host.in_pool:
        assert host.id in host.host.listed()
        return
    assert host.process.poll() is None, host.log


def test_quiet_ends_it(idle_host):
    began = time.monotonic()
    assert_ends(idle_host)
    assert time.monotonic() - began > 0.5 * IDLE


@pytest.mark.dedicated
def test_variable_in_seconds(start_host):
    assert_ends(start_host(env={"SBX_IDLE_TIMEOUT": "1"}))


def test_requests_postpone_it(idle_host):
    client = idle_host.client()
    until = time.monotonic() + HOLD
    while time.monotonic() < until:
        assert client.get("/v1/processes").status == 200
        time.sleep(0.2)
    assert_ends(idle_host)


def test_running_command_counts(idle_host):
    done = idle_host.client().exec(f"sleep {HOLD}; echo end")
    assert done.stdout == "end\n"
    assert_ends(idle_host)


def test_background_process_counts(idle_host):
    client = idle_host.client()
    process = client.spawn("exec sleep 300")
    assert_alive_for(idle_host, HOLD)
    client.delete(f"/v1/processes/{process['id']}")
    assert_ends(idle_host)


def test_kept_exec_counts(idle_host):
    with idle_host.client().exec_stream(f"sleep {HOLD}", on_disconnect="keep") as stream:
        stream.next("start")
    assert_alive_for(idle_host, HOLD - 0.5)
    assert_ends(idle_host)


def test_upload_counts(idle_host):
    with RawConnection(idle_host) as connection:
        connection.send(raw_head(idle_host, "PUT", "/v1/files/write?path=/tmp/uploaded-by-this-test", "Content-Length: 10"))
        connection.send(b"12345")
        assert_alive_for(idle_host, HOLD)
        connection.send(b"67890")
        assert connection.answer().status == 200
        assert idle_host.client().exec("cat /tmp/uploaded-by-this-test; rm /tmp/uploaded-by-this-test").stdout == "1234567890"
    assert_ends(idle_host)


def test_open_stream_counts(idle_host):
    with idle_host.client().stream("GET", "/v1/files/watch", query={"path": "/tmp"}):
        assert_alive_for(idle_host, HOLD)
    assert_ends(idle_host)


def test_proxied_request_counts(idle_host, inner_server):
    def slow(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        time.sleep(HOLD)
        connection.sendall(b"end")

    with inner_server(slow, takes_socket=True) as server:
        assert idle_host.client().get(f"/v1/proxy/{server.port}/").body == b"end"
    assert_ends(idle_host)


def test_websocket_counts(idle_host, where):
    listener, port = listen_inside(idle_host, where)

    def handler(connection):
        for message in connection:
            connection.send(message)

    with ws_serve(handler, sock=listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"ws://127.0.0.1:{idle_host.port}" + idle_host.route(f"/v1/proxy/{port}/")
        with ws_connect(url, additional_headers={"X-Sandbox-Token": idle_host.token}, proxy=None) as connection:
            assert_alive_for(idle_host, HOLD)
            connection.send("still here")
            assert connection.recv(timeout=5) == "still here"
        server.shutdown()
    assert_ends(idle_host)


def test_idle_keep_alive_connection_does_not_count(idle_host):
    client = idle_host.client(keep=True)
    client.get("/health")
    assert_ends(idle_host)


@pytest.mark.dedicated
def test_without_a_timeout_it_stays(own_host):
    assert_alive_for(own_host, HOLD)


@pytest.mark.dedicated
def test_strangers_do_not_keep_it_alive(idle_host):
    """Requests without the token, and connections that say nothing, are no activity."""
    silent = RawConnection(idle_host)
    stranger = idle_host.client(token="wrong")
    ended = False
    for _ in range(60):
        try:
            stranger.get("/v1/processes")
        except OSError:
            ended = True
            break
        time.sleep(0.15)
    silent.socket.close()
    assert ended
    assert_ends(idle_host)
