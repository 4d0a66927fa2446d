"""Attacks over sockets and the network: the victim's, the host's, and cay-host's own port."""

from __future__ import annotations

import socket
import threading

import pytest

from arena import Breach

GROUP = "sockets and network"

CONNECT = """
def call(family, address, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind); s.settimeout(3); s.connect(address)
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); data = s.recv(4096); show(data); return data
"""


@pytest.fixture(scope="module")
def loopback():
    """Services of the host on loopback, TCP and UDP, that answer with a secret."""
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    udp.settimeout(0.5)
    reached: list[str] = []

    def serve():
        while True:
            try:
                connection, _ = tcp.accept()
            except OSError:
                return
            reached.append("tcp")
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    yield tcp, udp, reached
    tcp.close()
    udp.close()


@pytest.mark.parametrize("network", ["host", "none"])
def test_abstract_socket_of_the_victim(arena, network):
    sandbox = arena.attacker() if network == "host" else arena.attacker_without_network()
    if sandbox is None:
        return
    arena.script(
        sandbox,
        CONNECT
        + """
attempt(call, socket.AF_UNIX, "\\0" + sys.argv[1])
def squat():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect("\\0" + sys.argv[1]); breach("connected")
attempt(squat)
""",
        arena.abstract,
    )


def test_abstract_socket_of_the_host(arena, attacker):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0host-{arena.abstract}")
        listener.listen()
        listener.settimeout(0.2)
        arena.script(
            attacker,
            """
def act(): socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[1]); breach("connected")
attempt(act)
""",
            f"host-{arena.abstract}",
        )


def test_own_abstract_sockets_work(arena, attacker):
    """Not an attack: the wall is around the sandbox, not around each command."""
    client = attacker.client()
    process = client.spawn(
        [
            "/usr/bin/python3",
            "-c",
            "import os, socket\ns=socket.socket(socket.AF_UNIX); s.bind('\\0' + os.environ['SBX_SANDBOX_ID']); s.listen(); print('up', flush=True)\nwhile True: s.accept()[0].send(b'hi')",
        ]
    )
    while "up" not in client.output(f"/v1/processes/{process['id']}").stdout:
        pass
    done = arena.script(attacker, "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + os.environ['SBX_SANDBOX_ID']); print(s.recv(10))")
    assert "hi" in done.stdout


def test_path_sockets_of_the_victim(arena, attacker):
    folder = arena.host.state / "sandboxes" / arena.victim.id
    arena.script(
        attacker,
        CONNECT
        + """
for path in sys.argv[1:]: attempt(call, socket.AF_UNIX, path)
""",
        folder / "home/.sbx/proxy/80.sock",
        f"{arena.victim_home}/.sbx/proxy/80.sock",
    )


def test_keeper_sockets(arena, attacker):
    """Whoever talks to a keeper may start commands there."""
    state = arena.host.state
    arena.script(
        attacker,
        """
for path in sys.argv[1:]:
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM, socket.SOCK_DGRAM):
        def act(): socket.socket(socket.AF_UNIX, kind).connect(path); breach("connected to", path)
        attempt(act)
""",
        state / "sandboxes" / attacker.id / "keeper.sock",
        state / "sandboxes" / arena.victim.id / "keeper.sock",
        state / "keeper.sock",
    )


def test_connect_to_a_socket_of_the_host_that_is_open_to_everybody(arena, attacker):
    arena.script(
        attacker,
        """
def act(): socket.socket(socket.AF_UNIX).connect(sys.argv[1]); breach("connected")
attempt(act)
""",
        arena.host_socket,
    )


@pytest.mark.parametrize("how", ["bind", "any", "ipv6", "reuseport", "mptcp", "without-bind"])
def test_serving_tcp_on_the_hosts_network(arena, attacker, how):
    done = arena.script(
        attacker,
        """
how, taken = sys.argv[1], int(sys.argv[2])
def act():
    family = socket.AF_INET6 if how == "ipv6" else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM, 262 if how == "mptcp" else 0)
    if how == "reuseport": s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    address = {"any": "0.0.0.0", "ipv6": "::1"}.get(how, "127.0.0.1")
    if how != "without-bind": s.bind((address, taken if how == "reuseport" else 0))
    s.listen(); print("LISTENS", s.getsockname()[1], flush=True); time.sleep(1)
attempt(act)
""",
        how,
        arena.host.port,
    )
    if "LISTENS" in done.stdout:
        raise Breach(f"serves TCP ({how})")


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_network_none_reaches_nothing(arena, loopback, kind):
    sandbox = arena.attacker_without_network()
    if sandbox is None:
        return
    tcp, udp, reached = loopback
    port = (tcp if kind == "tcp" else udp).getsockname()[1]
    reached.clear()
    arena.script(
        sandbox,
        """
kind, port = sys.argv[1], int(sys.argv[2])
def act():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM); s.settimeout(2)
    s.connect(("127.0.0.1", port)); s.send(b"hello from the sandbox")
    if kind == "tcp": breach("connected")
attempt(act)
def outside():
    s = socket.socket(); s.settimeout(1); s.connect(("192.0.2.1", 80)); breach("has a way out")
attempt(outside)
""",
        kind,
        port,
    )
    if kind == "udp":
        try:
            raise Breach(f"got {udp.recv(100)!r}")
        except TimeoutError:
            pass
    if reached:
        raise Breach("the host was reached")


def test_network_none_may_serve_and_udp_stays_inside(arena):
    """Its own loopback works in full, TCP and UDP, and nobody outside hears of it."""
    sandbox = arena.attacker_without_network()
    if sandbox is None:
        return
    arena.script(
        sandbox,
        """
t = socket.create_server(("127.0.0.1", 8080)); c = socket.create_connection(("127.0.0.1", 8080))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 5353)); u.sendto(b"x", ("127.0.0.1", 5353))
assert u.recv(10) == b"x"
""",
    )
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 8080)) == 0:
            raise Breach("reachable from the host")


@pytest.mark.parametrize("network", ["host", "none"])
def test_cay_hosts_own_port(arena, network):
    """From inside, with no token, with guesses, and with the ids that are known there."""
    sandbox = arena.attacker() if network == "host" else arena.attacker_without_network()
    if sandbox is None:
        return
    arena.script(
        sandbox,
        """
import http.client
port, own, victim = int(sys.argv[1]), sys.argv[2], sys.argv[3]
guesses = [None, "", "0" * 64, own, victim, "secret-token", "null", "undefined", "Bearer", "' or 1=1", os.environ["SBX_SANDBOX_ID"]]
for token in guesses:
    for method, path in (("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("GET", f"/v1/sandboxes/{victim}"),
                         ("GET", f"/v1/sandboxes/{victim}/token"), ("GET", f"/v1/sandboxes/{own}/token"),
                         ("POST", f"/v1/sandboxes/{victim}/exec"), ("DELETE", f"/v1/sandboxes/{victim}"),
                         ("GET", f"/v1/sandboxes/{victim}/files/read?path=secret"), ("GET", f"/v1/sandboxes/{victim}/proxy/80/")):
        def act():
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            headers = {} if token is None else {"X-Sandbox-Token": token, "Authorization": f"Bearer {token}"}
            c.request(method, path, body=b'{"cmd":"id"}' if method == "POST" else None, headers=headers)
            answer = c.getresponse(); data = answer.read(); show(data)
            if answer.status < 400: breach(token, method, path, answer.status)
        attempt(act)
""",
        arena.host.port,
        sandbox.id,
        arena.victim.id,
    )


@pytest.mark.parametrize("trick", ["link", "folder-link", "hard-link", "dots", "file", "fifo"])
def test_proxy_sockets_that_lead_elsewhere(arena, attacker, trick):
    """The port proxy must not be talked into connecting to the victim's or the host's sockets."""
    folder = arena.host.state / "sandboxes" / arena.victim.id / "home/.sbx/proxy"
    arena.script(
        attacker,
        """
trick, victim, host, outer = sys.argv[1:]
own = os.environ["SBX_PROXY_DIR"]
os.makedirs(os.path.dirname(own), exist_ok=True)
if trick == "folder-link":
    attempt(os.rmdir, own); attempt(os.symlink, victim, own)
else:
    os.makedirs(own, exist_ok=True)
    for number, target in ((80, victim + "/80.sock"), (81, host), (82, outer + "/80.sock")):
        path = f"{own}/{number}.sock"
        if trick == "link": attempt(os.symlink, target, path)
        if trick == "hard-link": attempt(os.link, target, path)
        if trick == "dots": attempt(os.symlink, "../" * 12 + target.lstrip("/"), path)
        if trick == "file": open(path, "w").write("x")
        if trick == "fifo": os.mkfifo(path)
""",
        trick,
        folder,
        arena.host_socket,
        f"{arena.victim_home}/.sbx/proxy",
    )
    for port in (80, 81, 82):
        answer = attacker.client(timeout=15).get(f"/v1/proxy/{port}/")
        arena.search(answer.body)
        if answer.status == 200:
            raise Breach(f"port {port} answers")


def test_proxy_to_services_of_the_host(arena, attacker, loopback):
    """In the host's network the proxy must not be a way to the host's own loopback services."""
    tcp, _, reached = loopback
    reached.clear()
    for port in (tcp.getsockname()[1], arena.host.port):
        answer = attacker.client(timeout=15).get(f"/v1/proxy/{port}/health")
        if answer.status == 200:
            raise Breach(f"port {port} answers")
    if reached:
        raise Breach("the service of the host was reached")


def test_raw_and_packet_sockets(arena, attacker):
    arena.script(
        attacker,
        """
for family, kind, protocol in ((17, 3, 0x0300), (17, 2, 0x0300), (2, 3, 1), (2, 3, 255), (10, 3, 58)):
    def act(): socket.socket(family, kind, protocol); breach("a raw socket", family, kind, protocol)
    attempt(act)
""",
    )


def test_changing_the_network_of_the_host(arena, attacker):
    """Netlink: an address on loopback, a firewall rule, a new link."""
    arena.script(
        attacker,
        r"""
def act(protocol, message):
    s = socket.socket(16, 3, protocol); s.settimeout(2); s.send(message); data = s.recv(4096)
    kind, = struct.unpack_from("=H", data, 4)
    code, = struct.unpack_from("=i", data, 16)
    print("netlink answer", kind, code)
    if kind == 2 and code == 0: breach("netlink accepted", protocol)
address = struct.pack("=BBBBi", 2, 32, 0, 0, 1) + struct.pack("=HH4B", 8, 2, 127, 9, 9, 9) + struct.pack("=HH4B", 8, 1, 127, 9, 9, 9)
attempt(act, 0, struct.pack("=IHHII", 16 + len(address), 20, 0x605, 1, 0) + address)
link = struct.pack("=BBHiII", 0, 0, 0, 1, 0, 1)   # lo down
attempt(act, 0, struct.pack("=IHHII", 16 + len(link), 16, 5, 2, 0) + link)
attempt(act, 12, struct.pack("=IHHII", 20, 0xA00, 0x605, 3, 0) + b"\x01\x00\x00\x00")
""",
    )
    with socket.create_connection(("127.0.0.1", arena.host.port), 5):
        pass


def test_forged_credentials(arena, attacker):
    """SCM_CREDENTIALS in the name of pid 1 and of other uids."""
    arena.script(
        attacker,
        """
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for pid, uid in ((1, os.getuid()), (os.getpid(), 4242424), (os.getppid() or 1, 65534)):
    def act():
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, 2, struct.pack("=iII", pid, uid, os.getgid()))])
        if pid != os.getpid() and os.getuid() != 0: breach("sent as", pid, uid)
        if uid == 4242424: breach("sent as a uid that is not its own", uid)
    attempt(act)
""",
    )


@pytest.mark.parametrize("family", ["vsock", "alg", "bluetooth", "can", "kcm"])
def test_odd_socket_families(arena, attacker, family):
    """Families that no build needs, each with a history of kernel holes."""
    arena.script(
        attacker,
        """
family = {"vsock": 40, "alg": 38, "bluetooth": 31, "can": 29, "kcm": 41}[sys.argv[1]]
def act(): socket.socket(family, 5 if family in (38, 41) else 1, 0); breach("a socket of family", family)
attempt(act)
""",
        family,
    )
