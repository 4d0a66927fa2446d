"""docs/openapi.yaml is true: its routes exist, and answers have the shapes it names."""

import json
import re

import jsonschema
import pytest
import yaml

from client import parse_events
from host import ROOT, wait_until
from pool_host import PoolHost

DOCUMENT = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
METHODS = ("get", "put", "post", "delete", "patch")
OPERATIONS = [(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item if method in METHODS]


def check(value, schema: str) -> None:
    """Holds a value to #/components/schemas/<schema>."""
    document = {**DOCUMENT, "$ref": f"#/components/schemas/{schema}"}
    jsonschema.Draft202012Validator(document).validate(value)


def all_references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from all_references(value)
    elif isinstance(node, list):
        for value in node:
            yield from all_references(value)


def resolve(node):
    if "$ref" not in node:
        return node
    found = DOCUMENT
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def test_references_lead_somewhere():
    for reference in all_references(DOCUMENT):
        resolve({"$ref": reference})


def test_schemas_are_schemas():
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.fixture(scope="module")
def sandbox():
    pool = PoolHost().start()
    try:
        yield pool.create(paths="root")
        pool.stop()
    finally:
        pool.destroy()


POOL = "/v1/sandboxes"


def of_a_pool(path: str) -> bool:
    return path.startswith(POOL)


@pytest.mark.parametrize("method, path", [o for o in OPERATIONS if of_a_pool(o[1])])
def test_every_route_of_a_pool_exists(sandbox, method, path):
    target = path.replace("{sandbox_id}", sandbox.id)
    if target.count("/") > 3 and not target.endswith("/token"):
        known(sandbox.client(), method, target.replace(f"/v1/sandboxes/{sandbox.id}/", "/v1/"), "/tmp")
    else:
        known(sandbox.host.client(), method, target, "/tmp")


@pytest.mark.parametrize("method, path", [o for o in OPERATIONS if not of_a_pool(o[1])])
def test_every_route_exists(client, tmp_path, method, path):
    known(client, method, path, str(tmp_path))


def known(client, method: str, path: str, folder: str) -> None:
    """An unknown route is 404 with that very word, a wrong method 405; a known one is neither."""
    target = path.replace("{port}", "1").replace("{path}", "x")
    if "{exec_id}" in target:
        target = target.replace("{exec_id}", client.exec("true").exec_id)
    if "{process_id}" in target:
        target = target.replace("{process_id}", client.spawn("true")["id"])
    query = {"path": folder} if "/files/" in target else None
    stream = client.stream(method, target, query=query)
    try:
        text = b"" if stream.status == 200 else stream.response.read()
        assert stream.status != 405
        assert stream.status != 404 or b"route" not in text
    finally:
        stream.close()


def test_every_route_is_described():
    """The routes of http-api.md are those of the OpenAPI file. In a pool each sandbox has those of a dedicated host."""
    text = (ROOT / "docs" / "http-api.md").read_text()
    told = set(re.findall(r"`(?:GET|PUT|POST|DELETE|ANY) (/[^`?\s]*)", text))
    dedicated = {path for path in told if path.startswith("/v1/") and not of_a_pool(path)}
    told |= {path.replace("/v1", f"{POOL}/{{id}}", 1) for path in dedicated}
    described = {re.sub(r"\{[^}]*\}", "{}", p) for p in DOCUMENT["paths"]}
    assert {re.sub(r"\{[^}]*\}", "{}", p) for p in told} == described


def test_a_pooled_sandbox_has_the_operations_of_a_dedicated_one():
    for path, item in DOCUMENT["paths"].items():
        if path.startswith("/v1/") and not of_a_pool(path):
            pooled = DOCUMENT["paths"][path.replace("/v1", f"{POOL}/{{sandbox_id}}", 1)]
            assert {m: o for m, o in pooled.items() if m in METHODS} == {m: o for m, o in item.items() if m in METHODS}


def test_every_part_of_a_path_is_a_parameter():
    for path, item in DOCUMENT["paths"].items():
        named = {resolve(p)["name"] for p in item.get("parameters", [])}
        assert named == set(re.findall(r"\{(\w+)\}", path)), path


def check_events(body: bytes) -> None:
    for event in parse_events(body):
        check(event, "Event")


def test_health(client):
    check(client.get("/health").json(), "Health")


def test_exec(client):
    done = client.exec("echo out; echo err >&2; exit 3")
    check_events(done.raw)
    check(client.get(f"/v1/execs/{done.exec_id}").json(), "ExecState")
    check_events(client.output(f"/v1/execs/{done.exec_id}").raw)
    check_events(client.exec("printf 'a\\377'", encoding="base64").raw)
    check_events(client.exec(["no-such-command"]).raw)
    check_events(client.exec("sleep 30", timeout=0.2).raw)


def test_gap(start_host):
    client = start_host(flags=["--log-bytes-per-exec", "65536"]).client()
    done = client.exec("head -c 1000000 /dev/zero")
    check_events(client.output(f"/v1/execs/{done.exec_id}").raw)


def test_processes(client):
    process = client.spawn("cat", tag="reader")
    check(process, "Process")
    path = f"/v1/processes/{process['id']}"
    check(client.get(path).json(), "Process")
    check(client.post(path + "/stdin", b"abc", eof=1).json(), "StdinWritten")
    wait_until(lambda: not client.process(process["id"])["running"])
    for listed in client.get("/v1/processes").json():
        check(listed, "Process")
    check(client.delete(path).json(), "Killed")
    sleeper = client.spawn("exec sleep 300")
    check(client.post(f"/v1/processes/{sleeper['id']}/signal", {"signal": "TERM"}).json(), "SignalSent")


def test_files(client, tmp_path):
    check(client.put("/v1/files/write", b"abc", path=str(tmp_path / "f")).json(), "Written")
    check(client.get("/v1/files/stat", path=str(tmp_path / "f")).json(), "FileEntry")
    check(client.get("/v1/files/list", path=str(tmp_path)).json(), "Listing")
    archive = client.get("/v1/files/tar", path=str(tmp_path)).body
    check(client.put("/v1/files/tar", archive, path=str(tmp_path / "copy")).json(), "Unpacked")
    with client.stream("GET", "/v1/files/watch", query={"path": str(tmp_path)}) as stream:
        check(next(stream.events()), "WatchEvent")
        (tmp_path / "g").write_bytes(b"x")
        (tmp_path / "g").rename(tmp_path / "h")
        for event in stream.events():
            check(event, "WatchEvent")
            if event["event"] == "moved":
                break


@pytest.mark.parametrize("method, path, body", [
    ("GET", "/nothing", None), ("POST", "/v1/exec", b"{"), ("GET", "/v1/files/stat?path=/no/such", None),
    ("GET", "/v1/proxy/1/", None), ("DELETE", "/v1/exec", None),
])
def test_errors(client, method, path, body):
    answer = client.request(method, path, body=body)
    assert answer.status >= 400
    check(json.loads(answer.body), "Error")


# ---- pools


def test_create(sandbox):
    answer = sandbox.host.create_answer(count=2, network="none", max_procs=50, cpus=0.5, labels={"n": 1}, colour="blue")
    check(answer.json(), "Created")
    known_options = set(DOCUMENT["components"]["schemas"]["CreateRequest"]["properties"])
    everything = sandbox.host.create_answer(**dict.fromkeys(known_options))
    assert everything.json()["ignored"] == [], "an option is described that does not exist"
    check(everything.json(), "Created")


def test_sandbox(sandbox):
    client = sandbox.host.client()
    for listed in client.get(POOL).json():
        check(listed, "SandboxSummary")
    details = client.get(f"{POOL}/{sandbox.id}").json()
    check(details, "SandboxDetails")
    described = DOCUMENT["components"]["schemas"]
    summary = set(described["SandboxSummary"]["properties"])
    assert set(details) == summary | set(described["SandboxDetails"]["allOf"][1]["properties"])
    check(client.get(f"{POOL}/{sandbox.id}/token").json(), "SandboxToken")


def test_exec_in_a_pool(sandbox):
    client = sandbox.client()
    check_events(client.exec("echo hello; exit 3").raw)
    check_events(client.exec(["/no/such"]).raw)


def test_gone(sandbox):
    leaving = sandbox.host.create()
    check(leaving.delete().json(), "Deleted")
    check(leaving.delete().json(), "Deleted")
    answer = leaving.client().post("/v1/exec", {"cmd": "true"})
    assert answer.status == 410
    check(answer.json(), "Gone")


@pytest.mark.parametrize("token, path, body, status", [
    ("host", POOL, {"count": 0}, 400), ("own", POOL, {}, 403), ("host", f"{POOL}/s-0123456789abcdef/exec", {}, 403),
])
def test_errors_of_a_pool(sandbox, token, path, body, status):
    answer = sandbox.host.client(token=sandbox.token if token == "own" else sandbox.host.token).post(path, body)
    assert answer.status == status
    check(answer.json(), "Error")
