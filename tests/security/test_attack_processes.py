"""Attacks on processes: seeing, signalling, tracing and robbing the victim, the keeper and the host."""

from __future__ import annotations

import os
import time

import pytest

from arena import Breach
from host import is_running, wait_until

GROUP = "processes"


def test_arguments_of_others(arena, attacker):
    """The list of processes, and what stands on their command lines."""
    done = arena.script(
        attacker,
        """
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != os.getpid():
        for part in ("cmdline", "comm", "status"):
            show(attempt(slurp, f"/proc/{name}/{part}"))
""",
    )
    if str(arena.host.state) in done.stdout:
        raise Breach("the arguments of a process of the host's tell where its state folder is")


def test_environment_and_memory_maps_of_others(arena, attacker):
    """Also of pids that are not listed."""
    pids = [arena.host.pid, *arena.victim_outer, os.getpid()]
    arena.script(
        attacker,
        """
for pid in {*range(1, 200), *map(int, sys.argv[1:])} - {os.getpid()}:
    for part in ("environ", "cwd", "root", "exe", "maps", "stack", "fd", "auxv", "io"):
        path = f"/proc/{pid}/{part}"
        try:
            data = " ".join(os.listdir(path)) if part == "fd" else os.readlink(path) if part in ("cwd", "root", "exe") else slurp(path)
            own = os.stat(f"/proc/{pid}").st_uid == os.getuid() and int(slurp(f"/proc/{pid}/stat").rsplit(b")")[1].split()[1]) != 0
            if data and not own: breach("reads", path, data[:80])
            if part == "environ": show(data)
        except OSError: pass
""",
        *pids,
    )


def test_signals_to_everybody(arena, attacker):
    """kill(-1) and every number, in a child that survives nothing of its own."""
    done = attacker.client().exec(
        [
            "/usr/bin/python3",
            "-c",
            """
import os, signal
for number in (signal.SIGTERM, signal.SIGKILL):
    for pid in range(2, 32768):
        if pid not in (os.getpid(), os.getppid()):
            try: os.kill(pid, number); print("killed", pid)
            except OSError: pass
print("END", flush=True)
# Last: where commands and what minds them are of one user, this ends the command itself.
for number in (signal.SIGTERM, signal.SIGKILL):
    try: os.kill(-1, number)
    except OSError as e: print(e)
""",
        ],
        timeout=60,
    )
    arena.judge(done)
    if not all(is_running(p) for p in arena.victim_outer):
        raise Breach("the victim's process was killed")


@pytest.mark.parametrize("name", ["KILL", "STOP", "TERM", "SEGV", "USR1"])
def test_signals_to_the_keeper(arena, attacker, name):
    done = attacker.client(timeout=20).exec(f"kill -{name} 1; sleep 0.2; echo END", timeout=15)
    arena.judge(done)
    # The parent may be another one than the keeper. Who harms it harms its own command at most.
    own = attacker.client(timeout=20).exec(f"kill -{name} $PPID; sleep 0.2; echo END", timeout=5)
    assert own.exit is not None, "the command never ended"
    time.sleep(0.2)
    try:
        attacker.works(10)
    except (OSError, AssertionError) as error:
        raise Breach(f"the keeper did not survive SIG{name}: {error}") from error


@pytest.mark.parametrize("how", ["attach", "seize"])
def test_tracing_the_keeper_and_others(arena, attacker, how):
    arena.script(
        attacker,
        """
request = {"attach": 16, "seize": 0x4206}[sys.argv[1]]
for pid in {1, os.getppid(), *map(int, sys.argv[2:])} - {os.getpid(), 0}:
    result, name = syscall(101, request, pid, 0, 0)
    print(pid, result, name)
    if result == 0: breach("traces", pid); syscall(101, 17, pid, 0, 0)
""",
        how,
        arena.host.pid,
        *arena.victim_outer,
    )


def test_memory_of_the_keeper_and_others(arena, attacker):
    arena.script(
        attacker,
        """
for pid in {1, os.getppid(), *map(int, sys.argv[1:])} - {os.getpid(), 0}:
    def act():
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
            for line in open(f"/proc/{pid}/maps"):
                if "rw-p" in line:
                    first, last = (int(x, 16) for x in line.split()[0].split("-"))
                    f.seek(first); show(f.read(min(last - first, 1 << 20))); breach("read memory of", pid); return
    attempt(act)
    buffer = ctypes.create_string_buffer(64)
    class Vec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    local, remote = Vec(ctypes.addressof(buffer), 64), Vec(0x400000, 64)
    result, name = syscall(310, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    print(pid, result, name)
    if result > 0 or name == "EFAULT": breach("process_vm_readv of", pid)
""",
        arena.host.pid,
        *arena.victim_outer,
    )


def test_descriptors_of_the_keeper(arena, attacker):
    arena.script(
        attacker,
        """
for pid in {1, os.getppid()} - {0}:
    handle, name = syscall(434, pid, 0)
    if handle < 0: print("no pidfd", name); continue
    for fd in range(0, 64):
        got, name = syscall(438, handle, fd, 0)
        if got >= 0: breach("took descriptor", fd, "of", pid, attempt(os.readlink, f"/proc/self/fd/{got}"))
    print(name)
for pid in {1, os.getppid()} - {0}:
    for name in attempt(os.listdir, f"/proc/{pid}/fd") or []:
        breach("sees descriptor", name, attempt(os.readlink, f"/proc/{pid}/fd/{name}"))
""",
    )


def test_inherited_descriptors(arena, attacker):
    arena.script(
        attacker,
        """
for name in os.listdir("/proc/self/fd"):
    target = attempt(os.readlink, f"/proc/self/fd/{name}")
    if int(name) > 2 and target and not target.startswith("/proc/"): breach("inherits", name, target)
for fd in (0, 1, 2):
    target = os.readlink(f"/proc/self/fd/{fd}")
    if target.startswith("/") and target not in ("/dev/null",): breach("a file of the host as descriptor", fd, target)
""",
    )


@pytest.mark.parametrize("which", ["exe", "ppid"])
def test_rewriting_the_programs_that_run_us(arena, attacker, which):
    """/proc/<pid>/exe of the keeper or the starter leads to the executable of the host."""
    arena.script(
        attacker,
        """
path = {"exe": "/proc/1/exe", "ppid": f"/proc/{os.getppid()}/exe"}[sys.argv[1]]
for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY):
    def act():
        fd = os.open(path, flags)
        target = os.readlink(path)
        if flags != os.O_RDONLY and "cay-host" in target: breach("opened for writing", target)
        again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
        if "cay-host" in target: breach("opened again for writing", target)
    attempt(act)
attempt(os.link, path, os.environ["HOME"] + "/stolen")
""",
        which,
    )


def test_rank_and_limits_of_others(arena, attacker):
    arena.script(
        attacker,
        """
import resource
for pid in {1, *map(int, sys.argv[1:])}:
    for act in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda: os.sched_setaffinity(pid, {0}),
                lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))):
        def full(): act(); breach("changed process", pid)
        attempt(full)
def raised(): resource.setrlimit(resource.RLIMIT_NPROC, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
def better(): os.setpriority(os.PRIO_PROCESS, 0, -20); breach("a better rank than the host")
def realtime(): os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)); breach("real time rank")
attempt(better); attempt(realtime)
""",
        arena.host.pid,
    )


def test_immunity_against_lack_of_memory(arena, attacker):
    arena.script(
        attacker,
        """
own = int(slurp("/proc/self/oom_score_adj"))
def act():
    with open("/proc/self/oom_score_adj", "w") as f: f.write("-1000")
    breach("cannot be chosen any more")
attempt(act)
def keeper():
    with open("/proc/1/oom_score_adj", "w") as f: f.write("1000")
    breach("had the keeper chosen first")
attempt(keeper)
""",
    )


def test_daemons_that_outlive_their_sandbox(arena):
    """Sessions of their own, double forks, stopped processes, blocked signals: deletion ends them all."""
    sandbox = arena.attacker()
    done = sandbox.client().exec("""
for i in 1 2 3 4 5; do setsid sh -c 'trap "" TERM HUP INT; (setsid sleep 1000 &) ; while :; do sleep 0.1; done' >/dev/null 2>&1 & done
sh -c 'kill -STOP $$' & sleep 0.3; echo END""")
    arena.judge(done)
    wait_until(lambda: len(sandbox.commands()) >= 5, what="the daemons")
    assert sandbox.delete().status == 200
    try:
        wait_until(lambda: not sandbox.commands(), 5)
    except AssertionError as error:
        raise Breach(f"left over: {sandbox.commands()}") from error


def test_terminal_injection(arena, attacker):
    arena.script(
        attacker,
        """
import fcntl, termios
for path in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/ttyS0", "/dev/pts/0"):
    def act():
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(fd, termios.TIOCSTI, b"x"); breach("typed into", path)
    attempt(act)
for fd in (0, 1, 2): attempt(fcntl.ioctl, fd, termios.TIOCSTI, b"x")
""",
    )


def test_processes_of_others_through_the_api(arena, attacker):
    """Ids and pids of the victim, of the host and of init are nobody's in the attacker's table."""
    client = attacker.client()
    victim = arena.victim_process
    for who in (victim["id"], arena.host.pid, *arena.victim_outer, 1, "0", "-1", "%2e%2e"):
        answer = client.delete(f"/v1/processes/{who}")
        if answer.status == 200 and answer.json().get("killed"):
            raise Breach(f"killed {who}")
        for route in (
            f"/v1/processes/{who}/output",
            f"/v1/execs/{arena.victim_exec.exec_id}/output",
            f"/v1/execs/{arena.victim_exec.exec_id}",
        ):
            arena.search(client.get(route).body)
        client.post(f"/v1/processes/{who}/signal", {"signal": "KILL"})
    if not all(is_running(p) for p in arena.victim_outer):
        raise Breach("the victim's process was killed")


def test_crash_dumps_land_nowhere(arena, attacker):
    """A core dump is written by the kernel, with more rights than the sandbox has if that is done wrong."""
    before = set(os.listdir("/")) | set(os.listdir(arena.folder))
    done = attacker.client().exec(
        "ulimit -c unlimited 2>/dev/null; cd /tmp 2>/dev/null || cd; sh -c 'kill -SEGV $$'; echo END"
    )
    arena.judge(done)
    if set(os.listdir("/")) | set(os.listdir(arena.folder)) != before:
        raise Breach("a file appeared on the host")


def test_all_commands_belong_to_the_sandbox(arena, attacker):
    """Seen from outside: ids of its own, no new privileges, a seccomp filter, no capability of the host."""
    with attacker.client().exec_stream("exec sleep 60") as stream:
        stream.next("start")
        pid = wait_until(attacker.commands)[0]
        fields = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
        uids = {int(u) for u in fields["Uid"].split()}
        victims = {os.stat(f"/proc/{p}").st_uid for p in arena.victim_outer}
    if fields["NoNewPrivs"] != "1" or fields["Seccomp"] != "2":
        raise Breach(f"NoNewPrivs {fields['NoNewPrivs']}, Seccomp {fields['Seccomp']}")
    if 0 in uids or (arena.walls != "unprivileged" and uids & victims):
        raise Breach(f"runs as {uids} beside a victim of {victims}")
    if fields["Groups"].strip():
        raise Breach(f"is in the groups {fields['Groups']}")
    if arena.walls == "restricted" and int(fields["CapEff"], 16):
        raise Breach("has capabilities")
