"""The scene of the attacks: a pool host with secrets, a victim sandbox with secrets, and fresh attackers.

Whatever an attacker prints is searched for every secret, so an attack that works cannot go unseen."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from client import Output
from host import is_running
from pool_host import PoolHost, Sandbox

HERE = Path(__file__).resolve().parent
SYSCTLS = (
    "kernel/core_pattern",
    "kernel/hostname",
    "kernel/domainname",
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/randomize_va_space",
    "fs/file-max",
    "kernel/modprobe",
    "net/ipv4/ip_forward",
)

# Runs in the attacker before each script. A script says breach(…) when it got through, tries forbidden acts
# with attempt(…), and must reach its end.
PRELUDE = r'''
import ctypes, errno, json, os, signal, socket, stat, struct, subprocess, sys, time, glob
libc = ctypes.CDLL(None, use_errno=True)
def breach(*what): print("BREACH", *what, flush=True)
def attempt(act, *arguments):
    """What the act gives, or None when it is refused."""
    try:
        return act(*arguments)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print("refused:", error, flush=True)
        return None
def slurp(path, size=1 << 16):
    with open(path, "rb", buffering=0) as f:
        return f.read(size)
def show(data): sys.stdout.buffer.write(data or b""); sys.stdout.flush()
def syscall(number, *arguments):
    """(result, errno name)"""
    ctypes.set_errno(0)
    fixed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *fixed)
    return result, errno.errorcode.get(ctypes.get_errno(), "0") if result == -1 else "0"
'''


class Breach(Exception):
    """An attack got through."""


class Arena:
    def __init__(self, walls: str) -> None:
        self.walls = walls
        self.secrets = {
            name: f"{name}-{secrets.token_hex(12)}"
            for name in (
                "host-root-file",
                "host-world-file",
                "host-shm-file",
                "host-state-file",
                "host-env",
                "victim-file",
                "victim-tmp",
                "victim-env",
                "victim-argv",
                "victim-socket",
                "victim-output",
                "host-socket",
            )
        }
        self.folder = Path(tempfile.mkdtemp(prefix="cay-arena-"))
        self.folder.chmod(0o755)
        self.host = self._make_host()
        self.shm = Path("/dev/shm") / f"cay-arena-{secrets.token_hex(6)}"
        # Names of abstract sockets are the whole machine's, where other scenes may be played at the same time.
        self.abstract = f"victim-{secrets.token_hex(6)}"
        self.sockets: list[socket.socket] = []
        self.made: list[Sandbox] = []

    def _make_host(self) -> PoolHost:
        return PoolHost(
            walls=self.walls, env={"HOST_SECRET": self.secrets["host-env"]}, token=secrets.token_hex(32)
        )

    def open(self) -> "Arena":
        self._lay_out_secrets()
        self.host.start()
        self._lay_out_host_secrets()
        self.victim = self.host.create()
        self.secrets["victim-token"] = self.victim.token
        self._settle_victim()
        self.before = self._look()
        return self

    def close(self) -> None:
        try:
            if self.host.process is not None and self.host.process.poll() is None:
                self.host.stop()
        finally:
            self.host.destroy()
            for one in self.sockets:
                one.close()
            self.shm.unlink(missing_ok=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- the scene

    def _lay_out_secrets(self) -> None:
        self.root_file = self.folder / "root-only"
        self.root_file.write_text(self.secrets["host-root-file"])
        self.root_file.chmod(0o600)
        # Readable and writable by everybody: only a wall keeps a sandbox from it, not its uid.
        self.world_folder = self.folder / "world"
        self.world_folder.mkdir()
        self.world_folder.chmod(0o777)
        self.world_file = self.world_folder / "file"
        self.world_file.write_text(self.secrets["host-world-file"])
        self.world_file.chmod(0o666)
        self.shm.write_text(self.secrets["host-shm-file"])
        self.shm.chmod(0o666)
        self.host_socket = self.folder / "world" / "host.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.host_socket))
        self.host_socket.chmod(0o666)
        listener.listen(16)
        self.sockets.append(listener)

    def _lay_out_host_secrets(self) -> None:
        self.secrets["host-token"] = self.host.token
        self.state_file = self.host.state / "host-secret"
        self.state_file.write_text(self.secrets["host-state-file"])
        self.state_file.chmod(0o644)

    def _settle_victim(self) -> None:
        s, client = self.secrets, self.victim.client()
        home = client.exec("echo $HOME; cat > $HOME/secret; chmod 600 $HOME/secret", stdin=s["victim-file"])
        self.victim_home = home.stdout.strip()
        client.exec("umask 0; echo $S > $TMPDIR/victim-tmp; echo $S > /dev/shm/victim-tmp", env={"S": s["victim-tmp"]})
        server = (
            "import os, socket, sys, threading\n"
            "def serve(s):\n"
            "    while True:\n"
            "        c, _ = s.accept()\n"
            "        c.recv(65536)\n"
            "        c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(os.environ['T']) + os.environ['T'].encode())\n"
            "        c.close()\n"
            "a = socket.socket(socket.AF_UNIX); a.bind('\\0' + os.environ['ABSTRACT']); a.listen()\n"
            "d = os.environ['SBX_PROXY_DIR']; os.makedirs(d, exist_ok=True)\n"
            "p = socket.socket(socket.AF_UNIX); p.bind(d + '/80.sock'); os.chmod(d + '/80.sock', 0o777); p.listen()\n"
            "threading.Thread(target=serve, args=(a,), daemon=True).start()\n"
            "print('ready', flush=True)\n"
            "serve(p)\n"
        )
        self.victim_process = client.spawn(
            ["/usr/bin/python3", "-c", server, s["victim-argv"]], env={"S": s["victim-env"], "T": s["victim-socket"], "ABSTRACT": self.abstract},
        )
        path = f"/v1/processes/{self.victim_process['id']}"
        self.victim_exec = client.exec(
            "echo $S", env={"S": s["victim-output"]}, headers={"Idempotency-Key": "shared-key"}
        )
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if "ready" in client.output(path).stdout:
                break
            time.sleep(0.02)
        else:
            raise AssertionError(f"the victim's server did not start: {client.output(path).stderr}")
        self.victim_outer = self.victim.commands()
        # Some attacks would hit this very machine if they ran with its root's rights.
        owners = {os.stat(f"/proc/{p}").st_uid for p in self.victim_outer}
        assert self.victim_outer and 0 not in owners, f"commands run as {owners} on the host"

    # ---- the attacker

    def attacker(self, **options) -> Sandbox:
        sandbox = self.host.create(**{**self._paths(), **options})
        self.made.append(sandbox)
        return sandbox

    def _paths(self) -> dict:
        return {"paths": "home" if self.walls == "restricted" else "root"}

    def limited(self, **limits) -> Sandbox:
        """An attacker with limits. Where one cannot be had, creation is refused with the reason, which is honest
        and counts as not stopped."""
        answer = self.host.create_answer(**limits, **self._paths())
        if answer.status == 503 and any(name in answer.error for name in limits):
            raise Breach(f"no such limit here: {answer.error}")
        assert answer.status in (200, 201), (answer.status, answer.body)
        self.made.append(Sandbox(self.host, answer.json()["sandboxes"][0]))
        self.host.sandboxes.append(self.made[-1])
        return self.made[-1]

    def attacker_without_network(self) -> Sandbox | None:
        """None in restricted mode, where a network of its own cannot be had and is refused with the reason."""
        if self.walls != "restricted":
            return self.attacker(network="none")
        answer = self.host.create_answer(network="none")
        assert answer.status in (400, 503) and "network" in answer.error, (answer.status, answer.body)
        return None

    def search(self, text: bytes, also: dict | None = None) -> None:
        """Raises if one of the secrets is in what an attacker has got to see."""
        for name, secret in {**self.secrets, **(also or {})}.items():
            if secret.encode() in text:
                raise Breach(f"the secret {name} was read")

    def script(self, sandbox: Sandbox, code: str, *arguments, **fields) -> Output:
        """Runs Python code in the sandbox as an attack; `arguments` are its sys.argv[1:]."""
        fields.setdefault("timeout", 60)
        code = PRELUDE + code + "\nprint('END', flush=True)\n"
        done = sandbox.client(timeout=90).exec(["/usr/bin/python3", "-c", code, *map(str, arguments)], **fields)
        return self.judge(done)

    def program(self, sandbox: Sandbox, name: str, *arguments, **fields) -> Output:
        """Runs one of the attack programs written in C."""
        self.put(sandbox, name, compiled(name).read_bytes(), mode="755")
        fields.setdefault("timeout", 60)
        done = sandbox.client(timeout=90).exec(
            ["/bin/sh", "-c", f'exec "$HOME/{name}" "$@"', "sh", *map(str, arguments)], **fields
        )
        return self.judge(done)

    def judge(self, done: Output) -> Output:
        self.search(done.stdout_bytes + done.stderr_bytes)
        for line in done.stdout.splitlines():
            if line.startswith("BREACH"):
                raise Breach(line.removeprefix("BREACH").strip())
        assert "END" in done.stdout, (
            f"the attack did not run to its end: {done.stdout[-2000:]} {done.stderr[-2000:]} {done.exit}"
        )
        return done

    def put(self, sandbox: Sandbox, name: str, data: str | bytes, mode: str = "644") -> None:
        """Writes into the sandbox's home without the file API, so that `paths` does not matter."""
        text = data if isinstance(data, bytes) else data.encode()
        done = sandbox.client().exec(
            f'umask 022; base64 -d > "$HOME/{name}" && chmod {mode} "$HOME/{name}"',
            stdin=base64.b64encode(text).decode(),
        )
        assert done.exit["exit_code"] == 0, done.stderr

    def home(self, sandbox: Sandbox) -> str:
        return sandbox.client().exec("echo $HOME").stdout.strip()

    def path(self, sandbox: Sandbox, name: str) -> str:
        """What the file API wants for a file in the sandbox's home."""
        return name if self.walls == "restricted" else f"{self.home(sandbox)}/{name}"

    # ---- afterwards

    def _look(self) -> dict:
        """Everything of the host and of the victim that no attack may change."""
        client = self.victim.client()
        folders = {str(f): sorted(os.listdir(f)) for f in (self.folder, self.world_folder)}
        return {
            "folders": folders,
            "files": {
                str(f): (f.read_bytes(), f.stat().st_mode, f.stat().st_uid)
                for f in (self.root_file, self.world_file, self.shm, self.state_file)
            },
            "folder modes": {str(f): (f.stat().st_mode, f.stat().st_uid) for f in (self.folder, self.world_folder)},
            "victim": client.exec("cat $HOME/secret; ls -A $HOME; cat $TMPDIR/victim-tmp").stdout,
            "binary": hashlib.sha256(Path(self.host.binary).read_bytes()).hexdigest(),
            "sysctls": {
                name: Path("/proc/sys", name).read_text() for name in SYSCTLS if Path("/proc/sys", name).exists()
            },
        }

    def unharmed(self) -> None:
        """The attacked and the attackers that are left still work, and nothing has changed."""
        assert self.host.process.poll() is None, f"the host has ended\n{self.host.log[-3000:]}"
        assert self.host.is_well()
        assert self._look() == self.before
        assert [p for p in self.victim_outer if is_running(p)] == self.victim_outer, "the victim's process has ended"
        for sandbox in self.made:
            if sandbox.is_there():
                sandbox.works(60)
                sandbox.delete()
        self.made.clear()


_programs = Path(tempfile.gettempdir()) / f"cay-attacks-{os.getpid()}"


def compiled(name: str) -> Path:
    """An attack program, built statically at its first use."""
    program = _programs / name
    if not program.exists():
        _programs.mkdir(exist_ok=True)
        subprocess.run(["cc", "-O1", "-static", "-w", "-o", program, HERE / f"{name}.c"], check=True)
    return program
