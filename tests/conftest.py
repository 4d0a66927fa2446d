"""Fixtures: a shared cay-host for tests that only use it, and a maker of hosts for those that need their own.

A module that says MODES = ("dedicated", "attached", "pool") has its tests run in each (all but the first count as slow,
unless it says QUICK_IN_POOLS = True): there `host` is a dedicated cay-host, one that serves a sandbox which somebody
else has made, or one sandbox of a pool. Tests marked `dedicated` run in the first alone, and those marked
`makes_keepers` not in the second."""

from __future__ import annotations

import os
import resource
import secrets
import signal
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from host import BINARY, Host, hosts_of_a_test  # noqa: E402  (after the path is set)
from inner_server import InnerServer, listen_inside  # noqa: E402
from attached_host import AttachedHost, start_sandbox  # noqa: E402
from pool_host import InsidePath, PoolHost, Sandbox  # noqa: E402
import score  # noqa: E402


def pytest_configure(config) -> None:
    if not BINARY.exists():
        pytest.exit(f"{BINARY} does not exist; build it first, or name another one in CAY_HOST_BIN", 3)
    # A script that runs in the background has SIGINT ignored, and what it starts inherits that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The hosts inherit this; tests that are about few descriptors lower it themselves.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))


def is_walled(mode: str) -> bool:
    return mode == "attached" or mode.startswith("pool")


def pytest_generate_tests(metafunc) -> None:
    modes = getattr(metafunc.module, "MODES", None)
    if modes and "where" in metafunc.fixturenames:
        if metafunc.definition.get_closest_marker("dedicated"):
            modes = [m for m in modes if not is_walled(m)]
        if metafunc.definition.get_closest_marker("makes_keepers"):
            modes = [m for m in modes if m != "attached"]
        quick = getattr(metafunc.module, "QUICK_IN_POOLS", False)
        metafunc.parametrize(
            "where",
            [m if quick or not is_walled(m) else pytest.param(m, marks=pytest.mark.slow) for m in modes],
            indirect=True,
            scope="module",
        )


def pytest_terminal_summary(terminalreporter) -> None:
    score.report(terminalreporter)


@pytest.fixture(scope="module")
def where(request) -> str:
    """dedicated, attached, pool (network host) or pool-none (network none)."""
    return getattr(request, "param", "dedicated")


@pytest.fixture(scope="module")
def host(where, tmp_path_factory):
    """One cay-host for the tests of a module. Its end is checked like every other's."""
    running = start_sandbox(where, tmp_path_factory.mktemp("state"))
    try:
        yield running
        running.stop()
    finally:
        running.destroy()


@pytest.fixture
def client(host):
    return host.client()


@pytest.fixture
def start_host(where, tmp_path):
    """start_host(flags=…, env=…, …): a host of this test's own, stopped and checked at its end.
    start_host(after=host): another one that takes over the state of one that has ended.

    A host that has already ended, or that the test has killed, is left out of the check."""
    with hosts_of_a_test() as made:
        def start_one(*, state: Path | None = None, after: Host | Sandbox | None = None, **options) -> Host | Sandbox:
            if isinstance(after, Sandbox):
                pool = after.host.again(**options)
                made.append(pool)
                pool.start()
                return Sandbox(pool, after.document)
            if isinstance(after, AttachedHost):
                made.append(after.again(**options))
                return made[-1].start()
            if after is not None:
                options = {"mark": after.mark, "token": after.token, **options}
                state = after.state
            if where == "attached":
                made.append(AttachedHost(**options))
                return made[-1].start()
            if not where.startswith("pool"):
                made.append(Host(state or tmp_path / f"state{len(made)}", **options))
                return made[-1].start()
            running = start_sandbox(where, tmp_path, **options)
            made.append(running.host)
            return running

        yield start_one


@pytest.fixture
def start_pool():
    """start_pool(walls=…, capacity=…, flags=…, …): a pool host of this test's own.
    start_pool(after=host): another one with the state of one that has ended."""
    with hosts_of_a_test() as made:
        def start_one(*, after: PoolHost | None = None, **options) -> PoolHost:
            made.append(after.again(**options) if after else PoolHost(**options))
            return made[-1].start()

        yield start_one


@pytest.fixture
def own_host(start_host):
    return start_host()


@pytest.fixture
def own_client(own_host):
    return own_host.client()


def folder_of(host, tmp_path):
    if not host.walled:
        return tmp_path
    path = InsidePath(host, f"/tmp/{tmp_path.name}-{secrets.token_hex(3)}")
    path.mkdir()
    return path


@pytest.fixture
def folder(host, tmp_path):
    """An empty folder of the sandbox, to be looked at from outside too."""
    return folder_of(host, tmp_path)


@pytest.fixture
def own_folder(own_host, tmp_path):
    return folder_of(own_host, tmp_path)


@pytest.fixture
def inner_server(host, where):
    """inner_server(respond, …): a server inside the sandbox that the port proxy can reach."""
    def make(*arguments, family: int = socket.AF_INET, **options) -> InnerServer:
        return InnerServer(*arguments, listener=listen_inside(host, where, family), **options)

    return make
