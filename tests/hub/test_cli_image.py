"""`cay image`: import, names, aliases, removal, and pulling from a real registry on this machine."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tarfile

import pytest

from host import wait_until
from hub_host import CAY, clean_environment, run_cay
from terminal import on_terminal

pytestmark = pytest.mark.slow


class Images:
    def __init__(self, state) -> None:
        self.state = state

    def __call__(self, *arguments, **options) -> subprocess.CompletedProcess:
        return run_cay("image", *arguments, "--state", self.state, timeout=120, **options)

    def must(self, *arguments) -> str:
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def listed(self) -> dict:
        return json.loads(self.must("ls", "--json"))

    def names(self) -> list[str]:
        return [i["name"] for i in self.listed()["images"]]

    def layers(self) -> int:
        folder = self.state / "images/layers"
        return len(list(folder.iterdir())) if folder.exists() else 0


@pytest.fixture
def images(tmp_path):
    return Images(tmp_path / "state")


@pytest.fixture
def root(tmp_path):
    """A root that is one program."""
    folder = tmp_path / "root"
    (folder / "bin").mkdir(parents=True)
    shutil.copy("/usr/bin/busybox", folder / "bin/busybox")
    (folder / "bin/sh").symlink_to("busybox")
    (folder / "etc").mkdir()
    (folder / "etc/motd").write_text("hello\n")
    return folder


def test_import_list_remove_prune(images, root):
    out = images.must("import", "mine:1", root)
    assert out.startswith("docker.io/library/mine:1 sha256:") and "1 layers" in out
    [image] = images.listed()["images"]
    assert image["name"] == "docker.io/library/mine:1" and len(image["layers"]) == 1 and image["bytes"] > 0
    layer = images.state / "images/layers" / image["layers"][0].removeprefix("sha256:")
    assert (layer / "etc/motd").read_text() == "hello\n"
    table = images.must("ls")
    assert "docker.io/library/mine:1" in table and image["digest"][:19] in table and "built in" in table

    images.must("import", "mine:2", root)
    assert images.layers() == 1
    assert images.must("rm", "mine:1") == "removed docker.io/library/mine:1\n"
    assert images.must("prune") == "removed 0 layers and 0 blobs\n"
    images.must("rm", "mine:2")
    assert images.names() == [] and images.layers() == 1
    assert images.must("prune") == "removed 1 layers and 0 blobs\n"
    assert images.layers() == 0


def test_import_of_an_archive(images, root, tmp_path):
    for name in ("root.tar", "root.tar.gz"):
        with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as tar:
            tar.add(root, ".")
        images.must("import", f"mine:{name}", tmp_path / name)
    assert len(images.names()) == 2


def test_aliases_are_seen(images, root):
    out = images.must("alias", "python:3.12", "host")
    assert out.startswith("docker.io/library/python:3.12 is now an alias of host")
    done = images("alias", "debian", "mine:1")
    assert done.returncode == 0 and "is not here" in done.stderr
    images.must("import", "mine:1", root)
    assert images("alias", "debian", "mine:1").stderr == ""
    assert images.listed()["aliases"] == [
        {"name": "docker.io/library/debian:latest", "target": "docker.io/library/mine:1"},
        {"name": "docker.io/library/python:3.12", "target": "host"}]
    assert "alias of host" in images.must("ls")
    images.must("rm", "python:3.12")
    assert len(images.listed()["aliases"]) == 1


@pytest.mark.parametrize("arguments, status, words", [
    (("rm", "nobody:1"), 3, "'nobody:1' is not here"),
    (("rm", "host"), 2, "built in"),
    (("rm", "Not A Name"), 2, "Not A Name"),
    (("alias", "a", "a"), 2, "alias of itself"),
    (("alias", "host", "a"), 2, "built-in"),
    (("pull", "host"), 2, "built-in"),
    (("pull", "../up"), 2, "../up"),
    (("pull", "x", "--auth-file", "/nowhere"), 3, "/nowhere"),
    (("import", "x", "/nowhere"), 3, "/nowhere"),
    (("import", "x", "/dev/null"), 2, "is not a file"),
    (("import", "x", "/etc/passwd"), 2, "/etc/passwd"),
])
def test_bad_wishes(images, arguments, status, words):
    done = images(*arguments)
    assert done.returncode == status and words in done.stderr and done.stdout == "", (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1
    assert images.listed() == {"images": [], "aliases": [], "builtin": ["host"]}


def test_offline_says_what_to_do(images):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        name = f"127.0.0.1:{closed.getsockname()[1]}/demo:1"
        done = images("pull", name)
    assert done.returncode == 5
    for words in ("cannot be reached", f"cay image import {name}", f"cay image alias {name} host"):
        assert words in done.stderr


def test_what_jobs_use_stays(images, root):
    """Also when no hub runs: jobs outlive it."""
    images.must("import", "mine:1", root)
    images.must("rm", "mine:1")
    (images.state / "sandboxes/sandboxes/abc").mkdir(parents=True)
    (images.state / "sandboxes/sandboxes/abc/record.json").write_text("{}")
    done = images("prune")
    assert done.returncode == 6 and "nothing was removed" in done.stderr
    assert images.layers() == 1


class Registry:
    """Debian's docker-registry on a port of its own."""

    USER, PASSWORD = "somebody", "secret"
    HASH = "$2b$05$hqb8aG9HJUS040rWPb2JS.VREKxFEzcNHkHVDJrfjjtF2puTqkTtq"

    def __init__(self, folder, *, password: bool = False) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        config = (f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
                  f"http: {{addr: \"{self.address}\"}}\n")
        if password:
            (folder / "users").write_text(f"{self.USER}:{self.HASH}\n")
            config += f"auth: {{htpasswd: {{realm: test, path: {folder}/users}}}}\n"
        (folder / "config.yml").write_text(config)
        program = shutil.which("docker-registry")
        assert program, "the tests need docker-registry"
        self.process = subprocess.Popen([program, "serve", folder / "config.yml"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_until(self._answers, 30, "the registry to answer")

    def _answers(self) -> bool:
        host, port = self.address.split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def push(self, images: Images, name: str, digest: str) -> None:
        """An image of ours, back as an image of a registry."""
        [image] = [i for i in images.listed()["images"] if i["digest"] == digest]
        layer = images.state / "images/layers" / image["layers"][0].removeprefix("sha256:")
        layout = images.state.parent / f"layout-{name.replace('/', '-').replace(':', '-')}"
        _write_layout(layer, layout)
        subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false",
                        f"--dest-creds={self.USER}:{self.PASSWORD}", f"oci:{layout}",
                        f"docker://{self.address}/{name}"], check=True, capture_output=True)

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10)


def _write_layout(root, layout) -> None:
    from hashlib import sha256

    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes, kind: str) -> dict:
        digest = sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    archive = layout / "layer.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, ".")
    layer = blob(archive.read_bytes(), "layer.v1.tar")
    archive.unlink()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    config = blob(json.dumps({"os": "linux", "architecture": machine, "config": {},
                              "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode(), "config.v1+json")
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                "config": config, "layers": [layer]}).encode(), "manifest.v1+json")
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


@pytest.fixture
def start_registry(tmp_path):
    made = []

    def start(**options) -> Registry:
        folder = tmp_path / f"registry{len(made)}"
        folder.mkdir()
        made.append(Registry(folder, **options))
        return made[-1]

    yield start
    for registry in made:
        registry.end()


def test_pull_from_a_registry(images, root, start_registry):
    registry = start_registry()
    images.must("import", "mine:1", root)
    registry.push(images, "demo/busy:1", images.listed()["images"][0]["digest"])
    name = f"{registry.address}/demo/busy:1"
    done = images("pull", name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{name} sha256:") and "1 layers" in done.stdout
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith(("fetching: ", "unpacking: ")) for line in lines), done.stderr
    assert "1 of 1 layers" in lines[-1]
    digest = next(i["digest"] for i in images.listed()["images"] if i["name"] == name)

    pinned = f"{registry.address}/demo/busy@{digest}"
    assert digest in images.must("pull", pinned)
    wrong = images("pull", f"{registry.address}/demo/busy@sha256:{'0' * 64}")
    assert wrong.returncode == 3 and "does not have it" in wrong.stderr.splitlines()[-1]
    assert images("pull", f"{registry.address}/demo/busy:2").returncode == 3


def test_a_registry_may_want_a_password(images, root, start_registry, tmp_path):
    registry = start_registry(password=True)
    images.must("import", "mine:1", root)
    registry.push(images, "demo:1", images.listed()["images"][0]["digest"])
    name = f"{registry.address}/demo:1"
    env = clean_environment(HOME=str(tmp_path), XDG_RUNTIME_DIR=str(tmp_path))
    denied = images("pull", name, env=env)
    assert denied.returncode == 4 and "--auth-file" in denied.stderr.splitlines()[-1]
    auth = base64.b64encode(f"{registry.USER}:{registry.PASSWORD}".encode()).decode()
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {registry.address: {"auth": auth}}}))
    assert images("pull", name, "--auth-file", tmp_path / "auth.json", env=env).returncode == 0


def test_a_terminal_sees_a_bar(images, root, start_registry):
    registry = start_registry()
    images.must("import", "mine:1", root)
    registry.push(images, "demo:1", images.listed()["images"][0]["digest"])
    pull = [CAY, "image", "pull", f"{registry.address}/demo:1", "--state", images.state]
    status, text = on_terminal(pull, stream="stderr", stdout=subprocess.DEVNULL, env=clean_environment())
    assert status == 0
    assert "[########################] 1 of 1 layers" in text and "\n" not in text
    assert text.endswith("\r\x1b[K")
