"""SIGKILL of `cay serve` at any moment, and a restart with the same state."""

from __future__ import annotations

import http.client
import random
import threading
import time

import pytest

from hub_host import Hub, free_ports
from hub_jobs import ENDED, Jobs, Refused, Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hub-recovery")]
# What a client may see when the hub dies under it.
CUT = (OSError, http.client.HTTPException, ValueError)
COUNTER = "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo $i; sleep 0.05; done"


class Reborn:
    """A hub that comes back on the same ports."""

    def __init__(self) -> None:
        self.ports = free_ports()
        self.hub = Hub(ports=self.ports, end_jobs=False).start()

    def kill_and_restart(self) -> None:
        self.hub.kill9()
        self.restart()

    def restart(self) -> None:
        place, owner = self.hub.place, self.hub.owns_place
        self.hub = Hub(place, ports=self.ports, end_jobs=False)
        self.hub.owns_place = owner
        self.hub.start()


@pytest.fixture
def reborn():
    made = Reborn()
    yield made
    try:
        if made.hub.process.poll() is None:
            made.hub.kill9()
        last = Hub(made.hub.place, ports=made.ports)
        last.start()
        last.stop()
    finally:
        made.hub.destroy()


def test_running_jobs_go_on(reborn):
    jobs = Jobs(reborn.hub)
    counter = jobs.start(["sh", "-c", COUNTER.format(60)])
    sandbox = Sandbox(jobs).ready()
    sandbox.run("echo kept > /root/note; setsid sleep 1000 & echo $! > /root/pid")
    jobs.until(counter, "RUNNING")
    reborn.kill_and_restart()
    jobs.hub = reborn.hub
    assert jobs.stage(counter) == "RUNNING" and jobs.stage(sandbox.id) == "RUNNING"
    assert sandbox.run("cat /root/note; kill -0 $(cat /root/pid) && echo alive") == "kept\nalive\n"
    assert jobs.until(counter, *ENDED)["status"]["stage"] == "COMPLETED"
    assert jobs.log(counter) == [str(n) for n in range(1, 61)], "not a line lost or said twice"
    jobs.cancel(sandbox.id)


def test_jobs_that_end_while_nobody_looks(reborn):
    jobs = Jobs(reborn.hub)
    good, bad = jobs.start(["sh", "-c", "sleep 1; echo done"]), jobs.start(["sh", "-c", "sleep 1; exit 3"])
    for job in (good, bad):
        jobs.until(job, "RUNNING")
    reborn.hub.kill9()
    time.sleep(2)
    reborn.restart()
    jobs.hub = reborn.hub
    assert jobs.until(good, *ENDED)["status"]["stage"] == "COMPLETED" and jobs.log(good) == ["done"]
    status = jobs.until(bad, *ENDED)["status"]
    assert status["stage"] == "ERROR" and "exit code: 3" in status["message"]


def test_fifty_moments_under_load(reborn):
    """Whoever was told of a job finds it again, once, and it comes to an end that says why."""
    rng = random.Random(7)
    jobs = Jobs(reborn.hub)
    counter = jobs.start(["sh", "-c", COUNTER.format(100_000)])
    sandbox = Sandbox(jobs).ready()
    jobs.until(counter, "RUNNING")
    told: dict[str, int] = {}
    numbers = iter(range(10**9))
    for moment in range(50):
        stop, lock = threading.Event(), threading.Lock()

        def load(stop=stop, lock=lock):
            while not stop.is_set():
                try:
                    with lock:
                        number = next(numbers)
                    job = jobs.start(["echo", str(number)])
                    with lock:
                        told[job] = number
                    sandbox.run("echo x")
                except (*CUT, Refused):
                    if stop.is_set():
                        return
                    time.sleep(0.01)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.02, 0.5))
        reborn.hub.kill9()
        stop.set()
        for thread in threads:
            thread.join()
        reborn.restart()
        jobs.hub = reborn.hub
        listed = jobs.listed()
        assert len(listed) == len(set(listed)), "listed twice"
        assert set(told) <= set(listed), f"lost at moment {moment}"
        assert sandbox.run("echo $((6*7))") == "42\n", f"the sandbox is lost at moment {moment}"
    outcomes = {"COMPLETED": 0, "ERROR": 0}
    for job, number in told.items():
        status = jobs.until(job, *ENDED, timeout=120)["status"]
        outcomes[status["stage"]] += 1
        if status["stage"] == "COMPLETED":
            assert jobs.log(job) == [str(number)]
        else:
            assert "restarted" in status["message"], status
    assert outcomes["COMPLETED"] > outcomes["ERROR"], outcomes
    jobs.cancel(counter)
    lines = [int(line) for line in jobs.log(counter)]
    assert lines == list(range(1, len(lines) + 1)) and len(lines) > 100
    jobs.cancel(sandbox.id)
