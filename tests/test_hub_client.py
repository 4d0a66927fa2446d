"""The unmodified huggingface_hub, three generations of it, each in its own environment: the same cases with a
dedicated sandbox and with one of a pool."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from host import ROOT, Host
from pool_host import PoolHost

sys.path.insert(0, str(Path(__file__).parent / "hub_client"))
import scenario  # noqa: E402
from fake_hub import FakeHub  # noqa: E402

VERSIONS = ["2.4.0", "2.0.0", "1.31.0"]
KINDS = ["dedicated", "pool"]
CASES = ["case_create", *[n for n in vars(scenario) if n.startswith("case_")], "case_kill"]


def run_scenario(version, kind, folder) -> dict[str, dict]:
    hosts: list[Host] = []

    def start(env, token):
        if "SBX_HOST_MODE" in env:
            # A job of a protocol 1 client, which names no digest, is started with the compatibility switch.
            compat = {} if "SBX_SERVER_SHA256" in env else {"SBX_COMPAT_HOST_TOKEN": "1"}
            host = PoolHost(env={**env, **compat}, token=token)
        else:
            host = Host(folder / f"state{len(hosts)}", env=env, token=token)
        hosts.append(host)
        return host.start()

    hub = FakeHub(start, folder)
    work = folder / "work"
    work.mkdir()
    env = {"PATH": os.environ["PATH"], "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_tester",
           "HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_TELEMETRY": "1",
           "SSL_CERT_FILE": str(hub.certificate)}
    try:
        done = subprocess.run([ROOT / ".venvs" / f"hub-{version}" / "bin" / "python",
                               Path(scenario.__file__), kind, str(work)],
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


_results: dict[tuple[str, str], dict] = {}


@pytest.fixture
def results(version, kind, tmp_path_factory):
    if (version, kind) not in _results:
        _results[version, kind] = run_scenario(version, kind, tmp_path_factory.mktemp(f"hub-{version}-{kind}"))
    return _results[version, kind]


# One process runs all cases of a version and a kind, so they must stay on one worker.
@pytest.mark.parametrize("version, kind", [
    pytest.param(v, k, marks=[pytest.mark.xdist_group(f"hub-{v}-{k}"), *([pytest.mark.slow] if (v, k) != ("2.4.0", "dedicated") else [])])
    for v in VERSIONS for k in KINDS])
@pytest.mark.parametrize("case", CASES)
def test_client(results, version, kind, case):
    result = results.get(case)
    assert result is not None, f"did not run to its end:\n{results['stderr']['error']}"
    assert result["error"] is None, result["error"]
