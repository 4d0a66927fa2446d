"""Background processes: start, list, kill, stdin, signals, output."""

import os
import re
import signal
import time

import pytest

from host import descendants, is_running, process_state, wait_until

MODES = ("dedicated", "attached", "pool")


@pytest.fixture
def sleeper(client):
    process = client.spawn(["sleep", "300"])
    yield process
    client.delete(f"/v1/processes/{process['id']}")


def finished(client, process_id):
    return wait_until(lambda: not client.process(process_id)["running"] and client.process(process_id))


def test_start_answer(client, sleeper):
    assert re.fullmatch(r"p-[0-9a-f]{16}", sleeper["id"])
    assert client.host.is_running(sleeper["pid"])
    assert sleeper["cmd"] == ["sleep", "300"]


def test_listing(client, sleeper):
    listed = client.process(sleeper["id"])
    assert {"id", "pid", "cmd", "tag", "started_at_ms", "running", "exit_code", "cause"} <= set(listed)
    assert listed["pid"] == sleeper["pid"] and listed["cmd"] == ["sleep", "300"]
    assert listed["running"] is True and listed["exit_code"] is None and listed["cause"] is None
    assert abs(listed["started_at_ms"] - time.time() * 1000) < 60_000


def test_tag(client):
    process = client.spawn("exec sleep 300", tag="web")
    assert process["tag"] == "web"
    assert client.process(process["id"])["tag"] == "web"
    client.delete(f"/v1/processes/{process['id']}")


def test_finished_process_stays_listed(client):
    process = client.spawn("exit 6")
    listed = finished(client, process["id"])
    assert listed["exit_code"] == 6 and listed["cause"] == "exited"


def test_cmd_is_listed_as_it_was_sent(client):
    process = client.spawn("echo a | cat")
    assert client.process(process["id"])["cmd"] == "echo a | cat"


def test_env_and_cwd(client, folder):
    process = client.spawn("echo $A; pwd -P", env={"A": 5}, cwd=str(folder))
    finished(client, process["id"])
    assert client.output(f"/v1/processes/{process['id']}").stdout == f"5\n{folder.resolve()}\n"


# ---- kill

def test_kill_by_id(client, sleeper):
    answer = client.delete(f"/v1/processes/{sleeper['id']}")
    assert answer.status == 200
    assert answer.json() == {"id": sleeper["id"], "killed": True}
    client.host.gone(sleeper["pid"])
    assert finished(client, sleeper["id"])["cause"] == "killed"


def test_kill_of_one_that_is_gone(client):
    process = client.spawn("true")
    finished(client, process["id"])
    answer = client.delete(f"/v1/processes/{process['id']}")
    assert (answer.status, answer.json()) == (200, {"id": process["id"], "killed": False})


def test_kill_twice(client, sleeper):
    assert client.delete(f"/v1/processes/{sleeper['id']}").json()["killed"] is True
    assert client.delete(f"/v1/processes/{sleeper['id']}").json()["killed"] is False


def test_kill_by_pid(client, sleeper):
    answer = client.delete(f"/v1/processes/{sleeper['pid']}")
    assert answer.status == 200
    assert answer.json() == {"id": sleeper["id"], "killed": True}
    client.host.gone(sleeper["pid"])


def test_foreign_pids_are_never_touched(client):
    """A pid is only looked up in the host's own table, whatever else runs under that number."""
    stranger = os.fork()
    if stranger == 0:
        time.sleep(300)
        os._exit(0)
    try:
        for pid in (stranger, os.getpid(), 1):
            answer = client.delete(f"/v1/processes/{pid}")
            assert answer.status in (200, 404)
            if answer.status == 200:
                assert answer.json()["killed"] is False
        time.sleep(0.2)
        assert is_running(stranger)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


def test_kill_of_an_unknown_id(client):
    answer = client.delete("/v1/processes/p-0123456789abcdef")
    assert answer.status in (200, 404)
    if answer.status == 200:
        assert answer.json()["killed"] is False


def test_kill_of_a_deaf_process(client):
    process = client.spawn("trap '' TERM; echo deaf; while :; do sleep 0.05; done")
    path = f"/v1/processes/{process['id']}"
    wait_until(lambda: client.output(path).stdout == "deaf\n")
    began = time.monotonic()
    assert client.delete(path).json()["killed"] is True
    client.host.gone(process["pid"], 5)
    assert time.monotonic() - began > 1, "it had time to clean up"


def test_kill_gives_time_to_clean_up(client, folder):
    process = client.spawn(f"trap 'touch {folder}/clean; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    path = f"/v1/processes/{process['id']}"
    wait_until(lambda: client.output(path).stdout == "up\n")
    client.delete(path)
    client.host.gone(process["pid"])
    assert (folder / "clean").exists()


# ---- output, stdin, signals

def test_output_of_a_running_process(client):
    process = client.spawn("echo out; echo err >&2; exec sleep 300")
    path = f"/v1/processes/{process['id']}"
    wait_until(lambda: client.output(path).stdout and client.output(path).stderr)
    got = client.output(path, stdout=1)
    assert (got.stdout, got.stderr) == ("ut\n", "err\n")
    client.delete(path)


def test_output_ends_with_the_exit_event(client):
    process = client.spawn("echo out; exit 3")
    assert client.output(f"/v1/processes/{process['id']}", follow=1).exit["exit_code"] == 3


def test_stdin(client):
    process = client.spawn("cat; echo end")
    path = f"/v1/processes/{process['id']}"
    assert client.post(path + "/stdin", b"one\n").status in (200, 204)
    wait_until(lambda: client.output(path).stdout == "one\n")
    assert client.process(process["id"])["running"], "stdin stays open"
    assert client.post(path + "/stdin", b"two\n", eof=1).status in (200, 204)
    assert client.output(path, follow=1).stdout == "one\ntwo\nend\n"


def test_stdin_end_alone(client):
    process = client.spawn("cat; echo end")
    path = f"/v1/processes/{process['id']}"
    assert client.post(path + "/stdin", b"", eof=1).status in (200, 204)
    assert client.output(path, follow=1).stdout == "end\n"


def test_stdin_of_many_bytes(client, folder):
    process = client.spawn(f"cat > {folder}/copy; echo end")
    path = f"/v1/processes/{process['id']}"
    data = os.urandom(5_000_000)
    assert client.post(path + "/stdin", data, eof=1).status in (200, 204)
    client.output(path, follow=1)
    assert (folder / "copy").read_bytes() == data


def test_stdin_after_the_end(client):
    process = client.spawn("true")
    finished(client, process["id"])
    answer = client.post(f"/v1/processes/{process['id']}/stdin", b"x")
    assert answer.status in (409, 410)
    assert answer.error


def test_stdin_after_eof(client):
    process = client.spawn("cat >/dev/null; exec sleep 300")
    path = f"/v1/processes/{process['id']}"
    client.post(path + "/stdin", b"", eof=1)
    assert client.post(path + "/stdin", b"x").status in (409, 410)
    client.delete(path)


@pytest.mark.parametrize("name", ["INT", "SIGUSR1", "TERM"])
def test_signals(client, name):
    short = name.removeprefix("SIG")
    process = client.spawn(f"trap 'echo got; exit 9' {short}; echo up; while :; do sleep 0.05; done")
    path = f"/v1/processes/{process['id']}"
    wait_until(lambda: client.output(path).stdout == "up\n")
    assert client.post(path + "/signal", {"signal": name}).status in (200, 204)
    done = client.output(path, follow=1)
    assert done.stdout == "up\ngot\n" and done.exit["exit_code"] == 9


@pytest.mark.parametrize("body", [b"", b"{}", b'{"signal":"NOPE"}', b'{"signal":[]}', b'{"signal":""}'])
def test_bad_signals(client, sleeper, body):
    answer = client.post(f"/v1/processes/{sleeper['id']}/signal", body)
    assert answer.status == 400
    assert answer.error
    assert client.host.is_running(sleeper["pid"])


def test_signal_after_the_end(client):
    process = client.spawn("true")
    finished(client, process["id"])
    assert client.post(f"/v1/processes/{process['id']}/signal", {"signal": "INT"}).status in (409, 410)


# ---- lifetimes

def test_daemon_that_forks_twice_survives_and_is_reaped(own_host, own_folder):
    folder = own_folder
    client = own_host.client()
    client.spawn(f"sh -c '(setsid sh -c \"echo \\$\\$ > {folder}/pid; exec sleep 2\" &)'; exit 0")
    wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    pid = int((folder / "pid").read_text())
    time.sleep(0.5)
    assert own_host.is_running(pid), "its starter's end does not end it"
    wait_until(lambda: own_host.process_state(pid) is None, 10, "the reaping of the daemon")


@pytest.mark.slow
def test_a_thousand_double_forks_leave_no_zombie(own_host):
    client = own_host.client(keep=True)
    for _ in range(100):
        client.exec("for i in 1 2 3 4 5 6 7 8 9 10; do (true &) & done; wait")
    wait_until(lambda: not [p for p in descendants(own_host.pid) if process_state(p) == "Z"], 10,
               "the end of all zombies")


def test_running_ones_are_never_dropped_and_finished_ones_are_bounded(own_host):
    client = own_host.client(keep=True)
    first = client.spawn(["sleep", "300"])
    for _ in range(400):
        client.spawn("true")
    wait_until(lambda: sum(p["running"] for p in client.get("/v1/processes").json()) == 1)
    listed = client.get("/v1/processes").json()
    assert first["id"] in [p["id"] for p in listed]
    assert len(listed) < 400
    client.delete(f"/v1/processes/{first['id']}")


def test_foreground_commands_are_not_listed(client):
    with client.exec_stream("exec sleep 300") as stream:
        pid = stream.next("start")["pid"]
        assert pid not in [p["pid"] for p in client.get("/v1/processes").json() if p["running"]]
