"""`cay serve` as a process: what it makes, what it says, that a state has one hub."""

import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess

import pytest

from host import BINARY, wait_until
from hub_host import run_cay

pytestmark = pytest.mark.slow


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_ready_line_says_where_it_is(hub):
    assert hub.ready["ready"] is True
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", hub.ready["api"])
    assert hub.ready["domain"] == "cay.localhost"
    assert hub.ready["state"] == str(hub.state)
    run = json.loads((hub.state / "run.json").read_text())
    assert {k: run[k] for k in ("api", "tls_port", "domain", "pid")} == {
        "api": hub.api, "tls_port": hub.tls_port, "domain": "cay.localhost", "pid": hub.pid}


def test_the_state_is_private(hub):
    assert mode(hub.state) == 0o700
    for role in ("admin", "user", "proxy"):
        assert mode(hub.state / "tokens" / role) == 0o600
        assert re.fullmatch(r"hf_cay[0-9a-f]{48}\n", (hub.state / "tokens" / role).read_text())
    assert mode(hub.state / "ca/ca.key") == 0o600
    assert mode(hub.state / "hub.db") == 0o600
    assert mode(hub.state / "run.json") == 0o600


def test_tokens_are_not_in_the_database(hub):
    for name in os.listdir(hub.state):
        if name.startswith("hub.db"):
            content = (hub.state / name).read_bytes()
            for role in ("admin", "user", "proxy"):
                assert hub.token(role).encode() not in content


def test_both_loopback_addresses_speak_tls(hub):
    context = ssl.create_default_context(cafile=str(hub.state / "ca/ca.pem"))
    for address in ("127.0.0.1", "::1"):
        with socket.create_connection((address, hub.tls_port), timeout=30) as raw, \
                context.wrap_socket(raw, server_hostname="x--1.cay.localhost") as tls:
            assert tls.version() == "TLSv1.3"


def test_a_state_has_one_hub(hub):
    done = hub.cay("serve", "--port", "0", "--tls-port", "0")
    assert done.returncode == 1 and done.stdout == ""
    assert f"process {hub.pid}" in done.stderr and "--state" in done.stderr


def test_a_taken_port_is_named(hub):
    port = hub.api.rsplit(":", 1)[1]
    place = hub.state.parent / "other"
    before = hub.processes()
    done = run_cay("serve", "--state", place, "--port", port, "--tls-port", "0", binary=hub.place.cay)
    assert done.returncode == 1 and port in done.stderr, done.stderr
    done = run_cay("serve", "--state", place, "--port", "0", "--tls-port", hub.tls_port, binary=hub.place.cay)
    assert done.returncode == 1 and str(hub.tls_port) in done.stderr, done.stderr
    wait_until(lambda: hub.processes() == before, 5, "the end of what the two had started")


def test_a_hub_without_jobs_leaves_no_process(start_hub):
    hub = start_hub(end_jobs=False)
    hub.stop()
    wait_until(lambda: not hub.processes(), 5, "the end of all its processes")


def test_two_hubs_side_by_side(hub, start_hub):
    other = start_hub()
    assert other.api != hub.api and other.tls_port != hub.tls_port
    assert other.token() != hub.token()


def test_tokens_and_ca_stay_the_same_over_starts(start_hub):
    first = start_hub()
    tokens = {role: first.token(role) for role in ("admin", "user", "proxy")}
    ca = (first.state / "ca/ca.pem").read_bytes()
    first.kill9()
    assert "no hub runs" in first.cay("env").stderr
    second = start_hub(after=first)
    assert {role: second.token(role) for role in tokens} == tokens
    assert (second.state / "ca/ca.pem").read_bytes() == ca
    second.stop()
    assert len(json.loads(second.cay("token", "list", "--json").stdout)) == 3


def test_a_lost_token_is_told_and_can_be_replaced(start_hub):
    first = start_hub()
    first.stop()
    (first.state / "tokens/user").unlink()
    second = start_hub(after=first)
    lines = [json.loads(line)["message"] for line in second.lines if "tokens/user" in line]
    assert len(lines) == 1, second.log
    command = re.search(r"cay (token create .*)$", lines[0])[1].split()
    assert not (second.state / "tokens/user").exists()
    done = run_cay(*command, binary=second.place.cay)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert mode(second.state / "tokens/user") == 0o600
    said = json.loads(second.cay("env", "--shell", "json").stdout)
    assert said["HF_TOKEN"] == second.token("user")


def test_sigint_ends_it_too(start_hub):
    one = start_hub()
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(30) == 0


def test_an_own_certificate(start_hub, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=hub.example", "-addext", "subjectAltName=DNS:*.hub.example",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    one = start_hub(flags=["--domain", "hub.example", "--tls-cert", str(certificate), "--tls-key", str(key)])
    context = ssl.create_default_context(cafile=str(certificate))
    with socket.create_connection(("127.0.0.1", one.tls_port), timeout=30) as raw, \
            context.wrap_socket(raw, server_hostname="x--1.hub.example"):
        pass
    said = json.loads(one.cay("env", "--shell", "json").stdout)
    assert "SSL_CERT_FILE" not in said and not (one.state / "ca").exists()


def test_a_bad_certificate_is_refused(tmp_path):
    (tmp_path / "x.pem").write_text("nonsense")
    done = run_cay("serve", "--state", tmp_path / "state", "--port", "0", "--tls-port", "0", "--tls-cert",
                   tmp_path / "x.pem", "--tls-key", tmp_path / "x.pem", "--cay-host", BINARY)
    assert done.returncode == 1 and done.stderr.startswith("cay serve: "), done.stderr
