"""/v1/files: read, write, list, stat, delete, mkdir, move."""

import os
import socket
import stat
import threading
import time
import urllib.parse

import pytest

from host import wait_until

MODES = ("dedicated", "attached", "pool")

MIB = 1 << 20
ENTRY_KEYS = {"name", "path", "type", "size", "mtime_ms", "mode"}


def read(client, path, **query):
    answer = client.get("/v1/files/read", path=str(path), **query)
    assert answer.status == 200, (answer.status, answer.body)
    return answer.body


def write(client, path, data, **query):
    answer = client.put("/v1/files/write", data, path=str(path), **query)
    assert answer.status == 200, (answer.status, answer.body)
    return answer.json()


def listing(client, path, **query):
    answer = client.get("/v1/files/list", path=str(path), **query)
    assert answer.status == 200, (answer.status, answer.body)
    return answer.json()


# ---- read

@pytest.mark.parametrize("size", [0, 1, 65536, MIB - 1, MIB + 1, 9 * MIB])
def test_read_whole(client, folder, size):
    data = os.urandom(size)
    (folder / "f").write_bytes(data)
    answer = client.get("/v1/files/read", path=str(folder / "f"))
    assert answer.body == data
    assert answer.headers["Content-Length"] == str(size)


@pytest.mark.parametrize("offset, length, expected", [
    (0, 10, b"0123456789"), (3, 4, b"3456"), (9, 1, b"9"), (0, 0, b""), (5, 0, b""),
    (8, 100, b"89"), (10, 5, b""), (50, 5, b""),
])
def test_ranges_are_exact(client, folder, offset, length, expected):
    (folder / "f").write_bytes(b"0123456789")
    assert read(client, folder / "f", offset=offset, length=length) == expected


def test_offset_alone(client, folder):
    (folder / "f").write_bytes(b"0123456789")
    assert read(client, folder / "f", offset=4) == b"456789"


def test_range_of_a_large_file(client, folder):
    data = os.urandom(4 * MIB)
    (folder / "f").write_bytes(data)
    assert read(client, folder / "f", offset=MIB + 7, length=2 * MIB) == data[MIB + 7: 3 * MIB + 7]


@pytest.mark.parametrize("query", [{"offset": "x"}, {"offset": -1}, {"length": "x"}, {"length": -5}])
def test_bad_ranges(client, folder, query):
    (folder / "f").write_bytes(b"x")
    answer = client.request("GET", "/v1/files/read", query={"path": str(folder / "f"), **query})
    assert answer.status == 400 and next(iter(query)) in answer.error


def test_proc_files_are_read_to_their_end(client):
    assert b"Linux version" in read(client, "/proc/version")
    assert read(client, "/proc/version", length=0) == b"", "the real client insists on it"


def test_head_of_a_file(client, folder):
    (folder / "f").write_bytes(b"0123456789")
    answer = client.request("HEAD", "/v1/files/read", query={"path": str(folder / "f")})
    assert answer.status == 200
    assert answer.headers["Content-Length"] == "10" and answer.body == b""


def test_reading_what_is_no_file(client, folder):
    client.host.inside(lambda: make_one_of_each(str(folder)))
    for name in (folder, folder / "fifo", folder / "socket"):
        began = time.monotonic()
        answer = client.get("/v1/files/read", path=str(name))
        assert answer.status == 409, name
        assert answer.error
        assert time.monotonic() - began < 5


def test_a_file_that_shrinks_while_it_is_read_ends_the_connection(host, folder):
    path = folder / "big"
    path.touch()
    host.inside(lambda: os.truncate(str(path), 400 * MIB))
    head = (f"GET {host.route('/v1/files/read')}?path={urllib.parse.quote(str(path))} HTTP/1.1\r\nHost: x\r\n"
            f"X-Sandbox-Token: {host.token}\r\n\r\n")
    with socket.create_connection((host.address, host.port), timeout=20) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.sendall(head.encode())
        received = len(sock.recv(65536))
        host.inside(lambda: os.truncate(str(path), MIB))
        try:
            while chunk := sock.recv(1 << 20):
                received += len(chunk)
        except ConnectionResetError:
            pass
    assert received < 400 * MIB, "ended, instead of hanging or inventing bytes"


# ---- write

@pytest.mark.parametrize("size", [0, 1, 65537, 5 * MIB])
def test_write_whole(client, folder, size):
    data = os.urandom(size)
    assert write(client, folder / "f", data) == {"written": size}
    assert (folder / "f").read_bytes() == data


def test_write_makes_parents(client, folder):
    write(client, folder / "a/b/c/f", b"x")
    assert (folder / "a/b/c/f").read_bytes() == b"x"


def test_write_mode(client, folder):
    write(client, folder / "f", b"#!/bin/sh\n", mode="755")
    assert stat.S_IMODE((folder / "f").stat().st_mode) == 0o755
    write(client, folder / "g", b"", mode="0600")
    assert stat.S_IMODE((folder / "g").stat().st_mode) == 0o600
    for bad in ("9", "rwx", "77777"):
        assert client.put("/v1/files/write", b"", path=str(folder / "h"), mode=bad).status == 400


@pytest.mark.dedicated  # in a pool the file routes have no power over files of other users inside
def test_overwrite_keeps_mode_and_owner(client, folder):
    path = folder / "f"
    path.write_bytes(b"old content, longer than the new one")
    path.chmod(0o640)
    if os.getuid() == 0:
        assert client.exec(f"chown 1234:4321 {path}").exit["exit_code"] == 0
    before = path.stat()
    write(client, path, b"new")
    after = path.stat()
    assert path.read_bytes() == b"new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_write_through_a_link_keeps_the_link(client, folder):
    (folder / "target").write_bytes(b"old")
    (folder / "link").symlink_to("target")
    write(client, folder / "link", b"new")
    assert (folder / "link").is_symlink()
    assert (folder / "target").read_bytes() == b"new"


def test_whole_writes_are_atomic(host, client, folder):
    """A reader sees the old or the new content; an upload that breaks off changes nothing."""
    path = folder / "f"
    path.write_bytes(b"ORIGINAL")
    target = host.route("/v1/files/write?path=" + urllib.parse.quote(str(path)))
    head = f"PUT {target} HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: {host.token}\r\nContent-Length: 1000\r\n\r\n"
    with socket.create_connection((host.address, host.port), timeout=10) as sock:
        sock.sendall(head.encode() + b"part")
        time.sleep(0.3)
        assert path.read_bytes() == b"ORIGINAL"
    time.sleep(0.3)
    assert path.read_bytes() == b"ORIGINAL"
    wait_until(lambda: names_in(host, folder) == ["f"], what="no temporary file left behind")


def test_readers_never_see_half_a_write(host, folder):
    path = folder / "f"
    contents = [bytes([65 + n]) * 300_000 for n in range(4)]
    path.write_bytes(contents[0])
    wrong, finished = [], threading.Event()

    def watch():
        """In one go, since each look from outside costs more than a write."""
        seen = set()
        until = time.monotonic() + 3
        while time.monotonic() < until and not os.path.exists(f"{path}-end"):
            with open(str(path), "rb") as f:
                seen.add(f.read())
        return [len(s) for s in seen if s not in contents]

    def look():
        wrong.extend(host.inside(watch))
        finished.set()

    threading.Thread(target=look).start()
    client = host.client(keep=True)
    for round_number in range(60):
        write(client, path, contents[round_number % 4])
    write(client, f"{path}-end", b"")
    assert finished.wait(20) and not wrong


def test_chunked_upload(host, folder):
    answer = host.client().request("PUT", "/v1/files/write", query={"path": str(folder / "f")},
                                   body=iter([b"one", b"two", b"three" * 50_000]))
    assert answer.status == 200
    assert (folder / "f").read_bytes() == b"onetwo" + b"three" * 50_000


def test_write_to_what_is_no_file(client, folder):
    client.host.inside(lambda: os.mkfifo(str(folder / "fifo")))
    for name in (folder, folder / "fifo"):
        answer = client.put("/v1/files/write", b"x", path=str(name))
        assert answer.status == 409 and answer.error
    (folder / "file").write_bytes(b"")
    assert client.put("/v1/files/write", b"x", path=str(folder / "file/below")).status in (400, 409)


# ---- ranged writes

def test_range_writes_land_where_they_belong(client, folder):
    path = folder / "f"
    write(client, path, b"3333", offset=8, truncate_to=12)
    write(client, path, b"1111", offset=0)
    write(client, path, b"2222", offset=4)
    assert path.read_bytes() == b"111122223333"


def test_truncate_to_may_come_first(client, folder):
    path = folder / "f"
    path.write_bytes(b"x" * 5000)
    write(client, path, b"c" * 10, offset=20, truncate_to=30)
    assert path.stat().st_size == 30
    write(client, path, b"a" * 10, offset=0)
    write(client, path, b"b" * 10, offset=10)
    assert path.read_bytes() == b"a" * 10 + b"b" * 10 + b"c" * 10


def put_ranges(host, path, data, order, truncate=False):
    """As the real client does: 1 MiB ranges from several connections at once."""
    ranges = [(o, data[o: o + MIB]) for o in range(0, len(data), MIB)]

    def put(number):
        offset, part = ranges[number]
        last = {"truncate_to": len(data)} if truncate and offset + len(part) == len(data) else {}
        write(host.client(), path, part, offset=offset, **last)

    threads = [threading.Thread(target=put, args=(n,)) for n in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("truncate", [False, True], ids=["burst", "truncate_to"])
def test_smaller_upload_over_a_bigger_file(host, folder, truncate):
    path = folder / "f"
    big, small = os.urandom(5 * MIB + 17), os.urandom(3 * MIB + 5)
    put_ranges(host, path, big, [1, 0, 3, 2, 5, 4], truncate)
    assert path.read_bytes() == big
    time.sleep(1.2)  # longer than a burst is remembered
    put_ranges(host, path, small, [3, 1, 0, 2], truncate)
    assert path.read_bytes() == small


def test_truncating_uploads_in_a_row_do_not_disturb_each_other(host, folder):
    path = folder / "f"
    for size in (5 * MIB, 3 * MIB, 4 * MIB + 1, 2 * MIB + 1):
        data = os.urandom(size)
        put_ranges(host, path, data, list(range((size + MIB - 1) // MIB))[::-1], truncate=True)
        assert path.read_bytes() == data


def test_a_lone_range_past_the_start_never_truncates(client, folder):
    path = folder / "f"
    path.write_bytes(b"0123456789")
    write(client, path, b"ab", offset=3)
    assert path.read_bytes() == b"012ab56789"


def test_a_lone_range_at_the_start_is_a_whole_write(client, folder):
    path = folder / "f"
    path.write_bytes(b"0123456789")
    write(client, path, b"ab", offset=0)
    assert path.read_bytes() == b"ab"


def test_range_write_past_the_end_leaves_a_hole(client, folder):
    write(client, folder / "f", b"x", offset=3, truncate_to=4)
    assert (folder / "f").read_bytes() == b"\0\0\0x"


@pytest.mark.parametrize("query", [{"offset": "x"}, {"offset": 0, "truncate_to": "y"}, {"offset": -1}])
def test_bad_range_writes(client, folder, query):
    assert client.put("/v1/files/write", b"x", path=str(folder / "f"), **query).status == 400


# ---- stat and list

def test_stat(client, folder):
    (folder / "f").write_bytes(b"12345")
    (folder / "f").chmod(0o640)
    entry = client.get("/v1/files/stat", path=str(folder / "f")).json()
    assert set(entry) == ENTRY_KEYS
    assert (entry["name"], entry["path"], entry["type"], entry["size"]) == ("f", str(folder / "f"), "file", 5)
    assert abs(entry["mtime_ms"] - time.time() * 1000) < 60_000
    assert int(entry["mode"], 8) & 0o7777 == 0o640


def make_one_of_each(folder: str) -> None:
    os.chdir(folder)
    os.mkdir("dir")
    os.symlink("file", "link")
    os.symlink("nowhere", "dangling")
    os.mkfifo("fifo")
    with open("file", "wb") as f:
        f.write(b"x")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")


def names_in(host, folder) -> list[str]:
    return host.inside(lambda: sorted(os.listdir(str(folder))))


KINDS = {"file": "file", "dir": "dir", "link": "symlink", "dangling": "symlink", "fifo": "fifo",
         "socket": "socket"}


def test_types(client, folder):
    client.host.inside(lambda: make_one_of_each(str(folder)))
    entries = listing(client, folder)["entries"]
    assert {e["name"]: e["type"] for e in entries} == KINDS
    assert all(set(e) == ENTRY_KEYS for e in entries)
    for name, kind in KINDS.items():
        assert client.get("/v1/files/stat", path=str(folder / name)).json()["type"] == kind
    assert client.get("/v1/files/stat", path="/dev/null").json()["type"] == "device"


def test_list_of_three_thousand_in_one_page(client, folder):
    client.host.inside(lambda: [open(f"{folder}/f{n}", "w").close() for n in range(3000)] and None)
    page = listing(client, folder)
    assert len(page["entries"]) == 3000 and page["next"] is None


def test_list_pages(client, folder):
    names = {f"f{n:03}" for n in range(25)}
    for name in names:
        (folder / name).touch()
    seen, after, pages = [], {}, 0
    while True:
        page = listing(client, folder, limit=10, **after)
        assert len(page["entries"]) <= 10
        seen += [e["name"] for e in page["entries"]]
        pages += 1
        if not page["next"]:
            break
        after = {"after": page["next"]}
    assert sorted(seen) == sorted(names) and pages == 3


def test_list_of_what_is_no_folder(client, folder):
    (folder / "f").touch()
    assert client.get("/v1/files/list", path=str(folder / "f")).status in (400, 409)


def test_list_through_a_link(client, folder):
    (folder / "d").mkdir()
    (folder / "d/f").touch()
    (folder / "link").symlink_to("d")
    assert [e["name"] for e in listing(client, folder / "link")["entries"]] == ["f"]


# ---- names

NAMES = ["with space", "ünïcödé", "new\nline", "100%", "a+b&c=d?e#f", "'quotes\"", "-dash", "\u2028"]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names(client, folder, name):
    write(client, folder / name, b"content")
    assert (folder / name).read_bytes() == b"content"
    assert read(client, folder / name) == b"content"
    assert [e["name"] for e in listing(client, folder)["entries"]] == [name]


def test_names_that_are_not_utf8(client, folder):
    raw = str(folder).encode() + b"/bad\xff\xfename"
    quoted = urllib.parse.quote(raw)
    assert client.request("PUT", f"/v1/files/write?path={quoted}", body=b"content").status == 200
    assert client.host.inside(lambda: os.listdir(str(folder).encode())) == [b"bad\xff\xfename"]
    assert client.request("GET", f"/v1/files/read?path={quoted}").body == b"content"
    assert len(listing(client, folder)["entries"]) == 1
    assert client.request("DELETE", f"/v1/files/delete?path={quoted}").status == 200
    assert names_in(client.host, folder) == []


@pytest.mark.parametrize("query", ["", "path=", "path=%00x", "path=/tmp%00", "path=%zz", "path=" + "x/" * 3000])
def test_bad_paths(client, query):
    answer = client.request("GET", "/v1/files/stat?" + query)
    assert answer.status == 400, answer.body
    assert answer.error


def test_missing_paths_are_404(client, folder):
    missing = str(folder / "missing")
    assert client.get("/v1/files/read", path=missing).status == 404
    assert client.get("/v1/files/stat", path=missing).status == 404
    assert client.get("/v1/files/list", path=missing).status == 404
    assert client.delete("/v1/files/delete", path=missing).status == 404
    assert client.get("/v1/files/stat", path=missing + "/below").status == 404
    assert missing in client.get("/v1/files/read", path=missing).error


def test_link_loops_are_errors_but_not_404(client, folder):
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    assert client.get("/v1/files/read", path=str(folder / "a")).status in (400, 409)


# ---- delete, mkdir, move

def test_delete_file_and_link(client, folder):
    (folder / "target").write_bytes(b"x")
    (folder / "link").symlink_to("target")
    assert client.delete("/v1/files/delete", path=str(folder / "link")).status == 200
    assert not (folder / "link").is_symlink() and (folder / "target").exists()
    assert client.delete("/v1/files/delete", path=str(folder / "target")).status == 200
    assert not (folder / "target").exists()


def test_delete_folder(client, folder):
    (folder / "d/e").mkdir(parents=True)
    (folder / "d/e/f").touch()
    answer = client.delete("/v1/files/delete", path=str(folder / "d"))
    assert answer.status in (400, 409) and (folder / "d/e/f").exists()
    assert client.delete("/v1/files/delete", path=str(folder / "d"), recursive=1).status == 200
    assert not (folder / "d").exists()


def test_recursive_delete_does_not_follow_links(client, folder):
    (folder / "precious").mkdir()
    (folder / "precious/f").touch()
    (folder / "d").mkdir()
    (folder / "d/link").symlink_to("../precious")
    assert client.delete("/v1/files/delete", path=str(folder / "d"), recursive=1).status == 200
    assert (folder / "precious/f").exists()
    (folder / "link").symlink_to("precious")
    assert client.delete("/v1/files/delete", path=str(folder / "link"), recursive=1).status == 200
    assert (folder / "precious/f").exists()


def test_the_root_cannot_be_deleted(client):
    answer = client.delete("/v1/files/delete", path="/", recursive=1)
    assert answer.status in (400, 403, 409) and answer.error
    assert client.exec("test -e /etc/passwd").exit["exit_code"] == 0


def test_deep_tree_is_deleted(client, folder):
    def dig():
        os.mkdir(f"{folder}/d")
        inner = os.open(f"{folder}/d", os.O_RDONLY)
        for _ in range(2200):  # a path longer than the kernel takes in one piece
            os.mkdir("d", dir_fd=inner)
            deeper = os.open("d", os.O_RDONLY, dir_fd=inner)
            os.close(inner)
            inner = deeper
        os.close(inner)

    client.host.inside(dig)
    assert client.delete("/v1/files/delete", path=str(folder / "d"), recursive=1).status == 200
    assert not (folder / "d").exists()


def test_mkdir(client, folder):
    path = str(folder / "a/b/c")
    assert client.post("/v1/files/mkdir", path=path).status == 200
    assert client.host.inside(lambda: os.path.isdir(path))
    assert client.post("/v1/files/mkdir", path=path).status == 200, "already there is fine"
    (folder / "f").touch()
    assert client.post("/v1/files/mkdir", path=str(folder / "f")).status in (400, 409)


def test_move(client, folder):
    (folder / "a").write_bytes(b"x")
    body = {"from": str(folder / "a"), "to": str(folder / "b")}
    assert client.post("/v1/files/move", body).status == 200
    assert not (folder / "a").exists() and (folder / "b").read_bytes() == b"x"
    assert client.post("/v1/files/move", body).status == 404


def test_move_replaces_a_file_and_moves_folders(client, folder):
    (folder / "a").write_bytes(b"new")
    (folder / "b").write_bytes(b"old")
    assert client.post("/v1/files/move", {"from": str(folder / "a"), "to": str(folder / "b")}).status == 200
    assert (folder / "b").read_bytes() == b"new"
    (folder / "d").mkdir()
    (folder / "d/f").touch()
    assert client.post("/v1/files/move", {"from": str(folder / "d"), "to": str(folder / "e")}).status == 200
    assert (folder / "e/f").exists()


@pytest.mark.parametrize("body", [b"", b"{}", b'{"from":"/a"}', b'{"from":1,"to":2}', b'{"from":"","to":"/x"}'])
def test_bad_moves(client, body):
    assert client.post("/v1/files/move", body).status == 400


def test_permission_problems_are_told(client):
    answer = client.put("/v1/files/write", b"x", path="/proc/sys/kernel/ostype")
    assert 400 <= answer.status < 500 and answer.status != 404
    assert "/proc/sys/kernel/ostype" in answer.error


def test_full_disk_is_told(client, folder):
    answer = client.put("/v1/files/write", b"x" * 100_000, path="/dev/full")
    assert 400 <= answer.status < 600 and answer.error
