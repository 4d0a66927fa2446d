"""Jobs and sandboxes of a hub by plain requests, for tests of what happens under load and after crashes."""

from __future__ import annotations

import http.client
import json
import secrets
import time

from hub_host import Hub

SANDBOX_PORT = 49983
ENDED = ("COMPLETED", "ERROR", "CANCELED")


class Refused(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body[:300]!r}")
        self.status = status


class Jobs:
    """All calls raise OSError or http.client.HTTPException where the hub cannot be reached, and Refused where it says no."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.namespace = json.loads(self.call("GET", "/api/whoami-v2"))["name"]

    def call(self, method: str, path: str, body=None, headers=None, timeout: float = 30) -> bytes:
        status, _, answer = self.hub.request(method, path, body=body, headers=headers, timeout=timeout)
        if status != 200:
            raise Refused(status, answer)
        return answer

    def start(self, command: list[str], **fields) -> str:
        spec = {"dockerImage": "host", "flavor": "cpu-basic", "command": command, "arguments": [], "environment": {},
                "labels": {}, **fields}
        return json.loads(self.call("POST", f"/api/jobs/{self.namespace}", spec))["id"]

    def info(self, job: str) -> dict:
        return json.loads(self.call("GET", f"/api/jobs/{self.namespace}/{job}"))

    def stage(self, job: str) -> str:
        return self.info(job)["status"]["stage"]

    def cancel(self, job: str) -> None:
        self.call("POST", f"/api/jobs/{self.namespace}/{job}/cancel")

    def listed(self) -> list[str]:
        """All of them, page by page."""
        found, path = [], f"/api/jobs/{self.namespace}"
        while path:
            status, fields, body = self.hub.request("GET", path)
            if status != 200:
                raise Refused(status, body)
            found += [job["id"] for job in json.loads(body)]
            link = {name.lower(): value for name, value in fields.items()}.get("link", "")
            path = link[link.index("<") + 1:link.index(">")].removeprefix(self.hub.api) if 'rel="next"' in link else ""
        return found

    def until(self, job: str, *stages: str, timeout: float = 60) -> dict:
        deadline = time.monotonic() + timeout
        while (info := self.info(job))["status"]["stage"] not in stages:
            assert time.monotonic() < deadline, f"{job} is still {info['status']}"
            time.sleep(0.05)
        return info

    def log(self, job: str) -> list[str]:
        """The lines of a job that is over, but for the one that says when it began."""
        lines = []
        for line in self.call("GET", f"/api/jobs/{self.namespace}/{job}/logs").decode().split("\n"):
            if line.startswith("data:"):
                lines.append(json.loads(line[5:])["data"])
        return [line for line in lines if not line.startswith("===== Job started")]


class Sandbox:
    """A dedicated one, which need not be ready yet."""

    def __init__(self, jobs: Jobs, **fields) -> None:
        self.jobs, self.token = jobs, secrets.token_hex(32)
        self.id = jobs.start(["/bin/sh", "-c", "true"], secrets={"SBX_TOKEN": self.token},
                             environment={"SBX_PORT": str(SANDBOX_PORT), "SBX_SERVER_URL": "http://x", "SBX_SERVER_SHA256": "0" * 64},
                             labels={"hf-sandbox": "1", "hf-sandbox-mode": "dedicated"}, expose={"ports": [SANDBOX_PORT]}, **fields)

    def call(self, method: str, path: str, body=None) -> bytes:
        return self.jobs.call(method, f"/x/{self.id}--{SANDBOX_PORT}{path}", body, {"X-Sandbox-Token": self.token})

    def ready(self) -> "Sandbox":
        deadline = time.monotonic() + 60
        while True:
            try:
                self.call("GET", "/health")
                return self
            except Refused as refused:
                assert refused.status == 503 and time.monotonic() < deadline, refused

    def run(self, command: str) -> str:
        events = [json.loads(line) for line in self.call("POST", "/v1/exec", {"cmd": command}).splitlines()]
        if not events or events[-1]["event"] != "exit":
            raise http.client.IncompleteRead(b"")
        return "".join(event["data"] for event in events if event["event"] == "stdout")
