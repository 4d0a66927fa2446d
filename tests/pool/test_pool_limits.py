"""Limits hit the one that reaches them, and the answer says so."""

from __future__ import annotations

import pytest

from host import SANITIZED, wait_until

pytestmark = pytest.mark.slow

EAT = ["/usr/bin/python3", "-c", "print('up', flush=True); x = bytearray(300 << 20); print('alive')"]


def test_memory(pool):
    sandbox, neighbour = pool.create(memory_mb=100), pool.create(memory_mb=500)
    done = sandbox.client().exec(EAT)
    assert done.exit["cause"] == "oom" and done.exit["signal"] == 9, done.exit
    assert done.stdout == "up\n"
    assert neighbour.client().exec(EAT).stdout == "up\nalive\n"
    assert sandbox.client().exec("kill -9 $$").exit["cause"] == "signaled", "another kill is no lack of memory"
    assert sandbox.client().exec("echo fine").stdout == "fine\n"


def test_memory_of_a_child(pool):
    """The leader survives its child's end and tells of it by itself; the cause is not its own."""
    sandbox = pool.create(memory_mb=100)
    done = sandbox.client().exec("python3 -c 'x = bytearray(300 << 20)'; echo child $?")
    assert done.stdout.startswith("child 137") and done.exit["exit_code"] == 0


def test_memory_of_a_background_process(pool):
    sandbox = pool.create(memory_mb=100)
    client = sandbox.client()
    process = client.spawn(EAT)
    assert client.output(f"/v1/processes/{process['id']}", follow=1).exit["cause"] == "oom"
    assert client.process(process["id"])["cause"] == "oom"


def test_pids(pool):
    sandbox, neighbour = pool.create(pids=20), pool.create()
    script = "for i in $(seq 60); do sleep 5 & done 2>/dev/null; echo tried; kill $(jobs -p) 2>/dev/null; exit 0"
    done = sandbox.client().exec(["/bin/bash", "-c", script])
    assert done.exit["limits_hit"] == ["pids"], done.exit
    assert neighbour.client().exec(["/bin/bash", "-c", script]).exit["limits_hit"] == []
    wait_until(lambda: sandbox.client().exec("echo fine").stdout == "fine\n", 10)
    assert sandbox.client().exec("true").exit["limits_hit"] == [], "not once and for all"


def test_disk(pool):
    sandbox, neighbour = pool.create(disk_mb=16), pool.create(disk_mb=64)
    done = sandbox.client().exec("head -c 40000000 /dev/zero > $HOME/big; echo $?")
    assert done.exit["limits_hit"] == ["disk"] and "No space" in done.stderr, (done.exit, done.stderr)
    assert neighbour.client().exec("head -c 40000000 /dev/zero > $HOME/big").exit["limits_hit"] == []
    sandbox.client().exec("rm $HOME/big")
    assert sandbox.client().exec("echo x > $HOME/f && cat $HOME/f").stdout == "x\n"
    assert sandbox.info()["limits"]["disk_mb"] == 16
    assert sandbox.info()["usage"]["disk_bytes"] < 16 << 20


def test_disk_counts_everything_written(pool):
    """/tmp, /etc and /usr are on the same top as the home."""
    sandbox = pool.create(disk_mb=16)
    client = sandbox.client()
    for folder in ("/tmp", "/etc", "/usr/local", "/var", "/opt"):
        done = client.exec(
            f"mkdir -p {folder}; head -c 40000000 /dev/zero > {folder}/big; ls -l {folder}/big | awk '{{print $5}}'; rm -f {folder}/big"
        )
        assert int(done.stdout) < 17_000_000, folder


def test_disk_through_the_api(pool):
    sandbox = pool.create(disk_mb=16)
    answer = sandbox.client().put("/v1/files/write", bytes(40 << 20), path="big")
    assert answer.status in (400, 413, 503, 507) and "space" in answer.error.lower()
    assert sandbox.client().put("/v1/files/write", bytes(1 << 20), path="small").status == 200


def test_disk_survives_keeper_and_host(start_pool):
    first = start_pool()
    sandbox = first.create(disk_mb=16)
    sandbox.client().exec("echo kept > $HOME/f")
    first.stop()
    second = start_pool(after=first)
    client = second.sandboxes[0].client()
    assert client.exec("cat $HOME/f").stdout == "kept\n"
    assert client.exec("head -c 40000000 /dev/zero > $HOME/big").exit["limits_hit"] == ["disk"]


def test_unset_disk_is_told_as_weaker(pool):
    limited, free = pool.create(disk_mb=16).info()["walls"], pool.create().info()["walls"]
    wall = next(name for name in limited if "disk" in name)
    assert limited[wall]["verdict"] == "held" and free[wall]["verdict"] == "weaker"


@pytest.mark.skipif(SANITIZED, reason="measures time")
def test_cpus(pool):
    sandbox = pool.create(cpus=0.25)
    done = sandbox.client().exec(
        "for i in 1 2 3; do (while :; do :; done) & done; sleep 2; kill $(jobs -p)", timeout=20
    )
    used = done.exit["usage"]["user_ms"] + done.exit["usage"]["system_ms"]
    assert used < 0.45 * done.exit["duration_ms"], done.exit


def test_no_limit_of_address_space(pool):
    """It would break WebAssembly, JVMs and CUDA, which reserve far more than they use."""
    done = (
        pool.create(memory_mb=200)
        .client()
        .exec(["/usr/bin/python3", "-c", "import mmap; m = mmap.mmap(-1, 64 << 30, flags=0x4022); print('reserved')"])
    )
    assert done.stdout == "reserved\n", done.stderr


def test_limits_are_not_visible_to_siblings(pool):
    """One sandbox at its limit in everything, the other works on as if alone."""
    guilty, other = pool.create(pids=10, memory_mb=50, disk_mb=16, cpus=0.1), pool.create()
    with guilty.client().exec_stream(
        [
            "/bin/bash",
            "-c",
            "head -c 99999999 /dev/zero > $HOME/x; for i in $(seq 30); do sleep 9 & done; while :; do :; done",
        ]
    ) as stream:
        stream.next("start")
        for _ in range(20):
            assert other.client().exec("echo $((1+1)); head -c 1000000 /dev/zero > $HOME/f").stdout == "2\n"
