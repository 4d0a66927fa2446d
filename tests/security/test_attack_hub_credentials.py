"""Attacks on what passes through the hub and what it keeps: tokens, keys and the secrets of other jobs."""

from __future__ import annotations

import http.client
import json
import socket
import ssl

import pytest

from arena import Breach
from client import Client
from hub_jobs import SANDBOX_PORT
from raw_http import RawConnection
from test_attack_identity import SCOPED

GROUP = "hub: credentials"
KINDS = ("dedicated", "plain")

# Prints the head of each request.
INNER = """
import socket, sys
s = socket.socket(); s.bind(("0.0.0.0", int(sys.argv[1]))); s.listen(16); print("up", flush=True)
while True:
    c, _ = s.accept(); c.settimeout(5); data = b""
    try:
        while b"\\r\\n\\r\\n" not in data:
            part = c.recv(65536)
            if not part: break
            data += part
        print("SAW", repr(data), flush=True)
        c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
    except OSError: pass
    c.close()
"""


def credentials(arena) -> dict[str, str]:
    """All that a client may send along."""
    return {
        "Authorization": f"Bearer {arena.host.eve.token}",
        "X-Sandbox-Token": arena.secrets["victim-token"],
        "Proxy-Authorization": f"Bearer {arena.secrets['proxy-token']}",
    }


@pytest.mark.parametrize("way", ["path", "tls", "odd-case", "hop-by-hop", "upgrade", "sandbox-proxy"])
def test_fields_of_requests_that_come_through(arena, way):
    """A server inside sees neither the token of who asks, nor the token of a sandbox."""
    attacker, job, seen = arena.serving(INNER, 8000)
    fields = credentials(arena)
    target, port = f"/x/{job}--8000/{way}", arena.host.port
    if way == "odd-case":
        fields = {name.upper(): value for name, value in fields.items()}
    if way == "hop-by-hop":
        fields["Connection"] = "x-forwarded-proto, authorization"
    if way == "upgrade":
        fields |= {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    if way == "sandbox-proxy":
        target = f"/x/{job}--{SANDBOX_PORT}/v1/proxy/8000/{way}"
        fields["X-Sandbox-Token"] = attacker.token
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    if way == "tls":
        context = ssl._create_unverified_context()  # pylint: disable=protected-access
        connection = http.client.HTTPSConnection("127.0.0.1", arena.hub.tls_port, timeout=20, context=context)
        target, fields["Host"] = f"/{way}", f"{job}--8000.{arena.hub.domain}"
    connection.request("GET", target, headers=fields)
    answer = connection.getresponse()
    assert answer.status == 200, (answer.status, answer.read())
    connection.close()
    text = seen()
    assert f"/{way}" in text, text
    arena.search(text.encode())


def test_serving_in_place_of_the_sandboxs_server(arena):
    """Whoever listens on its port inside gets nothing that is meant for it."""
    attacker, job, seen = arena.serving(INNER, SANDBOX_PORT)
    if arena.walls == "dedicated":
        for _ in range(5):
            attacker.works()
            assert attacker.client().get("/v1/processes").status == 200
        text = seen()
        if "SAW" in text:
            raise Breach(f"a request came inside: {text[:300]}")
    else:
        # A port like any other of a plain job: without the tokens.
        path = f"/x/{job}--{SANDBOX_PORT}/v1/processes"
        assert arena.host.eve.call("GET", path, headers=credentials(arena))[0] == 200
        text = seen()
        assert "/v1/processes" in text
    arena.search(text.encode())


def test_tokens_in_environments_and_memory(arena, attacker):
    """Of everything that is seen inside, the starter of commands included."""
    arena.script(
        attacker,
        r"""
import re
seen = set()
for name in os.listdir("/proc"):
    if not name.isdigit(): continue
    for part in ("environ", "cmdline"):
        try: show(slurp(f"/proc/{name}/{part}", 1 << 20))
        except OSError: pass
    try:
        with open(f"/proc/{name}/mem", "rb", buffering=0) as memory:
            for line in open(f"/proc/{name}/maps"):
                first, last = (int(x, 16) for x in line.split()[0].split("-"))
                if line.split()[1][0] != "r" or last - first > 64 << 20: continue
                try: memory.seek(first); data = memory.read(last - first)
                except (OSError, ValueError, OverflowError): continue
                seen.update(re.findall(rb"hf_cay[0-9a-f]{16,}|[0-9a-f]{64}|SBX_TOKEN=[!-~]+", data))
    except OSError as error: print(name, error)
for item in seen: show(item + b"\n")
""",
    )


def test_the_state_folder_by_its_paths(arena, attacker):
    state = arena.hub.state
    paths = [p for p in state.rglob("*") if p.is_file() and "images" not in p.parts and "spares" not in p.parts
             and "hashed" not in p.parts]
    assert {"hub.db", "ca.key", "user", "admin", "spec.json", "record.json"} <= {p.name for p in paths}
    chosen = [p for p in paths if p.name in ("hub.db", "hub.db-wal", "ca.key", "leaf.key", "user", "admin", "proxy")]
    chosen += [state / "jobs" / job / "spec.json" for job in (arena.victim.id, arena.job)]
    chosen += [arena.volume / "file", arena.state_file]
    arena.script(
        attacker,
        """
for path in sys.argv[1:]:
    for prefix in ("", "/proc/1/root", "/proc/self/root", "/s", "/s/state"):
        def act(): show(slurp(prefix + path, 1 << 22)); breach("reads", prefix + path)
        try: act()
        except OSError: pass
        try: print(os.listdir(os.path.dirname(prefix + path))); breach("lists", prefix + path)
        except OSError: pass
""",
        *chosen,
    )


def test_a_walk_for_everything_secret(arena, attacker):
    """Also below /usr, where a program of the hub may lie: by content."""
    arena.script(
        attacker,
        r"""
import re
for top in ("/etc", "/root", "/home", "/run", "/var", "/srv", "/opt", "/tmp", "/mnt", "/media", "/usr/local", "/s"):
    for root, folders, files in os.walk(top):
        for name in files:
            path = os.path.join(root, name)
            try:
                if stat.S_ISREG(os.lstat(path).st_mode) and os.lstat(path).st_size < 1 << 16:
                    data = slurp(path)
                    if re.search(rb"hf_cay[0-9a-f]|BEGIN (EC )?PRIVATE KEY|SBX_TOKEN\"", data): show(data); print("IN", path)
            except OSError: pass
""",
    )


@pytest.mark.parametrize("method, route, body", SCOPED, ids=[f"{m} {r.split('?')[0] or '/'}" for m, r, _ in SCOPED])
def test_the_victims_sandbox_with_anothers_tokens(arena, method, route, body):
    """Both tokens are needed: that of its owner at the hub, and its own behind it."""
    eve, owner, own = arena.host.eve.token, arena.host.owner.token, arena.victim.token
    for user, token in ((eve, own), (eve, "0" * 64), (None, own), (arena.secrets["proxy-token"], own), (owner, "0" * 64),
                        (owner, None), (owner, owner), (own, own)):
        fields = {} if user is None else {"Authorization": f"Bearer {user}"}
        client = Client(arena.host.address, arena.host.port, token=token, timeout=10)
        answer = client.request(method, f"/x/{arena.victim.id}--{SANDBOX_PORT}/v1{route}", body=body, headers=fields)
        arena.search(answer.body)
        # For whoever may not use its namespace, there is no such job.
        if answer.status not in ((401, 403) if user == owner else (401, 403, 404)):
            raise Breach(f"{answer.status} {answer.body[:100]!r}")


JOB_ROUTES = [("GET", ""), ("POST", "/cancel"), ("GET", "/logs"), ("GET", "/metrics"), ("PUT", "/labels"), ("PUT", "/expose"),
              ("POST", "/expose"), ("POST", "/duplicate"), ("DELETE", "")]


@pytest.mark.parametrize("method, route", JOB_ROUTES, ids=[f"{m} {r or '/'}" for m, r in JOB_ROUTES])
def test_jobs_of_another_user(arena, method, route):
    """Looking at them, ending them, reading their logs, opening their ports."""
    owner, eve = arena.host.owner, arena.host.eve
    body = None if method in ("GET", "DELETE") else {"labels": {"a": "b"}, "ports": [22], "public": [8000]}
    for token in (eve.token, arena.secrets["proxy-token"], None, arena.victim.token, "hf_cay" + "0" * 48):
        for namespace in (owner.name, eve.name, f"{eve.name}/..", f"{owner.name}%2f..%2f{eve.name}"):
            for job in (arena.job, arena.victim.id):
                status, _, answer = arena.hub.request(
                    method, f"/api/jobs/{namespace}/{job}{route}", token=token, body=body)
                arena.search(answer)
                # A path that is nobody's here is one of the Hub upstream, which gets none of our tokens.
                if status < 400 or (status >= 500 and b"is not a route of this hub" not in answer):
                    raise Breach(f"{status} for {namespace}/{job}{route}: {answer[:100]!r}")


def test_lists_of_another_user(arena):
    owner, eve = arena.host.owner, arena.host.eve
    for path in (f"/api/jobs/{owner.name}", f"/api/scheduled-jobs/{owner.name}", "/api/jobs/", "/api/jobs"):
        status, answer = eve.call("GET", path)
        arena.search(answer)
        if status == 200 and arena.job.encode() in answer:
            raise Breach(f"{path} lists jobs of another")
    for path in (f"/api/jobs/{eve.name}", f"/api/jobs/{eve.name}?label=hf-sandbox%3D1", f"/api/scheduled-jobs/{eve.name}"):
        _, answer = eve.call("GET", path)
        if {item["id"] for item in json.loads(answer)} & {arena.job, arena.victim.id}:
            raise Breach(f"{path} lists jobs of another")


def test_starting_in_anothers_name(arena):
    owner, eve = arena.host.owner, arena.host.eve
    spec = {"dockerImage": "host", "flavor": "cpu-basic", "command": ["true"], "arguments": [], "environment": {}, "labels": {}}
    for path, body in ((f"/api/jobs/{owner.name}", spec),
                       (f"/api/scheduled-jobs/{owner.name}", {"schedule": "* * * * *", "jobSpec": spec})):
        status, answer = eve.call("POST", path, body)
        if status != 403:
            raise Breach(f"{path}: {status} {answer[:100]!r}")


@pytest.mark.parametrize(
    "path",
    [
        "/x/{a}--49983/../{b}--49983/v1/processes",
        "/x/{a}--49983/%2e%2e/{b}--49983/v1/processes",
        "/x/{a}--49983%2f..%2f{b}--49983/v1/processes",
        "/x/{a}--49983//../{b}--49983/v1/processes",
        "/x//{b}--49983/v1/processes",
        "/x/{a}--49983--{b}--49983/v1/processes",
        "/x/{b}--49983.{a}--49983/v1/processes",
        "/x/{b}--049983/v1/processes",
        "/x/{b}--115519/v1/processes",
        "/x/{B}--49983/v1/processes",
        "/x/{b}--8000/",
        "/x/{b}/v1/processes",
        "/x/{b}--49983/v1/processes?token={t}",
        "http://{b}--49983.cay.localhost/v1/processes",
        "//{b}--49983.cay.localhost/v1/processes",
    ],
)
def test_paths_that_confuse_the_edge(arena, path):
    eve = arena.host.eve
    sandbox = arena.host.create(eve)
    try:
        target = path.format(a=sandbox.id, b=arena.victim.id, B=arena.victim.id.upper(), t=eve.token)
        for host in ("x", f"{sandbox.id}--{SANDBOX_PORT}.cay.localhost", f"{arena.victim.id}--{SANDBOX_PORT}.cay.localhost"):
            with RawConnection(arena.host) as connection:
                connection.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {eve.token}\r\n"
                                f"X-Sandbox-Token: {arena.victim.token}\r\n\r\n".encode())
                answer = connection.answer()
            arena.search(answer.body)
            if answer.status == 200:
                raise Breach(f"{target} is answered: {answer.body[:100]!r}")
    finally:
        sandbox.delete()


def test_a_connection_to_the_hub_does_not_remember_its_token(arena):
    eve, owner = arena.host.eve, arena.host.owner
    with RawConnection(arena.host) as connection:
        def ask(path: str, *tokens: str) -> int:
            fields = "".join(f"Authorization: Bearer {t}\r\n" for t in tokens)
            connection.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {arena.victim.token}\r\n{fields}\r\n".encode())
            return connection.answer().status

        path = f"/x/{arena.victim.id}--{SANDBOX_PORT}/v1/processes"
        assert ask(path, owner.token) == 200
        for tokens in ([], [eve.token], [eve.token, owner.token], [owner.token, eve.token], [""]):
            status = ask(path, *tokens)
            if status not in (401, 403, 404):
                raise Breach(f"{status} with {len(tokens)} other tokens")
        status = ask(f"/api/jobs/{owner.name}/{arena.job}/logs")
        if status != 401:
            raise Breach(f"{status} for a log without a token")


def test_existence_of_jobs_of_others(arena):
    """A job of another user and one that never was are answered alike."""
    eve = arena.host.eve
    answers = set()
    for job in (arena.victim.id, arena.job, "f" * 24):
        for path in (f"/x/{job}--{SANDBOX_PORT}/health", f"/x/{job}--8000/", f"/api/jobs/{eve.name}/{job}"):
            status, answer = eve.call("GET", path)
            answers.add((path.split("/")[1], status, answer.decode().replace(job, "").replace("--8000", "").replace("--49983", "")))
    if len(answers) != 2:
        raise Breach(f"told apart: {answers}")


@pytest.mark.parametrize("target", ["api", "state-of-others", "victim"])
def test_tunnels_with_the_token_of_a_user(arena, target):
    """CONNECT is for holders of a proxy token; what is behind a tunnel asks for its own."""
    address = {"api": f"127.0.0.1:{arena.host.port}", "state-of-others": f"{arena.job_address}:8000",
               "victim": f"{arena.victim.id}--{SANDBOX_PORT}.{arena.hub.domain}:{arena.hub.tls_port}"}[target]
    for secret in (None, arena.victim.token, "x"):
        with socket.create_connection(("127.0.0.1", arena.host.port), 10) as connection:
            field = "" if secret is None else f"Proxy-Authorization: Bearer {secret}\r\n"
            connection.sendall(f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{field}\r\n".encode())
            line = connection.recv(4096).split(b"\r\n")[0]
        if b" 200" in line:
            raise Breach(f"a tunnel without a token: {line!r}")
