"""Ends of commands: timeouts and kills take the whole tree, by both mechanisms, and say what happened."""

import os
import secrets
import time
from pathlib import Path

import pytest

from client import Output
from host import SANITIZED, descendants, is_running, process_state, wait_until
from attached_host import start_sandbox

MODES = ("dedicated", "subreaper", "attached", "pool")

# A child in the same group, one in a session of its own, and one that forked twice.
TREE = ("sh -c 'echo $$; exec sleep 300' & "
        "setsid sh -c 'echo $$; exec sleep 300' & "
        "sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 300\" &'; "
        "sleep 0.3; echo ready; ")


@pytest.fixture(scope="module")
def host(where, tmp_path_factory):
    """Hosts with the tree-kill mechanism of this machine, with the fallback, and a pool."""
    env = {"CAY_TREE_KILL": "subreaper"} if where == "subreaper" else {}
    running = start_sandbox(where, tmp_path_factory.mktemp("state"), env=env)
    try:
        yield running
        running.stop()
    finally:
        running.destroy()


def tree_pids(text):
    pids = [int(word) for word in text.split() if word.isdigit()]
    assert len(pids) == 3, text
    return pids


@pytest.mark.dedicated
def test_the_mechanism_is_told(host):
    told = host.log_entries("listening")[0]["tree_kill"]
    if host.env.get("CAY_TREE_KILL") == "subreaper":
        assert told == "subreaper"
    elif os.access("/sys/fs/cgroup/unified", os.W_OK) or os.access("/sys/fs/cgroup/cgroup.procs", os.W_OK):
        assert told == "cgroup"


def test_timeout(client):
    began = time.monotonic()
    done = client.exec("echo partial; echo error >&2; exec sleep 300", timeout=0.5)
    assert 0.4 < time.monotonic() - began < 5
    assert done.exit["timed_out"] is True
    assert done.exit["cause"] == "timed_out"
    assert done.exit["exit_code"] is None and done.exit["signal"] == 15
    assert (done.stdout, done.stderr) == ("partial\n", "error\n")


def test_timeout_of_a_command_that_ignores_term(client):
    done = client.exec("trap '' TERM; echo deaf; while :; do sleep 0.05; done", timeout=0.5)
    assert done.exit["timed_out"] is True
    assert done.exit["signal"] == 9
    assert done.stdout == "deaf\n"


def test_timeout_lets_the_command_clean_up(client):
    done = client.exec("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done", timeout=0.5)
    assert done.stdout == "up\nbye\n"
    assert done.exit["timed_out"] is True and done.exit["cause"] == "timed_out"


def test_timeout_ends_the_whole_tree(client):
    done = client.exec(TREE + "exec sleep 300", timeout=1)
    assert done.exit["timed_out"] is True
    for pid in tree_pids(done.stdout):
        client.host.gone(pid, 3)


def test_timeout_ends_a_deaf_tree(client):
    script = "trap '' TERM; " + TREE + "while :; do sleep 0.05; done"
    done = client.exec(script, timeout=1)
    for pid in tree_pids(done.stdout):
        client.host.gone(pid, 3)


def test_timeout_ends_stopped_processes(client):
    done = client.exec("sh -c 'echo $$; kill -STOP $$' & sleep 0.2; kill -STOP $$", timeout=0.7)
    assert done.exit["timed_out"] is True
    client.host.gone(int(done.stdout), 3)


def test_timeout_ends_a_crowd(client):
    """Processes that keep forking while they are being ended."""
    script = ("for i in $(seq 20); do setsid sh -c 'trap \"\" TERM; while :; do sleep 0.02; done' & done; "
              "echo ready; wait")
    done = client.exec(script, env={"CROWD": "crowd-of-this-test"}, timeout=1)
    assert done.exit["timed_out"] is True

    def left():
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and b"crowd-of-this-test" in open(f"/proc/{name}/environ", "rb").read():
                    found.append(int(name))
            except OSError:
                pass
        return [pid for pid in found if is_running(pid)]

    wait_until(lambda: not left(), 5, "the end of the crowd")


def test_timeout_with_a_leader_that_left_children(client):
    """The command itself ends in time; what it left behind is not its timeout's business."""
    done = client.exec("sleep 2 >/dev/null 2>&1 & echo $!", timeout=1)
    assert done.exit["timed_out"] is False
    assert client.host.is_running(int(done.stdout))


def test_disconnect_ends_the_whole_tree(client):
    with client.exec_stream(TREE + "exec sleep 300") as stream:
        stream.until_text("ready\n")
        pids = tree_pids(Output(stream.seen).stdout)
    for pid in pids:
        client.host.gone(pid, 3)


def test_delete_of_a_process_ends_the_whole_tree(client):
    process = client.spawn(TREE + "exec sleep 300")
    path = f"/v1/processes/{process['id']}"
    wait_until(lambda: "ready" in client.output(path).stdout)
    pids = tree_pids(client.output(path).stdout)
    assert client.delete(path).json() == {"id": process["id"], "killed": True}
    for pid in pids:
        client.host.gone(pid, 4)
    assert wait_until(lambda: not client.process(process["id"])["running"])
    assert client.process(process["id"])["cause"] == "killed"


def test_a_timeout_that_is_not_reached_leaves_nothing_behind(host, client):
    threads = len(os.listdir(f"/proc/{host.pid}/task"))
    for _ in range(100):
        assert client.exec("true", timeout=3600).exit["timed_out"] is False
    assert len(os.listdir(f"/proc/{host.pid}/task")) <= threads + 4


def test_huge_timeouts_do_not_misfire(client):
    for timeout in (1e18, 1e300, 2**63, 4e9):
        assert client.exec("sleep 0.05; echo ok", timeout=timeout).stdout == "ok\n"


def test_sixty_timeouts_at_once(client):
    streams = [client.exec_stream("exec sleep 300", timeout=0.5) for _ in range(60)]
    assert all(s.rest().exit["timed_out"] for s in streams)


def test_exit_at_the_moment_of_the_timeout(client):
    """Whichever comes first wins; the answer is consistent in itself."""
    for _ in range(30):
        done = client.exec("sleep 0.1; echo end", timeout=0.1).exit
        assert done["timed_out"] == (done["cause"] == "timed_out")
        assert (done["exit_code"] is None) != (done["signal"] is None)


@pytest.fixture
def small_memory():
    """A memory control group of 200 MiB, version 1 or 2."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(parent) / f"cay-test-{secrets.token_hex(4)}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(200 << 20))
        except OSError:
            group.rmdir()
            continue
        yield group
        wait_until(lambda: removed(group), what="the end of the memory group")
        return
    pytest.skip("needs the right to make a memory control group")


def removed(group):
    try:
        group.rmdir()
        return True
    except OSError:
        return False


@pytest.mark.dedicated
@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory would be what is ended")
def test_lack_of_memory_is_told(small_memory, start_host):
    def join():
        (small_memory / "cgroup.procs").write_text(str(os.getpid()))

    client = start_host(popen_options={"preexec_fn": join}).client()
    done = client.exec(["/usr/bin/python3", "-c", "print('up', flush=True); x = b'x' * (400 << 20)"])
    assert done.exit["cause"] == "oom" and done.exit["signal"] == 9
    assert done.stdout == "up\n"
    assert client.exec("kill -9 $$").exit["cause"] == "signaled", "another kill is no lack of memory"


def test_no_zombies_after_all_this(host):
    wait_until(lambda: not zombies(host), 5, "the end of all zombies")


def zombies(host):
    return [pid for pid in descendants(host.pid) if process_state(pid) == "Z"]
