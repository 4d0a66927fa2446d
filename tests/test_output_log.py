"""The output log: byte offsets, following, bounds, and what the exec routes say."""

import time

import pytest

from client import Output, parse_events
from host import wait_until

MODES = ("dedicated", "attached", "pool")

MIB = 1 << 20


def exec_path(done: Output) -> str:
    return f"/v1/execs/{done.exec_id}"


# ---- state

def test_state_while_running_and_after(client):
    with client.exec_stream("echo x; exec sleep 300", on_disconnect="kill") as stream:
        stream.until_text("x\n")
        exec_id = stream.seen[0]["exec_id"]
        state = client.get(f"/v1/execs/{exec_id}").json()
        assert (state["exec_id"], state["state"], state["exit"]) == (exec_id, "running", None)
    record = wait_until(lambda: client.get(f"/v1/execs/{exec_id}").json()["exit"])
    assert record["cause"] == "disconnected"


def test_exit_record_equals_the_exit_event(client):
    done = client.exec("echo hello; exit 4")
    record = client.get(exec_path(done)).json()
    assert record["state"] == "exited" and record["exec_id"] == done.exec_id
    event = {k: v for k, v in done.exit.items() if k != "event"}
    assert {k: v for k, v in record["exit"].items() if k != "event"} == event


# ---- offsets

def test_whole_output_again(client):
    done = client.exec("echo one; echo problem >&2; echo two")
    again = client.output(exec_path(done))
    assert (again.stdout, again.stderr) == ("one\ntwo\n", "problem\n")
    assert again.exit == done.exit
    assert again.headers["Content-Type"] == "application/x-ndjson"


@pytest.mark.parametrize("stdout, stderr", [(0, 0), (1, 2), (4, 0), (8, 8), (3, 8)])
def test_offsets_count_bytes(client, stdout, stderr):
    done = client.exec("printf 01234567; printf abcdefgh >&2")
    again = client.output(exec_path(done), stdout=stdout, stderr=stderr)
    assert (again.stdout, again.stderr) == ("01234567"[stdout:], "abcdefgh"[stderr:])
    assert again.exit["exit_code"] == 0


def test_offset_past_the_end(client):
    done = client.exec("printf 0123")
    answer = client.get(exec_path(done) + "/output", stdout=100)
    assert answer.status in (200, 400, 416)
    if answer.status == 200:
        assert Output(parse_events(answer.body)).stdout == ""


def test_offsets_are_of_bytes_not_characters(client):
    done = client.exec("printf 'äöü'")
    assert client.output(exec_path(done), stdout=2).stdout == "öü"
    assert client.output(exec_path(done), stdout=3, encoding="base64").stdout_bytes == "öü".encode()[1:]


@pytest.mark.parametrize("query", [{"stdout": "x"}, {"stdout": -1}, {"stderr": "1.5"}, {"follow": "maybe"},
                                   {"encoding": "rot13"}])
def test_bad_queries(client, query):
    done = client.exec("true")
    answer = client.request("GET", exec_path(done) + "/output", query=query)
    assert answer.status == 400
    assert next(iter(query)) in answer.error


# ---- following

def test_without_follow_a_running_command_gives_what_is_there(client):
    process = client.spawn("echo now; exec sleep 300")
    path = f"/v1/processes/{process['id']}"
    wait_until(lambda: client.output(path).stdout == "now\n")
    assert not [e for e in client.output(path).events if e["event"] == "exit"]
    client.delete(path)


def test_continued_without_gaps_or_repeats(client):
    """Cut again and again, each time continued at the offset that has arrived."""
    script = "i=0; while [ $i -lt 400 ]; do echo line-$i-äöü; echo err-$i >&2; i=$((i+1)); sleep 0.002; done"
    with client.exec_stream(script, on_disconnect="keep", encoding="base64") as stream:
        for event in stream.events():
            if event["event"] == "stdout":
                break
    exec_id = stream.seen[0]["exec_id"]
    got = Output(list(stream.seen))
    out, err = got.stdout_bytes, got.stderr_bytes
    cuts = 0
    while True:
        with client.stream("GET", f"/v1/execs/{exec_id}/output",
                           query={"stdout": len(out), "stderr": len(err), "follow": 1,
                                  "encoding": "base64"}) as stream:
            for count, event in enumerate(stream.events()):
                if event["event"] == "exit" or count == 5:
                    break
        got = Output(stream.seen)
        out, err = out + got.stdout_bytes, err + got.stderr_bytes
        if stream.seen and stream.seen[-1]["event"] == "exit":
            break
        cuts += 1
    assert cuts > 5
    assert out.decode() == "".join(f"line-{i}-äöü\n" for i in range(400))
    assert err.decode() == "".join(f"err-{i}\n" for i in range(400))


def test_followers_do_not_keep_or_kill_the_command(client):
    """Whoever only follows may leave without consequence."""
    process = client.spawn("while :; do echo tick; sleep 0.05; done")
    path = f"/v1/processes/{process['id']}"
    for _ in range(3):
        with client.stream("GET", path + "/output", query={"follow": 1}) as stream:
            stream.until_text("tick\n")
    time.sleep(0.3)
    assert client.process(process["id"])["running"]
    client.delete(path)


def test_several_followers_see_the_same(client):
    process = client.spawn("seq 1 5000; sleep 0.5; seq 5001 10000")
    path = f"/v1/processes/{process['id']}/output"
    streams = [client.stream("GET", path, query={"follow": 1}) for _ in range(5)]
    expected = "".join(f"{n}\n" for n in range(1, 10001))
    assert all(s.rest().stdout == expected for s in streams)


def test_follow_of_a_finished_command_ends_at_once(client):
    done = client.exec("echo x")
    assert client.output(exec_path(done), follow=1).exit["exit_code"] == 0


# ---- bounds

def test_log_keeps_head_and_tail_and_states_the_gap(start_host):
    client = start_host(flags=["--log-bytes-per-exec", str(MIB)]).client()
    total = 8 * MIB
    script = f"head -c {total} /dev/zero | tr '\\0' x; printf END"
    done = client.exec(script)
    assert len(done.stdout) == total + 3, "the live stream loses nothing"
    again = client.output(exec_path(done))
    assert len(again.gaps) == 1
    gap = again.gaps[0]
    assert gap["stream"] == "stdout" and 0 < gap["from"] < gap["to"] < total + 3
    assert len(again.stdout) == total + 3 - (gap["to"] - gap["from"])
    assert len(again.stdout) <= MIB + 128 * 1024
    assert again.stdout.endswith("END")
    assert done.exit["output_bytes"]["stdout"] == total + 3
    kinds = [e["event"] for e in again.events]
    assert "stdout" in kinds[: kinds.index("gap")] and "stdout" in kinds[kinds.index("gap"):]


def test_offset_inside_the_gap(start_host):
    client = start_host(flags=["--log-bytes-per-exec", str(MIB)]).client()
    done = client.exec(f"head -c {4 * MIB} /dev/zero | tr '\\0' x")
    gap = client.output(exec_path(done)).gaps[0]
    middle = (gap["from"] + gap["to"]) // 2
    again = client.output(exec_path(done), stdout=middle)
    assert again.gaps == [{**gap, "from": middle}]
    assert len(again.stdout) == 4 * MIB - gap["to"]
    after = client.output(exec_path(done), stdout=gap["to"] + 5)
    assert after.gaps == [] and len(after.stdout) == 4 * MIB - gap["to"] - 5


def test_output_below_the_bound_is_kept_in_full(start_host):
    client = start_host(flags=["--log-bytes-per-exec", str(2 * MIB)]).client()
    done = client.exec(f"head -c {MIB} /dev/zero | tr '\\0' x")
    again = client.output(exec_path(done))
    assert again.gaps == [] and len(again.stdout) == MIB


def test_disk_use_of_one_endless_process_is_bounded(start_host):
    host = start_host(flags=["--log-bytes-per-exec", str(MIB)])
    client, before = host.client(), folder_size(host.state)
    process = client.spawn(["yes"])
    time.sleep(2)
    assert folder_size(host.state) - before < 8 * MIB
    client.delete(f"/v1/processes/{process['id']}")


def test_total_is_bounded_oldest_finished_first_out(start_host):
    host = start_host(flags=["--log-bytes-total", str(4 * MIB), "--log-bytes-per-exec", str(MIB)])
    client, before = host.client(), folder_size(host.state)
    running = client.spawn("echo early; exec sleep 300")
    ids = [client.exec(f"head -c {MIB} /dev/zero").exec_id for _ in range(12)]
    wait_until(lambda: folder_size(host.state) - before < 7 * MIB, what="the log folder back under its bound")
    statuses = [client.get(f"/v1/execs/{i}").status for i in ids]
    assert statuses[-1] == 200 and statuses[0] in (404, 410)
    assert statuses == sorted(statuses, reverse=True), "the oldest went first"
    assert client.output(f"/v1/processes/{running['id']}").stdout == "early\n", "what runs is never dropped"
    client.delete(f"/v1/processes/{running['id']}")


def folder_size(folder):
    total = 0
    for path in folder.rglob("*"):
        try:
            # Blocks, not length: a log with a hole in it is as small as it looks.
            total += path.stat().st_blocks * 512 if path.is_file() else 0
        except OSError:
            pass
    return total
