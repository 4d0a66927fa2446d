"""SIGKILL of cay-host and a restart with the same state: commands, output and records go on."""

import os
import signal
import time

import pytest

from client import Output
from host import Host, wait_until

pytestmark = pytest.mark.slow

MODES = ("dedicated", "attached", "pool")

COUNTER = "i=0; while [ $i -lt {n} ]; do echo $i; echo e$i >&2; i=$((i+1)); sleep 0.05; done; exit 7"


@pytest.fixture
def crash(start_host):
    """crash(host): kills it and starts another one with its state. With wait: seconds between the two."""
    def again(host: Host, wait: float = 0.0, **options) -> Host:
        host.kill9()
        time.sleep(wait)
        return start_host(after=host, **options)

    return again


def test_background_process_goes_on(own_host, crash):
    # It waits for its end to be told: a new host may take its time.
    process = own_host.client().spawn("trap 'cat >/dev/null' EXIT; " + COUNTER.format(n=40))
    time.sleep(0.3)
    host = crash(own_host, wait=0.5)
    client = host.client()
    assert host.is_running(process["pid"])
    listed = client.process(process["id"])
    assert listed["running"] and listed["pid"] == process["pid"]
    client.post(f"/v1/processes/{process['id']}/stdin", b"", eof=1)
    done = client.output(f"/v1/processes/{process['id']}", follow=1)
    assert done.stdout == "".join(f"{i}\n" for i in range(40)), "before, during and after"
    assert done.stderr == "".join(f"e{i}\n" for i in range(40))
    assert done.exit["exit_code"] == 7 and done.exit["cause"] == "exited"


def test_process_that_ended_meanwhile(own_host, crash):
    process = own_host.client().spawn("sleep 0.5; echo end; exit 3")
    host = crash(own_host, wait=1.5)
    listed = host.client().process(process["id"])
    assert (listed["running"], listed["exit_code"], listed["cause"]) == (False, 3, "exited")
    done = host.client().output(f"/v1/processes/{process['id']}")
    assert done.stdout == "end\n" and done.exit["exit_code"] == 3


def test_finished_records_are_still_there(own_host, crash):
    done = own_host.client().exec("echo out; echo err >&2; exit 4")
    process = own_host.client().spawn("echo background; exit 5")
    wait_until(lambda: not own_host.client().process(process["id"])["running"])
    client = crash(own_host).client()
    again = client.output(f"/v1/execs/{done.exec_id}")
    assert (again.stdout, again.stderr) == ("out\n", "err\n")
    assert again.exit == done.exit
    assert client.process(process["id"])["exit_code"] == 5


def test_kept_exec_goes_on(own_host, crash):
    headers = {"Idempotency-Key": "recovery"}
    script = COUNTER.format(n=120)
    stream = own_host.client().exec_stream(script, headers=headers)
    stream.until_text("3\n")
    exec_id = stream.seen[0]["exec_id"]
    client = crash(own_host).client()
    assert client.get(f"/v1/execs/{exec_id}").json()["state"] == "running"
    done = client.exec(script, headers=headers)
    assert done.exec_id == exec_id, "the key still leads to the first run"
    assert done.stdout == "".join(f"{i}\n" for i in range(120))
    assert done.exit["exit_code"] == 7


def test_key_of_a_finished_run_survives(own_host, crash):
    headers = {"Idempotency-Key": "recovery"}
    script = "echo run >> /tmp/runs-of-this-test"
    own_host.client().exec("rm -f /tmp/runs-of-this-test")
    first = own_host.client().exec(script, headers=headers)
    client = crash(own_host).client()
    assert client.exec(script, headers=headers).exec_id == first.exec_id
    assert client.post("/v1/exec", {"cmd": "other"}, headers=headers).status == 422
    assert client.exec("cat /tmp/runs-of-this-test").stdout == "run\n"


def test_exec_of_a_client_that_did_not_ask_to_keep_is_ended(own_host, crash):
    """Its client lost the connection with the host, as in every other disconnect."""
    stream = own_host.client().exec_stream("exec sleep 300")
    start = stream.next("start")
    client = crash(own_host).client()
    client.host.gone(start["pid"], 10)
    record = wait_until(lambda: client.get(f"/v1/execs/{start['exec_id']}").json()["exit"])
    assert record["cause"] in ("disconnected", "host_lost")


def test_kill_stdin_and_signals_work_after_the_restart(own_host, crash):
    first = own_host.client()
    sleeper, reader = first.spawn("exec sleep 300"), first.spawn("cat; echo end")
    trapper = first.spawn("trap 'echo got; exit 9' INT; echo up; while :; do sleep 0.05; done")
    wait_until(lambda: first.output(f"/v1/processes/{trapper['id']}").stdout == "up\n")
    client = crash(own_host).client()
    assert client.delete(f"/v1/processes/{sleeper['id']}").json()["killed"] is True
    client.host.gone(sleeper["pid"])
    client.post(f"/v1/processes/{reader['id']}/stdin", b"late\n", eof=1)
    assert client.output(f"/v1/processes/{reader['id']}", follow=1).stdout == "late\nend\n"
    client.post(f"/v1/processes/{trapper['id']}/signal", {"signal": "INT"})
    assert client.output(f"/v1/processes/{trapper['id']}", follow=1).exit["exit_code"] == 9


def test_timeout_is_kept_over_a_restart(own_host, crash):
    stream = own_host.client().exec_stream("exec sleep 300", timeout=2, on_disconnect="keep")
    start = stream.next("start")
    client = crash(own_host).client()
    done = client.output(f"/v1/execs/{start['exec_id']}", follow=1)
    assert done.exit["timed_out"] is True and done.exit["cause"] == "timed_out"


def test_continue_at_an_offset_across_the_restart(own_host, crash):
    process = own_host.client().spawn(COUNTER.format(n=60))
    path = f"/v1/processes/{process['id']}/output"
    with own_host.client().stream("GET", path, query={"follow": 1}) as stream:
        stream.until_text("5\n")
    got = Output(list(stream.seen))
    client = crash(own_host).client()
    rest = client.output(f"/v1/processes/{process['id']}", follow=1, stdout=len(got.stdout_bytes),
                         stderr=len(got.stderr_bytes))
    assert got.stdout + rest.stdout == "".join(f"{i}\n" for i in range(60))


def test_ten_crashes_in_a_row(own_host, crash):
    process = own_host.client().spawn(COUNTER.format(n=100))
    host = own_host
    for _ in range(10):
        host = crash(host)
        assert host.client().exec("echo works").stdout == "works\n"
    done = host.client().output(f"/v1/processes/{process['id']}", follow=1)
    assert done.stdout == "".join(f"{i}\n" for i in range(100))


@pytest.mark.makes_keepers
def test_keeper_lost_as_well(own_host, crash):
    """The power fails: what ran is gone, and the record says so instead of pretending."""
    process = own_host.client().spawn("echo before; exec sleep 300")
    wait_until(lambda: own_host.client().output(f"/v1/processes/{process['id']}").stdout == "before\n")
    everything = own_host.processes()
    own_host.kill9()
    for pid in everything:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    client = crash(own_host).client()
    listed = client.process(process["id"])
    assert listed["running"] is False and listed["cause"] == "host_lost"
    done = client.output(f"/v1/processes/{process['id']}")
    assert done.stdout == "before\n" and done.exit["cause"] == "host_lost"
    assert client.exec("echo works").stdout == "works\n"


@pytest.mark.makes_keepers
def test_host_lost_record_has_no_exit_code(own_host, crash):
    process = own_host.client().spawn("exec sleep 300")
    everything = own_host.processes()
    for pid in [own_host.pid, *everything]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    client = crash(own_host).client()
    assert client.process(process["id"])["exit_code"] is None


@pytest.mark.makes_keepers
def test_sigterm_leaves_the_state_for_the_next_start(own_host, start_host):
    client = own_host.client()
    done = client.exec("echo kept")
    process = client.spawn("echo background; exec sleep 300")
    wait_until(lambda: client.output(f"/v1/processes/{process['id']}").stdout)
    own_host.stop()
    if not own_host.in_pool:
        assert not own_host.is_running(process["pid"])
    client = start_host(after=own_host).client()
    assert client.output(f"/v1/execs/{done.exec_id}").stdout == "kept\n"
    listed = client.process(process["id"])
    assert listed["running"] is False and listed["cause"] == "host_stopped"


@pytest.mark.dedicated
def test_two_hosts_cannot_share_a_state(own_host):
    second = Host(own_host.state, mark=own_host.mark)
    with pytest.raises(AssertionError):
        second.start()
    assert second.process.wait(10) not in (0, None)
    assert "state" in second.log or "in use" in second.log
    assert own_host.client().exec("echo unharmed").stdout == "unharmed\n"


@pytest.mark.makes_keepers
def test_damaged_state_does_not_stop_the_start(own_host, start_host):
    client = own_host.client()
    done = client.exec("echo x")
    own_host.stop()
    for path in own_host.state.rglob("*"):
        if path.is_file() and done.exec_id in str(path):
            path.write_bytes(b"\x00garbage\xff" * 3)
    (own_host.state / "unexpected").mkdir()
    client = start_host(after=own_host).client()
    assert client.exec("echo works").stdout == "works\n"
    assert client.get(f"/v1/execs/{done.exec_id}").status in (200, 404, 410, 500)
