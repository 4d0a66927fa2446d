"""`cay trust`: the CA in the system's store. In mount namespaces, so that the machine's own store stays as it is."""

import os
import shutil
import subprocess

import pytest

from hub_host import clean_environment, run_cay

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root can install")]

STORE = "/usr/local/share/ca-certificates"


class PrivateStore:
    """Copies of the folders that the store is in, which lie over them for the commands that are run here."""

    def __init__(self, folder) -> None:
        self.folders = []
        for number, real in enumerate(("/etc/ssl", STORE)):
            copy = folder / str(number)
            if os.path.isdir(real):
                shutil.copytree(real, copy, symlinks=True)
            else:
                copy.mkdir()
            self.folders.append((copy, real))

    def run(self, *command) -> subprocess.CompletedProcess:
        mounts = "".join(f"mkdir -p {real} && mount --bind {copy} {real} && " for copy, real in self.folders)
        return subprocess.run(["unshare", "-m", "sh", "-c", mounts + 'exec "$@"', "sh", *map(str, command)],
                              capture_output=True, text=True, env=clean_environment(), timeout=120, check=False)

    def trusts(self, certificate) -> bool:
        done = self.run("openssl", "verify", "-CAfile", "/etc/ssl/certs/ca-certificates.crt", certificate)
        return done.returncode == 0

    def names(self) -> list[str]:
        return sorted(p.name for p in self.folders[1][0].iterdir())


@pytest.fixture
def store(tmp_path):
    assert shutil.which("update-ca-certificates"), "the tests need ca-certificates"
    return PrivateStore(tmp_path)


def test_install_and_remove(hub, store):
    before, certificate = store.names(), hub.state / "ca/ca.pem"
    assert not store.trusts(certificate)
    done = store.run(hub.place.cay, "trust", "install", "--state", hub.state)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"installed {STORE}/cay-") and done.stdout.count("\n") == 1
    assert store.trusts(certificate)
    after = store.names()
    assert len(after) == len(before) + 1

    again = store.run(hub.place.cay, "trust", "install", "--state", hub.state)
    assert again.returncode == 0 and again.stdout.startswith("already there")
    assert store.names() == after

    gone = store.run(hub.place.cay, "trust", "remove", "--state", hub.state)
    assert gone.returncode == 0 and gone.stdout.startswith("removed")
    assert store.names() == before and not store.trusts(certificate)
    once_more = store.run(hub.place.cay, "trust", "remove", "--state", hub.state)
    assert once_more.returncode == 0 and once_more.stdout.startswith("not there")


def test_two_hubs_are_told_apart(hub, start_hub, store):
    other = start_hub()
    for one in (hub, other):
        assert store.run(one.place.cay, "trust", "install", "--state", one.state).returncode == 0
    assert store.run(hub.place.cay, "trust", "remove", "--state", hub.state).returncode == 0
    assert not store.trusts(hub.state / "ca/ca.pem") and store.trusts(other.state / "ca/ca.pem")


def test_only_root_may(hub):
    hub.place.top.chmod(0o711)
    for verb in ("install", "remove"):
        done = run_cay("trust", verb, "--state", hub.state, binary=hub.place.cay, user=12345, group=12345,
                       extra_groups=[])
        assert done.returncode == 4 and "only root" in done.stderr and done.stdout == ""
