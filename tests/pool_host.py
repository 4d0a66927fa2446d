"""A running cay-host in host mode, its sandboxes, and a way to look into them from outside."""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from client import Client, under
from host import BINARY, SANITIZED, Host, all_pids, is_running, process_state, wait_until

UNPRIVILEGED_ID = 12345
# What stands in front of cay-host so that it has the rights of each mode and no more.
WRAPPERS = {
    "full": [],
    "restricted": ["setpriv", "--bounding-set=-sys_admin", "--"],
    "unprivileged": ["setpriv", f"--reuid={UNPRIVILEGED_ID}", f"--regid={UNPRIVILEGED_ID}", "--clear-groups", "--"],
}
# There the limit of each process counts a sanitizer's shadow memory, terabytes of it: the wall probe cannot run.
unprivileged_pool = pytest.mark.skipif(
    SANITIZED, reason="a sanitizer's own memory does not fit under the limit of a process")
_CLONE_NEWNS, _CLONE_NEWNET = 0x20000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Place:
    """A folder for the state of a pool host. Outside of pytest's own ones, which only root may pass."""

    def __init__(self, walls: str = "full") -> None:
        self.top = Path(tempfile.mkdtemp(prefix="cay-pool-"))
        self.top.chmod(0o711)
        self.state = self.top / "state"
        self.state.mkdir(mode=0o711)
        if walls == "unprivileged":
            os.chown(self.state, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        # A copy, so that whatever runs it, also a keeper with a scrubbed environment, is known by its inode.
        self.binary = self.top / "cay-host"
        shutil.copy(BINARY, self.binary)
        self.binary.chmod(0o755)

    def remove(self) -> None:
        shutil.rmtree(self.top, ignore_errors=True)


class PoolHost(Host):
    """One cay-host that serves many sandboxes. `walls`: full, restricted or unprivileged."""

    start_timeout = 60.0  # a new state folder has its image prepared first

    def __init__(
        self,
        place: Place | None = None,
        *,
        walls: str = "full",
        capacity: int = 10_000,
        env=None,
        wrapper=(),
        **options,
    ) -> None:
        self.owns_place = place is None
        self.place = place or Place(walls)
        self.walls = walls
        variables = {"SBX_HOST_MODE": "1", "CAY_WALLS": walls, "SBX_CAPACITY": str(capacity), **(env or {})}
        super().__init__(
            self.place.state, env=variables, wrapper=[*WRAPPERS[walls], *wrapper], binary=self.place.binary, **options
        )
        self.sandboxes: list[Sandbox] = []

    def start(self) -> "PoolHost":
        if SANITIZED and self.walls == "unprivileged":
            pytest.skip(unprivileged_pool.kwargs["reason"])
        return super().start()

    def again(self, **options) -> "PoolHost":
        """Another host for the same state folder, not started yet."""
        if "capacity" in options:
            options["env"] = {"SBX_CAPACITY": str(options.pop("capacity"))}
        options["env"] = {
            **{k: v for k, v in self.env.items() if k.startswith(("SBX_", "CAY_"))},
            **options.get("env", {}),
        }
        host = PoolHost(self.place, walls=self.walls, token=self.token, mark=self.mark, **options)
        host.sandboxes = [Sandbox(host, s.document) for s in self.sandboxes]
        return host

    def create_answer(self, *, headers=None, **options):
        return self.client().post("/v1/sandboxes", options, headers=headers)

    def create(self, **options) -> "Sandbox":
        answer = self.create_answer(**options)
        assert answer.status in (200, 201), (answer.status, answer.body)
        document = answer.json()
        assert document["rejected"] == 0 and len(document["sandboxes"]) == 1, document
        sandbox = Sandbox(self, document["sandboxes"][0])
        self.sandboxes.append(sandbox)
        return sandbox

    def listed(self) -> list[str]:
        answer = self.client().get("/v1/sandboxes")
        assert answer.status == 200, (answer.status, answer.body)
        return [s["id"] for s in answer.json()]

    def is_well(self) -> bool:
        return self.client().get("/health").status == 200

    def sandbox_client(self, sandbox_id: str, token: str | None) -> Client:
        return Client(self.address, self.port, token=token, prefix=f"/v1/sandboxes/{sandbox_id}", host=self)

    def keepers(self) -> list[int]:
        """Its processes that are PID 1 somewhere."""
        return [pid for pid in self.processes() if inner_pid(pid) == 1]

    def destroy(self) -> None:
        super().destroy()
        if self.owns_place:
            self.place.remove()

    def _belongs(self, pid: int) -> bool:
        try:
            own = os.stat(f"/proc/{pid}/exe")
            if os.path.samestat(own, os.stat(self.binary)):
                return True
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return any(f"SBX_SANDBOX_ID={s.id}".encode() in environ for s in self.sandboxes)
        except OSError:
            return False


class Walled:
    """What tests do in a sandbox behind walls from outside, once they know its keeper (PID 1 inside)."""

    walled = True
    _keeper: int | None = None  # the host's pid

    def keeper(self) -> int:
        raise NotImplementedError

    def _find_keeper(self) -> bool:
        raise NotImplementedError

    def first_uid(self) -> int:
        """What uid 0 inside is outside."""
        return os.stat(f"/proc/{self.keeper()}/root/root").st_uid

    def outer_pid(self, inner: int) -> int | None:
        if not self._find_keeper():
            return None
        space = pid_space(self._keeper)
        return next((p for p in all_pids() if pid_space(p) == space and inner_pid(p) == inner), None)

    def process_state(self, pid: int) -> str | None:
        outer = self.outer_pid(pid)
        return None if outer is None else process_state(outer)

    def is_running(self, pid: int) -> bool:
        return self.process_state(pid) not in (None, "Z", "X")

    def gone(self, pid: int, timeout: float = 5.0) -> None:
        wait_until(lambda: not self.is_running(pid), timeout, f"the end of process {pid} inside")

    def inside(self, function):
        """Runs a function in a child process that stands in the sandbox's root and network, with its uid."""
        return self._in_child(lambda: (function(), []))[0]

    def inside_socket(self, function) -> socket.socket:
        """As inside(), for a function that makes a socket."""

        def make():
            made = function()
            return None, [made.detach()]

        return socket.socket(fileno=self._in_child(make)[1][0])

    def _in_child(self, work):
        """What `work` gives in a child inside: a value and descriptors."""
        keeper, uid = self.keeper(), self.first_uid()
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                ours.close()
                try:
                    _enter(keeper, uid)
                    value, fds = work()
                except BaseException as error:  # pylint: disable=broad-except
                    value, fds = _Failure(error), []
                socket.send_fds(theirs, [b"x"], fds)
                theirs.sendall(pickle.dumps(value))
            finally:
                os._exit(0)
        theirs.close()
        with ours:
            _, fds, _, _ = socket.recv_fds(ours, 1, 1)
            parts = []
            while part := ours.recv(1 << 20):
                parts.append(part)
        os.waitpid(child, 0)
        value = pickle.loads(b"".join(parts))
        if isinstance(value, _Failure):
            raise value.error
        return value, fds


class Sandbox(Walled):
    """One sandbox of a pool. Has what the tests of both modes use of a Host."""

    in_pool = True

    def __init__(self, host: PoolHost, document: dict) -> None:
        self.host, self.document = host, document
        self.id, self.token = document["id"], document["token"]

    # ---- as a Host

    @property
    def address(self) -> str:
        return self.host.address

    @property
    def port(self) -> int:
        return self.host.port

    @property
    def pid(self) -> int:
        return self.host.pid

    @property
    def state(self) -> Path:
        return self.host.state

    @property
    def mark(self) -> str:
        return self.host.mark

    def route(self, path: str) -> str:
        return under(f"/v1/sandboxes/{self.id}", path)

    def client(self, **options) -> Client:
        options.setdefault("token", self.token)
        return Client(self.address, self.port, prefix=f"/v1/sandboxes/{self.id}", host=self, **options)

    def credentials(self) -> dict[str, str]:
        """The fields that a request to it needs."""
        return {"X-Sandbox-Token": self.token}

    def processes(self) -> list[int]:
        return self.host.processes()

    def stop(self) -> None:
        self.host.stop()

    def kill9(self) -> None:
        self.host.kill9()

    def destroy(self) -> None:
        self.host.destroy()

    # ---- the sandbox itself

    def info(self) -> dict:
        answer = self.host.client().get(f"/v1/sandboxes/{self.id}")
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json()

    def delete(self):
        return self.host.client(token=self.token).delete(f"/v1/sandboxes/{self.id}")

    def is_there(self) -> bool:
        return self.id in self.host.listed()

    def works(self, timeout: float = 20.0) -> None:
        done = self.client(timeout=timeout).exec("echo still-works")
        assert (done.stdout, done.exit["exit_code"]) == ("still-works\n", 0), done.events

    # ---- seen from outside

    def commands(self) -> list[int]:
        """The host's pids of what runs in it, by the environment every command starts with."""
        mark = f"SBX_SANDBOX_ID={self.id}".encode()
        found = []
        for pid in all_pids():
            try:
                if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and is_running(pid):
                    found.append(pid)
            except OSError:
                continue
        return found

    def keeper(self) -> int:
        """The host's pid of its keeper (PID 1 inside), which is started if there is none."""
        if not self._find_keeper():
            with self.client().exec_stream("exec sleep 60") as stream:
                stream.next("start")
                wait_until(self._find_keeper, what="a command to be seen from outside")
        return self._keeper

    def _find_keeper(self) -> bool:
        if self._keeper is None or not is_running(self._keeper):
            spaces = {pid_space(p) for p in self.commands()} - {None, pid_space(os.getpid())}
            found = [p for p in all_pids() if pid_space(p) in spaces and inner_pid(p) == 1] if spaces else []
            self._keeper = found[0] if found else None
        return self._keeper is not None


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _enter(keeper: int, uid: int) -> None:
    root = os.open(f"/proc/{keeper}/root", os.O_PATH)
    for name, flag in (("net", _CLONE_NEWNET), ("mnt", _CLONE_NEWNS)):
        if _libc.setns(os.open(f"/proc/{keeper}/ns/{name}", os.O_RDONLY), flag) != 0:
            raise OSError(ctypes.get_errno(), f"setns to the {name} namespace of {keeper}")
    os.fchdir(root)
    os.chroot(".")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.umask(0o022)


def pid_space(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def inner_pid(pid: int) -> int | None:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    except OSError:
        pass
    return None


class InsidePath:
    """A path of a sandbox: as text for the API, and with the methods of pathlib.Path, which run inside."""

    def __init__(self, sandbox: Sandbox, path: str) -> None:
        self._sandbox, self._path = sandbox, path

    def __truediv__(self, name) -> "InsidePath":
        return InsidePath(self._sandbox, f"{self._path}/{name}")

    def __str__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"InsidePath({self._path!r})"

    def __fspath__(self) -> str:
        raise TypeError(f"{self._path} is inside a sandbox; use the methods of the path, or inside()")

    def __getattr__(self, name: str):
        method = getattr(Path, name)
        if not callable(method):
            return getattr(Path(self._path), name)
        return lambda *arguments, **named: self._sandbox.inside(lambda: method(Path(self._path), *arguments, **named))
