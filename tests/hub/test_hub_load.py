"""Five hundred jobs at once: none is lost, and the hub answers meanwhile."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hub_host import Hub
from hub_jobs import ENDED, Jobs

pytestmark = pytest.mark.slow
MANY = 500
MOST_STARTING = 4


def starting(state: Path) -> int:
    """How many jobs have a folder behind walls and do not run yet. Whoever was seen with a folder, and is still being
    started when its state is read later, was being started at the time of the look."""
    count = 0
    for folder in list((state / "sandboxes/sandboxes").iterdir()):
        try:
            count += json.loads((state / "jobs" / folder.name / "state.json").read_text())["stage"] == "SCHEDULING"
        except (OSError, ValueError):
            continue
    return count


class Watch:
    """What the hub is like while others are busy with it."""

    def __init__(self, hub: Hub) -> None:
        self.hub, self.over = hub, threading.Event()
        self.most_starting, self.slowest, self.answers, self.wrong = 0, 0.0, 0, []
        self.threads = [threading.Thread(target=self._ask), threading.Thread(target=self._count)]

    def __enter__(self) -> "Watch":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _ask(self) -> None:
        while not self.over.wait(0.05):
            began = time.monotonic()
            try:
                status, _, body = self.hub.request("GET", "/api/whoami-v2")
                if status != 200:
                    self.wrong.append((status, body))
            except OSError as error:
                self.wrong.append(error)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answers += 1

    def _count(self) -> None:
        while not self.over.wait(0.01):
            self.most_starting = max(self.most_starting, starting(self.hub.state))


def test_five_hundred_creates_at_once(start_hub, tmp_path):
    flavors = tmp_path / "flavors.json"
    flavors.write_text(json.dumps({"maxStarting": MOST_STARTING}))
    hub = start_hub(flags=["--flavors", str(flavors)])
    jobs = Jobs(hub)
    with Watch(hub) as watch, ThreadPoolExecutor(100) as threads:
        made = list(threads.map(lambda n: jobs.start(["echo", str(n)]), range(MANY)))
        assert len(set(made)) == MANY
        deadline = time.monotonic() + 400
        last = made[-1]
        while jobs.stage(last) not in ENDED:
            assert time.monotonic() < deadline, jobs.info(last)
            time.sleep(0.2)
        ends = list(threads.map(lambda job: jobs.until(job, *ENDED, timeout=300)["status"], made))
    assert {end["stage"] for end in ends} == {"COMPLETED"}, [end for end in ends if end["stage"] != "COMPLETED"][:3]
    assert sorted(jobs.listed()) == sorted(made), "each is listed, once"
    for number in range(0, MANY, 25):
        assert jobs.log(made[number]) == [str(number)]
    assert not watch.wrong, watch.wrong[:3]
    assert watch.answers > 50 and watch.slowest < 5.0, (watch.answers, watch.slowest)
    assert 0 < watch.most_starting <= MOST_STARTING
    print(f"whoami answered {watch.answers} times, in the worst case after {watch.slowest * 1e3:.0f} ms")
