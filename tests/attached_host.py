"""A cay-host as a hub starts it: it serves one sandbox whose keeper somebody else has made and given to it. And the
somebody else: a small program that does what a hub does (hub/sandbox_maker.cc)."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from host import BINARY, MARK, Host, is_running
from pool_host import PoolHost, Sandbox, Walled, pid_space

MAKER = BINARY.parent / "hub_sandbox_maker"
DEFAULT_LOG_BYTES = 16 << 20


class Maker:
    """One for each test process: what sandboxes are made of takes seconds to prepare."""

    _only: "Maker | None" = None

    @classmethod
    def get(cls) -> "Maker":
        if cls._only is None:
            if not MAKER.exists():
                pytest.exit(f"{MAKER} does not exist; build it first", 3)
            cls._only = Maker()
            atexit.register(cls._only.end)
        return cls._only

    def __init__(self) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="cay-maker-"))
        self.process = subprocess.Popen([MAKER, self.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question) -> dict:
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)
        shutil.rmtree(self.state, ignore_errors=True)


class Given:
    """A sandbox of the maker's, whose keeper waits for a host."""

    def __init__(self, log_bytes: int = DEFAULT_LOG_BYTES) -> None:
        self.id = "t" + secrets.token_hex(8)
        self.log_bytes = log_bytes
        made = Maker.get().ask(make=self.id, log_bytes=log_bytes)
        self.folder = Path(made["folder"])
        self.first_uid = made["first_uid"]
        self.keeper = int((self.folder / "keeper.mark").read_text().split()[1])
        self.space = pid_space(self.keeper)
        self._ended = False

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            Maker.get().ask(end=self.id)


def listen_tcp() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=128)


def start_with(document: dict | bytes, listener: socket.socket, *, binary=BINARY, flags=(),
               **options) -> tuple[subprocess.Popen, int]:
    """A cay-host with this document, and where it will write that it is ready."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    config = os.memfd_create("startup", 0)
    os.write(config, text)
    ready, theirs = os.pipe()
    command = [str(binary), "--config-fd", str(config), "--listen-fd", str(listener.fileno()),
               "--ready-fd", str(theirs), *flags]
    try:
        process = subprocess.Popen(command, env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, pass_fds=[config, listener.fileno(), theirs],
                                   **options)
    finally:
        os.close(config)
        os.close(theirs)
    return process, ready


class AttachedHost(Walled, Host):
    """One cay-host in front of one sandbox. `given`: that of another one, which has ended; `listener`: what it
    answers at, which outlives it."""

    def __init__(self, state: Path | None = None, *, given: Given | None = None, listener: socket.socket | None = None,
                 flags=(), idle_ms: int = 0, lifetime_ms: int = 0, cwd: str = "/", **options) -> None:
        self.given = given or Given(_log_bytes(flags))
        super().__init__(self.given.folder, flags=flags, **options)
        self.listener = listener or listen_tcp()
        self.end_note = self.given.folder / "host.end"
        self.document = {
            "token": self.token, "compat_host_token": False, "idle_timeout_ms": idle_ms, "lifetime_ms": lifetime_ms,
            "end_note": str(self.end_note), "pool": None, "state_folder": "",
            "attached": {
                "folder": str(self.given.folder), "walls": "full", "first_uid": self.given.first_uid, "cwd": cwd,
                "env": ["HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                        "LANG=C.UTF-8", f"{MARK}={self.mark}"],
                "log_head_bytes": self.given.log_bytes // 2, "log_ring_bytes": self.given.log_bytes // 2,
            },
        }

    def start(self) -> "AttachedHost":
        self._listening.clear()
        self.process, ready = start_with(self.document, self.listener, binary=self.binary, flags=self.flags,
                                         **self.popen_options)
        threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True).start()
        with os.fdopen(ready, "rb") as stream:
            told = stream.read()  # until it is closed, by its writer or by its writer's end
        assert told == b"ready\n", f"cay-host did not get ready; its log:\n{self.log}"
        self.port = self.listener.getsockname()[1] if self.listener.family == socket.AF_INET else 0
        return self

    def again(self, **options) -> "AttachedHost":
        """Another cay-host for the same sandbox, not started yet."""
        return AttachedHost(given=self.given, listener=self.listener, token=self.token, mark=self.mark,
                            **{"flags": self.flags, **options})

    def note(self) -> dict:
        return json.loads(self.end_note.read_text())

    def destroy(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self.given.end()
        self.listener.close()

    def _belongs(self, pid: int) -> bool:
        return pid_space(pid) == self.given.space or super()._belongs(pid)

    # ---- as Walled

    def keeper(self) -> int:
        self._keeper = self.given.keeper
        return self._keeper

    def _find_keeper(self) -> bool:
        return is_running(self.keeper())

    def first_uid(self) -> int:
        return self.given.first_uid


def _log_bytes(flags) -> int:
    flags = list(flags)
    name = "--log-bytes-per-exec"
    return int(flags[flags.index(name) + 1]) if name in flags else DEFAULT_LOG_BYTES


def start_sandbox(where: str, state: Path, **options) -> Host | Sandbox:
    """A dedicated host, one of a hub's (`attached`), or (`pool`, `pool-none`) a sandbox of a pool whose paths are
    those of a dedicated one."""
    if where == "attached":
        host = AttachedHost(**options)
        try:
            return host.start()
        except BaseException:
            host.destroy()
            raise
    if not where.startswith("pool"):
        return Host(state, **options).start()
    host = PoolHost(**options).start()
    try:
        return host.create(paths="root", network="none" if where == "pool-none" else "host")
    except BaseException:
        host.destroy()
        raise
