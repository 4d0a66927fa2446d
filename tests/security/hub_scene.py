"""A hub, its sandboxes and its plain jobs with the words that attacks use of a pool host and its sandboxes."""

from __future__ import annotations

import json
import re
import secrets
import time
from pathlib import Path

from client import Answer, Client, Output, under
from host import all_pids, is_running
from hub_host import Hub
from hub_jobs import ENDED, SANDBOX_PORT
from pool_host import inner_pid, pid_space

# What attacks ask for by arena.limited(), each a flavor.
LIMITS = (
    {"pids": 32},
    {"pids": 64},
    {"pids": 200},
    {"pids": 400},
    {"memory_mb": 64},
    {"memory_mb": 64, "pids": 100},
    {"memory_mb": 128},
    {"cpus": 0.2},
    {"disk_mb": 32},
    {"disk_mb": 32, "memory_mb": 128},
)
_SETTINGS = {"pids": "pids", "memory_mb": "memoryMb", "cpus": "cpus", "disk_mb": "diskMb"}
PROGRAMS = "/attack-programs"


def flavor_of(limits: dict) -> str:
    return "-".join(f"{name}{limits[name]}" for name in sorted(limits)).replace("_", "").replace(".", "") or "cpu-basic"


class User:
    """Somebody with a token and a namespace."""

    def __init__(self, hub: Hub, token: str) -> None:
        self.hub, self.token = hub, token
        self.name = json.loads(self.call("GET", "/api/whoami-v2")[1])["name"]

    def call(self, method: str, path: str, body=None, **options) -> tuple[int, bytes]:
        status, _, answer = self.hub.request(method, path, token=self.token, body=body, **options)
        return status, answer

    def start_answer(self, command: list[str], **fields) -> tuple[int, bytes]:
        spec = {"dockerImage": "host", "flavor": "cpu-basic", "command": command, "arguments": [], "environment": {},
                "labels": {}, **fields}
        return self.call("POST", f"/api/jobs/{self.name}", spec)

    def start(self, command: list[str], **fields) -> str:
        status, answer = self.start_answer(command, **fields)
        assert status == 200, (status, answer)
        return json.loads(answer)["id"]

    def job(self, job: str, what: str = "", method: str = "GET", **options) -> bytes:
        status, answer = self.call(method, f"/api/jobs/{self.name}/{job}{what}", **options)
        assert status == 200, (status, answer)
        return answer

    def status(self, job: str) -> dict:
        return json.loads(self.job(job))["status"]

    def until(self, job: str, *stages: str, timeout: float = 90) -> dict:
        deadline = time.monotonic() + timeout
        while (status := self.status(job))["stage"] not in stages:
            assert time.monotonic() < deadline, f"{job} is still {status}"
            time.sleep(0.03)
        return status

    def log(self, job: str) -> list[str]:
        lines = [json.loads(line[5:])["data"] for line in self.job(job, "/logs").decode().split("\n")
                 if line.startswith("data:")]
        return [line for line in lines if not line.startswith("===== Job started")]

    def cancel(self, job: str) -> int:
        return self.call("POST", f"/api/jobs/{self.name}/{job}/cancel")[0]


class HubHost:
    """A hub. `state` is the folder of what stands behind walls, as a pool host has it."""

    def __init__(self, env: dict[str, str]) -> None:
        self.hub = Hub(env=env)
        self.hub.state.mkdir(mode=0o700)
        flavors = [{"name": flavor_of(limits), **{_SETTINGS[name]: value for name, value in limits.items()}}
                   for limits in LIMITS]
        (self.hub.state / "flavors.json").write_text(json.dumps({"flavors": flavors}))
        self.state = self.hub.state / "sandboxes"
        self.binary = self.hub.place.cay_host
        self.address = "127.0.0.1"

    def start(self) -> None:
        self.hub.start()
        self.owner = User(self.hub, self.hub.token("user"))
        made = self.hub.cay("token", "create", "of-the-attacker", "--user", "eve")
        assert made.returncode == 0, made.stderr
        self.eve = User(self.hub, made.stdout.strip())

    @property
    def process(self):
        return self.hub.process

    @property
    def pid(self) -> int:
        return self.hub.pid

    @property
    def port(self) -> int:
        return int(self.hub.api.rsplit(":", 1)[1])

    @property
    def log(self) -> str:
        return self.hub.log

    def processes(self) -> list[int]:
        return self.hub.processes()

    def is_well(self) -> bool:
        return self.owner.call("GET", "/api/whoami-v2")[0] == 200

    def create(self, user: User | None = None, **fields) -> "JobSandbox":
        return JobSandbox(self, user or self.owner, **fields)

    def stop(self) -> None:
        self.hub.stop()

    def destroy(self) -> None:
        self.hub.destroy()

    # ---- seen from outside

    def space_of(self, job: str) -> str | None:
        """The pid namespace of a job that runs: by its keeper where one is noted, else by its command's environment."""
        mark = self.state / "sandboxes" / job / "keeper.mark"
        if mark.exists():
            return pid_space(int(mark.read_text().split()[1]))
        for pid in all_pids():
            try:
                if f"JOB_ID={job}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    return pid_space(pid)
            except OSError:
                continue
        return None


def running_in(spaces: set[str]) -> list[int]:
    """All but the keepers, which are the first of their namespace."""
    return [p for p in all_pids() if pid_space(p) in spaces and is_running(p) and inner_pid(p) != 1]


class HubClient(Client):
    """Reaches a sandbox through the hub. Gives its commands what those of a pool have in their environment."""

    def __init__(self, sandbox: "JobSandbox", *, user_token: str, **options) -> None:
        super().__init__(sandbox.address, sandbox.port, prefix=sandbox.route("/v1/")[:-1], host=sandbox, **options)
        self.sandbox, self.user_token = sandbox, user_token

    def _send(self, method, path, query, body, headers, timeout):
        if path in ("/v1/exec", "/v1/processes") and isinstance(body, dict) and "cmd" in body:
            usual = {"TMPDIR": "/tmp", "SBX_PROXY_DIR": "/root/.sbx/proxy", "SBX_SANDBOX_ID": self.sandbox.id}
            body = {**body, "env": {**usual, **body.get("env", {})}}
        headers = {"Authorization": f"Bearer {self.user_token}", **(headers or {})}
        return super()._send(method, path, query, body, headers, timeout)


class JobSandbox:
    """A dedicated sandbox of a hub."""

    def __init__(self, host: HubHost, user: User, *, ports=(), limits: dict | None = None, environment=None, **fields) -> None:
        self.host, self.user = host, user
        self.token = secrets.token_hex(32)
        self.id = user.start(
            ["/bin/sh", "-c", "true"],
            secrets={"SBX_TOKEN": self.token},
            environment={"SBX_PORT": str(SANDBOX_PORT), "SBX_SERVER_URL": "http://x", "SBX_SERVER_SHA256": "0" * 64, **(environment or {})},
            labels={"hf-sandbox": "1", "hf-sandbox-mode": "dedicated"},
            expose={"ports": [SANDBOX_PORT, *ports]}, flavor=flavor_of(limits or {}), **fields)
        deadline = time.monotonic() + 60
        while (answer := user.call("GET", f"/x/{self.id}--{SANDBOX_PORT}/health"))[0] != 200:
            assert answer[0] == 503 and time.monotonic() < deadline, answer
        self._space = host.space_of(self.id)
        assert self._space is not None, "there is no keeper"

    address = property(lambda self: self.host.address)
    port = property(lambda self: self.host.port)
    state = property(lambda self: self.host.state)

    def route(self, path: str) -> str:
        return under(f"/x/{self.id}--{SANDBOX_PORT}/v1", path) if path.startswith("/v1/") else path

    def credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.user.token}", "X-Sandbox-Token": self.token}

    def client(self, **options) -> HubClient:
        options.setdefault("token", self.token)
        options.setdefault("user_token", self.user.token)
        return HubClient(self, **options)

    def works(self, timeout: float = 20.0) -> None:
        done = self.client(timeout=timeout).exec("echo still-works")
        assert (done.stdout, done.exit["exit_code"]) == ("still-works\n", 0), done.events

    def delete(self) -> Answer:
        return Answer(self.user.cancel(self.id), None, b"")

    def is_there(self) -> bool:
        return self.user.status(self.id)["stage"] not in ENDED

    def commands(self) -> list[int]:
        return running_in({self._space})


class PlainJobs:
    """An attacker whose commands are plain jobs, one for each. Has what attacks use of a sandbox and of its client."""

    def __init__(self, host: HubHost, user: User, *, limits: dict | None = None, **fields) -> None:
        self.host, self.user, self.fields = host, user, fields
        self.flavor = flavor_of(limits or {})
        self.token = user.token
        self.id = "0" * 24  # of the last one
        self._all: list[str] = []
        self._spaces: set[str] = set()

    def client(self, **_unused) -> "PlainJobs":
        return self

    def start(self, cmd, *, timeout: float | None = None, env=None, **fields) -> str:
        programs = {"type": "bucket", "source": f"{self.user.name}/programs", "mountPath": PROGRAMS, "readOnly": True}
        fields = {**self.fields, **fields}
        self.id = self.user.start(
            cmd if isinstance(cmd, list) else ["/bin/sh", "-c", cmd], flavor=self.flavor,
            environment={"TMPDIR": "/tmp", "SBX_PROXY_DIR": "/root/.sbx/proxy", "SBX_SANDBOX_ID": "plain", **(env or {})},
            **({} if timeout is None else {"timeoutSeconds": timeout}),
            **{**fields, "volumes": [programs, *fields.get("volumes", [])]})
        self._all.append(self.id)
        status = self.user.until(self.id, "RUNNING", *ENDED)
        if status["stage"] == "RUNNING" and (space := self.host.space_of(self.id)):
            self._spaces.add(space)
        return self.id

    def exec(self, cmd, *, stdin: str | None = None, **fields) -> Output:
        assert stdin is None, "a plain job has no input"
        job = self.start(cmd, **fields)
        status = self.user.until(job, *ENDED)
        return self.output_of(job, status)

    def output_of(self, job: str, status: dict) -> Output:
        message = status["message"] or ""
        code = re.search(r"exit code: (\d+)", message)
        text = "".join(line + "\n" for line in self.user.log(job))
        return Output([
            {"event": "start", "exec_id": job},
            {"event": "stdout", "data": text},
            {"event": "exit", "message": message, "timed_out": "timed out" in message, "signal": None,
             "exit_code": 0 if status["stage"] == "COMPLETED" else int(code[1]) if code else None,
             "cause": "oom" if "out of memory" in message else "exited"},
        ])

    def spawn(self, cmd, **fields) -> dict:
        return {"id": self.start(cmd, **fields)}

    def exec_stream(self, cmd, **fields) -> "_Running":
        return _Running(self, self.start(cmd, **fields))

    def works(self, _timeout: float = 20.0) -> None:
        done = self.exec("echo still-works")
        assert done.stdout == "still-works\n", (done.stdout, done.exit)

    def delete(self) -> Answer:
        """Ends them all."""
        statuses = [self.user.cancel(job) for job in self._all]
        self._all.clear()
        return Answer(max(statuses, default=200), None, b"")

    def is_there(self) -> bool:
        return True

    def commands(self) -> list[int]:
        return running_in(self._spaces)


class _Running:
    """A plain job where a stream of a command is used."""

    def __init__(self, jobs: PlainJobs, job: str) -> None:
        self.jobs, self.job = jobs, job

    def next(self, kind: str) -> None:
        assert kind == "start"

    def __enter__(self) -> "_Running":
        return self

    def __exit__(self, *_unused) -> None:
        self.jobs.user.cancel(self.job)


def lay_out_program(host: HubHost, user: User, program: Path) -> str:
    """Puts a program where plain jobs of that user find it."""
    folder = host.hub.state / "volumes/buckets" / user.name / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / program.name).write_bytes(program.read_bytes())
    (folder / program.name).chmod(0o755)
    return f"{PROGRAMS}/{program.name}"
