"""Idempotency-Key: a repeated request attaches to the first run."""

import threading

import pytest

from client import Output, parse_events
from host import wait_until

MODES = ("dedicated", "attached", "pool")


@pytest.fixture
def key(folder):
    return {"Idempotency-Key": str(folder)}


def test_repeated_after_the_end(client, key, folder):
    script = f"echo run >> {folder}/runs; echo out; echo err >&2; exit 5"
    first = client.exec(script, headers=key)
    again = client.exec(script, headers=key)
    assert again.exec_id == first.exec_id
    assert (again.stdout, again.stderr) == ("out\n", "err\n")
    assert again.exit == first.exit
    assert (folder / "runs").read_text() == "run\n"


def test_repeated_while_it_runs(client, key, folder):
    script = f"echo run >> {folder}/runs; echo one; while [ ! -e {folder}/go ]; do sleep 0.05; done; echo two"
    with client.exec_stream(script, headers=key) as first:
        first.until_text("one\n")
        with client.exec_stream(script, headers=key) as second:
            second.until_text("one\n")
            assert second.seen[0]["exec_id"] == first.seen[0]["exec_id"]
            (folder / "go").touch()
            assert second.rest().stdout == "one\ntwo\n"
        assert first.rest().stdout == "one\ntwo\n"
    assert (folder / "runs").read_text() == "run\n"


def test_taken_up_after_a_lost_connection(client, key, folder):
    script = f"echo run >> {folder}/runs; echo one; sleep 1; echo two"
    with client.exec_stream(script, headers=key) as lost:
        lost.until_text("one\n")
    done = client.exec(script, headers=key)
    assert done.stdout == "one\ntwo\n"
    assert done.exit["cause"] == "exited"
    assert (folder / "runs").read_text() == "run\n"


def test_same_key_with_another_body(client, key):
    client.exec("echo a", headers=key)
    answer = client.post("/v1/exec", {"cmd": "echo b"}, headers=key)
    assert answer.status == 422
    assert "Idempotency-Key" in answer.error


def test_key_of_an_exec_is_not_for_a_process(client, key):
    """The same key on the other route never starts a second run unseen."""
    client.exec("echo a", headers=key)
    answer = client.post("/v1/processes", {"cmd": "echo a"}, headers=key)
    assert answer.status in (200, 201, 422)
    if answer.status != 422:
        assert answer.json()["id"].startswith("p-")


def test_different_keys_run_twice(client, folder):
    for key in ("a", "b"):
        client.exec(f"echo run >> {folder}/runs", headers={"Idempotency-Key": f"{folder}-{key}"})
    assert (folder / "runs").read_text() == "run\nrun\n"


def test_without_a_key_the_same_request_runs_again(client, folder):
    for _ in range(2):
        client.exec(f"echo run >> {folder}/runs")
    assert (folder / "runs").read_text() == "run\nrun\n"


def test_twenty_at_once_run_once(host, key, folder):
    outputs: list[Output] = []

    def attempt():
        answer = host.client().post("/v1/exec", {"cmd": f"echo run >> {folder}/runs; sleep 0.2; echo out"},
                                    headers=key)
        outputs.append(Output(parse_events(answer.body)))

    threads = [threading.Thread(target=attempt) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [o.stdout for o in outputs] == ["out\n"] * 20
    assert len({o.exec_id for o in outputs}) == 1
    assert (folder / "runs").read_text() == "run\n"


def test_process_start(client, key, folder):
    script = f"echo run >> {folder}/runs; exec sleep 300"
    first = client.spawn(script, headers=key)
    wait_until((folder / "runs").exists)
    again = client.spawn(script, headers=key)
    assert (again["id"], again["pid"]) == (first["id"], first["pid"])
    assert client.post("/v1/processes", {"cmd": "other"}, headers=key).status == 422
    client.delete(f"/v1/processes/{first['id']}")
    wait_until(lambda: not client.process(first["id"])["running"])
    assert client.spawn(script, headers=key)["id"] == first["id"], "also after its end"
    assert (folder / "runs").read_text() == "run\n"


def test_failed_start_is_remembered_too(client, key):
    first = client.exec(["no-such-command-here"], headers=key)
    again = client.exec(["no-such-command-here"], headers=key)
    assert again.exit == first.exit and again.exit["exit_code"] == 127


@pytest.mark.parametrize("value", ["", "x" * 1000])
def test_absurd_keys_are_refused(client, value):
    assert client.post("/v1/exec", {"cmd": "true"}, headers={"Idempotency-Key": value}).status == 400
