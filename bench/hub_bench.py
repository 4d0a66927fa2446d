#!/usr/bin/env python3
"""What users of huggingface_hub wait for on a hub, beside runc on the same root and a bare process.

    bench/hub_bench.py [--quick]

Run by the environment of huggingface_hub 2.4.0; starts a hub of its own. Prints a table; figures are of this machine.
"""

from __future__ import annotations

import json
import os
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


def row(name: str, text: str, target: str = "") -> None:
    print(f"{name:58} {text}   {target}", flush=True)


class Hub:
    """Of this run alone, in a folder that goes with it."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.process = subprocess.Popen([CAY, "serve", "--state", self.state, "--port", "0", "--tls-port", "0", "--end-jobs"],
                                        stdout=subprocess.PIPE, stderr=open(folder / "log", "w"), text=True)
        self.ready = json.loads(self.process.stdout.readline())
        self.cay("image", "alias", "python:3.12", "host")
        said = json.loads(self.cay("env", "--shell", "json"))
        os.environ.update({name: value for name, value in said.items() if value is not None})
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


def runc_rounds(folder: Path, root: Path) -> list[float] | None:
    if shutil.which("runc") is None:
        return None
    bundle = folder / "bundle"
    bundle.mkdir()
    (bundle / "rootfs").symlink_to(root)
    subprocess.run(["runc", "spec", "-b", bundle], check=True)
    config = json.loads((bundle / "config.json").read_text())
    config["process"].update(terminal=False, args=["/bin/true"])
    config["root"]["path"] = str(root)
    (bundle / "config.json").write_text(json.dumps(config))
    numbers = iter(range(10**6))
    return timed(ROUNDS, lambda: subprocess.run(["runc", "run", "-b", bundle, f"bench{os.getpid()}-{next(numbers)}"], check=True))


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="cay-hub-bench-"))
    hub = Hub(folder)
    try:
        measure(hub, folder)
    finally:
        hub.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measure(hub: Hub, folder: Path) -> None:
    import urllib.request

    from huggingface_hub import HfApi, Sandbox, SandboxPool

    root = small_root(folder)
    hub.cay("image", "import", "bench:root", root)
    row("a bare process: subprocess.run(/bin/true)", milliseconds(timed(ROUNDS, lambda: subprocess.run(["/bin/true"], check=True))))
    runc = runc_rounds(folder, root)
    row("runc run of /bin/true on a root of busybox", milliseconds(runc) if runc else "runc is not installed")

    boxes: list[Sandbox] = []

    def create(image: str) -> None:
        box = Sandbox.create(image=image)
        assert box.run("true").exit_code == 0
        boxes.append(box)

    for image in ("bench:root", "python:3.12"):
        create(image)
        row(f"Sandbox.create() to the end of its first run, {image}", milliseconds(timed(ROUNDS, lambda: create(image))),
            "target: create <= 30 ms p50")
        for box in boxes:
            box.kill()
        boxes.clear()
    creates: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        with Sandbox.create():
            creates.append(time.perf_counter() - began)
    row("Sandbox.create()", milliseconds(creates), "target: <= 30 ms p50")
    with Sandbox.create() as box:
        box.run("true")
        row("run('true') through TLS on a kept connection", milliseconds(timed(ROUNDS * 5, lambda: box.run("true"))),
            "target: <= 5 ms p50")

    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        made = list(threads.map(lambda _: Sandbox.create(), range(AT_ONCE)))
    row(f"{AT_ONCE} dedicated at once: all created", f"{time.perf_counter() - began:8.2f} s")
    for box in made:
        box.kill()

    with SandboxPool(name="bench", sandboxes_per_host=500) as pool:
        def cycle(_) -> None:
            with pool.create() as box:
                box.run("true")

        cycle(None)
        began = time.perf_counter()
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(cycle, range(CYCLES)))
        row(f"{CYCLES} x create, run, kill in a pool, 8 threads", f"{time.perf_counter() - began:8.2f} s")

    api = HfApi()
    api.whoami()
    wrk = shutil.which("wrk")
    if wrk:
        out = subprocess.run([wrk, "-t1", "-c16", "-d3s", "-H", f"Authorization: Bearer {os.environ['HF_TOKEN']}",
                              f"{os.environ['HF_ENDPOINT']}/api/whoami-v2"], check=True, capture_output=True, text=True).stdout
        row("requests per second, GET /api/whoami-v2", next(line for line in out.splitlines() if "Requests/sec" in line).strip())
    else:
        samples = timed(ROUNDS * 10, lambda: urllib.request.urlopen(f"{os.environ['HF_ENDPOINT']}/healthz").read())
        row("GET /healthz, one after the other", milliseconds(samples))


if __name__ == "__main__":
    main()
