"""The job information that the hub's unit tests pin down, as every generation of clients reads it."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INFOS = ROOT / "src" / "hub" / "testdata" / "job-info.json"
# In the client's environment, which has no pytest.
READ = """
import dataclasses, json, sys
from huggingface_hub import JobInfo
infos = json.load(open(sys.argv[1]))
json.dump({name: dataclasses.asdict(JobInfo(**info)) for name, info in infos.items()}, sys.stdout, default=str)
"""


def read(version: str) -> dict:
    """What the client's own class makes of them."""
    done = subprocess.run([ROOT / ".venvs" / f"hub-{version}" / "bin" / "python", "-c", READ, INFOS], check=True,
                          capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.parametrize("version", ["2.4.0", "2.0.0", "1.31.0"])
def test_clients_read_it(version):
    jobs = read(version)
    assert {name: job["status"]["stage"] for name, job in jobs.items()} == {
        "waiting": "SCHEDULING", "running": "RUNNING", "ended": "ERROR", "sandbox": "SCHEDULING", "pool": "SCHEDULING"}
    running = jobs["running"]
    assert running["started_at"].startswith("2026-01-01 00:00:03.5")
    assert running["status"]["message"] == "attempt 2 of 3"
    assert running["environment"]["NONE"] == "" and running["environment"]["NUMBER"] == "1"
    assert [volume["mount_path"] for volume in running["volumes"]] == ["/data", "/model"]
    assert jobs["ended"]["space_id"] == "org/app"
    assert jobs["ended"]["initiator"]["type"] == "scheduled-job"
    assert jobs["ended"]["durations"]["total_secs"] == 2
    assert jobs["pool"]["url"].endswith("/jobs/tester/6a0000000000000000000001")
    if version == "2.4.0":
        assert running["retry"] == 2
        assert (running["expose"], running["expose_public"]) == ([8000, 9000], [9000])
        assert running["network"] == {"group": "train", "aliases": ["master", "w-0"]}
