"""/v1/files/tar: a folder out and in, and archives that try to break out."""

import io
import os
import stat
import tarfile

import pytest


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
def tree(tmp_path):
    source = tmp_path / "source"
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


def snapshot(folder):
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
        assert names == set(snapshot(tree))
        assert not any(m.name.startswith("/") for m in tar.getmembers())
        script = next(m for m in tar.getmembers() if m.name.endswith("sub/script"))
        assert script.mode & 0o777 == 0o755


def test_out_and_in_again(client, tree, tmp_path):
    data = get_tar(client, tree).body
    assert put_tar(client, tmp_path / "copy", data).status == 200
    assert snapshot(tmp_path / "copy") == snapshot(tree)


def test_system_tar_reads_it(client, tree, tmp_path):
    (tmp_path / "a.tar").write_bytes(get_tar(client, tree).body)
    done = client.exec(f"mkdir out && tar xf a.tar -C out && diff -r --no-dereference out {tree}", cwd=str(tmp_path))
    assert done.exit["exit_code"] == 0, done.stderr


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_formats(client, tmp_path, format):
    name = "folder/" + "n" * 80 if format == tarfile.USTAR_FORMAT else "folder/" + "n" * 150
    data = archive((name, b"content", {"mode": 0o640}), format=format)
    assert put_tar(client, tmp_path / "d", data).status == 200
    assert (tmp_path / "d" / name).read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "d" / name).stat().st_mode) == 0o640


def test_in_over_existing_files(client, tmp_path):
    (tmp_path / "f").write_bytes(b"old and longer")
    assert put_tar(client, tmp_path, archive(("f", b"new", {}), ("g/h", b"x", {}))).status == 200
    assert (tmp_path / "f").read_bytes() == b"new" and (tmp_path / "g/h").read_bytes() == b"x"


def test_big_member(client, tmp_path):
    data = os.urandom(20 << 20)
    assert put_tar(client, tmp_path / "d", archive(("f", data, {}))).status == 200
    assert (tmp_path / "d/f").read_bytes() == data


def test_hard_links_inside(client, tmp_path):
    data = archive(("a", b"x", {}), ("b", None, {"type": tarfile.LNKTYPE, "linkname": "a"}))
    assert put_tar(client, tmp_path / "d", data).status == 200
    assert (tmp_path / "d/b").read_bytes() == b"x"


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
def test_hostile_archives_stay_inside(client, tmp_path, members):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir(mode=0o755)
    inside.mkdir()
    (outside / "victim").write_bytes(b"precious")

    def fill(value):
        return value.format(outside=outside) if isinstance(value, str) else value

    data = archive(*[(fill(n), d, {k: fill(v) for k, v in c.items()}) for n, d, c in members])
    answer = put_tar(client, inside, data)
    assert answer.status in (200, 400, 409), answer.body
    assert sorted(os.listdir(tmp_path)) == ["inside", "outside"]
    assert os.listdir(outside) == ["victim"]
    assert (outside / "victim").read_bytes() == b"precious"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    assert not any(stat.S_ISCHR(os.lstat(inside / n).st_mode) for n in os.listdir(inside))


@pytest.mark.parametrize("data", [b"not a tar at all" * 100, b"\x1f\x8b" + b"\0" * 600])
def test_garbage(client, tmp_path, data):
    answer = put_tar(client, tmp_path / "d", data)
    assert answer.status == 400 and answer.error


def test_cut_off_archive(client, tmp_path):
    data = archive(("f", b"x" * 100_000, {}))
    answer = put_tar(client, tmp_path / "d", data[:50_000])
    assert answer.status == 400 and answer.error
    assert not (tmp_path / "d/f").exists(), "half a file is not left behind under its name"


def test_tar_of_a_file_or_nothing(client, tmp_path):
    (tmp_path / "f").touch()
    assert client.get("/v1/files/tar", path=str(tmp_path / "f")).status in (400, 409)
    assert client.get("/v1/files/tar", path=str(tmp_path / "missing")).status == 404


def test_special_files_do_not_block(client, tmp_path):
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "d/fifo")
    (tmp_path / "d/f").write_bytes(b"x")
    with tarfile.open(fileobj=io.BytesIO(get_tar(client, tmp_path / "d").body)) as tar:
        assert any(m.name.removeprefix("./") == "f" for m in tar.getmembers())


@pytest.mark.slow
def test_many_files(client, tmp_path):
    (tmp_path / "d").mkdir()
    for n in range(5000):
        (tmp_path / "d" / f"{n}").write_bytes(b"%d" % n)
    data = get_tar(client, tmp_path / "d").body
    assert put_tar(client, tmp_path / "e", data).status == 200
    assert snapshot(tmp_path / "e") == snapshot(tmp_path / "d")
