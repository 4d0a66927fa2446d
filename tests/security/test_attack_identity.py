"""Attacks on identity: tokens, ids, routes and what is left of those who were here before."""

from __future__ import annotations

import os
import re

import pytest

from arena import Breach
from client import Client
from raw_http import RawConnection

GROUP = "identity and tokens"

SCOPED = [
    ("POST", "/exec", b'{"cmd":"cat $HOME/secret"}'),
    ("POST", "/processes", b'{"cmd":"sleep 1"}'),
    ("GET", "/processes", None),
    ("DELETE", "/processes/1", None),
    ("GET", "/files/read?path=secret", None),
    ("GET", "/files/stat?path=secret", None),
    ("GET", "/files/list?path=/", None),
    ("PUT", "/files/write?path=planted", b"x"),
    ("DELETE", "/files/delete?path=secret", None),
    ("POST", "/files/mkdir?path=planted", None),
    ("POST", "/files/move", b'{"from":"secret","to":"x"}'),
    ("GET", "/files/tar?path=/", None),
    ("PUT", "/files/tar?path=/", b""),
    ("GET", "/files/watch?path=/", None),
    ("GET", "/execs/x-0123456789abcdef", None),
    ("GET", "/proxy/80/", None),
    ("GET", "", None),
    ("DELETE", "", None),
    ("GET", "/token", None),
    ("POST", "/processes/1/signal", b'{"signal":"KILL"}'),
    ("POST", "/processes/1/stdin", b"x"),
]


def refused(arena, answer, what: str) -> None:
    arena.search(answer.body)
    if answer.status not in (403, 404, 400, 410, 405):
        raise Breach(f"{what}: {answer.status} {answer.body[:100]!r}")


@pytest.mark.parametrize("method, route, body", SCOPED, ids=[f"{m} {r.split('?')[0] or '/'}" for m, r, _ in SCOPED])
def test_the_victims_routes_with_another_token(arena, attacker, method, route, body):
    for token in (attacker.token, arena.victim.id, None, "", "0" * 64):
        client = Client(arena.host.address, arena.host.port, token=token, timeout=10)
        answer = client.request(method, f"/v1/sandboxes/{arena.victim.id}{route}", body=body)
        arena.search(answer.body)
        if answer.status != 403:
            raise Breach(f"{answer.status} with {'no' if token is None else 'another'} token")


@pytest.mark.parametrize("method, path", [("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("GET", "/metrics")])
def test_managing_the_pool_with_a_sandboxs_token(arena, attacker, method, path):
    answer = Client(arena.host.address, arena.host.port, token=attacker.token).request(
        method, path, body=b"{}" if method == "POST" else None
    )
    refused(arena, answer, f"{method} {path}")


def test_tokens_of_others_with_ones_own(arena, attacker):
    client = Client(arena.host.address, arena.host.port, token=attacker.token)
    for sandbox in (arena.victim.id, attacker.id):
        answer = client.get(f"/v1/sandboxes/{sandbox}/token")
        refused(arena, answer, "the token route")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sandboxes/{a}/../{b}/files/read?path=secret",
        "/v1/sandboxes/{a}/%2e%2e/{b}/files/read?path=secret",
        "/v1/sandboxes/{a}%2f..%2f{b}/files/read?path=secret",
        "/v1/sandboxes/{a}//../{b}/files/read?path=secret",
        "/v1/sandboxes/{a}/files/../../{b}/files/read?path=secret",
        "/v1/sandboxes//{b}/files/read?path=secret",
        "/v1/sandboxes/{a};{b}/files/read?path=secret",
        "/v1/sandboxes/{a}%00{b}/files/read?path=secret",
        "/v1/sandboxes/{a}/proxy/80/../../../{b}/proxy/80/",
        "/v1/sandboxes/{a}/proxy/..%2f..%2f{b}%2fproxy%2f80/",
        "/v1/sandboxes/{b}/files/read?path=secret&token={t}",
        "/v1/sandboxes/{B}/files/read?path=secret",
        "/v1/files/read?path=secret",
        "/v1/sandboxes/../files/read?path=/etc/shadow",
        "/v1/sandboxes/{a}/sandboxes/{b}/token",
    ],
)
def test_routes_that_confuse(arena, attacker, path):
    target = path.format(a=attacker.id, b=arena.victim.id, B=arena.victim.id.upper(), t=attacker.token)
    with RawConnection(arena.host) as connection:
        connection.send(f"GET {target} HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {attacker.token}\r\n\r\n".encode())
        answer = connection.answer()
    arena.search(answer.body)
    if answer.status == 200:
        raise Breach(f"{target} is answered: {answer.body[:100]!r}")


def test_a_connection_does_not_remember_its_token(arena, attacker):
    """Two requests on one connection: the second stands for itself."""
    with RawConnection(arena.host) as connection:
        connection.send(
            f"GET /v1/sandboxes/{attacker.id}/processes HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {attacker.token}\r\n\r\n".encode()
        )
        assert connection.answer().status == 200
        for sandbox, token in ((attacker.id, ""), (arena.victim.id, f"X-Sandbox-Token: {attacker.token}\r\n")):
            connection.send(f"GET /v1/sandboxes/{sandbox}/processes HTTP/1.1\r\nHost: x\r\n{token}\r\n".encode())
            answer = connection.answer()
            if answer.status != 403:
                raise Breach(f"{answer.status} for the second request")


def test_two_tokens_in_one_request(arena, attacker):
    """Two headers, a list in one, both orders: never the more powerful of them."""
    for lines in ([attacker.token, "x"], ["x", attacker.token], [f"{attacker.token}, x"]):
        with RawConnection(arena.host) as connection:
            head = "".join(f"X-Sandbox-Token: {t}\r\n" for t in lines)
            connection.send(f"GET /v1/sandboxes/{arena.victim.id}/processes HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
            refused(arena, connection.answer(), "two tokens")


def test_tokens_are_long_and_random(arena):
    made = [arena.attacker() for _ in range(8)]
    tokens = [s.token for s in made]
    if len(set(tokens)) != len(tokens) or not all(re.fullmatch(r"[0-9a-f]{64}", t) for t in tokens):
        raise Breach(f"tokens like {tokens[0]!r}")
    for place in range(0, 64, 4):
        if len({t[place : place + 4] for t in tokens}) == 1:
            raise Breach("a part of all tokens is the same")


def test_tokens_and_environment_inside(arena, attacker):
    """Neither tokens nor anything of the host's environment is in a command's environment or files."""
    own = {"own-token": attacker.token}
    done = attacker.client().exec(
        "env; cat /proc/self/environ; cat /proc/1/environ /proc/$PPID/environ 2>/dev/null; "
        "grep -rIl SBX_TOKEN $HOME /etc 2>/dev/null; cat $HOME/.* 2>/dev/null; echo END"
    )
    arena.search(done.stdout_bytes, also=own)
    names = {line.split("=")[0] for line in done.stdout.replace("\0", "\n").splitlines() if "=" in line}
    foreign = names - {
        "HOME",
        "USER",
        "LOGNAME",
        "PATH",
        "LANG",
        "SBX_SANDBOX_ID",
        "SBX_PROXY_DIR",
        "TMPDIR",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    }
    if foreign & {
        "SBX_TOKEN",
        "HOST_SECRET",
        "MARK_OF_THIS_TEST",
        "HF_TOKEN",
        "SBX_HOST_MODE",
        "CAY_WALLS",
        "SSH_AUTH_SOCK",
    }:
        raise Breach(f"in the environment: {sorted(foreign)}")


def test_anothers_idempotency_key(arena, attacker):
    """The key that the victim used must not attach to the victim's run."""
    done = attacker.client().exec("echo $S", env={"S": "mine"}, headers={"Idempotency-Key": "shared-key"})
    arena.search(done.stdout_bytes)
    if done.exec_id == arena.victim_exec.exec_id:
        raise Breach("attached to the victim's run")
    answer = attacker.client().post(
        "/v1/exec",
        {"cmd": "echo $S", "env": {"S": arena.secrets["victim-output"]}},
        headers={"Idempotency-Key": "shared-key"},
    )
    assert answer.status == 422, "the key is the attacker's own by now"


def test_what_the_last_owner_left(arena):
    """Ids are used again only when nothing of their last owner is left: files, processes, memory, tokens."""
    seen = set()
    mark = "left-behind-by-the-last-owner"
    for _ in range(6):
        first = arena.host.create()
        first.client().exec(f"""
for d in $HOME /tmp /var/tmp /dev/shm $TMPDIR; do echo {mark} > $d/{mark} 2>/dev/null; done
(setsid sh -c 'trap "" TERM; sleep 600' >/dev/null 2>&1 &)
python3 -c 'import ctypes; c = ctypes.CDLL(None); c.shmget(0x5ecd, 4096, 0o1600)'""")
        seen.add(first.commands() and tuple(sorted({os.stat(f"/proc/{p}").st_uid for p in first.commands()})))
        assert first.delete().status == 200
        second = arena.attacker()
        done = second.client().exec(
            "ls -a $HOME /tmp /var/tmp /dev/shm $TMPDIR 2>/dev/null; ps ax 2>/dev/null; "
            "python3 -c 'import ctypes; print(\"segment\", ctypes.CDLL(None).shmget(0x5ecd, 0, 0))'"
        )
        if mark in done.stdout or "sleep 600" in done.stdout:
            raise Breach("the last owner's things are there")
        if re.search(r"segment \d", done.stdout) and arena.walls != "restricted":
            raise Breach("the last owner's shared memory is there")
        for token in (first.token,):
            answer = second.client(token=token).get("/v1/processes")
            if answer.status not in (403, 410):
                raise Breach(f"the last owner's token: {answer.status}")
        arena.made.remove(second)
        second.works()
        second.delete()
    assert seen


def test_existence_of_others(arena, attacker):
    """An id that exists and one that does not are answered alike to a stranger."""
    client = Client(arena.host.address, arena.host.port, token=attacker.token)
    answers = set()
    for sandbox in (arena.victim.id, "f" * len(arena.victim.id), "nothing"):
        for route in ("", "/processes", "/token", "/files/read?path=secret"):
            answer = client.get(f"/v1/sandboxes/{sandbox}{route}")
            answers.add((answer.status, re.sub(sandbox, "", answer.body.decode())))
    if len(answers) != 1:
        raise Breach(f"told apart: {answers}")
    names = {k.lower() for k in client.get("/health").json()}
    if names - {"status", "protocol", "version"}:
        raise Breach(f"/health tells {names}")
