"""docs/openapi.yaml is true: its routes exist, and answers have the shapes it names."""

import json
import re

import jsonschema
import pytest
import yaml

from client import parse_events
from host import ROOT, wait_until

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


def test_references_lead_somewhere():
    for reference in all_references(DOCUMENT):
        node = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_schemas_are_schemas():
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("method, path", OPERATIONS)
def test_every_route_exists(client, tmp_path, method, path):
    """An unknown route is 404 with that very word, a wrong method 405; a known one is neither."""
    target = path.replace("{exec_id}", client.exec("true").exec_id).replace("{port}", "1").replace("{path}", "x")
    if "{process_id}" in target:
        target = target.replace("{process_id}", client.spawn("true")["id"])
    query = {"path": str(tmp_path)} if "/files/" in target else None
    stream = client.stream(method, target, query=query)
    try:
        text = b"" if stream.status == 200 else stream.response.read()
        assert stream.status != 405
        assert stream.status != 404 or b"route" not in text
    finally:
        stream.close()


def test_every_route_is_described():
    """The routes of http-api.md are those of the OpenAPI file."""
    text = (ROOT / "docs" / "http-api.md").read_text()
    told = set(re.findall(r"`(?:GET|PUT|POST|DELETE|ANY) (/[^`?\s]*)", text))
    known = {re.sub(r"\{[^}]*\}", "{}", p) for p in DOCUMENT["paths"]}
    assert {re.sub(r"\{[^}]*\}", "{}", p) for p in told} == known


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
