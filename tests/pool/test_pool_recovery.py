"""SIGKILL of the host at any point, and a restart with the same state."""

from __future__ import annotations

import http.client
import os
import random
import signal
import threading
import time

import pytest

from host import descendants, wait_until
from pool_host import inner_pid

pytestmark = pytest.mark.slow

COUNTER = "i=0; while [ $i -lt {n} ]; do echo $i; i=$((i+1)); sleep 0.05; done; exit 7"


def test_everything_is_still_there(start_pool):
    first = start_pool()
    quiet, busy, doomed = (
        first.create(labels={"a": "b"}, env={"FROM_CREATE": "1"}),
        first.create(paths="root"),
        first.create(),
    )
    quiet.client().put("/v1/files/write", b"content", path="f")
    done = quiet.client().exec("echo output; exit 3")
    process = busy.client().spawn(COUNTER.format(n=60))
    doomed.delete()
    time.sleep(0.3)
    first.kill9()
    time.sleep(0.3)
    second = start_pool(after=first)
    again_quiet, again_busy, again_doomed = second.sandboxes
    assert sorted(second.listed()) == sorted([quiet.id, busy.id])
    assert second.client().get(f"/v1/sandboxes/{quiet.id}/token").json()["token"] == quiet.token
    assert again_quiet.client().get("/v1/files/read", path="f").body == b"content"
    assert again_quiet.client().exec("echo $FROM_CREATE; cat $HOME/f").stdout == "1\ncontent"
    again = again_quiet.client().output(f"/v1/execs/{done.exec_id}")
    assert again.stdout == "output\n" and again.exit["exit_code"] == 3
    assert again_quiet.info()["labels"] == {"a": "b"}
    follow = again_busy.client().output(f"/v1/processes/{process['id']}", follow=1)
    assert follow.stdout == "".join(f"{i}\n" for i in range(60)) and follow.exit["exit_code"] == 7
    assert again_doomed.client().get("/v1/processes").status == 410
    assert again_doomed.delete().status == 200


def test_limits_are_kept(start_pool):
    """They are those it was created with."""
    first = start_pool(capacity=3)
    first.create(pids=20, memory_mb=100).works()
    first.create()
    first.kill9()
    second = start_pool(after=first, capacity=3)
    limited = second.sandboxes[0]
    limits = limited.info()["limits"]
    assert (limits["pids"], limits["memory_mb"]) == (20, 100)
    assert second.create_answer(count=5).json()["rejected"] == 4, "capacity counts the old ones"
    assert limited.id in second.listed()
    done = limited.client().exec(["/usr/bin/python3", "-c", "x = bytearray(300 << 20)"])
    assert done.exit["cause"] == "oom"


def test_timeouts_are_kept(start_pool):
    """Whether they are over before the next host has started or after."""
    first = start_pool()
    idle, short, lasting = first.create(idle_timeout_secs=2), first.create(ttl_secs=6), first.create()
    first.kill9()
    second = start_pool(after=first)
    wait_until(lambda: idle.id not in second.listed(), 15, "its idle timeout")
    wait_until(lambda: short.id not in second.listed(), 15, "its time to live")
    assert lasting.id in second.listed()


def settle(pool) -> None:
    """After a crash in mid-work: what is listed works, what works is listed, and nothing is left over."""
    listed = pool.listed()
    # Without those that only stand ready.
    folders = lambda: sorted(p.parent.name for p in pool.state.glob("sandboxes/*/record.json"))
    for sandbox_id in listed:
        token = pool.client().get(f"/v1/sandboxes/{sandbox_id}/token").json()["token"]
        assert pool.sandbox_client(sandbox_id, token).exec("echo works").stdout == "works\n"
    wait_until(lambda: folders() == sorted(listed), 10, f"{folders()} to be {listed}")
    for name in ("new", "trash"):
        wait_until(
            lambda n=name: not (pool.state / n).exists() or not list((pool.state / n).iterdir()), 10, f"an empty {name}"
        )


@pytest.mark.slow
def test_killed_while_creating_and_deleting(start_pool):
    """Twelve crashes at random moments under load. Whoever was told of a sandbox finds it again; whoever was
    told of its end never does."""
    rng = random.Random(5)
    host = start_pool()
    alive: dict[str, str] = {}
    dead: dict[str, str] = {}
    for _ in range(12):
        stop, lock = threading.Event(), threading.Lock()

        def churn(seed, host=host, stop=stop, lock=lock):
            own = random.Random(seed)
            while not stop.is_set():
                try:
                    made = host.create_answer(count=own.randrange(1, 4)).json()["sandboxes"]
                    with lock:
                        alive.update({s["id"]: s["token"] for s in made})
                    victim = made[0]
                    host.sandbox_client(victim["id"], victim["token"]).exec("echo x > $HOME/f")
                    with lock:
                        alive.pop(victim["id"])  # from here on it may be either
                    answer = host.client(token=victim["token"]).delete(f"/v1/sandboxes/{victim['id']}")
                    if answer.status == 200:
                        with lock:
                            dead[victim["id"]] = victim["token"]
                except (OSError, http.client.HTTPException, ValueError, AssertionError, KeyError, IndexError):
                    if stop.is_set() or host.process.poll() is not None:
                        return

        threads = [threading.Thread(target=churn, args=(rng.random(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.02, 0.4))
        host.kill9()
        stop.set()
        for thread in threads:
            thread.join()
        host = start_pool(after=host)
        listed = set(host.listed())
        assert set(alive) <= listed, "told of, but lost"
        assert not set(dead) & listed, "deleted, but back"
        for sandbox_id, token in list(dead.items())[-5:]:
            assert host.sandbox_client(sandbox_id, token).get("/v1/processes").status == 410
        for sandbox_id in sorted(listed)[20:]:  # keeps the number bounded
            token = host.client().get(f"/v1/sandboxes/{sandbox_id}/token").json()["token"]
            host.client(token=token).delete(f"/v1/sandboxes/{sandbox_id}")
            alive.pop(sandbox_id, None)
            dead[sandbox_id] = token
    settle(host)


def test_half_made_and_half_deleted_are_swept(start_pool):
    first = start_pool()
    sandbox = first.create()
    sandbox.works()
    first.kill9()
    for name in ("new", "trash"):
        (first.state / name).mkdir(exist_ok=True)
        (first.state / name / "s-0123456789abcdef" / "tops" / "0" / "upper").mkdir(parents=True)
    (first.state / "sandboxes" / "s-fedcba9876543210").mkdir()
    second = start_pool(after=first)
    assert second.listed() == [sandbox.id]
    settle(second)


def test_damaged_records_do_not_stop_the_start(start_pool):
    first = start_pool()
    good, bad = first.create(), first.create()
    good.client().put("/v1/files/write", b"x", path="f")
    first.stop()
    (first.state / "sandboxes" / bad.id / "record.json").write_bytes(b"\x00garbage")
    (first.state / "gone.jsonl").write_bytes(b'{"id":\n\xff\n')
    second = start_pool(after=first)
    assert good.id in second.listed() and bad.id not in second.listed()
    assert second.sandboxes[0].client().get("/v1/files/read", path="f").body == b"x"


def test_sigterm_ends_commands_and_keeps_sandboxes(start_pool):
    first = start_pool()
    sandbox = first.create(paths="root")
    client = sandbox.client()
    client.exec("echo one > $HOME/f; echo two > /etc/two; echo three > /tmp/three")
    process = client.spawn("echo up; exec sleep 300")
    wait_until(lambda: client.output(f"/v1/processes/{process['id']}").stdout)
    first.stop()
    assert not sandbox.commands()
    second = start_pool(after=first)
    client = second.sandboxes[0].client()
    assert client.exec("cat $HOME/f /etc/two /tmp/three").stdout == "one\ntwo\nthree\n"
    listed = client.process(process["id"])
    assert listed["running"] is False and listed["cause"] == "host_stopped"


def test_the_nursery_is_lost_too(start_pool):
    """Everything of ours is killed at once, as when the power fails: files and tokens stay."""
    first = start_pool()
    sandbox = first.create()
    sandbox.client().exec("echo kept > $HOME/f")
    process = sandbox.client().spawn("exec sleep 300")
    everything = first.processes()
    for pid in [first.pid, *everything]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    first.process.wait(10)
    second = start_pool(after=first)
    client = second.sandboxes[0].client()
    assert client.exec("cat $HOME/f").stdout == "kept\n"
    assert client.process(process["id"])["cause"] == "host_lost"


def test_the_nursery_dies_alone(start_pool):
    """cay-host goes on: it starts another one, or says why it cannot; running sandboxes are not touched."""
    pool = start_pool()
    sandbox = pool.create()
    process = sandbox.client().spawn("exec sleep 300")
    for pid in descendants(pool.pid):
        if inner_pid(pid) == pid and pid in pool.processes():  # in no pid namespace of a sandbox
            os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)
    assert sandbox.client().process(process["id"])["running"]
    sandbox.works()
    pool.create().works()


def test_uids_and_slots_after_a_restart(start_pool):
    """A new sandbox never gets the ids of one that is still there."""
    first = start_pool()
    old = [first.create() for _ in range(5)]
    for sandbox in old:
        sandbox.client().spawn("exec sleep 300")
    uids = {os.stat(f"/proc/{s.commands()[0]}").st_uid for s in old}
    first.kill9()
    second = start_pool(after=first)
    new = [second.create() for _ in range(5)]
    for sandbox in new:
        sandbox.client().spawn("exec sleep 300")
    assert len(uids) == 5 and not uids & {os.stat(f"/proc/{s.commands()[0]}").st_uid for s in new}
