"""`cay serve` and Pythons that demand X509_STRICT of certificates, as all do from 3.13 on."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from host import ROOT
from hub_host import Hub
from pythons import newest_strict_python, strict_python

pytestmark = pytest.mark.slow

CLIENT = Path(__file__).parent / "strict_client.py"
PACKAGES = ROOT / ".venvs" / "hub-2.4.0" / "lib"
# Nothing of it is changed: whatever context it makes is as strict as its Python is.
SCRIPT = """
import json, ssl, sys
from huggingface_hub import Sandbox
strict = bool(ssl.create_default_context().verify_flags & ssl.VERIFY_X509_STRICT)
with Sandbox.create(image="host") as box:
    print(json.dumps({"python": sys.version_info[:2], "strict": strict, "said": box.run("echo hello").stdout}))
"""


def ask(hub: Hub, host: str, *trusted: str) -> str:
    done = subprocess.run([strict_python(), CLIENT, str(hub.tls_port), host, *trusted], text=True, capture_output=True,
                          env={"PATH": os.environ["PATH"]}, timeout=60, check=False)
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize("trusted", ["bundle.pem", "ca.pem"])
def test_the_certificates_of_a_hub_are_strict(hub, trusted):
    for host in ("abc--49983.cay.localhost", "cay.localhost"):
        assert ask(hub, host, str(hub.state / "ca" / trusted)).startswith("TLSv1.3 http/1.1 ")
    assert ask(hub, "abc.example.com", str(hub.state / "ca" / trusted)).startswith("refused: Hostname mismatch")


def test_who_does_not_know_our_ca_is_refused(hub):
    assert ask(hub, "abc--49983.cay.localhost") == "refused: unable to get local issuer certificate"


@pytest.mark.skipif(newest_strict_python() is None, reason="there is no Python from 3.13 on here")
@pytest.mark.slow
def test_the_real_client_under_a_strict_python(hub, tmp_path):
    [packages] = PACKAGES.glob("python3*/site-packages")
    env = {**hub.client_env(), "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([newest_strict_python(), "-c", SCRIPT], env=env, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["strict"] and told["python"] >= [3, 13] and told["said"] == "hello\n"
