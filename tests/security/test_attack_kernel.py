"""Attacks on the kernel's own interfaces: forbidden calls, other ABIs, sysctls, logs and memory."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from arena import SYSCTLS, Breach

GROUP = "kernel interfaces"

# name -> number on x86-64 and arguments that do no harm where the call is not stopped. What is not answered
# with EPERM (or ENOSYS) has been looked at by the kernel, and that is already too much.
CALLS = {
    "bpf": (321, "0, None, 0"),
    "perf_event_open": (298, "None, 0, -1, -1, 0"),
    "userfaultfd": (323, "0"),
    "kexec_load": (246, "0, 0, None, 0"),
    "kexec_file_load": (320, "-1, -1, 0, None, 0"),
    "init_module": (175, "None, 0, b''"),
    "finit_module": (313, "-1, b'', 0"),
    "delete_module": (176, "b'no-such-module', 0"),
    "add_key": (248, "b'user', b'name', b'x', 1, -3"),
    "request_key": (249, "b'user', b'name', None, -3"),
    "keyctl": (250, "0, -3, 1"),
    "io_uring_setup": (425, "1, None"),
    "io_uring_enter": (426, "-1, 0, 0, 0, None, 0"),
    "io_uring_register": (427, "-1, 0, None, 0"),
    "swapon": (167, "b'/no/such', 0"),
    "swapoff": (168, "b'/no/such'"),
    "acct": (163, "b'/no/such'"),
    "quotactl": (179, "0x80000000, None, 0, None"),
    "syslog": (103, "3, ctypes.create_string_buffer(64), 64"),
    "iopl": (172, "3"),
    "ioperm": (173, "0x80, 1, 1"),
    "settimeofday": (164, "None, ctypes.create_string_buffer(16)"),
    "clock_settime": (227, "0, None"),
    "adjtimex": (159, "struct.pack('=I', 0x8000) + bytes(300)"),
    "reboot": (169, "0xfee1dead, 672274793, 0, None"),
    "vhangup": (153, ""),
    "open_by_handle_at": (304, "-1, None, 0"),
    "lookup_dcookie": (212, "0, None, 0"),
    "uselib": (134, "b'/no/such'"),
    "nfsservctl": (180, "0, None, None"),
    "fanotify_init": (300, "4, 0"),
    "kcmp": (312, "1, 1, 0, 0, 0"),
    "setns": (308, "-1, 0"),
    "fsopen": (430, "b'tmpfs', 0"),
    "open_tree": (428, "-100, b'/', 1"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
def test_forbidden_call(arena, attacker, name):
    number, arguments = CALLS[name]
    arena.script(
        attacker,
        f"""
result, error = syscall({number}, {arguments})
print(result, error)
if error not in ("EPERM", "ENOSYS"): breach("{name} answers", result, error)
""",
    )


@pytest.mark.parametrize("abi", ["x32", "i386"])
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 has these other doors")
def test_forbidden_calls_by_other_abis(arena, attacker, abi):
    arena.program(attacker, "other_abis", abi)


def test_taking_the_filter_off(arena, attacker):
    """no_new_privs cannot be unset, and a filter that allows everything allows nothing more."""
    arena.script(
        attacker,
        """
if libc.prctl(38, 0, 0, 0, 0) == 0: breach("no_new_privs unset")
if libc.prctl(39, 0, 0, 0, 0) != 1: breach("no_new_privs is not set")
class Filter(ctypes.Structure): _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure): _fields_ = [("size", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]
allow = (Filter * 1)(Filter(6, 0, 0, 0x7fff0000))
print(libc.prctl(22, 2, ctypes.byref(Program(1, allow)), 0, 0))
result, error = syscall(250, 0, -3, 1)
if error != "EPERM": breach("keyctl after a permissive filter", result, error)
for name in ("CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb"):
    line = [l for l in open("/proc/self/status") if l.startswith(name)][0]
    # SYS_ADMIN 21, SYS_MODULE 16, SYS_RAWIO 17, SYS_PTRACE 19, SYS_BOOT 22, SYS_TIME 25, MKNOD 27, NET_ADMIN 12, BPF 39
    mask = int(line.split()[1], 16)
    if any(mask >> bit & 1 for bit in (12, 16, 17, 19, 21, 22, 25, 27, 38, 39)): breach(line.strip())
""",
    )


def test_more_rights_by_execve(arena, attacker):
    """Nothing that is executed gets what the sandbox has not: file capabilities of its own making."""
    arena.script(
        attacker,
        """
import shutil
path = os.environ["HOME"] + "/python"
shutil.copy("/usr/bin/python3", path); os.chmod(path, 0o755)
attempt(os.setxattr, path, "security.capability", struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0xffffffff, 0))
out = attempt(lambda: subprocess.run([path, "-c", "print([l for l in open('/proc/self/status') if l.startswith('CapEff')][0])"], capture_output=True, text=True))
print(out)
if out and out.returncode == 0 and int(out.stdout.split()[1], 16) & (1 << 21): breach("SYS_ADMIN by a file capability")
""",
    )


@pytest.mark.parametrize("name", SYSCTLS)
def test_writing_a_sysctl(arena, attacker, name):
    """The value that is already there, so that nothing breaks where it works."""
    arena.script(
        attacker,
        f"""
path = "/proc/sys/{name}"
def act():
    value = slurp(path)
    fd = os.open(path, os.O_WRONLY); os.write(fd, value)
    if "{name}" not in ("kernel/hostname", "kernel/domainname", "net/ipv4/ip_forward"): breach("wrote", path)
attempt(act); attempt(os.chmod, path, 0o666)
""",
    )


def test_sysctls_through_the_api(arena, attacker):
    """cay-host's root must not do for the sandbox what the sandbox may not do itself."""
    for path in (
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/self/attr/current",
        "/sys/kernel/uevent_helper",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/self/oom_score_adj",
        "/proc/1/oom_score_adj",
    ):
        current = (
            Path(path).read_bytes() if path.endswith(("core_pattern", "modprobe")) and Path(path).exists() else b"h"
        )
        answer = attacker.client().put("/v1/files/write", current, path=path)
        if answer.status == 200 and arena.walls != "restricted":
            raise Breach(f"wrote {path}")


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
        "/proc/sys/fs/binfmt_misc/register",
        "/sys/power/state",
        "/proc/acpi/wakeup",
        "/proc/mtrr",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/proc/sys/vm/drop_caches",
        "/sys/module/kernel/parameters/panic",
    ],
)
def test_levers_of_the_machine(arena, attacker, path):
    arena.script(
        attacker,
        """
def act(): os.close(os.open(sys.argv[1], os.O_WRONLY)); breach("opened for writing")
attempt(act)
""",
        path,
    )


@pytest.mark.parametrize(
    "path",
    [
        "/proc/kcore",
        "/proc/kmsg",
        "/dev/kmsg",
        "/dev/mem",
        "/dev/port",
        "/proc/1/mem",
        "/proc/vmallocinfo",
        "/sys/kernel/debug/sched",
        "/sys/kernel/tracing/trace",
        "/sys/firmware/dmi/tables/DMI",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/slabinfo",
        "/proc/sched_debug",
    ],
)
def test_memory_and_logs_of_the_kernel(arena, attacker, path):
    arena.script(
        attacker,
        """
def act():
    fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
    data = os.read(fd, 256)
    if data.strip(b"\\0"): breach("read", data[:60])
attempt(act)
""",
        path,
    )


def test_addresses_of_the_kernel(arena, attacker):
    arena.script(
        attacker,
        """
def act():
    for line in open("/proc/kallsyms"):
        if int(line.split()[0], 16): breach("an address of the kernel", line.strip()); return
attempt(act)
""",
    )


def test_executing_from_memory_gains_nothing(arena, attacker):
    """A program that was never a file: memfd_create and fexecve keep every wall."""
    arena.script(
        attacker,
        """
fd = os.memfd_create("x"); os.write(fd, slurp("/usr/bin/cat", 1 << 26))
out = subprocess.run([f"/proc/self/fd/{fd}", sys.argv[1]], capture_output=True, pass_fds=[fd])
show(out.stdout)
if out.returncode == 0: breach("read the host's file")
""",
        arena.root_file,
    )


def test_threads_share_the_walls(arena, attacker):
    """Landlock and seccomp hold for threads that are made after and for processes with shared memory."""
    arena.script(
        attacker,
        """
import threading
def act():
    print(syscall(250, 0, -3, 1))
    if syscall(250, 0, -3, 1)[1] != "EPERM": breach("keyctl in a thread")
    show(attempt(slurp, sys.argv[1]))
thread = threading.Thread(target=act); thread.start(); thread.join()
""",
        arena.root_file,
    )
