"""A hub that an ordinary user runs, without a control group or anything else of root's: the unmodified client on it, what its
jobs are told that they lack, the walls between them, its end; and what is said where no hub can be."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from host import ROOT, all_pids, wait_until
from hub_host import Hub, HubPlace, run_cay
from hub_jobs import ENDED, Jobs
from pool_host import UNPRIVILEGED_ID, WRAPPERS, unprivileged_pool

pytestmark = pytest.mark.slow

CLIENT = ROOT / "tests" / "hub_client"
ORDINARY = WRAPPERS["unprivileged"]
# The device that slirp4netns needs, open to all as on most machines, or not there.
WITH_TUN = ["unshare", "--mount", "sh", "-c",
            'mount -t tmpfs -o mode=755 cay /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"', "sh", *ORDINARY]
WITHOUT_TUN = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=755 cay /dev/net && exec "$@"', "sh", *ORDINARY]
# In a user namespace where there can be no other.
WITHOUT_USERS = [sys.executable, "-c", """
import ctypes, os, sys
out, begun = os.pipe()
if os.fork() == 0:
    os.read(out, 1)
    for kind in ("uid", "gid"):
        open(f"/proc/{os.getppid()}/{kind}_map", "w").write("0 0 100000")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(begun, b"x")
assert os.wait()[1] == 0
open("/proc/sys/user/max_user_namespaces", "w").write("0")
os.execvp(sys.argv[1], sys.argv[1:])
""", *ORDINARY]
# Prints a line for each of the addresses in its arguments that answers.
REACH = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 2).close()
        print("reached", target)
    except ConnectionRefusedError:
        print("refused by", target)
    except OSError as error:
        print("no way to", target, error)
"""


class OrdinaryHub(Hub):
    def __init__(self, place: HubPlace | None = None, **options) -> None:
        super().__init__(place, **{"wrapper": ORDINARY, **options})
        self.owns_place = place is None
        if self.owns_place:
            self.state.mkdir(mode=0o700)
            os.chown(self.state, UNPRIVILEGED_ID, UNPRIVILEGED_ID)

    def cay(self, *arguments, **options) -> subprocess.CompletedProcess:
        return run_cay(*ORDINARY[1:], self.place.cay, *arguments, "--state", self.state, binary=ORDINARY[0], **options)

    def again(self, **options) -> "OrdinaryHub":
        return OrdinaryHub(self.place, **options)


def running(wrapper):
    hub = OrdinaryHub(wrapper=wrapper)
    try:
        hub.start()
        done = hub.cay("image", "alias", "python:3.12", "host")
        assert done.returncode == 0, done.stderr
        yield hub
        hub.stop()
    finally:
        hub.destroy()


@pytest.fixture(scope="module")
def slirp_hub():
    yield from running(WITH_TUN)


@pytest.fixture(scope="module")
def alone_hub():
    yield from running(WITHOUT_TUN)


def said_by(hub: Hub, job: str) -> str:
    """What a plain job has written, once it is over."""
    jobs = Jobs(hub)
    info = jobs.until(job, *ENDED)
    lines = jobs.log(job)
    assert info["status"]["stage"] == "COMPLETED", (info, lines)
    return "\n".join(lines)


def reach(hub: Hub, *targets: str, **fields) -> str:
    return said_by(hub, Jobs(hub).start(["python3", "-c", REACH, *targets], **fields))


# ---- the client

@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dedicated", pytest.param("pool", marks=unprivileged_pool)])
def test_the_real_client_works(slirp_hub, kind, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    env = {**slirp_hub.client_env(), "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run([ROOT / ".venvs/hub-2.4.0/bin/python", CLIENT / "scenario.py", kind, work, "hub"], env=env,
                          capture_output=True, text=True, timeout=600, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert not {case["case"]: case["error"] for case in told if case["error"]}
    assert {"case_create", "case_kill"} <= {case["case"] for case in told}, done.stderr + slirp_hub.log


@pytest.mark.slow
@pytest.mark.parametrize("script", ["creation.py", pytest.param("pools.py", marks=unprivileged_pool)])
def test_the_real_client_makes_sandboxes_in_every_way(slirp_hub, script, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    namespace = Jobs(slirp_hub).namespace
    other = slirp_hub.cay("token", "create", f"other-{script}", "--user", "other", "--namespace", namespace, "--json")
    env = {**slirp_hub.client_env(), "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf"),
           "CAY_OTHER_TOKEN": json.loads(other.stdout)["token"]}
    done = subprocess.run([ROOT / ".venvs/hub-2.4.0/bin/python", CLIENT / script, work, "hub"], env=env,
                          capture_output=True, text=True, timeout=600, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told, done.stderr + slirp_hub.log
    assert not {case["case"]: case["error"] for case in told if case["error"]}


SMALL = """
from huggingface_hub import Sandbox, SandboxPool
with Sandbox.create() as sandbox:
    assert sandbox.run("id -u && echo hello").stdout == "0\\nhello\\n"
    sandbox.files.write("/data/a", b"x" * 3_000_000)
    assert len(sandbox.files.read("/data/a")) == 3_000_000
with SandboxPool(sandboxes_per_host=4) as pool:
    for number, sandbox in enumerate([pool.create() for _ in range(3)]):
        assert sandbox.run(f"echo {number}").stdout == f"{number}\\n"
print("all of it")
"""


@unprivileged_pool
def test_the_real_client_works_with_a_loopback_alone(alone_hub, tmp_path):
    env = {**alone_hub.client_env(), "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run([ROOT / ".venvs/hub-2.4.0/bin/python", "-c", SMALL], env=env, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.stdout == "all of it\n", done.stderr + alone_hub.log


POOL = """
import sys
from huggingface_hub import SandboxPool
pool = SandboxPool(sandboxes_per_host=4)
sandboxes = [pool.create() for _ in range(2)]
for sandbox in sandboxes:
    sandbox.run(["setsid", "sleep", sys.argv[1]], background=True)
print(sandboxes[0].host_id, flush=True)
sys.stdin.readline()
print(sandboxes[0].run("pgrep -c sleep").stdout, flush=True)
sys.stdin.readline()
"""


@unprivileged_pool
def test_a_pool_outlives_its_host_and_ends_whole(alone_hub, tmp_path):
    """There is no control group that would hold it together."""
    mark = f"{40_000 + os.getpid()}.25"

    def sleepers() -> int:
        return sum(f"sleep\0{mark}\0".encode() == line for line in commands())

    env = {**alone_hub.client_env(), "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    client = subprocess.Popen([ROOT / ".venvs/hub-2.4.0/bin/python", "-c", POOL, mark], env=env, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with client:
        job = client.stdout.readline().strip()
        wait_until(lambda: sleepers() == 2, 10)  # setsid has become sleep
        _, server, _ = (alone_hub.state / f"jobs/{job}/host.mark").read_text().split()
        os.kill(int(server), signal.SIGKILL)
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.readline().strip() == "1", alone_hub.log
        assert sleepers() == 2
        Jobs(alone_hub).cancel(job)
        wait_until(lambda: sleepers() == 0, 10)
        client.kill()


def commands() -> list[bytes]:
    found = []
    for pid in all_pids():
        try:
            found.append(open(f"/proc/{pid}/cmdline", "rb").read())
        except OSError:
            pass
    return found


# ---- what is weaker, and told

def notes_of(hub: Hub) -> list[str]:
    jobs = Jobs(hub)
    job = jobs.start(["true"])
    wait_until(lambda: jobs.stage(job) in ENDED, 30)
    return jobs.info(job)["cay"]["notes"]


@pytest.mark.parametrize("name, said", [
    ("slirp_hub", r"network through slirp4netns \(no kernel nat: only root can change the machine's network\)"),
    ("alone_hub", r"no network beyond this job and its group: loopback only: only root .*; slirp4netns needs /dev/net/tun.*"),
])
def test_job_and_log_say_what_is_missing(request, name, said):
    hub = request.getfixturevalue(name)
    notes = notes_of(hub)
    assert any(re.fullmatch(said, note) for note in notes), notes
    assert any(note.startswith("limits: ") for note in notes), notes
    for note in notes:
        assert note in hub.log


def test_kernel_translation_is_refused_by_name():
    hub = OrdinaryHub(flags=["--network", "kernel"])
    try:
        with pytest.raises(AssertionError, match="only root can change the machine's network"):
            hub.start()
        wait_until(lambda: not hub.processes(), 5)
    finally:
        hub.destroy()


# ---- networks

def own_addresses() -> list[str]:
    links = json.loads(subprocess.run(["ip", "-j", "-4", "addr"], capture_output=True, check=True).stdout)
    return [info["local"] for link in links for info in link["addr_info"]]


def test_the_machine_is_closed_to_jobs(slirp_hub):
    with socket.create_server(("0.0.0.0", 0)) as service:
        port = service.getsockname()[1]
        targets = [f"{address}:{p}" for address in [*own_addresses(), "100.127.255.2"]
                   for p in (port, int(slirp_hub.api.rsplit(":", 1)[1]), slirp_hub.tls_port)]
        said = reach(slirp_hub, *targets, "169.254.169.254:80")
    # Its own loopback alone answers, by refusing.
    assert "reached" not in said, said
    assert set(re.findall(r"refused by (\S+):", said)) <= {"127.0.0.1"}, said


def test_jobs_reach_out(slirp_hub):
    """By what answers the machine itself, be it with a refusal."""
    resolvers = re.findall(r"^nameserver (\d+\.\d+\.\d+\.\d+)$", open("/etc/resolv.conf").read(), re.MULTILINE)
    outside = [f"{address}:53" for address in resolvers if address not in own_addresses()]
    if not outside:
        pytest.skip("nobody is known out there")
    try:
        socket.create_connection((outside[0].rsplit(":", 1)[0], 53), 3).close()
    except OSError:
        pytest.skip("nobody out there answers this machine")
    assert f"reached {outside[0]}" in reach(slirp_hub, outside[0])


LISTEN = "import socket, time; s = socket.create_server(('0.0.0.0', 7000)); print('up', flush=True); time.sleep(60)"


def test_groups_are_apart(slirp_hub):
    jobs = Jobs(slirp_hub)
    servers = {group: jobs.start(["python3", "-c", LISTEN], network={"group": group, "aliases": ["server"]})
               for group in ("one", "two")}
    for job in servers.values():
        wait_until(lambda job=job: jobs.stage(job) == "RUNNING", 30)
    own = "import os, socket; print(socket.gethostbyname(os.environ['HF_NETWORK_GROUP_PREFIX'] + 'server'))"
    two = said_by(slirp_hub, jobs.start(["python3", "-c", own], network={"group": "two"}))
    try:
        wait_until(lambda: f"reached {two}:7000" in reach(slirp_hub, f"{two}:7000", network={"group": "two"}), 20)
        assert "reached" not in reach(slirp_hub, f"{two}:7000", network={"group": "one"})
        assert "reached" not in reach(slirp_hub, f"{two}:7000")
    finally:
        for job in servers.values():
            jobs.cancel(job)


# ---- restarts

def test_jobs_outlive_the_hub():
    first = OrdinaryHub(end_jobs=False)
    try:
        first.start()
        jobs = Jobs(first)
        old = jobs.start(["sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.1; done"], timeoutSeconds=120)
        wait_until(lambda: jobs.stage(old) == "RUNNING", 30)
        first.kill9()
        second = first.again()
        second.start()
        assert Jobs(second).stage(old) == "RUNNING"
        assert "hello" in said_by(second, Jobs(second).start(["echo", "hello"]))
        net = [pid for pid in second.processes() if open(f"/proc/{pid}/comm").read() == "cay-net\n"]
        assert len(net) == 1
        # With it all networks go. The next job gets another one, in a namespace of another root.
        os.kill(net[0], signal.SIGKILL)
        wait_until(lambda: Jobs(second).stage(old) == "ERROR", 30)
        assert "hello" in said_by(second, Jobs(second).start(["echo", "hello"]))
        second.stop()
    finally:
        first.destroy()


# ---- where there can be none

@pytest.mark.parametrize("wrapper, said", [
    (WRAPPERS["restricted"], "jobs need namespaces, which root has with CAP_SYS_ADMIN alone"),
    (WITHOUT_USERS, "jobs need namespaces, and an ordinary user may make none here"),
])
def test_it_says_at_once_that_it_cannot_be(wrapper, said, tmp_path):
    place = HubPlace()
    try:
        place.state.mkdir(mode=0o700)
        os.chown(place.state, *[UNPRIVILEGED_ID if wrapper is WITHOUT_USERS else 0] * 2)
        done = run_cay(*wrapper[1:], place.cay, "serve", "--port", "0", "--tls-port", "0", "--state", place.state,
                       binary=wrapper[0], timeout=20)
        assert done.returncode == 1 and done.stdout == "", done
        assert done.stderr.startswith(f"cay serve: {said}") and done.stderr.count("\n") == 1, done.stderr
        assert not list(place.state.iterdir())
    finally:
        place.remove()
