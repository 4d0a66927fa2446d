"""How sandboxes of a pool end by themselves, and how little one costs that does nothing."""

from __future__ import annotations

import os
import re
import threading
import time
from datetime import datetime

import pytest

from host import cpu_seconds, descendants, is_running, wait_until

pytestmark = pytest.mark.slow


def evicted(pool, sandbox, timeout: float = 10.0) -> None:
    wait_until(lambda: sandbox.id not in pool.listed(), timeout, f"the end of {sandbox.id}")


# ---- idleness; what counts as activity is in tests/test_idle.py


def test_each_has_its_own_timeout(pool):
    short, long, never = (pool.create(idle_timeout_secs=n) for n in (1, 600, 0))
    evicted(pool, short)
    assert {long.id, never.id} <= set(pool.listed())
    long.works()


def test_without_a_timeout_it_stays(pool):
    sandbox = pool.create()
    time.sleep(2.5)
    sandbox.works()


def test_looking_at_it_does_not_keep_it(pool):
    sandbox = pool.create(idle_timeout_secs=1)
    until = time.monotonic() + 8
    while time.monotonic() < until and sandbox.id in pool.listed():
        pool.client().get(f"/v1/sandboxes/{sandbox.id}")
        pool.client(token="wrong").get(f"/v1/sandboxes/{sandbox.id}/processes")
        time.sleep(0.1)
    assert sandbox.id not in pool.listed()


def test_race_of_eviction_and_a_new_command(pool):
    """The command either runs to its end or hears 410; never anything between."""
    sandboxes = [pool.create(idle_timeout_secs=1) for _ in range(24)]
    began, results = time.monotonic(), []

    def attempt(number, sandbox):
        time.sleep(max(0.0, began + 0.85 + number * 0.02 - time.monotonic()))
        answer = sandbox.client().post("/v1/exec", {"cmd": "sleep 0.2; echo end"})
        results.append((answer.status, answer.body))

    threads = [threading.Thread(target=attempt, args=pair) for pair in enumerate(sandboxes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for status, body in results:
        assert status in (200, 410), (status, body)
        if status == 200:
            assert b'"data":"end\\n"' in body.replace(b" ", b"") and b'"exit_code":0' in body.replace(b" ", b""), body


def test_eviction_works_although_the_host_never_stops(start_pool):
    pool = start_pool()
    sandbox = pool.create(idle_timeout_secs=1)
    evicted(pool, sandbox)
    assert pool.process.poll() is None


def test_the_empty_host_ends_after_its_timeout(start_pool):
    pool = start_pool(flags=["--idle-timeout", "8s"])
    sandbox = pool.create()
    time.sleep(10)
    assert pool.process.poll() is None, "it is not empty"
    sandbox.delete()
    assert pool.wait(30) == 0


def test_the_empty_host_ends_after_the_last_eviction(start_pool):
    pool = start_pool(env={"SBX_IDLE_TIMEOUT": "8"})
    pool.create(idle_timeout_secs=1)
    assert pool.wait(30) == 0


def test_the_time_before_it_listens_is_not_idle(start_pool):
    pool = start_pool(flags=["--idle-timeout", "1s"])
    assert pool.wait(20) == 0
    begin, end = (datetime.fromisoformat(pool.log_entries(m)[0]["time"]) for m in ("listening", "stopping"))
    assert (end - begin).total_seconds() >= 0.95


# ---- time to live


def test_ttl_ends_it_in_the_middle_of_work(pool):
    sandbox = pool.create(ttl_secs=1)
    done = sandbox.client().exec("echo up; sleep 60")
    assert done.stdout == "up\n" and done.exit["cause"] in ("sandbox_deleted", "killed"), done.exit
    evicted(pool, sandbox, 5)


# ---- lazy keepers

NONE_READY = {"CAY_READY": "0"}  # they have keepers too


def groups(pool) -> list[str]:
    name = (pool.state / "name").read_text().strip()
    # Those of others come and go meanwhile: os.walk does not mind.
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if re.search(rf"/{name}[^/]*/.", path)]


def test_a_sandbox_that_has_run_nothing_has_no_process_and_no_group(start_pool):
    pool = start_pool()
    before = set(pool.processes()), len(groups(pool)), len(os.listdir(f"/proc/{pool.pid}/fd"))
    made = pool.create_answer(count=50).json()["sandboxes"]
    assert len(made) == 50
    assert set(pool.processes()) == before[0]
    assert len(groups(pool)) <= before[1]
    assert len(os.listdir(f"/proc/{pool.pid}/fd")) <= before[2] + 3


@pytest.mark.slow
def test_a_keeper_lingers_and_goes(start_pool):
    pool = start_pool(env=NONE_READY)
    sandbox = pool.create()
    sandbox.client().exec("echo kept > $HOME/f; echo kept > /tmp/f")
    assert len(pool.keepers()) == 1
    time.sleep(8)
    assert len(pool.keepers()) == 1, "at least ten seconds after the last command"
    wait_until(lambda: not pool.keepers(), 30, "the end of the idle keeper")
    assert sandbox.client().exec("cat $HOME/f /tmp/f").stdout == "kept\nkept\n", "/tmp survives its keeper"
    assert (pool.state / "sandboxes" / sandbox.id / "keeper.sock").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_keeper_with_a_running_command_stays(start_pool):
    pool = start_pool(env=NONE_READY)
    sandbox = pool.create()
    process = sandbox.client().spawn("exec sleep 300")
    time.sleep(16)
    assert len(pool.keepers()) == 1 and sandbox.client().process(process["id"])["running"]


def test_one_descriptor_for_each_sandbox_with_a_keeper(start_pool):
    pool = start_pool(env=NONE_READY)
    warm = pool.create()
    warm.works()
    before = len(os.listdir(f"/proc/{pool.pid}/fd"))
    sandboxes = [pool.create() for _ in range(50)]
    for sandbox in sandboxes:
        client = sandbox.client(keep=True)
        client.exec("true")
        client.put("/v1/files/write", b"x", path="f")
        client.spawn("exec sleep 300")
        client._kept.close()
    wait_until(
        lambda: len(os.listdir(f"/proc/{pool.pid}/fd")) <= before + 50 + 4,
        5,
        f"at most one descriptor each: {len(os.listdir(f'/proc/{pool.pid}/fd'))} from {before}",
    )
    for sandbox in sandboxes:
        sandbox.delete()
    wait_until(lambda: len(os.listdir(f"/proc/{pool.pid}/fd")) <= before + 4, 5, "all of them back")


def test_sleeping_sandboxes_cost_no_time(start_pool):
    pool = start_pool()
    pool.create_answer(count=200)
    everything = [pool.pid, *descendants(pool.pid)]
    before = sum(cpu_seconds(p) for p in everything)
    time.sleep(2)
    assert sum(cpu_seconds(p) for p in everything if is_running(p)) - before < 0.2
