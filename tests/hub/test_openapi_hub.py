"""docs/openapi-hub.yaml is true: its routes are those of the hub, and answers have the shapes it names."""

import json
import re
import urllib.request

import jsonschema
import pytest
import yaml

from api_hub import ApiHub
from host import ROOT

DOCUMENT = yaml.safe_load((ROOT / "docs" / "openapi-hub.yaml").read_text())
METHODS = ("get", "put", "post", "delete")
BODY = {"dockerImage": "python:3.12", "command": ["true"], "arguments": [], "environment": {"A": 1},
        "secrets": {"KEY": "x"}, "flavor": "cpu-basic", "labels": {"a": "b"}, "expose": {"ports": [80], "portsPublic": [80]},
        "volumes": [{"type": "bucket", "source": "tester/data", "mountPath": "/data"}], "network": {"group": "g", "aliases": ["a"]}}


def check(value, schema: str) -> None:
    jsonschema.Draft202012Validator({**DOCUMENT, "$ref": f"#/components/schemas/{schema}"}).validate(value)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    hub = ApiHub(tmp_path_factory.mktemp("hub"))
    yield hub
    assert hub.end() == 0


def test_schemas_are_schemas():
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_routes_are_those_of_the_router():
    table = re.findall(r'\{"([A-Z]+)", "(/[^"]*)"', (ROOT / "src" / "hub" / "api_router.cc").read_text())
    routes = {(method, path.replace("**", "*")) for method, path in table}
    told = {(method.upper(), re.sub(r"\{[^}]*\}", "*", path)) for path, item in DOCUMENT["paths"].items()
            for method in item if method in METHODS}
    assert routes == told and len(table) == len(routes)


def test_every_part_of_a_path_is_a_parameter():
    for path, item in DOCUMENT["paths"].items():
        named = set()
        for parameter in item.get("parameters", []):
            if "$ref" in parameter:
                parameter = DOCUMENT["components"]["parameters"][parameter["$ref"].rsplit("/", 1)[1]]
            named.add(parameter["name"])
        assert named == set(re.findall(r"\{(\w+)\}", path)), path


def test_jobs(hub):
    check(BODY, "JobRequest")
    status, job = hub.request("POST", "/api/jobs/tester", BODY)
    assert status == 200
    check(job, "Job")
    here = f"/api/jobs/tester/{job['id']}"
    hub.tell(job["id"], {"start": True}, {"say": "line"})
    for method, path, body in (("GET", here, None), ("PUT", here + "/labels", {"labels": {"k": "v"}}),
                               ("PUT", here + "/expose", {"ports": [81], "portsPublic": []}),
                               ("POST", here + "/duplicate", None), ("POST", here + "/cancel", None)):
        status, changed = hub.request(method, path, body)
        assert status == 200, path
        check(changed, "Job")
    for item in hub.request("GET", "/api/jobs/tester?stage=CANCELED&label=k=v")[1]:
        check(item, "Job")
    space = {**BODY, "spaceId": "a/b"}
    del space["dockerImage"]
    check(hub.request("POST", "/api/jobs/tester", space)[1], "Job")
    for wrong in ("/api/jobs/tester/none", "/api/jobs/stranger", "/api/buckets/tester/x"):
        status, answer = hub.request("GET", wrong)
        assert status >= 400
        check(answer, "Error")


def events(hub, path: str, count: int) -> list[dict]:
    request = urllib.request.Request(hub.url + path, headers={"Authorization": f"Bearer {hub.tokens['tester']}"})
    found = []
    with urllib.request.urlopen(request, timeout=30) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
            if len(found) == count:
                return found
    return found


def test_streams(hub):
    job = hub.request("POST", "/api/jobs/tester", BODY)[1]["id"]
    hub.tell(job, {"usage": True}, {"start": True}, {"say": "line"})
    check(events(hub, f"/api/jobs/tester/{job}/logs", 1)[0], "LogLine")
    for sample in events(hub, f"/api/jobs/tester/{job}/metrics", 2):
        check(sample, "Metrics")


def test_schedules(hub):
    body = {"jobSpec": {k: v for k, v in BODY.items() if k != "network"}, "schedule": "@hourly"}
    check(body, "ScheduleRequest")
    schedule = hub.request("POST", "/api/scheduled-jobs/tester", body)[1]
    check(schedule, "Schedule")
    here = f"/api/scheduled-jobs/tester/{schedule['id']}"
    check(hub.request("POST", here + "/run")[1], "Job")
    for method, path, change in (("GET", here, None), ("POST", here + "/suspend", None), ("POST", here + "/resume", None),
                                 ("POST", here + "/schedule", {"schedule": "@daily"}),
                                 ("PUT", here + "/labels", {"labels": {}})):
        check(hub.request(method, path, change)[1], "Schedule")
    assert hub.request("DELETE", here)[0] == 200


def test_the_rest(hub):
    check(hub.request("GET", "/healthz")[1], "Health")
    check(hub.request("GET", "/api/whoami-v2")[1], "User")
    check(hub.request("GET", "/api/agent-harnesses")[1], "Harnesses")
    for item in hub.request("GET", "/api/jobs/hardware")[1]:
        check(item, "Hardware")
