"""Attacks on the network of a hub's jobs: the machine, the router, other jobs, and one's own address."""

from __future__ import annotations

import json
import socket
import subprocess
import threading

import pytest

from arena import Breach
from host import wait_until
from hub_leftovers import uplinks_of

GROUP = "hub: networks"
KINDS = ("dedicated", "plain")

# Tries many addresses at once. What answers is shown.
REACH = """
import select
def reach(addresses, ports, limit=3.0):
    own = socket.create_server(("127.0.0.1", 0))
    if not reached(["127.0.0.1"], [own.getsockname()[1]], 5): raise SystemExit("what can be reached is not seen to be")
    own.close()
    for address, port in reached(addresses, ports, limit): breach("connected to", address, port)
def reached(addresses, ports, limit):
    waiting, found = {}, []
    for address in addresses:
        for port in ports:
            try:
                family, _, _, _, target = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0]
                s = socket.socket(family); s.setblocking(False); begun = s.connect_ex(target)
                if begun in (0, errno.EINPROGRESS): waiting[s] = (address, port)
                else: print(address, port, os.strerror(begun))
            except OSError as error: print(address, port, error)
    until = time.monotonic() + limit
    while waiting and time.monotonic() < until:
        _, ready, _ = select.select([], list(waiting), [], 0.2)
        for s in ready:
            address, port = waiting.pop(s)
            error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error: print(address, port, os.strerror(error)); continue
            found.append((address, port))
            s.settimeout(0.5)
            def talk(): s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); show(s.recv(4096))
            attempt(talk)
    for address, port in waiting.values(): print(address, port, "silence")
    return found
def shout(addresses, port):
    for address in addresses:
        try:
            family, _, _, _, target = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)[0]
            s = socket.socket(family, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(b"hello from the job", target)
        except OSError as error: print(address, port, error)
def gateways():
    for line in open("/proc/net/route").read().splitlines()[1:]:
        fields = line.split()
        for number in (fields[1], fields[2]):
            if number != "00000000": yield socket.inet_ntoa(struct.pack("<I", int(number, 16)))
"""


def addresses_of_the_machine(arena) -> list[str]:
    links = json.loads(subprocess.run(["ip", "-j", "addr"], capture_output=True, check=True).stdout)
    found = ["127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "::", "localhost"]
    for link in links:
        for info in link.get("addr_info", []):
            scope = "%eth0" if info["scope"] == "link" and info["family"] == "inet6" else ""
            found.append(info["local"] + scope)
            if info["family"] == "inet":
                found.append(f"::ffff:{info['local']}")
    for number in uplinks_of(arena.hub.programs):
        first = 0x64400000 + 4 * number
        found += [socket.inet_ntoa((first + side).to_bytes(4, "big")) for side in (0, 1, 2, 3)]
    return [a for a in dict.fromkeys(found) if a != "localhost"]


class Service:
    """One of the machine, on all its addresses, TCP and UDP, that knows who came."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.udp.bind(("::", 0))
        self.udp_port = self.udp.getsockname()[1]
        for target in (self._accept, self._receive):
            threading.Thread(target=target, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, who = self.tcp.accept()
            except OSError:
                return
            self.reached.append(f"tcp from {who[0]}")
            connection.close()

    def _receive(self) -> None:
        while True:
            try:
                data, who = self.udp.recvfrom(100)
            except OSError:
                return
            self.reached.append(f"udp from {who[0]}: {data!r}")

    def close(self) -> None:
        for one in (self.tcp, self.udp):
            one.close()


@pytest.fixture(scope="module")
def service():
    made = Service()
    yield made
    made.close()


@pytest.mark.parametrize("what", ["api", "tls", "service"])
def test_the_machine_by_every_address(arena, attacker, service, what):
    port = {"api": arena.host.port, "tls": arena.hub.tls_port, "service": service.port}[what]
    with socket.create_connection(("127.0.0.1", port), 5):
        if what == "service":
            wait_until(lambda: service.reached, what="a visit of our own")
    service.reached.clear()
    arena.script(
        attacker,
        REACH + """
addresses = [*sys.argv[2:], *gateways()]
reach(addresses, [int(sys.argv[1])])
""",
        port, *addresses_of_the_machine(arena),
    )
    if service.reached:
        raise Breach(f"the machine was reached: {service.reached[:3]}")


def test_the_machine_by_datagrams(arena, attacker, service):
    service.reached.clear()
    arena.script(
        attacker,
        REACH + 'shout([*sys.argv[2:], *gateways(), "255.255.255.255", "224.0.0.1", "ff02::1%eth0"], int(sys.argv[1]))\ntime.sleep(0.3)',
        service.udp_port, *addresses_of_the_machine(arena),
    )
    if service.reached:
        raise Breach(f"the machine was reached: {service.reached[:3]}")


def test_metadata_of_the_cloud(arena, attacker):
    arena.script(attacker, REACH + 'reach(["169.254.169.254", "169.254.170.2", "fd00:ec2::254"], [80, 443, 53])')


def test_the_router(arena, attacker):
    arena.script(
        attacker,
        REACH + "reach([*gateways(), *sys.argv[1:]], [22, 53, 80, 111, 8000, 49983])",
        *[a for a in addresses_of_the_machine(arena) if a.startswith("100.64.")],
    )


def test_other_jobs_by_their_address(arena, attacker):
    arena.script(
        attacker, REACH + "reach(sys.argv[1:], [8000, 49983, 22, 80])\nshout(sys.argv[1:], 8000)",
        arena.victim_address, arena.job_address,
    )


def test_a_scan_of_all_jobs(arena, attacker):
    arena.script(
        attacker,
        REACH + 'reach([f"100.65.0.{n}" for n in range(0, 200)] + [f"100.96.0.{n}" for n in range(0, 20)], [8000])',
    )


def test_names_of_other_jobs(arena, attacker):
    """Neither the hosts file nor a resolver tells of them."""
    arena.script(
        attacker,
        """
text = slurp("/etc/hosts").decode()
for word in sys.argv[1:]:
    if word in text: breach("the hosts file tells of", word)
    found = attempt(socket.getaddrinfo, word, 80) if not word[0].isdigit() or "." not in word else None
    if found and found[0][4][0].startswith("100."): breach("resolved", word)
""",
        arena.victim.id, arena.job, arena.victim_address, arena.job_address,
    )


def test_changing_ones_own_address(arena, attacker):
    """Netlink and ioctl: another address, another route, another hardware address, a second link, a rule."""
    arena.script(
        attacker,
        r"""
import fcntl
index = {name: number for number, name in socket.if_nameindex()}
print(index)
number = next((n for name, n in index.items() if name != "lo"), 1)
raw = socket.inet_aton(sys.argv[1])
def send(kind, flags, body, protocol=0):
    s = socket.socket(16, 3, protocol); s.settimeout(2)
    s.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body); data = s.recv(4096)
    answer, = struct.unpack_from("=H", data, 4); code, = struct.unpack_from("=i", data, 16)
    print("netlink", kind, answer, code)
    if answer == 2 and code == 0: breach("netlink took", kind)
attempt(send, 20, 0x605, struct.pack("=BBBBi", 2, 32, 0, 0, number) + struct.pack("=HH", 8, 2) + raw + struct.pack("=HH", 8, 1) + raw)
attempt(send, 24, 0x605, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("=HHi", 8, 4, number))
attempt(send, 16, 5, struct.pack("=BBHiII", 0, 0, number, number, 0, 1))
attempt(send, 16, 0x605, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + struct.pack("=HH", 16, 18) + struct.pack("=HH", 10, 1) + b"dummy\0\0\0")
attempt(send, 0xA00, 0x605, b"\x01\x00\x00\x00", 12)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name = b"eth0".ljust(16, b"\0")
for request, data in ((0x8916, struct.pack("=HH4s8x", 2, 0, raw)), (0x8914, struct.pack("=H14x", 0)), (0x8924, struct.pack("=H6s8x", 1, b"\2\0\0\0\0\7")),
                      (0x8922, struct.pack("=i12x", 68)), (0x890B, bytes(24))):
    def act(): fcntl.ioctl(s, request, name + data + bytes(32)); breach("ioctl took", hex(request))
    attempt(act)
""",
        arena.victim_address,
    )


@pytest.mark.parametrize("how", ["freebind", "transparent", "header"])
def test_sending_in_the_victims_name(arena, attacker, how):
    """What is sent with the victim's address goes nowhere: otherwise its answers would come to the victim."""
    listening = arena.victim.client().spawn(
        ["/usr/bin/python3", "-c", """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 5353)); s.settimeout(4); print("up", flush=True)
try: print("GOT", s.recv(512), flush=True)
except TimeoutError: print("nothing", flush=True)
"""])
    path = f"/v1/processes/{listening['id']}"
    while "up" not in arena.victim.client().output(path).stdout:
        pass
    arena.script(
        attacker,
        """
how, victim = sys.argv[1:]
resolvers = [l.split()[1] for l in open("/etc/resolv.conf") if l.startswith("nameserver")]
query = bytes.fromhex("1234010000010000000000000664656269616e036f72670000010001")
def answers():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(query, (resolvers[0], 53)); return len(s.recv(512))
print("in its own name:", attempt(answers))
def act():
    if how == "header":
        socket.socket(socket.AF_INET, socket.SOCK_RAW, 255); breach("writes its own headers"); return
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, {"freebind": 15, "transparent": 19}[how], 1)
    s.bind((victim, 5353))
    for resolver in resolvers:
        for _ in range(3): s.sendto(query, (resolver, 53)); time.sleep(0.1)
    if how == "transparent": breach("a transparent socket")
attempt(act)
""",
        how, arena.victim_address,
    )
    def heard() -> str | None:
        text = arena.victim.client().output(path).stdout
        return text if "GOT" in text or "nothing" in text else None

    if "GOT" in wait_until(heard, what="the end of the victim's patience"):
        raise Breach("the victim got an answer to what it never asked")


def test_sockets_of_the_hub(arena, attacker):
    """Whoever talks to one of these gives orders to a sandbox, to its server or to the networks."""
    state = arena.hub.state
    paths = [p for p in state.rglob("*") if p.is_socket()]
    assert any(p.name == "host.sock" for p in paths) and any(p.name == "keeper.sock" for p in paths), paths
    arena.script(
        attacker,
        """
for path in sys.argv[1:]:
    for prefix in ("", "/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/s"):
        for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM, socket.SOCK_DGRAM):
            def act(): socket.socket(socket.AF_UNIX, kind).connect(prefix + path); breach("connected to", path)
            try: act()
            except OSError as error: last = error
    print(path, last)
""",
        *paths,
    )


def test_joining_the_group_of_another(arena):
    """A group has the namespace of its jobs in its name: the same word of somebody else is another group."""
    owner, eve = arena.host.owner, arena.host.eve
    network = {"group": "shared", "aliases": ["master"]}
    job = owner.start(
        ["/usr/bin/python3", "-c", "import http.server; http.server.ThreadingHTTPServer(('0.0.0.0', 8000), http.server.SimpleHTTPRequestHandler).serve_forever()"],
        network=network)
    try:
        owner.until(job, "RUNNING")
        address = next(line.split()[0] for line in (arena.hub.state / "jobs" / job / "etc/hosts").read_text().splitlines()
                       if line.startswith("100."))
        for group in ("shared", f"{owner.name}/shared", f"../{owner.name}/shared"):
            status, answer = eve.start_answer(
                ["/usr/bin/python3", "-c", """
import socket, sys
print(open("/etc/hosts").read())
s = socket.socket(); s.settimeout(2)
try: s.connect((sys.argv[1], 8000)); print("BREACH")
except OSError as error: print(error)
""", address], network={"group": group, "aliases": ["master"]})
            if status != 200:
                continue
            intruder = json.loads(answer)["id"]
            eve.until(intruder, "COMPLETED", "ERROR")
            text = "\n".join(eve.log(intruder))
            if "BREACH" in text or address in text:
                raise Breach(f"reached or saw a member of another's group by {group!r}")
    finally:
        owner.cancel(job)
