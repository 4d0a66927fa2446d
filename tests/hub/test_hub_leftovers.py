"""A hub that ends its jobs leaves nothing in the machine, and neither does a job while the hub goes on."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from host import wait_until
from hub_jobs import ENDED, SANDBOX_PORT, Jobs, Sandbox
from hub_leftovers import leftovers, uplinks_of

pytestmark = pytest.mark.slow

MANY_FILES = "cd /root && for d in $(seq 40); do mkdir $d && (cd $d && seq 500 | xargs touch); done"


class PoolHost(Sandbox):
    """A host of many sandboxes, by its token alone."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.token = jobs, "t" * 64
        self.id = jobs.start(["/bin/sh", "-c", "true"], secrets={"SBX_TOKEN": self.token},
                             environment={"SBX_PORT": str(SANDBOX_PORT), "SBX_SERVER_URL": "http://x",
                                          "SBX_SERVER_SHA256": "0" * 64, "SBX_HOST_MODE": "1", "SBX_CAPACITY": "4"},
                             labels={"hf-sandbox": "1", "hf-sandbox-mode": "pool", "hf-sandbox-pool": "left"},
                             expose={"ports": [SANDBOX_PORT]})

    def run_in_a_new_one(self, command: str) -> str:
        [made] = json.loads(self.call("POST", "/v1/sandboxes", {"count": 1}))["sandboxes"]
        answer = self.jobs.call("POST", f"/x/{self.id}--{SANDBOX_PORT}/v1/sandboxes/{made['id']}/exec", {"cmd": command},
                                {"X-Sandbox-Token": made["token"]})
        return "".join(json.loads(line).get("data", "") for line in answer.splitlines())


def test_a_hub_without_jobs_leaves_nothing_to_be_taken_up(start_hub):
    hub = start_hub(end_jobs=False)
    jobs = Jobs(hub)
    jobs.until(jobs.start(["true"]), "COMPLETED")
    uplinks = uplinks_of(hub.programs)
    hub.stop()
    assert not hub.leftovers(uplinks)


@pytest.mark.slow
def test_the_end_of_a_hub_waits_for_the_files_of_its_jobs(start_hub):
    hub = start_hub()
    jobs = Jobs(hub)
    box, pool = Sandbox(jobs).ready(), PoolHost(jobs).ready()
    plain = jobs.start(["sh", "-c", f"{MANY_FILES}; setsid sleep 1000 & echo ready; sleep 1000"])
    grouped = jobs.start(["sleep", "1000"], network={"group": "left", "aliases": ["over"]})
    assert box.run(f"{MANY_FILES}; (setsid sleep 1000 &) >/dev/null 2>&1; echo made") == "made\n"
    assert pool.run_in_a_new_one("(setsid sleep 1000 &) >/dev/null 2>&1; echo pooled") == "pooled\n"
    for job in (plain, grouped):
        jobs.until(job, "RUNNING")
    uplinks = uplinks_of(hub.programs)
    having = leftovers(hub.place.top, hub.state, hub.programs, [])
    assert {"processes", "processes with its ids", "mounts", "groups", "sandboxes", "jobs"} <= having.keys(), having.keys()
    assert len(having["sandboxes"]) == len(having["jobs"]) == 4
    hub.stop()  # which looks for what is left
    assert not hub.leftovers(uplinks)


def test_ended_jobs_leave_nothing_while_the_hub_goes_on(hub):
    jobs = Jobs(hub)
    box = Sandbox(jobs).ready()
    assert box.run("(setsid sleep 1000 &) >/dev/null 2>&1; echo x > /root/x") == ""
    plain = jobs.start(["sh", "-c", "setsid sleep 1000 & echo done"])
    jobs.until(plain, *ENDED)
    jobs.cancel(box.id)

    def of_jobs() -> dict[str, list]:
        found = leftovers(hub.place.top, hub.state, [], [])
        return {kind: found[kind] for kind in ("processes with its ids", "loop devices", "sandboxes", "jobs") if kind in found}

    wait_until(lambda: not of_jobs(), 10)
    # Some groups are kept for the next ones, with nobody and nothing in them.
    name = (hub.state / "sandboxes/name").read_text().strip()
    slots = [Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup") if f"/{name}/s" in folder]
    assert not [slot for slot in slots if (slot / "cgroup.procs").read_text() or re.search(f"{name}/s.*/", str(slot))]
