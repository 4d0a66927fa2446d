"""Who may call what: every route with every token, what is gone, and the routes of the other mode."""

from __future__ import annotations


import pytest

from host import Host, wait_until

SCOPED = [
    ("POST", "/exec", {"cmd": "true"}),
    ("POST", "/processes", {"cmd": "true"}),
    ("GET", "/processes", None),
    ("GET", "/processes/p-0123456789abcdef", None),
    ("DELETE", "/processes/p-0123456789abcdef", None),
    ("GET", "/processes/p-0123456789abcdef/output", None),
    ("POST", "/processes/p-0123456789abcdef/stdin", b"x"),
    ("POST", "/processes/p-0123456789abcdef/signal", {"signal": "INT"}),
    ("GET", "/execs/x-0123456789abcdef", None),
    ("GET", "/execs/x-0123456789abcdef/output", None),
    ("GET", "/files/read?path=f", None),
    ("GET", "/files/stat?path=/", None),
    ("GET", "/files/list?path=/", None),
    ("PUT", "/files/write?path=f", b"x"),
    ("DELETE", "/files/delete?path=none", None),
    ("POST", "/files/mkdir?path=d", None),
    ("POST", "/files/move", {"from": "none", "to": "other"}),
    ("GET", "/files/tar?path=/", None),
    ("GET", "/proxy/1/", None),
    ("GET", "/no-such-route", None),
]
IDS = [f"{m} {r}" for m, r, _ in SCOPED]


@pytest.fixture(scope="module")
def pool(pool):
    pool.own, pool.sibling = pool.create(), pool.create()
    return pool


def call(pool, token, method, path, body=None):
    return pool.client(token=token).request(method, path, body=body)


@pytest.mark.parametrize("method, route, body", SCOPED, ids=IDS)
def test_scoped_routes(pool, method, route, body):
    path = f"/v1/sandboxes/{pool.own.id}{route}"
    for token in (pool.token, pool.sibling.token, None, "", "wrong"):
        answer = call(pool, token, method, path, body)
        assert answer.status == 403 and answer.error, (token, answer.status, answer.body)
    assert call(pool, pool.own.token, method, path, body).status not in (401, 403)


@pytest.mark.parametrize("method, route, body", SCOPED, ids=IDS)
def test_where_nothing_exists(pool, method, route, body):
    path = f"/v1/sandboxes/{'0' * len(pool.own.id)}{route}"
    for token in (pool.token, pool.sibling.token, None, "wrong"):
        assert call(pool, token, method, path, body).status == 403


def test_delete_takes_only_its_own(pool):
    for token in (pool.token, pool.sibling.token, None, "wrong"):
        assert call(pool, token, "DELETE", f"/v1/sandboxes/{pool.own.id}").status == 403
    assert pool.own.id in pool.listed()


def test_info_takes_the_hosts_and_its_own(pool):
    for token, status in ((pool.token, 200), (pool.own.token, 200), (pool.sibling.token, 403), (None, 403)):
        assert call(pool, token, "GET", f"/v1/sandboxes/{pool.own.id}").status == status


@pytest.mark.parametrize(
    "method, path", [("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("GET", "/v1/sandboxes/{own}/token")]
)
def test_management_takes_the_hosts_only(pool, method, path):
    path = path.format(own=pool.own.id)
    for token in (pool.own.token, pool.sibling.token, None, "", "wrong"):
        assert call(pool, token, method, path, b"{}" if method == "POST" else None).status == 403
    assert call(pool, pool.token, method, path, b"{}" if method == "POST" else None).status in (200, 201)


def test_token_route(pool):
    answer = call(pool, pool.token, "GET", f"/v1/sandboxes/{pool.own.id}/token")
    assert answer.json() == {"id": pool.own.id, "token": pool.own.token}
    assert call(pool, pool.token, "GET", "/v1/sandboxes/0123456789abcdef/token").status in (403, 404)


@pytest.mark.slow
def test_compatibility_switch(start_pool):
    pool = start_pool(env={"SBX_COMPAT_HOST_TOKEN": "1"})
    own, sibling = pool.create(), pool.create()
    for token in (pool.token, own.token):
        assert pool.client(token=token).post(f"/v1/sandboxes/{own.id}/exec", {"cmd": "true"}).status == 200
    assert call(pool, sibling.token, "POST", f"/v1/sandboxes/{own.id}/exec", {"cmd": "true"}).status == 403
    assert call(pool, None, "POST", f"/v1/sandboxes/{own.id}/exec", {"cmd": "true"}).status == 403
    assert call(pool, own.token, "GET", "/v1/sandboxes").status == 403
    assert call(pool, pool.token, "DELETE", f"/v1/sandboxes/{own.id}").status == 200


def test_compatibility_switch_as_a_flag(start_pool):
    pool = start_pool(flags=["--compat-host-token"])
    own = pool.create()
    assert call(pool, pool.token, "POST", f"/v1/sandboxes/{own.id}/exec", {"cmd": "true"}).status == 200


# ---- gone


def gone_answers(pool, sandbox, cause: str) -> None:
    """Its own token hears 410 with the cause everywhere, everybody else 403; its DELETE succeeds."""
    for method, route, body in SCOPED:
        answer = call(pool, sandbox.token, method, f"/v1/sandboxes/{sandbox.id}{route}", body)
        assert answer.status == 410, (method, route, answer.status, answer.body)
        assert answer.json()["cause"] == cause and answer.json()["error"]
        assert call(pool, None, method, f"/v1/sandboxes/{sandbox.id}{route}", body).status == 403
    assert call(pool, sandbox.token, "DELETE", f"/v1/sandboxes/{sandbox.id}").status == 200
    assert call(pool, "wrong", "DELETE", f"/v1/sandboxes/{sandbox.id}").status == 403
    info = call(pool, sandbox.token, "GET", f"/v1/sandboxes/{sandbox.id}")
    assert info.status in (200, 410) and cause in info.body.decode()


def test_after_its_deletion(pool):
    sandbox = pool.create()
    assert sandbox.delete().status == 200
    gone_answers(pool, sandbox, "killed")


def test_after_its_time(pool):
    sandbox = pool.create(ttl_secs=1)
    sandbox.client().spawn("exec sleep 300")
    wait_until(lambda: sandbox.id not in pool.listed(), 10, "the end of its time")
    gone_answers(pool, sandbox, "expired")
    wait_until(lambda: not sandbox.commands(), what="the end of its commands")


def test_after_idleness(pool):
    sandbox = pool.create(idle_timeout_secs=1)
    wait_until(lambda: sandbox.id not in pool.listed(), 10, "its eviction")
    gone_answers(pool, sandbox, "evicted")


@pytest.mark.slow
def test_after_a_restart(start_pool):
    first = start_pool()
    sandbox = first.create()
    sandbox.delete()
    first.kill9()
    gone_answers(start_pool(after=first), sandbox, "killed")


# ---- the routes of the other mode


@pytest.mark.parametrize(
    "method, path",
    [
        ("POST", "/v1/exec"),
        ("GET", "/v1/processes"),
        ("POST", "/v1/processes"),
        ("GET", "/v1/files/read?path=/etc/passwd"),
        ("PUT", "/v1/files/write?path=/tmp/x"),
        ("GET", "/v1/proxy/80/"),
        ("GET", "/v1/execs/x-0123456789abcdef"),
    ],
)
def test_dedicated_routes_in_host_mode(pool, method, path):
    answer = call(pool, pool.token, method, path, b'{"cmd":"true"}' if method == "POST" else None)
    assert answer.status == 404 and answer.error
    assert call(pool, None, method, path).status == 403


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/v1/sandboxes"),
        ("POST", "/v1/sandboxes"),
        ("DELETE", "/v1/sandboxes/x"),
        ("POST", "/v1/sandboxes/x/exec"),
        ("GET", "/v1/sandboxes/x/token"),
    ],
)
def test_pool_routes_in_dedicated_mode(host, method, path):
    assert isinstance(host, Host)
    assert host.client().request(method, path).status == 404
    assert host.client(token=None).request(method, path).status == 403


def test_health_needs_no_token_and_tells_nothing(pool):
    answer = call(pool, None, "GET", "/health")
    assert answer.status == 200 and isinstance(answer.json()["protocol"], int) and answer.json()["protocol"] >= 3
    assert pool.own.id not in answer.body.decode() and "sandboxes" not in answer.body.decode()


def test_nearly_right_tokens(pool):
    for token in (pool.own.token[:-1], pool.own.token + "0", pool.own.token.upper(), pool.own.token[::-1]):
        assert call(pool, token, "GET", f"/v1/sandboxes/{pool.own.id}/processes").status == 403
