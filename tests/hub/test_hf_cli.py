"""The unmodified `hf` program on a hub: `hf sandbox …` and `hf jobs …` as a user types them."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time

import pytest

from host import ROOT
from hub_host import Hub

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hf-cli")]
NEWEST = "2.4.0"
HELLO = ["python3", "-c", "import os; print('hello', os.environ.get('GREETED', 'nobody'))"]


class Hf:
    def __init__(self, hub: Hub, version: str, home) -> None:
        self.version = version
        self.program = ROOT / ".venvs" / f"hub-{version}" / "bin" / "hf"
        self.env = {**hub.client_env(), "HOME": str(home), "HF_HOME": str(home / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}

    def __call__(self, *arguments, timeout: float = 90, status: int | None = 0) -> str:
        done = self.try_it(*arguments, timeout=timeout)
        assert status is None or done.returncode == status, (arguments, done.stdout, done.stderr)
        return done.stdout

    def try_it(self, *arguments, timeout: float = 90) -> subprocess.CompletedProcess:
        return subprocess.run([self.program, *map(str, arguments)], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)

    def json(self, *arguments):
        return json.loads(self(*arguments, "--json"))

    def run_job(self, *command: str, options=()) -> str:
        """Gives its id."""
        text = self("jobs", "run", "--detach", *options, "python:3.12", *command)
        return re.search(r"\b[0-9a-f]{24}\b", text)[0]

    def stage(self, job: str) -> str:
        return self.json("jobs", "inspect", job)[0]["status"]["stage"]

    def wait_for(self, job: str, stage: str) -> None:
        deadline = time.monotonic() + 30
        while (now := self.stage(job)) != stage:
            assert time.monotonic() < deadline, f"{job} is {now}"
            time.sleep(0.2)


@pytest.fixture(params=["2.4.0", "2.0.0", "1.31.0"])
def hf(hub, default_image, request, tmp_path):
    return Hf(hub, request.param, tmp_path)


@pytest.fixture
def newest(hub, default_image, tmp_path):
    return Hf(hub, NEWEST, tmp_path)


def sandbox_id(text: str) -> str:
    return re.search(r"\b[0-9a-f]{24}(\.[\w-]+)?\b", text)[0]


def test_sandbox(hf, tmp_path):
    sandbox = sandbox_id(hf("sandbox", "create"))
    assert hf("sandbox", "exec", sandbox, "--", "echo", "hello") == "hello\n"
    failed = hf.try_it("sandbox", "exec", sandbox, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (failed.returncode, failed.stdout) == (3, "out\n") and "err" in failed.stderr
    assert hf("sandbox", "exec", "-w", "/etc", sandbox, "--", "pwd") == "/etc\n"
    (tmp_path / "data.bin").write_bytes(bytes(range(256)) * 1000)
    hf("sandbox", "cp", tmp_path / "data.bin", f"{sandbox}:/root/data.bin")
    hf("sandbox", "cp", f"{sandbox}:/root/data.bin", tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == (tmp_path / "data.bin").read_bytes()
    pid = int(re.search(r"\bpid\W+(\d+)", hf("sandbox", "spawn", sandbox, "--", "sleep", "300"))[1])
    assert str(pid) in hf("sandbox", "process", "ls", sandbox)
    hf("sandbox", "process", "kill", sandbox, pid)
    hf("sandbox", "kill", sandbox)
    assert hf.stage(sandbox) == "CANCELED"


def test_sandbox_pool(hf):
    made = hf("sandbox", "pool", "create", "--per-host", "4")
    pool = re.search(r"pool-[0-9a-f]{12}", made)[0]
    assert pool in hf("sandbox", "pool", "ls")
    sandbox = sandbox_id(hf("sandbox", "create", "--pool", pool, "--env", "GREETED=you"))
    assert "." in sandbox and hf("sandbox", "exec", sandbox, "--", "sh", "-c", "echo $GREETED") == "you\n"
    hf("sandbox", "kill", sandbox)
    hf("sandbox", "pool", "delete", pool, "--yes")
    assert pool not in hf("sandbox", "pool", "ls")


def test_sandbox_kill_all(newest):
    made = [sandbox_id(newest("sandbox", "create")) for _ in range(2)]
    newest("sandbox", "kill", "--all", "--yes")
    assert [newest.stage(one) for one in made] == ["CANCELED"] * 2


def test_jobs_run(hf):
    assert "hello you" in hf("jobs", "run", "--env", "GREETED=you", "python:3.12", *HELLO)
    failed = hf.try_it("jobs", "run", "python:3.12", "sh", "-c", "echo partial; exit 3")
    assert "partial" in failed.stdout
    job = hf.run_job("sleep", "300", options=["--label", "kind=sleeper"])
    hf.wait_for(job, "RUNNING")
    assert job in hf("jobs", "ps", "--quiet")
    assert [one["id"] for one in hf.json("jobs", "ps", "--label", "kind=sleeper")] == [job]
    hf("jobs", "cancel", job)
    assert hf.stage(job) == "CANCELED" and job not in hf("jobs", "ps", "--quiet") and job in hf("jobs", "ps", "-a", "--quiet")


def test_jobs_logs(hf):
    job = hf.run_job("sh", "-c", "for i in 1 2 3; do echo line $i; sleep 0.2; done")
    assert [line for line in hf("jobs", "logs", "--follow", job).splitlines() if line.startswith("line")] == [
        f"line {n}" for n in (1, 2, 3)]
    assert "line 3" in hf("jobs", "logs", "--tail", "1", job) and "line 1" not in hf("jobs", "logs", "--tail", "1", job)


def test_jobs_wait(hf):
    good, bad = hf.run_job("true"), hf.run_job("false")
    hf("jobs", "wait", good)
    assert hf.try_it("jobs", "wait", bad).returncode != 0
    assert (hf.stage(good), hf.stage(bad)) == ("COMPLETED", "ERROR")
    assert "exit code: 1" in hf.json("jobs", "inspect", bad)[0]["status"]["message"]


def test_jobs_labels_and_stats(hf):
    job = hf.run_job("sleep", "300")
    hf.wait_for(job, "RUNNING")
    hf("jobs", "labels", job, "--label", "a=b")
    assert hf.json("jobs", "inspect", job)[0]["labels"]["a"] == "b"
    # Older ones go on until the job is over.
    threading.Timer(5, lambda: hf("jobs", "cancel", job)).start()
    assert job[:5] in hf("jobs", "stats", job, status=None)
    hf.wait_for(job, "CANCELED")


def test_jobs_expose_and_rerun(newest):
    serve = ["python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"]
    job = newest.run_job(*serve)
    newest.wait_for(job, "RUNNING")
    newest("jobs", "expose", job, "8000")
    [url] = newest.json("jobs", "inspect", job)[0]["status"]["expose_urls"]
    assert f"{job}--8000." in url
    again = sandbox_id(newest("jobs", "rerun", "--detach", job).replace(job, ""))
    newest.wait_for(again, "RUNNING")
    for one in (job, again):
        newest("jobs", "cancel", one)


def test_jobs_hardware(hf):
    assert "cpu-basic" in hf("jobs", "hardware")


def test_jobs_scheduled(hf):
    made = hf("jobs", "scheduled", "run", "@hourly", "python:3.12", "echo", "hi")
    schedule = re.search(r"\b[0-9a-f]{24}\b", made)[0]
    assert schedule in hf("jobs", "scheduled", "ps", "--quiet")
    hf("jobs", "scheduled", "suspend", schedule)
    assert hf.json("jobs", "scheduled", "inspect", schedule)[0]["suspend"] is True
    hf("jobs", "scheduled", "resume", schedule)
    hf("jobs", "scheduled", "delete", schedule)
    assert schedule not in hf("jobs", "scheduled", "ps", "-a", "--quiet")


def test_jobs_scheduled_trigger(newest):
    made = newest("jobs", "scheduled", "run", "@yearly", "python:3.12", "echo", "hi")
    schedule = re.search(r"\b[0-9a-f]{24}\b", made)[0]
    newest("jobs", "scheduled", "reschedule", schedule, "0 9 * * 1")
    job = sandbox_id(newest("jobs", "scheduled", "trigger", schedule).replace(schedule, ""))
    newest.wait_for(job, "COMPLETED")
    newest("jobs", "scheduled", "delete", schedule)


def test_what_is_not_there_says_so(newest, tmp_path):
    job = newest.run_job("sleep", "300")
    newest.wait_for(job, "RUNNING")
    refused = newest.try_it("jobs", "ssh", job)
    assert refused.returncode != 0 and "SSH is not enabled" in refused.stdout + refused.stderr
    newest("jobs", "cancel", job)
    (tmp_path / "script.py").write_text("print('hi')\n")
    refused = newest.try_it("jobs", "uv", "run", tmp_path / "script.py", timeout=60)
    assert refused.returncode != 0 and "Xet" in refused.stdout + refused.stderr
