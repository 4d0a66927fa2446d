"""SandboxPool of the unmodified huggingface_hub on a hub: packing, hosts of its own and of others, and its cache.

    eval "$(cay env)"; python pools.py FOLDER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import huggingface_hub
from cases import end_after, run_all
from huggingface_hub import HfApi, Sandbox, SandboxPool
from huggingface_hub.errors import SandboxError

PROTOCOL_1 = huggingface_hub.__version__.startswith("1.31")
MODE, NAME = "hf-sandbox-mode", "hf-sandbox-pool"


def hosts_of(name: str) -> list:
    return [job for job in HfApi().list_jobs(labels={MODE: "pool", NAME: name})
            if job.status.stage in ("SCHEDULING", "RUNNING")]


def in_another_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def cache_file(name: str) -> Path:
    [path] = Path(os.environ["HF_HOME"]).rglob(f"{name}.json")
    return path


def case_warm_up_boots_hosts_before_it_returns(folder):
    with SandboxPool(name="warm-two", warm_up=2, sandboxes_per_host=4) as pool:
        assert pool.num_hosts == 2 and len(hosts_of("warm-two")) == 2
        assert all(job.status.stage == "RUNNING" for job in hosts_of("warm-two"))
    assert hosts_of("warm-two") == [], "close() ends them"


def case_a_hundred_are_packed(folder):
    with SandboxPool(name="hundred", sandboxes_per_host=50) as pool:
        with ThreadPoolExecutor(16) as threads:
            boxes = list(threads.map(lambda n: pool.create(env={"N": n}), range(100)))
            answers = list(threads.map(lambda box: box.run("echo $N").stdout, boxes))
        assert answers == [f"{n}\n" for n in range(100)]
        # Not num_sandboxes: a thread that discovers the host which another is just booting sets its count anew.
        assert pool.num_hosts == len(hosts_of("hundred")) == 2
        assert len({box.id for box in boxes}) == 100
        assert list(Counter(box.host_id for box in boxes).values()) == [50, 50]


def case_a_full_host_boots_a_second(folder):
    with SandboxPool(name="full", sandboxes_per_host=2) as pool:
        first = [pool.create() for _ in range(2)]
        assert pool.num_hosts == 1
        third = pool.create()
        assert pool.num_hosts == 2 and third.host_id != first[0].host_id
        first[0].kill()
        assert pool.create().host_id == first[0].host_id, "its place is free again"


def case_max_hosts(folder):
    with SandboxPool(name="bounded", sandboxes_per_host=1, max_hosts=1) as pool:
        pool.create()
        try:
            pool.create()
        except SandboxError as error:
            assert "max_hosts" in str(error)
        else:
            raise AssertionError("more than max_hosts")


def case_two_processes_share_a_host(folder):
    code = ("from huggingface_hub import SandboxPool\n"
            "pool = SandboxPool(name='shared', sandboxes_per_host=8, warm_up=1)\n"
            "boxes = [pool.create() for _ in range(4)]\n"
            "print(','.join(box.host_id for box in boxes), all(box.run('echo x').stdout == 'x\\n' for box in boxes))")
    with SandboxPool(name="shared", sandboxes_per_host=8) as pool:
        ours = pool.create()
        with ThreadPoolExecutor(1) as thread:
            theirs = thread.submit(in_another_process, code)
            more = [pool.create() for _ in range(3)]
        hosts, worked = theirs.result().split()
        assert worked == "True" and {box.host_id for box in [ours, *more]} == set(hosts.split(","))
        assert len(hosts_of("shared")) == 1


def case_warm_tops_up(folder):
    with SandboxPool(name="topped", sandboxes_per_host=2) as pool:
        assert len(pool.warm(2)) == 2 and len(pool.warm(2)) == 2 and len(hosts_of("topped")) == 2


def case_connect_cold(folder):
    """Without any local state: the configuration comes from the host's job."""
    with SandboxPool(name="cold", sandboxes_per_host=3, max_hosts=2, idle_timeout="20m") as pool:
        cache_file("cold").unlink()
        found = SandboxPool.connect("cold")
        assert (found.sandboxes_per_host, found.max_hosts, found.flavor) == (3, 2, "cpu-basic")
        with found:
            assert found.create().host_id == pool.host_ids[0]
        assert len(hosts_of("cold")) == 1, "close() of a handle that was connected leaves the hosts alone"


def case_connect_by_the_cache(folder):
    with SandboxPool(name="cached", sandboxes_per_host=3) as pool:
        assert cache_file("cached").exists()
        with SandboxPool.connect("cached") as found:
            assert found.create().host_id == pool.host_ids[0]


def aged(name: str, seconds: float) -> None:
    path = cache_file(name)
    document = json.loads(path.read_text())
    for host in document["hosts"]:
        host["updated_at"] = time.time() - seconds
    path.write_text(json.dumps(document))


def case_connect_by_an_old_cache(folder):
    """Older than 15 minutes: the host is asked for again before it gets a token."""
    with SandboxPool(name="old", sandboxes_per_host=3) as pool:
        aged("old", 3600)
        with SandboxPool.connect("old") as found:
            assert found.create().host_id == pool.host_ids[0]


def case_connect_by_a_stale_cache(folder):
    """The cache names a host that is gone."""
    with SandboxPool(name="stale", sandboxes_per_host=3) as pool:
        HfApi().cancel_job(job_id=pool.host_ids[0])
        with SandboxPool.connect("stale") as found:
            try:
                found.create()
            except SandboxError as error:
                assert "No running host" in str(error), error
            else:
                raise AssertionError("a pool that has stopped came back")


def case_connect_to_nothing(folder):
    try:
        SandboxPool.connect("never-made")
    except SandboxError as error:
        assert "No running host" in str(error)
    else:
        raise AssertionError("there is no such pool")


def case_adopt_own(folder):
    if PROTOCOL_1:
        return  # came later
    code = ("from huggingface_hub import SandboxPool\n"
            "pool = SandboxPool(name='adopted', sandboxes_per_host=4)\nprint(pool.host_ids[0])")
    theirs = in_another_process(code)
    cache_file("adopted").unlink()
    with SandboxPool(name="adopted", sandboxes_per_host=4) as pool:
        assert pool.host_ids == [theirs]
        assert pool.create().run("echo x").stdout == "x\n"
    assert [job.id for job in hosts_of("adopted")] == [theirs], "close() leaves adopted hosts alone"
    HfApi().cancel_job(job_id=theirs)


def case_adopt_namespace_and_never(folder):
    if PROTOCOL_1:
        return  # came later
    # Somebody else's host in the same namespace.
    other = os.environ["CAY_OTHER_TOKEN"]
    namespace = HfApi().whoami()["name"]
    with SandboxPool(name="theirs", sandboxes_per_host=4, namespace=namespace, token=other) as theirs:
        for policy, adopts in (("own", False), ("namespace", False), ("never", False)):
            with SandboxPool(name="theirs", sandboxes_per_host=4, namespace=namespace, adopt_hosts=policy) as pool:
                adopted = pool.host_ids == theirs.host_ids
                # A host of another user is found, but its token follows from a secret that only they have.
                assert adopted is adopts, (policy, pool.host_ids)
        with SandboxPool(name="mine", sandboxes_per_host=4, namespace=namespace) as mine:
            with SandboxPool(name="mine", sandboxes_per_host=4, namespace=namespace, adopt_hosts="namespace") as pool:
                assert pool.host_ids == mine.host_ids
            with SandboxPool(name="mine", sandboxes_per_host=4, namespace=namespace, adopt_hosts="never") as pool:
                assert pool.host_ids != mine.host_ids


def case_connect_to_a_pooled_sandbox(folder):
    with SandboxPool(name="connected", sandboxes_per_host=4) as pool:
        box = pool.create()
        box.files.write("note", b"x")
        assert in_another_process("from huggingface_hub import Sandbox\n"
                                  f"print(Sandbox.connect({box.id!r}).files.read('note').decode())") == "x"
        Sandbox.kill(box.id)
        try:
            Sandbox.connect(box.id)
        except SandboxError as error:
            assert "no longer exists" in str(error)
        else:
            raise AssertionError("it was killed")


def case_an_idle_host_ends_by_itself(folder):
    pool = SandboxPool(name="idle", sandboxes_per_host=4, idle_timeout=2)
    [host] = pool.host_ids
    deadline = time.monotonic() + 30
    while (job := HfApi().inspect_job(job_id=host)).status.stage == "RUNNING":
        assert time.monotonic() < deadline, "still running"
        time.sleep(0.2)
    assert job.status.stage == "COMPLETED" and "idle" in job.status.message, job.status


if __name__ == "__main__":
    end_after(600)
    run_all(globals(), Path(sys.argv[1]))
    os._exit(0)
