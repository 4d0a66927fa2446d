"""`cay token`: the life of tokens, with and without a running hub."""

import json
import re
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from hub_host import clean_environment

pytestmark = pytest.mark.slow

SECRET = re.compile(r"hf_cay[0-9a-f]{48}\n")


def listed(hub) -> dict[str, dict]:
    done = hub.cay("token", "list", "--json")
    assert done.returncode == 0, done.stderr
    return {t["id"]: t for t in json.loads(done.stdout)}


def test_the_first_ones(hub):
    tokens = listed(hub).values()
    assert {t["role"] for t in tokens if t["name"] == t["role"]} == {"admin", "user", "proxy"}
    assert len({t["user"] for t in tokens}) >= 1


def test_a_life(hub):
    done = hub.cay("token", "create", "ci", "--role", "user", "--namespace", "team", "--namespace", "other",
                   "--expires", "30d", "--user", "alice")
    assert done.returncode == 0, done.stderr
    assert SECRET.fullmatch(done.stdout)
    secret = done.stdout.strip()
    token_id = re.search(r"t-[0-9a-f]{16}", done.stderr)[0]
    shown = json.loads(hub.cay("token", "show", token_id, "--json").stdout)
    assert shown == listed(hub)[token_id]
    assert {k: shown[k] for k in ("name", "role", "user", "namespaces", "state", "hint", "revoked")} == {
        "name": "ci", "role": "user", "user": "alice", "namespaces": ["team", "other"], "state": "good",
        "hint": secret[-4:], "revoked": None}
    assert shown["expires"] > shown["created"]
    for done in (hub.cay("token", "show", "ci"), hub.cay("token", "list")):
        assert done.returncode == 0 and secret not in done.stdout + done.stderr
        assert token_id in done.stdout and "alice" in done.stdout and "team,other" in done.stdout
    assert secret not in json.dumps(shown)

    assert hub.cay("token", "revoke", "ci").returncode == 0
    assert listed(hub)[token_id]["state"] == "revoked"
    when = listed(hub)[token_id]["revoked"]
    done = hub.cay("token", "revoke", token_id)
    assert done.returncode == 0 and "was revoked before" in done.stderr
    assert listed(hub)[token_id]["revoked"] == when


def test_as_json_and_into_a_file(hub, tmp_path):
    made = json.loads(hub.cay("token", "create", "j", "--json").stdout)
    assert SECRET.fullmatch(made["token"] + "\n") and made["name"] == "j"
    folder = tmp_path / "mine"
    done = hub.cay("token", "create", "f", "--file", folder / "token")
    assert (done.returncode, done.stdout) == (0, "")
    assert SECRET.fullmatch((folder / "token").read_text())
    assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
    assert hub.cay("token", "create", "f", "--file", folder / "x", "--json").returncode == 2


def test_a_token_that_cannot_be_written_is_no_token(hub):
    done = hub.cay("token", "create", "lost", "--file", "/tmp/token")  # others could put another in its place
    assert done.returncode == 6, done.stderr
    assert [t["state"] for t in listed(hub).values() if t["name"] == "lost"] == ["revoked"]


@pytest.mark.parametrize("arguments, status, words", [
    (("create", "x", "--user", "../up"), 2, "'../up' is not a namespace"),
    (("create", "x", "--namespace", "a/b"), 2, "'a/b' is not a namespace"),
    (("create", "a\nb"), 2, "is not a name for a token"),
    (("show", "nobody"), 3, "no token 'nobody'"),
    (("revoke", "t-0000000000000000"), 3, "no token"),
])
def test_bad_wishes(hub, arguments, status, words):
    before = listed(hub)
    done = hub.cay("token", *arguments)
    assert done.returncode == status and words in done.stderr and done.stdout == "", done.stderr
    assert done.stderr.count("\n") == 1
    assert listed(hub) == before


def test_names_may_be_shared_but_not_guessed(hub):
    ids = [json.loads(hub.cay("token", "create", "twin", "--json").stdout)["id"] for _ in range(2)]
    done = hub.cay("token", "revoke", "twin")
    assert done.returncode == 6 and all(i in done.stderr for i in ids)
    assert hub.cay("token", "revoke", ids[0]).returncode == 0
    assert json.loads(hub.cay("token", "show", "twin", "--json").stdout)["id"] == ids[1]


def test_many_writers_at_once(hub):
    def create(number: int) -> str:
        done = hub.cay("token", "create", f"many{number}", "--user", f"user{number % 4}", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["id"]

    with ThreadPoolExecutor(12) as pool:
        made = list(pool.map(create, range(36)))
    assert len(set(made)) == 36
    tokens = listed(hub)
    assert set(made) <= set(tokens)
    assert {tokens[i]["user"] for i in made} == {f"user{n}" for n in range(4)}


def test_without_a_hub(start_hub):
    one = start_hub()
    one.stop()
    made = json.loads(one.cay("token", "create", "later", "--json").stdout)
    assert made["id"] in listed(one)


def test_the_secret_is_not_lost_silently(hub):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([hub.place.cay, "token", "create", "x", "--state", hub.state], stdout=full,
                              stderr=subprocess.PIPE, env=clean_environment(), text=True, check=False)
    assert done.returncode == 1 and "could not be written" in done.stderr
