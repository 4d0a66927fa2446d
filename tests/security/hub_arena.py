"""The scene of the attacks on a hub: the owner has a sandbox, a plain job and a volume, and the attacker is another user's
sandbox or plain job."""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path

from arena import PRELUDE, Arena, compiled
from client import Output
from host import wait_until
from hub_jobs import SANDBOX_PORT
from hub_scene import HubHost, JobSandbox, PlainJobs, lay_out_program

PORT = 8000  # where both victims serve, for everybody who reaches them
SERVER = """
import os, socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", 8000)); s.listen(64)
print("serves", os.environ.get("SAYS", ""), flush=True)
while True:
    c, _ = s.accept()
    try:
        c.settimeout(5); c.recv(65536); t = os.environ["T"].encode()
        c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(t) + t)
    except OSError: pass
    c.close()
"""


class DedicatedArena(Arena):
    host: HubHost

    def _make_host(self) -> HubHost:
        for name in ("job-secret", "job-env", "job-log", "job-answer", "volume-file"):
            self.secrets[name] = f"{name}-{secrets.token_hex(12)}"
        return HubHost({"HOST_SECRET": self.secrets["host-env"]})

    @property
    def hub(self):
        return self.host.hub

    def _lay_out_host_secrets(self) -> None:
        state = self.hub.state
        self.secrets["host-token"] = self.hub.token("admin")  # a name that attacks know
        for role in ("user", "proxy"):
            self.secrets[f"{role}-token"] = self.hub.token(role)
        self.secrets["attackers-hf-token"] = self.host.eve.token
        for name in ("ca.key", "leaf.pem"):
            text = (state / "ca" / name).read_text()
            self.secrets[name] = text[text.index("PRIVATE KEY-----"):].splitlines()[1]
        self.state_file = self.host.state / "host-secret"
        self.state_file.write_text(self.secrets["host-state-file"])
        self.state_file.chmod(0o644)
        self.volume = state / "volumes/buckets" / self.host.owner.name / "private"
        self.volume.mkdir(parents=True)
        (self.volume / "file").write_text(self.secrets["volume-file"])
        self.model = state / "volumes/models" / self.host.owner.name / "model"
        self.model.mkdir(parents=True)
        (self.model / "weights").write_text("weights")

    def _settle_victim(self) -> None:
        super()._settle_victim()
        owner, s = self.host.owner, self.secrets
        self.victim.client().spawn(["/usr/bin/python3", "-c", SERVER], env={"T": s["victim-socket"]})
        self.job = owner.start(
            ["/usr/bin/python3", "-c", SERVER], secrets={"T": s["job-answer"], "SECRET": s["job-secret"]},
            environment={"E": s["job-env"], "SAYS": s["job-log"]}, expose={"ports": [PORT]},
            volumes=[{"type": "bucket", "source": f"{owner.name}/private", "mountPath": "/data"}])
        owner.until(self.job, "RUNNING")
        self.victim_address = self._address_of(self.victim.id)
        self.job_address = self._address_of(self.job)
        self._until_both_serve()
        self.victim_outer = self.victim.commands()

    def _until_both_serve(self) -> None:
        wait_until(self._job_answers, 30, "the plain victim's server")
        wait_until(lambda: self.victim.client().get(f"/v1/proxy/{PORT}/").status == 200, 30, "the victim's server")

    def _address_of(self, job: str) -> str:
        lines = (self.hub.state / "jobs" / job / "etc/hosts").read_text().splitlines()
        return next(line.split()[0] for line in lines if line.startswith("100."))

    def _job_answers(self) -> bool:
        status, answer = self.host.owner.call("GET", f"/x/{self.job}--{PORT}/")
        return status == 200 and answer.decode() == self.secrets["job-answer"]

    # ---- the attacker

    def attacker(self, **options) -> JobSandbox:
        self.made.append(self.host.create(self.host.eve, **options))
        self.secrets["attackers-token"] = self.made[-1].token
        return self.made[-1]

    def limited(self, **limits) -> JobSandbox:
        return self.attacker(limits=limits)

    def admitted(self, **fields) -> JobSandbox | None:
        """An attacker with these fields of a job, or None if the job is refused or fails."""
        try:
            return self.attacker(**fields)
        except AssertionError as error:
            print("refused:", error)
            return None

    def serving(self, code: str, port: int):
        """Code that serves on an exposed port of an attacker: the attacker, its job, and a function that ends it and
        gives what it has printed."""
        sandbox = self.attacker(ports=[] if port == SANDBOX_PORT else [port])
        process = sandbox.client().spawn(["/usr/bin/python3", "-c", code, str(port)])
        path = f"/v1/processes/{process['id']}"
        wait_until(lambda: "up" in sandbox.client().output(path).stdout, what="the server inside")
        return sandbox, sandbox.id, lambda: sandbox.client().output(path).stdout

    # ---- afterwards

    def close(self) -> None:
        try:
            if hasattr(self, "before"):
                self.victim.delete()
                self.host.owner.cancel(self.job)
                trash = self.host.state / "trash"
                wait_until(lambda: not any(trash.iterdir()), 20, "the end of the files of all jobs")
        finally:
            super().close()

    def _look(self) -> dict:
        state = self.hub.state
        kept = [*(state / "tokens").iterdir(), *(f for f in (state / "ca").iterdir() if f.is_file()), state / "name",
                self.volume / "file", self.model / "weights", *(state / "server").iterdir()]
        job = json.loads(self.host.owner.job(self.job))
        return {
            **super()._look(),
            "hub": {str(f): (hashlib.sha256(f.read_bytes()).hexdigest(), f.stat().st_mode, f.stat().st_uid) for f in kept},
            "folders of the hub": {str(f): (sorted(p.name for p in f.iterdir()), f.stat().st_mode, f.stat().st_uid)
                                   for f in (self.volume, self.model, state / "tokens", state / "server")},
            "state": (state.stat().st_mode, state.stat().st_uid),
            "job": (job["status"], job["labels"], job["expose"], self._job_answers()),
            "machine": {f: Path(f).read_bytes() for f in ("/etc/hosts", "/etc/resolv.conf")},
        }

    def unharmed(self) -> None:
        super().unharmed()
        self.secrets.pop("attackers-token", None)


class PlainArena(DedicatedArena):
    def attacker(self, **options) -> PlainJobs:
        self.made.append(PlainJobs(self.host, self.host.eve, **options))
        return self.made[-1]

    def admitted(self, **fields) -> PlainJobs | None:
        jobs = PlainJobs(self.host, self.host.eve, **fields)
        try:
            jobs.works()
        except AssertionError as error:
            print("refused:", error)
            return None
        self.made.append(jobs)
        return jobs

    def serving(self, code: str, port: int):
        jobs = self.attacker(expose={"ports": [port]})
        job = jobs.start(["/usr/bin/python3", "-c", code, str(port)])

        def answers() -> bool:
            return jobs.user.call("GET", f"/x/{job}--{port}/", headers={"X-Probe": "1"})[0] == 200

        def end() -> str:
            jobs.user.cancel(job)
            return "\n".join(jobs.user.log(job))

        wait_until(answers, what="the server inside")
        return jobs, job, end

    def script(self, sandbox: PlainJobs, code: str, *arguments, **fields) -> Output:
        fields.setdefault("timeout", 60)
        code = PRELUDE + code + "\nprint('END', flush=True)\n"
        return self.judge(sandbox.exec(["/usr/bin/python3", "-c", code, *map(str, arguments)], **fields))

    def program(self, sandbox: PlainJobs, name: str, *arguments, **fields) -> Output:
        path = lay_out_program(self.host, self.host.eve, compiled(name))
        return self.judge(sandbox.exec([path, *map(str, arguments)], **fields))

    def judge(self, done: Output) -> Output:
        # A long line of a log is told in parts.
        self.search(done.stdout_bytes.replace(b"\n", b""))
        return super().judge(done)
