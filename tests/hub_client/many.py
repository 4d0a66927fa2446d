"""Many dedicated sandboxes at once by the unmodified huggingface_hub, from threads of one process.

    eval "$(cay env)"; python many.py FOLDER
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import end_after, run_all
from huggingface_hub import HfApi, Sandbox

MANY = 100
LABEL = {"crowd": "many"}


def crowd() -> dict[str, list[str]]:
    """Of the crowd alone: ids by stage."""
    by_stage: dict[str, list[str]] = {}
    for job in HfApi().list_jobs(labels=LABEL):
        assert str(job.flavor) == "cpu-basic", job.flavor
        by_stage.setdefault(str(job.status.stage), []).append(job.id)
    return by_stage


def case_a_hundred_dedicated_run_at_once(folder):
    with ThreadPoolExecutor(MANY) as threads:
        boxes = list(threads.map(lambda n: Sandbox.create(flavor="cpu-basic", labels=LABEL, env={"N": n}), range(MANY)))
        assert len({box.id for box in boxes}) == MANY
        answers = list(threads.map(lambda box: box.run("echo $N; hostname").stdout.split(), boxes))
        # Nobody has been ended: they run now, all of them.
        running = crowd()
        assert running.keys() == {"RUNNING"} and len(running["RUNNING"]) == MANY, {k: len(v) for k, v in running.items()}
        assert [answer[0] for answer in answers] == [str(n) for n in range(MANY)]
        assert len({answer[1] for answer in answers}) == MANY, "each is a machine of its own"
        # And each still answers while the others do.
        assert list(threads.map(lambda box: box.run("echo again").stdout, boxes)) == ["again\n"] * MANY
        list(threads.map(lambda box: box.kill(), boxes))
    ended = crowd()
    assert ended.keys() == {"CANCELED"} and len(ended["CANCELED"]) == MANY, {k: len(v) for k, v in ended.items()}


if __name__ == "__main__":
    end_after(600)
    run_all(globals(), Path(sys.argv[1]))
    os._exit(0)
