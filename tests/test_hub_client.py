"""The unmodified huggingface_hub, three generations of it, each in its own environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from host import ROOT, Host

sys.path.insert(0, str(Path(__file__).parent / "hub_client"))
import scenario  # noqa: E402
from fake_hub import FakeHub  # noqa: E402

VERSIONS = ["2.4.0", "2.0.0", "1.31.0"]
CASES = ["case_create", *[n for n in vars(scenario) if n.startswith("case_")], "case_kill"]


def run_scenario(version, folder) -> dict[str, dict]:
    hosts: list[Host] = []

    def start(env, token):
        host = Host(folder / f"state{len(hosts)}", env=env, token=token)
        hosts.append(host)
        return host.start()

    hub = FakeHub(start)
    work = folder / "work"
    work.mkdir()
    env = {"PATH": os.environ["PATH"], "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_tester",
           "HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    try:
        done = subprocess.run([ROOT / ".venvs" / f"hub-{version}" / "bin" / "python",
                               Path(scenario.__file__), str(work)],
                              env=env, capture_output=True, text=True, timeout=300, check=False)
        results = {}
        for line in done.stdout.splitlines():
            result = json.loads(line)
            results[result["case"]] = result
        results["stderr"] = {"error": done.stderr[-4000:]}
        return results
    finally:
        for host in hosts:
            host.destroy()
        hub.close()


_results: dict[str, dict] = {}


@pytest.fixture
def results(request, tmp_path_factory):
    version = request.node.callspec.params["version"]
    if version not in _results:
        _results[version] = run_scenario(version, tmp_path_factory.mktemp(f"hub-{version}"))
    return _results[version]


# One process runs all cases of a version, so they must stay on one worker.
@pytest.mark.parametrize("version", [
    pytest.param(v, marks=[pytest.mark.xdist_group(f"hub-{v}"), *([pytest.mark.slow] if v != "2.4.0" else [])])
    for v in VERSIONS])
@pytest.mark.parametrize("case", CASES)
def test_client(results, version, case):
    result = results.get(case)
    assert result is not None, f"did not run to its end:\n{results['stderr']['error']}"
    assert result["error"] is None, result["error"]
