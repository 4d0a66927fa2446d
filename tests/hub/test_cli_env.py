"""`cay env`: what it prints for each shell, that shells take it, and that it keeps secrets off terminals."""

import json
import os
import shutil
import socket
import subprocess

import pytest

from hub_host import clean_environment, run_cay
from terminal import on_terminal

NAMES = ("HF_ENDPOINT", "HF_TOKEN", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")


def said(hub, *flags, **variables) -> dict:
    done = hub.cay("env", "--shell", "json", *flags, env=clean_environment(**variables))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def resolves(name: str = "probe--1.cay.localhost") -> bool:
    try:
        socket.getaddrinfo(name, 1)
        return True
    except OSError:
        return False


def expected(hub) -> dict:
    values = {"HF_ENDPOINT": hub.api, "HF_TOKEN": hub.token("user"), "SSL_CERT_FILE": f"{hub.state}/ca/bundle.pem"}
    if not resolves():
        proxy = f"http://cay:{hub.token('proxy')}@{hub.api.removeprefix('http://')}"
        values |= {"HTTPS_PROXY": proxy, "https_proxy": proxy, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    return values


def test_what_clients_need(hub):
    assert said(hub) == expected(hub)
    assert "BEGIN CERTIFICATE" in (hub.state / "ca/bundle.pem").read_text()


def test_the_admins_token_is_never_in_it(hub):
    for flags in ((), ("--shell", "fish"), ("--shell", "json"), ("--show",), ("--trust", "dir")):
        done = hub.cay("env", *flags)
        assert hub.token("user") in done.stdout and hub.token("admin") not in done.stdout + done.stderr


@pytest.mark.parametrize("shell, script", [
    ("sh", 'eval "$({cay} env --state "$STATE")" && env'),
    ("bash", 'eval "$({cay} env --state "$STATE")" && env'),
    ("fish", "{cay} env --shell fish --state $STATE | source; and env"),
])
def test_shells_take_it(hub, shell, script):
    assert shutil.which(shell), f"the tests need {shell}"
    done = subprocess.run([shell, "-c", script.format(cay=hub.place.cay)], capture_output=True, text=True, check=False,
                          env=clean_environment(STATE=str(hub.state)))
    assert done.returncode == 0, done.stderr
    got = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert {name: got.get(name) for name in NAMES} == {name: expected(hub).get(name) for name in NAMES}


@pytest.mark.parametrize("shell, script", [
    ("sh", 'eval "$({cay} env --state "$STATE")" && printf %s "$SSL_CERT_FILE"'),
    ("fish", "{cay} env --shell fish --state $STATE | source; and printf %s $SSL_CERT_FILE"),
])
def test_any_folder_name_is_taken_as_it_is(start_hub, shell, script):
    one = start_hub()
    one.stop()
    hostile = one.state.parent / "it's $(touch planted) `x` \\ \"q\" ;& ä*"
    one.state.rename(hostile)
    done = subprocess.run([shell, "-c", script.format(cay=one.place.cay)], capture_output=True, text=True, check=False,
                          cwd=one.state.parent, env=clean_environment(STATE=str(hostile), LANG="C.UTF-8"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{hostile}/ca/bundle.pem"
    assert not (one.state.parent / "planted").exists()
    hostile.rename(one.state)


def test_a_folder_of_certificates_instead(hub):
    values = said(hub, "--trust", "dir", SSL_CERT_FILE="/somewhere")
    assert values["SSL_CERT_DIR"] == f"{hub.state}/ca/hashed"
    assert values["SSL_CERT_FILE"] is None
    assert hub.client_env("--trust", "dir").get("SSL_CERT_FILE") is None
    done = subprocess.run(["sh", "-c", f'eval "$({hub.place.cay} env --trust dir --state {hub.state})"; '
                           'echo "${SSL_CERT_FILE-unset}"'], env=clean_environment(SSL_CERT_FILE="/x"),
                          capture_output=True, text=True, check=False)
    assert done.stdout == "unset\n"


def test_a_terminal_sees_help_instead_of_secrets(hub):
    env = [hub.place.cay, "env", "--state", hub.state]
    status, text = on_terminal(env, env=clean_environment())
    assert status == 0
    assert "hf_cay" not in text and 'eval "$(cay env)"' in text and "--show" in text
    status, text = on_terminal([*env, "--show"], env=clean_environment())
    assert status == 0
    assert hub.token("user") in text


def test_a_proxy_of_the_machine_is_kept_out_of_our_names(hub):
    values = said(hub, HTTPS_PROXY="http://proxy.example:3128", no_proxy="internal.example,localhost")
    assert values["no_proxy"] == values["NO_PROXY"]
    entries = values["no_proxy"].split(",")
    assert "internal.example" in entries and "127.0.0.1" in entries and "localhost" not in entries
    if resolves():
        assert "cay.localhost" in entries and "HTTPS_PROXY" not in values
    else:
        assert "cay.localhost" not in entries and values["HTTPS_PROXY"].startswith("http://cay:hf_cay")


def test_the_variables_lead_pythons_clients_the_right_way(hub):
    """urllib's reading of the variables, which requests and httpx share."""
    script = ("import json, urllib.request as u; p = u.getproxies(); "
              "print(json.dumps([p.get('https'), u.proxy_bypass('x--1.cay.localhost'), u.proxy_bypass('127.0.0.1')]))")
    env = hub.client_env()
    out = subprocess.run(["python3", "-c", script], env=env, capture_output=True, text=True, check=True).stdout
    proxy, ours_bypassed, api_bypassed = json.loads(out)
    if resolves():
        assert proxy is None
    else:
        assert proxy == env["HTTPS_PROXY"] and not ours_bypassed and api_bypassed


# Names that a private libc resolver finds: a mount namespace with a hosts file of our own.
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace")
@pytest.mark.parametrize("address, found", [("127.0.0.1", True), ("::1", True), ("192.0.2.1", False)])
def test_names_that_resolve_here_need_no_proxy(hub, tmp_path, address, found):
    (tmp_path / "hosts").write_text(f"127.0.0.1 localhost\n{address} probe--1.cay.localhost\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files\n")
    script = (f"mount --bind {tmp_path}/hosts /etc/hosts && mount --bind {tmp_path}/nsswitch.conf /etc/nsswitch.conf "
              f"&& exec {hub.place.cay} env --shell json --state {hub.state}")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False,
                          env=clean_environment())
    assert done.returncode == 0, done.stderr
    assert ("HTTPS_PROXY" not in json.loads(done.stdout)) == found


def test_without_a_hub_it_says_so(start_hub):
    one = start_hub()
    values = said(one)
    one.stop()
    done = one.cay("env", "--shell", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == values
    assert "no hub runs" in done.stderr and done.stderr.count("\n") == 1


def test_a_revoked_token_is_not_handed_out(start_hub):
    one = start_hub()
    assert one.cay("token", "revoke", "user").returncode == 0
    done = one.cay("env")
    assert done.returncode == 3 and done.stdout == "" and "cay token create user" in done.stderr


def test_a_client_that_asks_for_the_endpoint_reaches_the_hub(hub):
    """HF_ENDPOINT is a server that answers, and not one of somebody else."""
    assert hub.client_env()["HF_ENDPOINT"] == hub.api
    status, fields, body = hub.request("GET", "/api/jobs/nobody", token=None)
    assert status in (401, 404) and json.loads(body)["error"] and fields["X-Error-Message"]


def test_state_by_variable(hub):
    done = run_cay("env", "--shell", "json", binary=hub.place.cay, env=clean_environment(CAY_STATE=str(hub.state)))
    assert json.loads(done.stdout) == expected(hub)
