"""POST, GET and DELETE /v1/sandboxes: what is made, what is refused, and that numbers are exact."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from host import wait_until
from pool_host import PoolHost

pytestmark = pytest.mark.slow


def made(pool, **options) -> list[dict]:
    answer = pool.create_answer(**options)
    assert answer.status in (200, 201), (answer.status, answer.body)
    return answer.json()["sandboxes"]


# ---- create


def test_an_empty_body_makes_one(pool):
    for body in (b"", b"{}"):
        document = pool.client().post("/v1/sandboxes", body).json()
        assert len(document["sandboxes"]) == 1 and document["rejected"] == 0
        assert document.get("ignored", []) == []


def test_ids_and_tokens(pool):
    sandboxes = made(pool, count=20)
    assert len({s["id"] for s in sandboxes}) == len({s["token"] for s in sandboxes}) == 20
    for sandbox in sandboxes:
        assert re.fullmatch(r"[0-9a-zA-Z_-]+", sandbox["id"])
        assert re.fullmatch(r"[0-9a-f]{64}", sandbox["token"])


def test_each_of_a_batch_is_one_of_its_own(pool):
    first, second = made(pool, count=2)
    one, two = (pool.sandbox_client(s["id"], s["token"]) for s in (first, second))
    one.exec("echo one > $HOME/f")
    assert two.exec("cat $HOME/f").exit["exit_code"] != 0
    assert one.exec("cat $HOME/f").stdout == "one\n"


@pytest.mark.parametrize(
    "options, word",
    [
        ({"count": 0}, "count"),
        ({"count": -1}, "count"),
        ({"count": 1.5}, "count"),
        ({"count": "2"}, "count"),
        ({"count": 10**9}, "count"),
        ({"idle_timeout_secs": -1}, "idle_timeout_secs"),
        ({"idle_timeout_secs": "x"}, "idle_timeout_secs"),
        ({"ttl_secs": -1}, "ttl_secs"),
        ({"ttl_secs": "x"}, "ttl_secs"),
        ({"memory_mb": -1}, "memory_mb"),
        ({"memory_mb": "64"}, "memory_mb"),
        ({"max_mem_mb": -1}, "max_mem_mb"),
        ({"memory_mb": 10**15}, "memory_mb"),
        ({"pids": -1}, "pids"),
        ({"pids": 1.5}, "pids"),
        ({"max_procs": "x"}, "max_procs"),
        ({"cpus": -1}, "cpus"),
        ({"cpus": "two"}, "cpus"),
        ({"disk_mb": -1}, "disk_mb"),
        ({"disk_mb": []}, "disk_mb"),
        ({"network": "bridge"}, "network"),
        ({"network": 1}, "network"),
        ({"paths": "elsewhere"}, "paths"),
        ({"image": 5}, "image"),
        ({"image": "no-such-image"}, "image"),
        ({"image": "/no/such/root"}, "image"),
        ({"labels": []}, "labels"),
        ({"labels": {"a": []}}, "labels"),
        ({"env": []}, "env"),
        ({"env": {"A=B": "x"}}, "env"),
        ({"env": {"": "x"}}, "env"),
        ({"env": {"A": "x\0y"}}, "env"),
        ({"env": {"A": "x" * 300_000}}, "env"),
        ({"memory_mb": 64, "max_mem_mb": 65}, "mem"),
    ],
)
def test_bad_values_are_named(pool, options, word):
    before = pool.listed()
    answer = pool.create_answer(**options)
    assert answer.status == 400, (answer.status, answer.body)
    assert word in answer.error
    assert pool.listed() == before, "nothing is made by a refused request"


@pytest.mark.parametrize("body", [b"not json", b"[]", b'"x"', b'{"count": 1', b'{"count": 1} trailing'])
def test_bad_bodies(pool, body):
    before = pool.listed()
    answer = pool.client().post("/v1/sandboxes", body)
    assert answer.status == 400 and answer.error
    assert pool.listed() == before


def test_null_is_as_if_absent(pool):
    assert len(made(pool, idle_timeout_secs=None, env=None, memory_mb=None, labels=None, image=None)) == 1


def test_unknown_options_are_ignored_and_named(pool):
    answer = pool.create_answer(gpu="a100", colour="blue", count=1)
    assert answer.status in (200, 201)
    assert sorted(answer.json()["ignored"]) == ["colour", "gpu"]


def test_upstreams_names_for_limits(pool):
    sandbox = made(pool, max_mem_mb=256, max_procs=50)[0]
    limits = pool.client().get(f"/v1/sandboxes/{sandbox['id']}").json()["limits"]
    assert (limits["memory_mb"], limits["pids"]) == (256, 50)


def test_environment(pool):
    sandbox = pool.create(env={"A": "x y", "B": 1, "C": True, "D": 1.5, "E": False})
    done = sandbox.client().exec("echo $A,$B,$C,$D,$E,$F", env={"B": 2, "F": "f"})
    assert done.stdout == "x y,2,true,1.5,false,f\n"


def test_nothing_of_the_hosts_environment(start_pool):
    pool = start_pool(env={"VISIBLE": "no", "LD_LIBRARY_PATH": "/x", "PYTHONPATH": "/y", "SECRET_KEY": "k"})
    text = pool.create().client().exec("env").stdout
    variables = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    shell = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert set(variables) - shell == {
        "HOME",
        "USER",
        "LOGNAME",
        "PATH",
        "LANG",
        "SBX_SANDBOX_ID",
        "SBX_PROXY_DIR",
        "TMPDIR",
    }
    assert variables["PATH"].startswith(variables["HOME"] + "/.local/bin:")
    assert variables["SBX_PROXY_DIR"] == variables["HOME"] + "/.sbx/proxy"


def test_idempotency_key(pool):
    headers = {"Idempotency-Key": "create-once"}
    first = pool.create_answer(headers=headers, count=2)
    again = pool.create_answer(headers=headers, count=2)
    assert first.json() == again.json()
    assert len(set(pool.listed()) & {s["id"] for s in first.json()["sandboxes"]}) == 2
    assert pool.create_answer(headers=headers, count=3).status == 422


def test_idempotency_key_at_once(pool):
    before = len(pool.listed())
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda _: pool.create_answer(headers={"Idempotency-Key": "at-once"}).json(), range(8))
        )
    assert len({a["sandboxes"][0]["id"] for a in answers}) == 1
    assert len(pool.listed()) == before + 1


# ---- capacity


def test_capacity(start_pool):
    pool = start_pool(capacity=3)
    assert pool.create_answer(count=2).json()["rejected"] == 0
    document = pool.create_answer(count=5).json()
    assert len(document["sandboxes"]) == 1 and document["rejected"] == 4
    full = pool.create_answer().json()
    assert full["sandboxes"] == [] and full["rejected"] == 1
    assert len(pool.listed()) == 3
    token = document["sandboxes"][0]
    assert pool.client(token=token["token"]).delete(f"/v1/sandboxes/{token['id']}").status == 200
    assert pool.create_answer().json()["rejected"] == 0, "the place is free at once"


@pytest.mark.parametrize("count", [1, 3])
def test_capacity_is_exact_under_32_creators(start_pool, count):
    pool = start_pool(capacity=50)
    barrier = threading.Barrier(32)

    def create(_):
        barrier.wait()
        return pool.create_answer(count=count).json()

    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(create, range(32)))
    sandboxes = [s for a in answers for s in a["sandboxes"]]
    wanted = 32 * count
    assert len(sandboxes) == min(50, wanted) and sum(a["rejected"] for a in answers) == wanted - len(sandboxes)
    assert len({s["id"] for s in sandboxes}) == len(sandboxes) == len(pool.listed())


def test_capacity_under_churn(start_pool):
    """Creates and deletes from 8 clients: never more than the capacity, and at the end every place is free."""
    pool, wrong = start_pool(capacity=5), []

    def churn(_):
        client = pool.client()
        for _ in range(15):
            for sandbox in client.post("/v1/sandboxes", {"count": 2}).json()["sandboxes"]:
                if len(pool.listed()) > 5:
                    wrong.append(pool.listed())
                pool.client(token=sandbox["token"]).delete(f"/v1/sandboxes/{sandbox['id']}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(churn, range(8)))
    assert not wrong and pool.listed() == []
    assert len(pool.create_answer(count=5).json()["sandboxes"]) == 5


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_bad_capacity(text):
    host = PoolHost(env={"SBX_CAPACITY": text})
    try:
        with pytest.raises(AssertionError):
            host.start()
        assert host.process.wait(10) == 2 and "SBX_CAPACITY" in host.log
    finally:
        host.destroy()


def test_host_mode_needs_a_token():
    host = PoolHost(token=None, env={"SBX_TOKEN": ""})
    try:
        with pytest.raises(AssertionError):
            host.start()
        assert host.process.wait(10) == 2 and "token" in host.log.lower()
    finally:
        host.destroy()


# ---- list, info, delete


def test_list_and_info(pool):
    sandbox = pool.create(labels={"job": "a", "team": "b"}, memory_mb=128, pids=40, cpus=0.5, idle_timeout_secs=500)
    entry = next(s for s in pool.client().get("/v1/sandboxes").json() if s["id"] == sandbox.id)
    assert "token" not in entry
    for token in (pool.token, sandbox.token):
        info = pool.client(token=token).get(f"/v1/sandboxes/{sandbox.id}").json()
        assert {
            "id",
            "state",
            "created_at_ms",
            "last_activity_ms",
            "labels",
            "walls",
            "limits",
            "usage",
            "cause",
        } <= set(info)
        assert "token" not in info
        assert info["labels"] == {"job": "a", "team": "b"}
        assert {k: info["limits"][k] for k in ("memory_mb", "pids", "cpus")} == {
            "memory_mb": 128,
            "pids": 40,
            "cpus": 0.5,
        }
        assert set(info["limits"]) == {"memory_mb", "pids", "cpus", "disk_mb"} and info["limits"]["disk_mb"] is None
        assert set(info["usage"]) == {"cpu_ms", "memory_bytes", "pids", "disk_bytes"}
        assert info["cause"] is None and info["created_at_ms"] <= info["last_activity_ms"]
        assert info["walls"] and all(
            w["verdict"] in ("held", "weaker", "absent") and w["why"] for w in info["walls"].values()
        )


def test_usage_is_live(pool):
    sandbox = pool.create()
    client = sandbox.client()
    client.exec("head -c 20000000 /dev/urandom > $HOME/f")
    process = client.spawn(
        ["/usr/bin/python3", "-c", "x = bytearray(50 << 20)\nprint('up', flush=True)\nwhile True: pass"]
    )
    wait_until(lambda: "up" in client.output(f"/v1/processes/{process['id']}").stdout)
    usage = wait_until(lambda: (u := sandbox.info()["usage"])["cpu_ms"] > 100 and u, what="used CPU time")
    assert usage["memory_bytes"] > 50 << 20 and usage["pids"] >= 1 and usage["disk_bytes"] >= 20_000_000


def test_activity_is_noted(pool):
    sandbox = pool.create()
    before = sandbox.info()["last_activity_ms"]
    sandbox.info()
    time.sleep(0.2)
    assert abs(sandbox.info()["last_activity_ms"] - before) < 50, "looking at it is no activity"
    sandbox.client().exec("sleep 0.05")
    assert sandbox.info()["last_activity_ms"] > before


def test_delete(pool):
    sandbox = pool.create()
    process = sandbox.client().spawn("exec sleep 300")
    outer = wait_until(sandbox.commands)
    assert process["pid"] and outer
    answer = sandbox.delete()
    assert answer.status == 200 and answer.json() == {"id": sandbox.id, "deleted": True}
    assert sandbox.id not in pool.listed()
    wait_until(lambda: not sandbox.commands(), what="the end of its commands")
    wait_until(lambda: not (pool.state / "sandboxes" / sandbox.id).exists(), what="the end of its files")
    assert sandbox.delete().status == 200, "again"


def test_delete_ends_streams_with_the_cause(pool):
    sandbox = pool.create()
    with sandbox.client().exec_stream("echo up; exec sleep 300") as stream:
        stream.until_text("up\n")
        assert sandbox.delete().status == 200
        done = stream.rest()
    assert done.exit["cause"] in ("sandbox_deleted", "killed"), done.exit


def test_a_hundred_at_once_work(pool):
    sandboxes = made(pool, count=100)

    def use(sandbox):
        client = pool.sandbox_client(sandbox["id"], sandbox["token"])
        text = client.exec("echo $SBX_SANDBOX_ID").stdout.strip()
        pool.client(token=sandbox["token"]).delete(f"/v1/sandboxes/{sandbox['id']}")
        return text

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(use, sandboxes)) == [s["id"] for s in sandboxes]
