"""The unmodified huggingface_hub, three generations of it, on a hub: once where names below the domain resolve, and once
where they do not and it goes through the proxy that `cay env` names."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from host import ROOT
from hub_host import Hub

CLIENT = ROOT / "tests" / "hub_client"
VERSIONS = ["2.4.0", "2.0.0", "1.31.0"]
WAYS = ["names", "proxy"]
# Each with its arguments and the cases that its main program tells of besides those in the file.
SCRIPTS = {
    "dedicated": ("scenario.py", ["dedicated"], ["case_create", "case_kill"]),
    "pool": ("scenario.py", ["pool"], ["case_create", "case_kill"]),
    "creation": ("creation.py", [], []),
    "pools": ("pools.py", [], []),
    "groups": ("groups.py", [], []),
    "many": ("many.py", [], []),
}
# What an older client does not know yet, or what is about the hub and the same by any client and way.
ONLY = {"groups": {("2.4.0", "names"), ("2.0.0", "names")}, "many": {("2.4.0", "names")}}
WITHOUT_NAMES = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/nsswitch.conf && exec "$@"']


def cases_of(script: str) -> list[str]:
    text = (CLIENT / SCRIPTS[script][0]).read_text()
    names = [line[4:line.index("(")] for line in text.splitlines() if line.startswith("def case_")]
    if script in ("dedicated", "pool"):
        sys.path.insert(0, str(CLIENT))
        import scenario
        names = [name for name in vars(scenario) if name.startswith("case_")]
    return [*names, *SCRIPTS[script][2]]


class Way:
    """How a client reaches the edge of a hub: by the names themselves, or by the proxy alone."""

    def __init__(self, name: str, folder: Path) -> None:
        self.prefix: list[str] = []
        if name == "proxy":
            config = folder / "nsswitch.conf"
            config.write_text("hosts: files dns\n")
            self.prefix = [*WITHOUT_NAMES, str(config)]
        else:
            try:
                socket.getaddrinfo("x--1.cay.localhost", 443)
            except socket.gaierror:
                pytest.fail("names below localhost do not resolve here: libnss-myhostname is missing")

    def environment(self, hub: Hub, home: Path) -> dict[str, str]:
        said = subprocess.run([*self.prefix, hub.place.cay, "env", "--shell", "json", "--state", hub.state],
                              capture_output=True, text=True, timeout=30, check=False, env={"PATH": "/usr/sbin:/usr/bin:/bin"})
        assert said.returncode == 0, said.stderr
        given = {name: value for name, value in json.loads(said.stdout).items() if value is not None}
        assert ("HTTPS_PROXY" in given) == bool(self.prefix), given.keys()
        return {"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": str(home), "HF_HOME": str(home / "hf"),
                "HF_HUB_DISABLE_TELEMETRY": "1", **given}


def other_token(hub: Hub) -> str:
    """Of somebody else, who may use our user's namespace too."""
    namespace = json.loads(hub.request("GET", "/api/whoami-v2")[2])["name"]
    done = hub.cay("token", "create", "other", "--user", "other", "--namespace", namespace, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["token"]


_results: dict[tuple[str, str, str], dict] = {}
_other: dict[int, str] = {}


@pytest.fixture
def results(hub, default_image, version, way, script, tmp_path_factory):
    key = (version, way, script)
    if key not in _results:
        folder = tmp_path_factory.mktemp("client")
        chosen = Way(way, folder)
        if id(hub) not in _other:
            _other[id(hub)] = other_token(hub)
        env = {**chosen.environment(hub, folder), "CAY_OTHER_TOKEN": _other[id(hub)]}
        file, arguments, _ = SCRIPTS[script]
        work = folder / "work"
        work.mkdir()
        done = subprocess.run([*chosen.prefix, ROOT / ".venvs" / f"hub-{version}" / "bin" / "python", CLIENT / file,
                               *arguments, work, "hub"], env=env, capture_output=True, text=True, timeout=700, check=False)
        told = {result["case"]: result for result in map(json.loads, done.stdout.splitlines())}
        _results[key] = {**told, "stderr": {"error": done.stderr[-4000:] + "\n" + "\n".join(hub.lines[-20:])}}
    return _results[key]


def parameters():
    for version in VERSIONS:
        for way in WAYS:
            for script in SCRIPTS:
                if (version, way) not in ONLY.get(script, {(version, way)}):
                    continue
                marks = [pytest.mark.xdist_group(f"real-{version}-{way}")]
                if (version, way, script) != ("2.4.0", "names", "dedicated"):
                    marks.append(pytest.mark.slow)
                for case in cases_of(script):
                    yield pytest.param(version, way, script, case, marks=marks, id=f"{version}-{way}-{script}-{case[5:]}")


@pytest.mark.parametrize("version, way, script, case", parameters())
def test_client(results, version, way, script, case):
    result = results.get(case)
    assert result is not None, f"did not run to its end:\n{results['stderr']['error']}"
    assert result["error"] is None, result["error"]
