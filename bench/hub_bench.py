#!/usr/bin/env python3
"""What users of huggingface_hub wait for on a hub, beside runc on the same root and a bare process.

    bench/hub_bench.py [--quick]

Run by the environment of huggingface_hub 2.4.0; starts a hub of its own. Prints a table; figures are of this machine.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAY = ROOT / "build" / "bin" / "cay"
QUICK = "--quick" in sys.argv[1:]
ROUNDS = 20 if QUICK else 100
AT_ONCE = 20 if QUICK else 100
CYCLES = 100 if QUICK else 1000
SECONDS = 1 if QUICK else 5
ROOT_IMAGE = "bench:root"


def milliseconds(samples: list[float]) -> str:
    ordered = sorted(samples)
    return f"p50 {statistics.median(ordered) * 1e3:8.2f} ms   p99 {ordered[int(len(ordered) * 0.99)] * 1e3:8.2f} ms"


def timed(count: int, act) -> list[float]:
    samples = []
    for _ in range(count):
        began = time.perf_counter()
        act()
        samples.append(time.perf_counter() - began)
    return samples


def judged(samples: list[float], most: float) -> str:
    """With a target for the median, in milliseconds."""
    verdict = "ok" if statistics.median(samples) * 1e3 <= most else "MISS"
    return f"{milliseconds(samples)}   target: p50 <= {most:g} ms   {verdict}"


def row(name: str, text: str) -> None:
    print(f"{name:64} {text}", flush=True)


class Hub:
    """Of this run alone, in a folder that goes with it."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.process = subprocess.Popen([CAY, "serve", "--state", self.state, "--port", "0", "--tls-port", "0", "--end-jobs"],
                                        stdout=subprocess.PIPE, stderr=open(folder / "log", "w"), text=True)
        self.ready = json.loads(self.process.stdout.readline())
        self.cay("image", "alias", "python:3.12", "host")
        said = json.loads(self.cay("env", "--shell", "json"))
        for name, value in said.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        os.environ["HF_HOME"] = str(folder / "hf")

    def cay(self, *arguments) -> str:
        return subprocess.run([CAY, *map(str, arguments), "--state", self.state], check=True, capture_output=True, text=True).stdout

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def small_root(folder: Path) -> Path:
    """A root of busybox alone, for both runc and us."""
    root = folder / "root"
    for name in ("bin", "dev", "etc", "proc", "sys", "tmp", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for name in ("sh", "true", "echo"):
        (root / "bin" / name).symlink_to("busybox")
    return root


class Runc:
    """`runc run` of /bin/true on the same root: the bar for whatever starts something behind walls."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.bundle = folder / "bundle"
        self.bundle.mkdir()
        self.numbers = itertools.count()
        subprocess.run(["runc", "spec", "-b", self.bundle], check=True)
        config = json.loads((self.bundle / "config.json").read_text())
        config["process"].update(terminal=False, args=["/bin/true"])
        config["root"]["path"] = str(root)
        (self.bundle / "config.json").write_text(json.dumps(config))

    def run(self, _=None) -> None:
        subprocess.run(["runc", "run", "-b", self.bundle, f"bench{os.getpid()}-{next(self.numbers)}"], check=True)


def at_once(count: int, act) -> tuple[float, list]:
    """How long it takes until all have done it, each in a thread of its own."""
    with ThreadPoolExecutor(count) as threads:
        began = time.perf_counter()
        results = list(threads.map(act, range(count)))
        return time.perf_counter() - began, results


def requests_per_second(path: str) -> str:
    """By wrk where it is installed; else by a few connections from here, and then it is this process that is measured."""
    address, token = os.environ["HF_ENDPOINT"], os.environ["HF_TOKEN"]
    if wrk := shutil.which("wrk"):
        out = subprocess.run([wrk, "-t1", "-c16", f"-d{SECONDS}s", "-H", f"Authorization: Bearer {token}", address + path],
                             check=True, capture_output=True, text=True).stdout
        assert "Non-2xx" not in out, out
        return f"{float(re.search(r'Requests/sec: *([0-9.]+)', out)[1]):8.0f} /s   (wrk, 16 connections)"
    until = time.perf_counter() + SECONDS

    def ask(_) -> int:
        connection, count = http.client.HTTPConnection(address.removeprefix("http://")), 0
        while time.perf_counter() < until:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            count += 1
        return count

    _, counts = at_once(4, ask)
    return f"{sum(counts) / SECONDS:8.0f} /s   (4 connections of this Python, which is the slower side)"


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="cay-hub-bench-"))
    hub = Hub(folder)
    try:
        measure(hub, folder)
    finally:
        hub.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measure(hub: Hub, folder: Path) -> None:
    from huggingface_hub import Sandbox, SandboxPool

    root = small_root(folder)
    hub.cay("image", "import", ROOT_IMAGE, root)
    runc = Runc(folder, root) if shutil.which("runc") else None
    absent = "runc is not installed"
    row("a bare process: subprocess.run(/bin/true)", milliseconds(timed(ROUNDS, lambda: subprocess.run(["/bin/true"], check=True))))
    row("runc run of /bin/true on a root of busybox", milliseconds(timed(ROUNDS, runc.run)) if runc else absent)

    boxes: list[Sandbox] = []

    def create(image: str) -> None:
        box = Sandbox.create(image=image)
        assert box.run("echo first").stdout == "first\n"
        boxes.append(box)

    for image, name in ((ROOT_IMAGE, "that root"), ("python:3.12", "the machine's")):
        create(image)
        row(f"Sandbox.create() to the output of its first run, {name}", milliseconds(timed(ROUNDS, lambda: create(image))))
        while boxes:
            boxes.pop().kill()
    creates: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        with Sandbox.create():
            creates.append(time.perf_counter() - began)
    row("Sandbox.create()", judged(creates, 30))
    with Sandbox.create() as box:
        box.run("true")
        row("run('true') through TLS on a kept connection", judged(timed(ROUNDS * 5, lambda: box.run("true")), 5))

    row(f"{AT_ONCE} x runc run of /bin/true at once, that root",
        f"{at_once(AT_ONCE, runc.run)[0]:8.2f} s" if runc else absent)
    seconds, _ = at_once(AT_ONCE, lambda _: create(ROOT_IMAGE))
    row(f"{AT_ONCE} dedicated at once, each with its first run, that root", f"{seconds:8.2f} s")
    seconds, _ = at_once(AT_ONCE, lambda _: boxes.pop().kill())
    row(f"{AT_ONCE} dedicated killed at once", f"{seconds:8.2f} s")

    with SandboxPool(name="bench", sandboxes_per_host=500) as pool:
        def cycle(_=None) -> None:
            with pool.create() as box:
                assert box.run("true").exit_code == 0

        cycle()
        samples: list[float] = []
        began = time.perf_counter()
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: samples.extend(timed(1, cycle)), range(CYCLES)))
        row(f"{CYCLES} x create, run, kill in a pool, 8 threads", f"{time.perf_counter() - began:8.2f} s   each {milliseconds(samples)}")

    for path in ("/api/whoami-v2", "/healthz"):
        row(f"requests per second, GET {path}", requests_per_second(path))


if __name__ == "__main__":
    main()
