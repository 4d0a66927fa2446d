"""Fixtures: a shared cay-host for tests that only use it, and a maker of hosts for those that need their own."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from host import BINARY, Host  # noqa: E402  (after the path is set)


def pytest_configure(config) -> None:
    if not BINARY.exists():
        pytest.exit(f"{BINARY} does not exist; build it first, or name another one in CAY_HOST_BIN", 3)
    # A script that runs in the background has SIGINT ignored, and what it starts inherits that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The hosts inherit this; tests that are about few descriptors lower it themselves.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """One cay-host for the tests of a module. Its end is checked like every other's."""
    running = Host(tmp_path_factory.mktemp("state")).start()
    try:
        yield running
        running.stop()
    finally:
        running.destroy()


@pytest.fixture
def client(host):
    return host.client()


@pytest.fixture
def start_host(tmp_path):
    """start_host(flags=…, env=…, …): a host of this test's own, stopped and checked at its end.

    A host that has already ended, or that the test has killed, is left out of the check."""
    made: list[Host] = []

    def start(*, state: Path | None = None, **options) -> Host:
        host = Host(state or tmp_path / f"state{len(made)}", **options)
        made.append(host)
        return host.start()

    try:
        yield start
        for host in made:
            if host.process is not None and host.process.poll() is None:
                host.stop()
    finally:
        for host in made:
            host.destroy()


@pytest.fixture
def own_host(start_host):
    return start_host()


@pytest.fixture
def own_client(own_host):
    return own_host.client()
