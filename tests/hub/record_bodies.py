"""Records what an unmodified huggingface_hub sends to start jobs: src/hub/testdata/bodies-<version>.json.

    .venvs/hub-2.4.0/bin/python tests/hub/record_bodies.py src/hub/testdata

A server on loopback takes every job, answers with the least that the client needs, and keeps the bodies.
Parameters that a version does not have are left out; the text of its bootstrap script, which is not ours and which
nothing looks at, is replaced by its size.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

OWNER = {"id": "5e9ecfc04957053f60648a3e", "name": "tester", "type": "user"}


class Recorder(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.bodies: list = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path = self.path.partition("?")[0]
        data = json.dumps(self.document(path, body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer

    def document(self, path: str, body):
        if path == "/api/whoami-v2":
            return {**OWNER, "orgs": []}
        if path.endswith("/health"):
            return {"status": "ok", "protocol": 3}
        if path in ("/api/jobs/tester", "/api/scheduled-jobs/tester"):
            if self.command == "GET":
                return []
            self.server.bodies.append(body)
        url = f"{self.server.url}/x/a1--49983.p"
        return {"id": "a1", "owner": OWNER, "status": {"stage": "RUNNING", "exposeUrls": [url]}}

    def log_message(self, *unused) -> None:
        pass


def only_known(function, given: dict) -> dict:
    known = inspect.signature(function).parameters
    return {name: value for name, value in given.items() if name in known}


def record(recorder: Recorder) -> dict:
    from huggingface_hub import HfApi, Sandbox, SandboxPool, Volume

    api = HfApi()
    volumes = [Volume(type="bucket", source="tester/data", mount_path="/data", path="a/b"),
               Volume(type="model", source="org/model", mount_path="/model", revision="v1", read_only=True)]
    everything = dict(
        image="registry.example/team/app@sha256:" + "0" * 64, command=["python", "-c", "print('é\u2028')"],
        env={"TEXT": "x", "NUMBER": 1, "FRACTION": 1.5, "YES": True, "NONE": None}, secrets={"KEY": "s", "PIN": 7},
        flavor="cpu-upgrade", timeout="1.5h", attempts=3, labels={"team": "a", "run": "1"}, volumes=volumes,
        expose=[8000], expose_public=[9000], network_group="train", network_aliases=["master", "w-0"],
        resource_group_id="65f1", namespace="tester")
    calls = {
        "plain": lambda: api.run_job(image="python:3.12", command=["true"]),
        "everything": lambda: api.run_job(**only_known(api.run_job, everything)),
        "space": lambda: api.run_job(image="https://huggingface.co/spaces/org/app", command=["python", "app.py"]),
        "uv": lambda: api.run_uv_job("https://example.com/script.py", script_args=["--x", "1"], dependencies=["torch"]),
        "ssh": lambda: api.run_job(**only_known(api.run_job, dict(image="a", command=["b"], ssh=True))),
        "scheduled": lambda: api.create_scheduled_job(image="python:3.12", command=["true"], schedule="@hourly", suspend=True,
                                                      concurrency=False, timeout=300),
        "sandbox": lambda: Sandbox.create(env={"A": 1}, secrets={"KEY": "s"}, volumes=volumes, forward_hf_token=True),
        "sandbox_never_idle": lambda: Sandbox.create(image="debian", flavor="cpu-xl", idle_timeout=None),
        "pool": lambda: SandboxPool(**only_known(SandboxPool, dict(image="python:3.12", name="team", sandboxes_per_host=7, max_hosts=2,
                                                                   idle_timeout="1h"))),
    }
    bodies = {}
    for name, call in calls.items():
        call()
        body = bodies[name] = recorder.bodies.pop()
        if body.get("command", [])[:2] == ["/bin/sh", "-c"]:
            body["command"][2] = f"(bootstrap script of {len(body['command'][2])} bytes)"
        assert not recorder.bodies, name
    return bodies


def main() -> None:
    recorder = Recorder()
    os.environ.update(HF_ENDPOINT=recorder.url, HF_TOKEN="hf_test", HF_HOME=tempfile.mkdtemp(), HF_HUB_DISABLE_TELEMETRY="1")
    import huggingface_hub

    bodies = record(recorder)
    file = Path(sys.argv[1]) / f"bodies-{huggingface_hub.__version__}.json"
    file.write_text(json.dumps(bodies, indent=1, ensure_ascii=True).replace(recorder.url, "http://127.0.0.1:7340") + "\n")
    recorder.shutdown()


if __name__ == "__main__":
    main()
