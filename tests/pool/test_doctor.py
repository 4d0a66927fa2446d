"""cay-host doctor: tries each forbidden act in a throw-away sandbox and tells what it found."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from host import BINARY, SANITIZED, wait_until
from pool_host import UNPRIVILEGED_ID, WRAPPERS

# One after another, so that what one leaves behind can be told from another at work.
pytestmark = [pytest.mark.xdist_group("doctor"), pytest.mark.slow]
VERDICTS = ("held", "weaker", "absent")


def doctor(*flags, walls="full", env=None):
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("SBX_", "CAY_WALLS"))}
    return subprocess.run(
        [*WRAPPERS[walls], BINARY, "doctor", *flags],
        env={**variables, "CAY_WALLS": walls, **(env or {})},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("walls", ["full", "restricted", "unprivileged"])
def test_json(walls):
    done = doctor("--json", walls=walls)
    document = json.loads(done.stdout)
    found = document["walls"]
    assert len(found) >= 8
    for name, wall in found.items():
        assert wall["verdict"] in VERDICTS and wall["why"], name
    if walls == "full":
        assert done.returncode == 0, done.stderr
        assert [n for n, w in found.items() if w["verdict"] == "absent"] == []


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is no measure")
@pytest.mark.parametrize("walls", ["full", "restricted", "unprivileged"])
def test_table(walls):
    done = doctor(walls=walls)
    names = json.loads(doctor("--json", walls=walls).stdout)["walls"]
    for name, wall in names.items():
        line = next((l for l in done.stdout.splitlines() if l.split()[:1] == [name]), None)
        assert line and wall["verdict"] in line, name


def test_what_is_missing_says_what_to_change():
    walls = json.loads(doctor("--json", walls="restricted").stdout)["walls"]
    lacking = {n: w for n, w in walls.items() if w["verdict"] != "held"}
    assert lacking and all(w.get("remedy") or w.get("why") for w in lacking.values())


def test_same_walls_as_a_sandbox(pool):
    info = pool.create().info()["walls"]
    told = json.loads(doctor("--json").stdout)["walls"]
    assert set(info) == set(told)
    assert {n: w["verdict"] for n, w in info.items()} == {n: w["verdict"] for n, w in told.items()}


def test_it_leaves_nothing_behind():
    def look():
        return {n for n in os.listdir("/tmp") if n.startswith("cay-doctor")}, Path("/proc/self/mounts").read_text()

    folders, mounts = look()
    doctor()
    wait_until(lambda: look()[0] <= folders, 20, "the end of its folder")
    assert look()[1] == mounts


def test_a_machine_that_opens_keepers_to_their_sandboxes_is_refused(tmp_path):
    """Seen by this process alone, lest every other host on the machine refuses too."""
    setting = tmp_path / "suid_dumpable"
    setting.write_text("1\n")
    script = f'mount --bind {setting} /proc/sys/fs/suid_dumpable && exec "$0" "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, BINARY, "--host-mode", "--port", "0", "--state", tmp_path / "state"],
        env={"SBX_TOKEN": "t"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1 and "fs.suid_dumpable" in done.stderr, done


def test_unknown_flags():
    assert doctor("--no-such").returncode == 2


def test_an_ordinary_user_can_ask():
    assert UNPRIVILEGED_ID and doctor("--json", walls="unprivileged").stdout


@pytest.mark.parametrize("walls", ["full", "restricted"])
def test_a_starting_host_logs_what_does_not_hold(start_pool, walls):
    pool = start_pool(walls=walls)
    info = pool.create().info()["walls"]
    logged = pool.log_entries("a wall is not held")
    assert {e["wall"] for e in logged if e["of"] == "network host"} == {
        n for n, w in info.items() if w["verdict"] != "held"
    }
    for entry in logged:
        assert entry["level"] == "warn" and entry["verdict"] in ("weaker", "absent")
        assert entry["remedy"] and 0 < len(entry["why"]) <= 203
