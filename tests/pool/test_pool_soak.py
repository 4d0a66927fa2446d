"""Tens of thousands of sandboxes come and go, and the machine looks as before: everything that could be left
over is counted by bench/pool_soak and judged here, one test each.

CAY_SOAK_COUNT changes how many there are. The counts of the whole machine are meaningful only while nobody else
makes sandboxes on it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from host import BINARY, SANITIZED

COUNT = int(os.environ.get("CAY_SOAK_COUNT", 50_000))
CLIENTS = 16
KILLS = 5
SOAK = BINARY.parent / "pool_soak"

# All in one worker, so that each soak runs once and alone, the hub's too.
pytestmark = [
    pytest.mark.soak,
    pytest.mark.xdist_group("soak"),
    pytest.mark.skipif(os.geteuid() != 0, reason="counts what only root sees"),
    pytest.mark.skipif(SANITIZED, reason="the program is not built with sanitizers"),
]

VARIANTS = {
    "full": ["--walls", "full", "--count", str(COUNT)],
    "restricted": ["--walls", "restricted", "--count", str(COUNT // 5)],
    "killed": ["--walls", "full", "--count", str(COUNT // 5), "--kills", str(KILLS)],
}


@pytest.fixture(scope="module", params=VARIANTS)
def soak(request) -> dict:
    arguments = [SOAK, "--host", BINARY, "--clients", str(CLIENTS), *VARIANTS[request.param]]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, "the soak itself failed; its last lines say why"
    result = json.loads(done.stdout)
    result["killed"] = request.param == "killed"
    result["count"] = int(arguments[arguments.index("--count") + 1])
    return result


def test_nothing_went_wrong(soak):
    # Each kill meets at most one request of each client.
    assert soak["lost"] <= (KILLS * CLIENTS if soak["killed"] else 0)


def test_no_sandbox_is_left(soak):
    # A client whose host was killed could not delete what it had just made.
    assert soak["left"] <= soak["lost"]


def test_the_first_user_ids_are_free_again(soak):
    assert soak["owner_after"] == soak["owner_before"]


def test_only_the_host_and_its_nursery_run(soak):
    assert soak["host_after"]["processes"] == soak["host_before"]["processes"] == 2
    assert soak["host_ended"]["processes"] == 0


def test_descriptors(soak):
    assert soak["host_after"]["descriptors"] <= soak["host_before"]["descriptors"] + 4


def test_threads(soak):
    assert soak["host_after"]["threads"] <= soak["host_before"]["threads"] + 1


def test_memory_of_the_host(soak):
    # The dead of the last hour are remembered, with their tokens.
    remembered = 160 * soak["count"]
    assert soak["host_after"]["resident_bytes"] <= soak["host_before"]["resident_bytes"] + (8 << 20) + remembered


def test_disk(soak):
    assert soak["host_after"]["disk_bytes"] <= soak["host_before"]["disk_bytes"] + (1 << 20)


def test_spare_folders(soak):
    # As many as were in use at once, which after a kill is more than usual; 64 with and 64 without a limited disk.
    assert soak["host_after"]["spares"] <= 2 * 64
    # Of a sandbox that filled its own nothing is left in it.
    assert soak["host_after"]["largest_spare_bytes"] <= soak["host_before"]["largest_spare_bytes"]


def test_control_groups(soak):
    assert soak["host_ended"]["groups"] == 0
    # Those of a slot are kept for its next owner: never more than were in use at once.
    assert soak["host_after"]["groups"] <= 8 * 10 * CLIENTS


def test_dying_control_groups(soak):
    assert soak["machine_after"]["dying_groups"] <= soak["machine_before"]["dying_groups"] + 5


@pytest.mark.parametrize("trace", ["mounts", "loop_devices"])
def test_as_before(soak, trace):
    assert soak["machine_after"][trace] <= soak["machine_before"][trace]


def test_mount_namespaces(soak):
    # Other tests may run hosts of their own at the same time, each with its nursery.
    assert soak["machine_after"]["mount_namespaces"] <= soak["machine_before"]["mount_namespaces"] + 20


@pytest.mark.parametrize("kind", ["mnt_cache", "pid_namespace", "user_namespace", "net_namespace"])
def test_objects_of_the_kernel(soak, kind):
    # A coarse count: the kernel keeps some free ones at hand for each core. A leak would be thousands.
    assert soak["machine_after"]["kernel_" + kind] <= soak["machine_before"]["kernel_" + kind] + 500
