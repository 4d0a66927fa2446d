"""Two hubs on one machine: what happens to one is nothing to the other."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from hub_host import Hub, free_ports
from hub_jobs import Jobs, Sandbox

pytestmark = pytest.mark.slow
COUNTER = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"
SERVER = "echo hello > /root/index.html; cd /root; exec python3 -m http.server 8000"


def outliving(hub: Hub) -> set[int]:
    """Those of its processes that go on when it dies."""
    def name(pid: int) -> str:
        return Path(f"/proc/{pid}/comm").read_text().strip()

    return {pid for pid in hub.processes() if pid != hub.pid and name(pid) != "cay-nursery"}


class Tenants:
    """Jobs of one hub, and that they have never been disturbed."""

    def __init__(self, hub: Hub) -> None:
        self.hub, self.jobs = hub, Jobs(hub)
        self.counter = self.jobs.start(["sh", "-c", COUNTER])
        self.server = self.jobs.start(["sh", "-c", SERVER], expose={"ports": [8000]})
        self.box = Sandbox(self.jobs).ready()
        self.box.run("echo kept > /root/note; setsid sleep 1000 >/dev/null 2>&1 & echo $! > /root/pid")
        for job in (self.counter, self.server):
            self.jobs.until(job, "RUNNING")
        self.processes = outliving(hub)
        assert len(self.processes) == 5, "three keepers, a server and the networks"

    def serve(self) -> bytes:
        deadline = time.monotonic() + 30
        while True:
            status, _, body = self.hub.request("GET", f"/x/{self.server}--8000/index.html")
            if status == 200 or time.monotonic() > deadline:
                return body
            time.sleep(0.1)

    def check(self) -> None:
        for job in (self.counter, self.server, self.box.id):
            assert self.jobs.stage(job) == "RUNNING", self.jobs.info(job)
        assert self.box.run("cat /root/note; kill -0 $(cat /root/pid) && echo alive") == "kept\nalive\n"
        assert self.serve() == b"hello\n"

    def check_log(self) -> None:
        self.jobs.cancel(self.counter)
        seen = [int(line) for line in self.jobs.log(self.counter)]
        assert len(seen) > 10 and seen == list(range(1, len(seen) + 1)), "its log has a gap"

    def taken_over(self, hub: Hub) -> None:
        self.hub = self.jobs.hub = hub


def tables() -> str:
    return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout


def test_one_is_killed_and_the_other_does_not_notice(start_hub):
    ports = free_ports()
    first = start_hub(ports=ports, end_jobs=False)
    second = start_hub()
    one, two = Tenants(first), Tenants(second)
    assert not set(one.jobs.listed()) & set(two.jobs.listed())
    for tenants in (one, two):
        tenants.check()

    first.kill9()
    two.check()
    while_dead = two.jobs.start(["echo", "meanwhile"])
    two.jobs.until(while_dead, "COMPLETED")
    assert two.processes == outliving(second), "its keepers and servers are those that it had"

    reborn = start_hub(after=first, ports=ports)
    one.taken_over(reborn)
    assert one.processes == outliving(reborn), "they have been taken up, not made again"
    for tenants in (one, two):
        tenants.check()
    # Neither may touch what the other has.
    token = first.token()
    assert second.request("GET", f"/api/jobs/{one.jobs.namespace}", token=token)[0] == 401

    one.check_log()
    reborn.stop()  # which ends its jobs and looks for what is left
    two.check()
    assert two.processes == outliving(second)
    two.check_log()
    assert second.process.poll() is None and "cay_uplink" in tables(), "the other's rules are still there"
