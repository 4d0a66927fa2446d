"""Which path means what: `paths: home` as upstream, `paths: root` as in a dedicated sandbox."""

from __future__ import annotations

import io
import tarfile

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(pool):
    return pool.create().client()


@pytest.fixture(scope="module")
def rooted(pool):
    return pool.create(paths="root").client()


def read(client, path):
    return client.get("/v1/files/read", path=path)


@pytest.mark.parametrize(
    "path", ["f", "/f", "./f", "//f", "a/../f", "../f", "/../../f", "../../../../f", "/a/../../../f"]
)
def test_the_home_is_the_root_of_all_paths(client, path):
    assert client.put("/v1/files/write", path.encode(), path=path).status == 200
    assert client.exec("cat $HOME/f").stdout == path
    assert read(client, path).body == path.encode()


def test_entries_can_be_passed_back(client):
    client.put("/v1/files/write", b"x", path="/data/sub/x")
    entry = client.get("/v1/files/stat", path="data/sub/x").json()
    assert entry["path"] == "/data/sub/x" and entry["name"] == "x"
    listed = client.get("/v1/files/list", path="/data").json()["entries"]
    assert [e["path"] for e in listed] == ["/data/sub"]
    for item in listed:
        inner = client.get("/v1/files/list", path=item["path"]).json()["entries"]
        assert [e["path"] for e in inner] == ["/data/sub/x"]
        assert read(client, inner[0]["path"]).body == b"x"
    with client.stream("GET", "/v1/files/watch", query={"path": "/data"}) as stream:
        assert next(stream.events())["event"] == "ready"
        client.put("/v1/files/write", b"y", path="/data/new")
        assert stream.next("created")["path"] == "/data/new"


def test_root_of_the_home(client):
    assert client.get("/v1/files/stat", path="/").json()["type"] == "dir"
    names = [e["name"] for e in client.get("/v1/files/list", path="/").json()["entries"]]
    client.exec("touch $HOME/in-the-home")
    assert "in-the-home" in [e["name"] for e in client.get("/v1/files/list", path="/").json()["entries"]]
    assert "etc" not in names and "usr" not in names


def test_the_home_cannot_be_deleted(client):
    for path in ("/", ".", "..", "/data/.."):
        assert client.delete("/v1/files/delete", path=path, recursive=1).status in (400, 403, 409)
    assert client.exec("cd $HOME && echo ok").stdout == "ok\n"


def test_files_belong_to_the_sandbox(client):
    client.put("/v1/files/write", b"x", path="/made/by/api")
    done = client.exec(
        "stat -c %u:%g $HOME/made $HOME/made/by $HOME/made/by/api; id -u; echo y >> $HOME/made/by/api && rm -r $HOME/made"
    )
    lines = done.stdout.split()
    assert lines[:3] == ["0:0"] * 3 and lines[3] == "0" and done.exit["exit_code"] == 0


# ---- cwd


def test_default_cwd_is_the_home(client):
    assert client.exec("pwd -P; echo $HOME").stdout.split()[0] == client.exec("echo $HOME").stdout.strip()


@pytest.mark.parametrize("cwd", ["/work", "work", "./work", "../work", "{home}/work", "/work/../work"])
def test_cwd_follows_the_rule_of_paths(client, cwd):
    """And the real home path is taken too."""
    home = client.exec("echo $HOME").stdout.strip()
    client.post("/v1/files/mkdir", path="/work")
    assert client.exec("pwd -P", cwd=cwd.format(home=home)).stdout.strip() == f"{home}/work"
    process = client.spawn("pwd -P", cwd=cwd.format(home=home))
    assert client.output(f"/v1/processes/{process['id']}", follow=1).stdout.strip() == f"{home}/work"


def test_cwd_that_is_missing(client):
    answer = client.post("/v1/exec", {"cmd": "true", "cwd": "/no/such"})
    assert answer.status == 400 and "/no/such" in answer.error
    assert client.post("/v1/exec", {"cmd": "true", "cwd": "/etc"}).status == 400, "only the home's own"


# ---- links


def test_links_are_followed_inside(client):
    client.exec(
        "mkdir -p $HOME/l/d; echo in > $HOME/l/d/f; cd $HOME/l; ln -s d/f file; ln -s d folder; ln -s $HOME/l/d/f absolute; ln -s file chain"
    )
    for name in ("file", "folder/f", "absolute", "chain"):
        assert read(client, f"/l/{name}").body == b"in\n", name
    assert client.get("/v1/files/stat", path="/l/file").json()["type"] == "symlink"
    assert client.put("/v1/files/write", b"new", path="/l/file").status == 200
    assert client.exec("cat $HOME/l/d/f; readlink $HOME/l/file").stdout == "newd/f\n"


def test_links_lead_into_the_sandboxs_own_root(client):
    """Out of the home but not out of the sandbox: what its own commands would see there."""
    client.exec(
        "echo own > /tmp/own; ln -sfn /tmp/own $HOME/out; ln -sfn /etc/hostname $HOME/hostname; ln -sfn ../../../../../.. $HOME/up"
    )
    assert read(client, "out").body == b"own\n"
    assert read(client, "hostname").body.decode() == client.exec("cat /etc/hostname").stdout
    assert read(client, "up/tmp/own").body == b"own\n"


def test_broken_and_looping_links(client):
    client.exec("cd $HOME; ln -sfn nowhere broken; ln -sfn loop2 loop1; ln -sfn loop1 loop2")
    assert read(client, "broken").status == 404
    assert read(client, "loop1").status in (400, 409)


# ---- paths: root


def test_root_paths_are_the_sandboxs_own(rooted):
    assert b"root:" in read(rooted, "/etc/passwd").body
    assert rooted.put("/v1/files/write", b"x", path="/srv/made/here").status == 200
    assert rooted.exec("cat /srv/made/here").stdout == "x"
    assert rooted.get("/v1/files/stat", path="/srv/made/here").json()["path"] == "/srv/made/here"
    assert rooted.exec("pwd -P", cwd="/srv/made").stdout == "/srv/made\n"
    assert rooted.post("/v1/exec", {"cmd": "true", "cwd": "/no/such"}).status == 400


def test_root_paths_clamp_at_the_root(rooted):
    assert rooted.put("/v1/files/write", b"clamped", path="/../../../../srv/clamped").status == 200
    assert rooted.exec("cat /srv/clamped").stdout == "clamped"


def test_tar_by_both_rules(client, rooted):
    client.exec("mkdir -p $HOME/t; echo x > $HOME/t/f")
    data = client.get("/v1/files/tar", path="/t").body
    assert any(m.name.removeprefix("./") == "f" for m in tarfile.open(fileobj=io.BytesIO(data)).getmembers())
    assert rooted.put("/v1/files/tar", data, path="/srv/t").status == 200
    assert rooted.exec("cat /srv/t/f").stdout == "x\n"


def test_restricted_mode_has_no_root_paths(start_pool):
    pool = start_pool(walls="restricted")
    answer = pool.create_answer(paths="root")
    assert answer.status in (400, 503) and "paths" in answer.error
    sandbox = pool.create()
    client = sandbox.client()
    assert client.put("/v1/files/write", b"x", path="/../a/f").status == 200
    assert client.exec("cat $HOME/a/f").stdout == "x"
    assert client.exec("echo $TMPDIR").stdout == client.exec("echo $HOME/.tmp").stdout
    client.exec("ln -s /etc/passwd $HOME/out; ln -s a/f $HOME/in")
    assert read(client, "in").body == b"x" and read(client, "out").status in (400, 403, 404, 409)
