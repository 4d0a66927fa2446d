"""The Jobs API with the unmodified clients of three generations: their library and their command line."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from api_hub import CLIENTS, ApiHub

EVERYBODY = ("run_and_inspect", "lists", "pages", "cancel_and_labels", "wait_for_job", "logs_of_an_ended_job",
             "logs_that_are_followed", "logs_of_a_silent_job", "metrics", "scheduled", "hardware", "errors", "whoami",
             "local_files")
NEWEST_ONLY = ("ports_and_copies",)
SLOW = ("pages", "logs_of_a_silent_job")  # many requests, and the client's own waits


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    hub = ApiHub(tmp_path_factory.mktemp("hub"))
    yield hub
    assert hub.end() == 0


@pytest.mark.parametrize(("version", "scenario"), [
    *(pytest.param(version, scenario, marks=[pytest.mark.slow] if scenario in SLOW else []) for version in CLIENTS
      for scenario in EVERYBODY),
    *((CLIENTS[0], scenario) for scenario in NEWEST_ONLY)])
def test_library(hub, version, scenario, tmp_path):
    done = hub.scenario(version, scenario, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]


def listed(hub, version, home, *words: str):
    done = hub.cli(version, home, *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("version", CLIENTS)
def test_command_line(hub, version, tmp_path):
    """A job from its start to its copy, as somebody types it."""
    mark = f"mark=v{version}"
    done = hub.cli(version, tmp_path, "jobs", "run", "--detach", "--label", mark, "python:3.12", "python", "-c", "print(1)")
    assert done.returncode == 0, done.stderr
    job = next(word for line in done.stdout.splitlines() for word in line.replace("=", " ").split()
               if len(word) == 24 and set(word) <= set("0123456789abcdef"))
    assert [item["id"] for item in listed(hub, version, tmp_path, "jobs", "ps", "--label", mark)] == [job]
    hub.tell(job, {"usage": True}, {"start": True}, {"say": "hello"})
    if version == CLIENTS[0]:  # older ones stream until the job ends
        stats = hub.cli(version, tmp_path, "jobs", "stats", job)
        assert stats.returncode == 0 and job[:8] in stats.stdout, stats.stderr
    hub.soon(1, job, {"say": "bye"}, {"finish": "COMPLETED"})
    logs = hub.cli(version, tmp_path, "jobs", "logs", "--follow", job)
    assert logs.returncode == 0 and logs.stdout.split() == ["hello", "bye"], logs.stderr
    assert hub.cli(version, tmp_path, "jobs", "wait", job).returncode == 0
    assert listed(hub, version, tmp_path, "jobs", "inspect", job)[0]["status"]["stage"] == "COMPLETED"
    assert listed(hub, version, tmp_path, "jobs", "ps", "--label", mark) == [], "ended ones only with --all"
    assert hub.cli(version, tmp_path, "jobs", "hardware").stdout.count("cpu-basic") == 1
    assert hub.cli(version, tmp_path, "jobs", "labels", job, "--label", "a=b").returncode == 0
    assert hub.cli(version, tmp_path, "jobs", "cancel", job).returncode == 0
    if version == CLIENTS[0]:
        assert hub.cli(version, tmp_path, "jobs", "rerun", "--detach", job).returncode == 0
    ssh = hub.cli(version, tmp_path, "jobs", "ssh", job)
    assert ssh.returncode != 0 and "SSH is not enabled" in ssh.stderr + ssh.stdout, ssh.stderr


@pytest.mark.slow
@pytest.mark.parametrize("version", CLIENTS)
def test_a_run_in_the_foreground_tells_how_it_ended(hub, version, tmp_path):
    """`hf jobs run` waits for the job, shows its lines, and its message if it fails."""
    before = {item["id"] for item in hub.request("GET", "/api/jobs/tester")[1]}

    def play(*acts):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            new = [item["id"] for item in hub.request("GET", f"/api/jobs/tester?label=fg={version}")[1]
                   if item["id"] not in before]
            if new:
                hub.tell(new[0], *acts)
                return
            time.sleep(0.2)

    thread = threading.Thread(target=play, args=({"start": True}, {"say": "from the job"},
                                                 {"finish": "ERROR", "message": "Job failed with exit code: 3"}))
    thread.start()
    done = hub.cli(version, tmp_path, "jobs", "run", "--label", f"fg={version}", "python:3.12", "false")
    thread.join()
    assert "from the job" in done.stdout, done.stderr
    if version == CLIENTS[0]:
        assert done.returncode == 1 and "exit code: 3" in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("version", CLIENTS)
def test_scheduled_jobs_by_command(hub, version, tmp_path):
    done = hub.cli(version, tmp_path, "jobs", "scheduled", "run", "@daily", "--label", f"cli={version}", "python:3.12", "true")
    assert done.returncode == 0, done.stderr
    made = [item for item in hub.request("GET", f"/api/scheduled-jobs/tester?label=cli={version}")[1]][0]["id"]
    for verb in ("suspend", "resume", "inspect", "delete"):
        done = hub.cli(version, tmp_path, "jobs", "scheduled", verb, made)
        assert done.returncode == 0, (verb, done.stderr)
    assert hub.request("GET", f"/api/scheduled-jobs/tester/{made}")[0] == 404


def test_a_full_disk_refuses_new_jobs_and_loses_none(tmp_path):
    """507 while the disk is full; what was answered is there, and work goes on when there is room again."""
    folder = tmp_path / "small"
    hub = ApiHub(folder, "unshare", "--mount", "sh", "-c",
                 'mount -t tmpfs -o size=4m none "$2" && head -c 1500k /dev/zero > "$2/ballast" && exec "$1" "$2"', "sh")
    body = {"dockerImage": "a", "command": ["x" * 60_000, "y" * 60_000], "arguments": [], "environment": {}, "flavor": "cpu-basic"}
    taken = []
    for _ in range(200):
        status, answer = hub.request("POST", "/api/jobs/tester", body)
        if status != 200:
            break
        taken.append(answer["id"])
    assert status == 507 and "error" in answer and taken
    status, listed_jobs = hub.request("GET", "/api/jobs/tester")
    assert status == 200 and {job["id"] for job in listed_jobs} == set(taken)
    hub.tell(taken[0], {"start": True}, {"finish": "COMPLETED"})
    assert hub.request("GET", f"/api/jobs/tester/{taken[0]}")[1]["status"]["stage"] == "COMPLETED"
    os.unlink(Path(f"/proc/{hub.process.pid}/root{folder}/ballast"))
    assert hub.request("POST", "/api/jobs/tester", body)[0] == 200
    assert hub.end() == 0
