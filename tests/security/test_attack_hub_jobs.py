"""Attacks on the hub by what its jobs use up and leave behind."""

from __future__ import annotations

import json
import os
import socket
import time

import pytest

from arena import Breach
from host import SANITIZED, rss_bytes, wait_until
from test_attack_exhaustion import Neighbour

GROUP = "hub: jobs"
KINDS = ("dedicated", "plain")


def environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def bytes_below(folder) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
            except OSError:
                pass
    return total


def test_a_log_that_is_filled(arena, attacker):
    """Its beginning and its end are kept; the hub stays small, and whoever reads it is answered."""
    before = rss_bytes(arena.host.pid)
    with Neighbour(arena):
        done = attacker.exec("exec yes 'a line of a log that is filled with lines'", timeout=6)
    folder = arena.hub.state / "jobs" / attacker.id
    used, grown = bytes_below(folder), rss_bytes(arena.host.pid) - before
    assert done.exit["timed_out"] and "a line of a log" in done.stdout, done.exit
    if used > 64 << 20:
        raise Breach(f"{used >> 20} MiB of log")
    if grown > 96 << 20 and not SANITIZED:
        raise Breach(f"the hub has grown by {grown >> 20} MiB")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is no measure")
def test_logs_nobody_reads(arena, attacker):
    """Many who follow a flood and take nothing of it."""
    job = attacker.start(["yes", "a line that nobody reads"], timeout=30)
    before = rss_bytes(arena.host.pid)
    head = f"GET /api/jobs/{arena.host.eve.name}/{job}/logs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {attacker.token}\r\n\r\n"
    with Neighbour(arena):
        held = [socket.create_connection((arena.host.address, arena.host.port), 10) for _ in range(16)]
        for one in held:
            one.sendall(head.encode())
        time.sleep(3)
        grown = rss_bytes(arena.host.pid) - before
        assert all(one.recv(12) == b"HTTP/1.1 200" for one in held)
        for one in held:
            one.close()
    if grown > 96 << 20:
        raise Breach(f"the hub has grown by {grown >> 20} MiB")


@pytest.mark.parametrize("kind", ["one-line", "control", "not-text"])
def test_a_log_that_confuses_its_readers(arena, attacker, kind):
    """A line without an end, events of our own format, bytes that are no text."""
    code = {
        "one-line": "for _ in range(64): sys.stdout.write('x' * (1 << 20))",
        "control": r"""sys.stdout.write('\r\ndata: {"data": "forged", "timestamp": "2020-01-01T00:00:00Z"}\r\n\r\nevent: end\r\n: x\n\u2028\n\x1b[2J\n')""",
        "not-text": r"sys.stdout.buffer.write(b'\xff\xfe\x00\xed\xa0\x80\xc3' * 1000 + b'\n'); sys.stdout.flush()",
    }[kind]
    done = arena.script(attacker, code)
    if any(line == "forged" for line in done.stdout.splitlines()):
        raise Breach("an event of its own")


def test_daemons_that_outlive_their_job(arena, attacker):
    attacker.exec(
        """
for i in 1 2 3 4 5; do setsid sh -c 'trap "" TERM HUP INT; (setsid sleep 1000 &) ; while :; do sleep 0.1; done' >/dev/null 2>&1 & done
sh -c 'kill -STOP $$' & sleep 0.5; echo END""")
    try:
        wait_until(lambda: not attacker.commands(), 5)
    except AssertionError as error:
        raise Breach(f"left over: {attacker.commands()}") from error


def test_a_job_that_does_not_want_to_end(arena, attacker):
    """Every signal is caught, and its children make children."""
    attacker.spawn(["/usr/bin/python3", "-c", """
import os, signal, time
for number in range(1, 64):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True:
    if os.fork() == 0:
        time.sleep(2); os._exit(0)
    time.sleep(0.02)
"""])
    time.sleep(1)
    began = time.monotonic()
    assert attacker.delete().status == 200
    try:
        wait_until(lambda: not attacker.commands(), 10)
    except AssertionError as error:
        raise Breach(f"survivors: {attacker.commands()}") from error
    if time.monotonic() - began > 10:
        raise Breach("its end took too long")


def test_what_an_ended_job_left(arena, attacker):
    """Nothing of one job is seen by the next, which may have its address, its ids and its place."""
    mark = "left-behind-by-the-last-job"
    for _ in range(4):
        attacker.exec(f"""
for d in $HOME /tmp /var/tmp /dev/shm /usr/local /etc /opt; do echo {mark} > $d/{mark} 2>/dev/null; done
python3 -c 'import ctypes; c = ctypes.CDLL(None); c.shmget(0x5ecd, 4096, 0o1600)'""")
        done = attacker.exec(
            "ls -a $HOME /tmp /var/tmp /dev/shm /usr/local /etc /opt; ps ax 2>/dev/null; cat /proc/net/tcp; "
            "python3 -c 'import ctypes; print(\"segment\", ctypes.CDLL(None).shmget(0x5ecd, 0, 0))'")
        if mark in done.stdout:
            raise Breach("the last job's files are there")
        if "segment -1" not in done.stdout:
            raise Breach("the last job's shared memory is there")


def test_the_disk_of_a_flavor(arena):
    attacker = arena.limited(disk_mb=32)
    done = arena.script(
        attacker,
        """
written = 0
try:
    with open(os.environ["HOME"] + "/big", "wb", buffering=0) as f:
        while written < 200 << 20: f.write(bytes(1 << 20)); os.fsync(f.fileno()); written += 1 << 20
except OSError as error: print(error)
print("WRITTEN", written >> 20)
""",
    )
    written = int(done.stdout.split("WRITTEN")[1].split()[0])
    if written > 40:
        raise Breach(f"{written} MiB in a job of 32")


def test_an_environment_for_those_who_serve_it(arena):
    """What a job asks for in its environment is for its commands, and for nothing that stands outside."""
    planted = {"LD_PRELOAD": "/tmp/planted.so", "LD_LIBRARY_PATH": "/tmp", "CAY_STATE": str(arena.world_folder), "CAY_WALLS": "none",
               "CAY_TREE_KILL": "subreaper", "PATH": "/tmp:/usr/bin:/bin", "SBX_PORT": "49983", "PYTHONSTARTUP": "/tmp/x"}
    before = {pid: environment(pid) for pid in arena.host.processes()}
    if arena.walls == "plain":
        attacker = arena.attacker()
        attacker.spawn(["sleep", "60"], env=planted)
    else:
        attacker = arena.attacker(environment=planted)
    new = [pid for pid in arena.host.processes() if pid not in before]
    for pid in new:
        if any(f"{name}=".encode() in environment(pid) for name in planted if name != "PATH"):
            raise Breach(f"process {pid} of the hub has the environment of a job")
    if sorted(os.listdir(arena.world_folder)) != ["file", "host.sock"]:
        raise Breach("a state folder was made where the job said")


def test_many_jobs_at_once(arena):
    """What does not fit waits; the neighbour does not."""
    eve = arena.host.eve
    jobs = []
    with Neighbour(arena, patience=15):
        for _ in range(60):
            status, answer = eve.start_answer(["sleep", "60"])
            assert status in (200, 429, 503), (status, answer)
            if status == 200:
                jobs.append(answer)
        arena.host.owner.until(arena.job, "RUNNING")
    for answer in jobs:
        assert eve.cancel(json.loads(answer)["id"]) == 200


def test_labels_and_names_that_are_shown(arena):
    """What a user chooses comes back as data: no field of an answer, no line of a log, is made by it."""
    eve = arena.host.eve
    for value in ("a\r\nX-Injected: yes", "\0", "x" * 100_000, "../../etc", "<script>", '"}],"status":{"stage":"ERROR"'):
        status, answer = eve.start_answer(["true"], labels={"name": value}, environment={"A": value.replace("\0", "")})
        arena.search(answer)
        assert status in (200, 400, 413), (status, answer[:200])
