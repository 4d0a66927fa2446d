"""/v1/files/tar: a folder out and in, and archives that try to break out."""

import io
import os
import stat
import tarfile

import pytest

MODES = ("dedicated", "attached", "pool")


def get_tar(client, path):
    answer = client.get("/v1/files/tar", path=str(path))
    assert answer.status == 200, answer.body
    return answer


def archive(*members, format=tarfile.PAX_FORMAT):
    """members: (name, data or None, changes to the TarInfo)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name, data, changes in members:
            info = tarfile.TarInfo(name)
            for key, value in changes.items():
                setattr(info, key, value)
            if data is not None:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def put_tar(client, path, data):
    return client.put("/v1/files/tar", data, path=str(path))


@pytest.fixture
def tree(folder):
    source = folder / "source"
    (source / "sub/deep").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "file").write_bytes(os.urandom(100_000))
    (source / "sub/script").write_text("#!/bin/sh\n")
    (source / "sub/script").chmod(0o755)
    (source / "sub/zero").touch()
    (source / "sub/link").symlink_to("../file")
    (source / "ünïcödé name").write_bytes(b"x")
    (source / ("long" * 40)).write_bytes(b"long")
    return source


def snapshot(host, folder):
    """What is below a folder: kinds, modes and contents."""
    return host.inside(lambda: walk(str(folder)))


def walk(folder):
    found = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = os.path.join(root, name)
            info = os.lstat(path)
            key = os.path.relpath(path, folder)
            if stat.S_ISLNK(info.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                found[key] = ("dir", stat.S_IMODE(info.st_mode))
            else:
                found[key] = ("file", stat.S_IMODE(info.st_mode), open(path, "rb").read())
    return found


def test_out(client, tree):
    answer = get_tar(client, tree)
    assert answer.headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        names = {m.name.removeprefix("./").rstrip("/") for m in tar.getmembers()} - {"", "."}
        assert names == set(snapshot(client.host, tree))
        assert not any(m.name.startswith("/") for m in tar.getmembers())
        script = next(m for m in tar.getmembers() if m.name.endswith("sub/script"))
        assert script.mode & 0o777 == 0o755


def test_out_and_in_again(client, tree, folder):
    data = get_tar(client, tree).body
    assert put_tar(client, folder / "copy", data).status == 200
    assert snapshot(client.host, folder / "copy") == snapshot(client.host, tree)


def test_system_tar_reads_it(client, tree, folder):
    (folder / "a.tar").write_bytes(get_tar(client, tree).body)
    done = client.exec(f"mkdir out && tar xf a.tar -C out && diff -r --no-dereference out {tree}", cwd=str(folder))
    assert done.exit["exit_code"] == 0, done.stderr


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_formats(client, folder, format):
    name = "folder/" + "n" * 80 if format == tarfile.USTAR_FORMAT else "folder/" + "n" * 150
    data = archive((name, b"content", {"mode": 0o640}), format=format)
    assert put_tar(client, folder / "d", data).status == 200
    assert (folder / "d" / name).read_bytes() == b"content"
    assert stat.S_IMODE((folder / "d" / name).stat().st_mode) == 0o640


def test_in_over_existing_files(client, folder):
    (folder / "f").write_bytes(b"old and longer")
    assert put_tar(client, folder, archive(("f", b"new", {}), ("g/h", b"x", {}))).status == 200
    assert (folder / "f").read_bytes() == b"new" and (folder / "g/h").read_bytes() == b"x"


def test_big_member(client, folder):
    data = os.urandom(20 << 20)
    assert put_tar(client, folder / "d", archive(("f", data, {}))).status == 200
    assert (folder / "d/f").read_bytes() == data


def test_hard_links_inside(client, folder):
    data = archive(("a", b"x", {}), ("b", None, {"type": tarfile.LNKTYPE, "linkname": "a"}))
    assert put_tar(client, folder / "d", data).status == 200
    assert (folder / "d/b").read_bytes() == b"x"


LINK = {"type": tarfile.SYMTYPE}
HOSTILE = {
    "dot dot": [("../escaped", b"x", {})],
    "dot dot in the middle": [("a/../../escaped", b"x", {})],
    "absolute": [("{outside}/escaped", b"x", {})],
    "link then through it": [("l", None, {**LINK, "linkname": "{outside}"}), ("l/escaped", b"x", {})],
    "relative link then through it": [("l", None, {**LINK, "linkname": ".."}), ("l/escaped", b"x", {})],
    "link over link": [("a", None, {**LINK, "linkname": "."}), ("a/b", None, {**LINK, "linkname": ".."}),
                       ("b/escaped", b"x", {})],
    "file through a link": [("l", None, {**LINK, "linkname": "{outside}/escaped"}), ("l", b"x", {})],
    "hard link outwards": [("h", None, {"type": tarfile.LNKTYPE, "linkname": "{outside}/victim"}),
                           ("h", b"overwritten", {})],
    "hard link by dots": [("h", None, {"type": tarfile.LNKTYPE, "linkname": "../outside/victim"}),
                          ("h", b"overwritten", {})],
    "folder mode through a link": [("l", None, {**LINK, "linkname": "{outside}"}),
                                   ("l", None, {"type": tarfile.DIRTYPE, "mode": 0o777})],
    "device": [("dev", None, {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archives_stay_inside(client, folder, members):
    outside, inside, host = folder / "outside", folder / "inside", client.host
    outside.mkdir(mode=0o755)
    inside.mkdir()
    (outside / "victim").write_bytes(b"precious")

    def fill(value):
        return value.format(outside=outside) if isinstance(value, str) else value

    data = archive(*[(fill(n), d, {k: fill(v) for k, v in c.items()}) for n, d, c in members])
    answer = put_tar(client, inside, data)
    assert answer.status in (200, 400, 409), answer.body
    assert host.inside(lambda: sorted(os.listdir(str(folder)))) == ["inside", "outside"]
    assert host.inside(lambda: os.listdir(str(outside))) == ["victim"]
    assert (outside / "victim").read_bytes() == b"precious"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    assert not host.inside(lambda: [n for n in os.listdir(str(inside)) if stat.S_ISCHR(os.lstat(f"{inside}/{n}").st_mode)])


@pytest.mark.parametrize("data", [b"not a tar at all" * 100, b"\x1f\x8b" + b"\0" * 600])
def test_garbage(client, folder, data):
    answer = put_tar(client, folder / "d", data)
    assert answer.status == 400 and answer.error


def test_cut_off_archive(client, folder):
    data = archive(("f", b"x" * 100_000, {}))
    answer = put_tar(client, folder / "d", data[:50_000])
    assert answer.status == 400 and answer.error
    assert not (folder / "d/f").exists(), "half a file is not left behind under its name"


def test_tar_of_a_file_or_nothing(client, folder):
    (folder / "f").touch()
    assert client.get("/v1/files/tar", path=str(folder / "f")).status in (400, 409)
    assert client.get("/v1/files/tar", path=str(folder / "missing")).status == 404


def test_special_files_do_not_block(client, folder):
    (folder / "d").mkdir()
    client.host.inside(lambda: os.mkfifo(str(folder / "d/fifo")))
    (folder / "d/f").write_bytes(b"x")
    with tarfile.open(fileobj=io.BytesIO(get_tar(client, folder / "d").body)) as tar:
        assert any(m.name.removeprefix("./") == "f" for m in tar.getmembers())


@pytest.mark.slow
def test_many_files(client, folder):
    (folder / "d").mkdir()

    def fill():
        for n in range(5000):
            with open(f"{folder}/d/{n}", "w") as f:
                f.write(str(n))

    client.host.inside(fill)
    data = get_tar(client, folder / "d").body
    assert put_tar(client, folder / "e", data).status == 200
    assert snapshot(client.host, folder / "e") == snapshot(client.host, folder / "d")
