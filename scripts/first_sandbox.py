#!/usr/bin/env python3
"""Makes a sandbox on a running hub as a client of the Jobs API does, runs a command in it, shows what comes, and ends it.

    first_sandbox.py API TOKEN_FILE COMMAND

Needs nothing but Python; users have huggingface_hub for this.
"""

import json
import secrets
import sys
import time
import urllib.error
import urllib.request

PATIENCE_SECONDS = 120
PORT = 49983


class Hub:
    def __init__(self, api: str, token: str) -> None:
        self.api, self.token = api, token

    def open(self, method: str, path: str, body=None, headers=None):
        request = urllib.request.Request(
            self.api + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})})
        # Straight to the hub, whatever proxy this machine uses.
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE_SECONDS)

    def ask(self, method: str, path: str, body=None):
        with self.open(method, path, body) as answer:
            return json.load(answer)


def main() -> None:
    api, token_file, command = sys.argv[1:]
    with open(token_file) as file:
        hub = Hub(api, file.read().strip())
    jobs = f"/api/jobs/{hub.ask('GET', '/api/whoami-v2')['name']}"
    secret = secrets.token_hex(32)
    job = hub.ask("POST", jobs, {
        "dockerImage": "python:3.12", "flavor": "cpu-basic", "command": ["/bin/sh", "-c", "true"], "arguments": [],
        "environment": {"SBX_PORT": str(PORT), "SBX_SERVER_URL": api, "SBX_SERVER_SHA256": "0" * 64},
        "secrets": {"SBX_TOKEN": secret}, "labels": {"hf-sandbox": "1", "hf-sandbox-mode": "dedicated"},
        "expose": {"ports": [PORT]}, "timeoutSeconds": 3600})
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while (status := hub.ask("GET", f"{jobs}/{job['id']}")["status"])["stage"] == "SCHEDULING":
            if time.monotonic() > until:
                sys.exit(f"the sandbox does not start: {status.get('message')}")
            time.sleep(0.05)
        if status["stage"] != "RUNNING":
            sys.exit(f"the sandbox ended: {status.get('message')}")
        with hub.open("POST", f"/x/{job['id']}--{PORT}/v1/exec", {"cmd": command},
                      {"X-Sandbox-Token": secret}) as events:
            for line in events:
                event = json.loads(line)
                if event["event"] in ("stdout", "stderr"):
                    print(event["data"], end="")
                elif event["event"] == "exit" and event["exit_code"] != 0:
                    sys.exit(f"the command ended with {event}")
    except urllib.error.HTTPError as error:
        sys.exit(f"the hub answers {error.code}: {error.read().decode(errors='replace')}")
    finally:
        hub.ask("POST", f"{jobs}/{job['id']}/cancel")


if __name__ == "__main__":
    main()
