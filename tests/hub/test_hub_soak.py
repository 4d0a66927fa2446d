"""Ten minutes of twenty clients on one hub: nothing is lost, and nothing is left."""

from __future__ import annotations

import os
import random
import threading
import time
import traceback

import pytest

from hub_host import Hub
from hub_jobs import ENDED, Jobs, Sandbox

# Not beside a pool's soak, which counts what is left over on the whole machine.
pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("soak")]
CLIENTS = 20
SECONDS = float(os.environ.get("CAY_SOAK_SECONDS", "600"))


def memory_of(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def plain_job(jobs: Jobs, rng: random.Random) -> None:
    lines = rng.randrange(1, 400)
    job = jobs.start(["sh", "-c", f"seq 1 {lines}; exit {lines % 3}"])
    status = jobs.until(job, *ENDED, timeout=120)["status"]
    assert status["stage"] == ("COMPLETED" if lines % 3 == 0 else "ERROR"), status
    assert jobs.log(job) == [str(n) for n in range(1, lines + 1)], "lines are lost"


def canceled_job(jobs: Jobs, rng: random.Random) -> None:
    job = jobs.start(["sh", "-c", "setsid sleep 1000 & sleep 1000"])
    time.sleep(rng.uniform(0, 0.3))
    jobs.cancel(job)
    assert jobs.stage(job) == "CANCELED"


def sandbox(jobs: Jobs, rng: random.Random) -> None:
    box = Sandbox(jobs).ready()
    for number in range(rng.randrange(1, 10)):
        assert box.run(f"echo {number}; setsid sleep 1000 & :") == f"{number}\n"
    jobs.cancel(box.id)


def test_ten_minutes_of_twenty_clients():
    hub = Hub(flags=["--keep-jobs", "500"]).start()
    try:
        jobs = Jobs(hub)
        for _ in range(20):
            plain_job(jobs, random.Random(0))
        before = memory_of(hub.pid)
        until, failures, done = time.monotonic() + SECONDS, [], [0] * CLIENTS

        def client(number: int) -> None:
            rng = random.Random(number)
            while time.monotonic() < until and not failures:
                try:
                    rng.choice([plain_job, canceled_job, sandbox])(jobs, rng)
                    done[number] += 1
                except Exception:
                    failures.append(traceback.format_exc())

        threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert min(done) > 0, "a client that never got its turn"
        grown = memory_of(hub.pid) - before
        assert grown < 64 << 20, f"the hub has grown by {grown} bytes over {sum(done)} jobs"
        print(f"{sum(done)} jobs in {SECONDS:.0f} s, the hub grew by {grown >> 10} KiB")
        hub.stop()
    finally:
        hub.destroy()
