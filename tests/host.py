"""A running cay-host for tests: starts it, finds its port, and holds it to a clean end."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from client import Client

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("CAY_HOST_BIN", ROOT / "build" / "bin" / "cay-host"))
# A sanitizer's shadow memory and speed make some measurements meaningless.
SANITIZED = any(part in ("asan", "tsan") for part in BINARY.parts)
# Every process that a test's host starts inherits this variable, so what is left over can be found.
MARK = "MARK_OF_THIS_TEST"


def wait_until(condition, timeout: float = 10.0, what: str = "the condition"):
    """Polls until `condition` gives something true, and returns that."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout} s")
        time.sleep(0.01)


def process_state(pid: int) -> str | None:
    """The state letter of a process ('Z' for a zombie), or None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


def is_running(pid: int) -> bool:
    return process_state(pid) not in (None, "Z", "X")


def gone(pid: int, timeout: float = 5.0) -> None:
    wait_until(lambda: not is_running(pid), timeout, f"the end of process {pid}")


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for other in all_pids():
        children.setdefault(parent_of(other) or 0, []).append(other)
    found, queue = [], [pid]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def stand_of(process: subprocess.Popen) -> str:
    """How a process has ended, or where it and those below it stand."""
    try:
        return f"it ended with {process.wait(1)}"
    except subprocess.TimeoutExpired:
        pass
    told = []
    for pid in [process.pid, *descendants(process.pid)]:
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            told.append(f"{name}: " + " < ".join(Path(f"/proc/{pid}/stack").read_text().split("\n")[:4]))
        except OSError:
            continue
    return "\n".join(told)


class Host:
    """One cay-host. Options: flags and variables for it, a command to put in front of it, its token
    (None: without one) and its state folder, which a second Host may take over."""

    def __init__(self, state: Path, *, flags=(), env=None, token: str | None = "secret-token", wrapper=(),
                 binary: Path | str = BINARY, mark: str | None = None, address: str = "127.0.0.1",
                 popen_options=None) -> None:
        self.state = state
        self.token = token
        self.address = address
        self.flags = list(flags)
        self.mark = mark or secrets.token_hex(8)
        self.wrapper = list(wrapper)
        self.binary = str(binary)
        self.env = {**os.environ, MARK: self.mark, **(env or {})}
        if token is not None:
            self.env["SBX_TOKEN"] = token
        self.popen_options = popen_options or {}
        self.lines: list[str] = []
        self.process: subprocess.Popen | None = None
        self.port = 0
        self._listening = threading.Event()

    # ---- life

    start_timeout = 20.0

    def start(self) -> "Host":
        command = [*self.wrapper, self.binary, "--port", "0", "--state", str(self.state), *self.flags]
        self._listening.clear()
        self.process = subprocess.Popen(
            command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, **self.popen_options)
        threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True).start()
        if not self._listening.wait(self.start_timeout) or self.port == 0:
            where = stand_of(self.process)
            self.process.kill()
            raise AssertionError(f"cay-host did not say that it listens ({where}); its log:\n{self.log}")
        return self

    def _read_log(self, stream) -> None:
        for line in stream:
            self.lines.append(line.rstrip("\n"))
            if '"listening"' in line and not self._listening.is_set():
                self.port = json.loads(line)["port"]
                self._listening.set()
        self._listening.set()  # the end of the log: start() looks at the port

    @property
    def pid(self) -> int:
        """cay-host itself, also when a wrapper stands in front of it."""
        assert self.process is not None
        if not self.wrapper:
            return self.process.pid
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            try:
                if Path(f"/proc/{pid}/comm").read_text() == "cay-host\n":
                    return pid
            except OSError:
                continue
        raise AssertionError("cay-host is not running")

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def log_entries(self, message: str) -> list[dict]:
        entries = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [e for e in entries if message in e["message"]]

    def wait(self, timeout: float = 15.0) -> int:
        assert self.process is not None
        return self.process.wait(timeout)

    def stop(self, timeout: float = 15.0) -> None:
        """SIGTERM; demands exit status 0 and that nothing of this host is left."""
        assert self.process is not None
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"cay-host did not end within {timeout} s of SIGTERM\n{self.log}") from None
        assert status == 0, f"cay-host ended with {status}\n{self.log}"
        left = []
        try:
            wait_until(lambda: not self.processes(), 5.0)
        except AssertionError:
            left = [(pid, Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in self.processes()]
            self.destroy()
        assert not left, f"left over after the end of cay-host: {left}"

    def kill9(self) -> None:
        """SIGKILL of cay-host alone, as in a crash."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def destroy(self) -> None:
        """Ends whatever is left of this host, for the end of a failed test."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        left = self.processes()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if left:
            self._remove_groups()

    def _remove_groups(self) -> None:
        """The control groups that nobody is left to remove. The state folder knows their name."""
        try:
            name = (self.state / "name").read_text().strip()
        except OSError:
            return
        for top in Path("/sys/fs/cgroup").glob(f"**/{name}") if name else ():
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    wait_until(lambda f=folder: Path(f, "cgroup.procs").read_text() == "", 2)
                    os.rmdir(folder)
                except (OSError, AssertionError):
                    pass

    def processes(self) -> list[int]:
        """Everything that runs because of this host: it carries the mark or holds files of its state."""
        own = os.getpid()
        return [pid for pid in all_pids() if pid != own and is_running(pid) and self._belongs(pid)]

    def _belongs(self, pid: int) -> bool:
        try:
            if f"{MARK}={self.mark}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                return True
            if os.readlink(f"/proc/{pid}/exe") != os.path.realpath(self.binary):
                return False
            folder = str(self.state)
            return any(os.readlink(f"/proc/{pid}/fd/{fd}").startswith(folder)
                       for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return False

    # ---- use

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    def client(self, **options) -> Client:
        options.setdefault("token", self.token)
        return Client(self.address, self.port, host=self, **options)

    # ---- what a sandbox of a pool has too (pool_host.py): tests that run in both modes use only this

    in_pool = False
    walled = False  # its files and sockets are ours too

    def route(self, path: str) -> str:
        return path

    def inside(self, function):
        """Runs a function where the sandbox's files and sockets are."""
        return function()

    inside_socket = inside

    def outer_pid(self, pid: int) -> int:
        """The host's number of a process that the API gave a number."""
        return pid

    def is_running(self, pid: int) -> bool:
        return is_running(pid)

    def process_state(self, pid: int) -> str | None:
        return process_state(pid)

    def gone(self, pid: int, timeout: float = 5.0) -> None:
        gone(pid, timeout)


@contextmanager
def hosts_of_a_test():
    """A list to put hosts into: at its end those that still run are stopped and checked, and nothing is left of any."""
    made: list[Host] = []
    try:
        yield made
        for host in made:
            if host.process is not None and host.process.poll() is None:
                host.stop()
    finally:
        for host in reversed(made):
            host.destroy()
