"""A running `cay serve` for tests: starts it, gives clients what they need, and holds it to a clean end."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from host import BINARY, ROOT
from hub_leftovers import leftovers, running, uplinks_of

CAY = Path(os.environ.get("CAY_BIN", BINARY.parent / "cay"))
NO_IDS = "all blocks of user ids are taken"
# What would lead a client or `cay` elsewhere.
FOREIGN = ("HF_", "CAY_", "XDG_STATE_HOME")
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")


def clean_environment(**more: str) -> dict[str, str]:
    """The environment of the tests without what is about another hub or a proxy."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN) and k.upper() not in PROXIES}
    return {**kept, **more}


def run_cay(*arguments, binary: Path = CAY, timeout: float = 60, env=None, **options) -> subprocess.CompletedProcess:
    """Runs a verb to its end, off a terminal; never raises for its exit status."""
    return subprocess.run([str(binary), *map(str, arguments)], env=clean_environment() if env is None else env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False,
                          **options)


class HubPlace:
    """Programs and state of one hub. The programs are copies, so that whatever runs them, also a keeper with a
    scrubbed environment, is known by its inode."""

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="cay-hub-"))
        self.top.chmod(0o711)
        self.state = self.top / "state"
        self.cay, self.cay_host = self.top / "cay", self.top / "cay-host"
        for source, copy in ((CAY, self.cay), (BINARY, self.cay_host)):
            shutil.copy(source, copy)
            copy.chmod(0o755)

    def remove(self) -> None:
        shutil.rmtree(self.top, ignore_errors=True)


def free_ports() -> tuple[int, int]:
    """For one who comes back on them: below those that the kernel gives to connections of others meanwhile."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    while len(found) < 2:
        port = random.randrange(10_000, lowest)
        if port in found:
            continue
        try:
            socket.create_server(("127.0.0.1", port)).close()
            found.append(port)
        except OSError:
            continue
    return found[0], found[1]


class Hub:
    """One `cay serve` on free ports. A second one may take over the place of one that has ended."""

    start_timeout = 180.0  # the image `host` is prepared at the first start, beside other tests

    def __init__(self, place: HubPlace | None = None, *, flags=(), env=None, wrapper=(), end_jobs: bool = True,
                 ports: tuple[int, int] = (0, 0)) -> None:
        self.owns_place = place is None
        self.place = place or HubPlace()
        self.flags = [*(["--end-jobs"] if end_jobs else []), *flags]
        self.wrapper = list(wrapper)
        self.ports = ports  # of the API and of TLS
        self.env = clean_environment(**(env or {}))
        self.lines: list[str] = []
        self.ready: dict = {}
        self.process: subprocess.Popen | None = None
        self._told = threading.Event()

    @property
    def state(self) -> Path:
        return self.place.state

    # ---- life

    def start(self) -> "Hub":
        """A machine has user ids for so many hubs, and other tests may have them all for a while."""
        deadline = time.monotonic() + self.start_timeout
        while not self._try_to_start():
            if NO_IDS not in self.log or time.monotonic() > deadline:
                raise AssertionError("cay serve did not say that it is ready; its log:\n" + self.log)
            self.lines.clear()
            time.sleep(1)
        return self

    def _try_to_start(self) -> bool:
        self._told.clear()
        self.ready = {}
        command = [*self.wrapper, str(self.place.cay), "serve", "--state", str(self.state), "--port", str(self.ports[0]),
                   "--tls-port", str(self.ports[1]), *self.flags]
        self.process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        reader = threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True)
        reader.start()
        threading.Thread(target=self._read_ready, args=(self.process.stdout,), daemon=True).start()
        if not self._told.wait(self.start_timeout) or not self.ready:
            self.process.kill()
            self.process.wait(10)
            reader.join(5)
            return False
        return True

    def _read_log(self, stream) -> None:
        for line in stream:
            self.lines.append(line.rstrip("\n"))

    def _read_ready(self, stream) -> None:
        line = stream.readline()
        if line:
            self.ready = json.loads(line)
        self._told.set()
        self.lines += [rest.rstrip("\n") for rest in stream]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def stop(self, timeout: float = 30.0) -> None:
        """SIGTERM; demands exit status 0 and, if jobs end with it, that nothing of this hub is left."""
        assert self.process is not None
        uplinks = uplinks_of(self.programs)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.destroy()
            raise AssertionError(f"cay serve did not end within {timeout} s of SIGTERM\n{self.log}") from None
        assert status == 0, f"cay serve ended with {status}\n{self.log}"
        if "--end-jobs" in self.flags:
            left = self.leftovers(uplinks)
            assert not left, f"left over after the end of cay serve: {left}\n{self.log}"

    def kill9(self) -> None:
        """SIGKILL of the hub alone, as in a crash."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def again(self, **options) -> "Hub":
        """Another hub for the same state, not started yet."""
        return Hub(self.place, **options)

    def destroy(self) -> None:
        """Ends whatever is left of this hub, for the end of a test that may have failed."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process is not None:
            self.process.wait(10)
        if self.owns_place:
            self.place.remove()

    # ---- what it leaves in the machine

    @property
    def programs(self) -> list[Path]:
        return [self.place.cay, self.place.cay_host]

    def processes(self) -> list[int]:
        """All that run one of its two programs, cay-net and keepers too."""
        return running(self.programs)

    def leftovers(self, uplinks: list[int]) -> dict[str, list]:
        """By kind; only those of which there are some. `uplinks`: those that it had."""
        return leftovers(self.place.top, self.state, self.programs, uplinks)

    # ---- use

    @property
    def api(self) -> str:
        return self.ready["api"]

    @property
    def tls_port(self) -> int:
        return self.ready["tls_port"]

    @property
    def domain(self) -> str:
        return self.ready["domain"]

    def token(self, role: str = "user") -> str:
        return (self.state / "tokens" / role).read_text().strip()

    def cay(self, *arguments, **options) -> subprocess.CompletedProcess:
        """A verb about this hub."""
        return run_cay(*arguments, "--state", self.state, binary=self.place.cay, **options)

    def client_env(self, *flags: str) -> dict[str, str]:
        """What `cay env` says, on top of a clean environment."""
        done = self.cay("env", "--shell", "json", *flags)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        env = {k: v for k, v in clean_environment().items() if k not in said}
        return {**env, **{k: v for k, v in said.items() if v is not None}}

    def request(self, method: str, path: str, *, token: str | None = "user", body=None, headers=None,
                timeout: float = 30):
        """One request to the API; gives status, fields and body. `token`: a role, or a token itself."""
        fields = dict(headers or {})
        if token is not None:
            secret = self.token(token) if token in ("admin", "user", "proxy") else token
            fields["Authorization"] = f"Bearer {secret}"
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", int(self.api.rsplit(":", 1)[1]), timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=fields)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()


__all__ = ["CAY", "ROOT", "Hub", "HubPlace", "clean_environment", "run_cay"]
