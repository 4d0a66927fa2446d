"""GET /v1/files/watch: changes below a folder as they happen."""

import contextlib
import os

import pytest

from host import wait_until


@contextlib.contextmanager
def watching(client, path, **query):
    """A watch that is already in force when the block begins."""
    with client.stream("GET", "/v1/files/watch", query={"path": str(path), **query}, timeout=20) as stream:
        assert stream.status == 200, stream.response.read()
        assert stream.response.headers["Content-Type"] == "application/x-ndjson"
        assert next(stream.events()) == {"event": "ready"}
        stream.seen.clear()
        yield stream


def expect(stream, kind, path):
    """Reads on until that change is told."""
    for event in stream.events():
        if event["event"] == kind and event["path"] == str(path):
            return event
    raise AssertionError(f"no {kind} of {path} in {stream.seen}")


def test_created_modified_deleted(client, tmp_path):
    with watching(client, tmp_path) as stream:
        (tmp_path / "f").write_bytes(b"x")
        expect(stream, "created", tmp_path / "f")
        expect(stream, "modified", tmp_path / "f")
        (tmp_path / "f").unlink()
        expect(stream, "deleted", tmp_path / "f")


def test_moved(client, tmp_path):
    (tmp_path / "a").touch()
    with watching(client, tmp_path) as stream:
        os.rename(tmp_path / "a", tmp_path / "b")
        event = expect(stream, "moved", tmp_path / "b")
        assert event["from"] == str(tmp_path / "a")


def test_moved_in_and_out(client, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "f").touch()
    with watching(client, tmp_path / "in") as stream:
        os.rename(tmp_path / "f", tmp_path / "in/f")
        expect(stream, "created", tmp_path / "in/f")
        os.rename(tmp_path / "in/f", tmp_path / "g")
        expect(stream, "deleted", tmp_path / "in/f")


def test_recursive_sees_new_folders(client, tmp_path):
    (tmp_path / "old").mkdir()
    with watching(client, tmp_path, recursive=1) as stream:
        (tmp_path / "old/f").touch()
        expect(stream, "created", tmp_path / "old/f")
        (tmp_path / "new").mkdir()
        expect(stream, "created", tmp_path / "new")
        (tmp_path / "new/f").touch()
        expect(stream, "created", tmp_path / "new/f")


def test_recursive_misses_nothing_in_folders_made_at_once(client, tmp_path):
    """Files that are there before the watch on their new folder is."""
    with watching(client, tmp_path, recursive=1) as stream:
        os.makedirs(tmp_path / "a/b/c")
        (tmp_path / "a/b/c/f").touch()
        wanted = {str(tmp_path / p) for p in ("a", "a/b", "a/b/c", "a/b/c/f")}
        for event in stream.events():
            wanted.discard(event["path"])
            if not wanted:
                break
        assert not wanted


def test_not_recursive_stays_on_its_level(client, tmp_path):
    (tmp_path / "d").mkdir()
    with watching(client, tmp_path) as stream:
        (tmp_path / "d/f").touch()
        (tmp_path / "last").touch()
        expect(stream, "created", tmp_path / "last")
        assert not [e for e in stream.seen if e["path"] == str(tmp_path / "d/f")]


def test_changes_by_commands_and_by_the_file_api(client, tmp_path):
    with watching(client, tmp_path) as stream:
        client.exec(f"echo x > {tmp_path}/by-command")
        expect(stream, "created", tmp_path / "by-command")
        client.put("/v1/files/write", b"x", path=str(tmp_path / "by-api"))
        expect(stream, "created", tmp_path / "by-api")


def test_watch_of_one_file(client, tmp_path):
    (tmp_path / "f").touch()
    with watching(client, tmp_path / "f") as stream:
        (tmp_path / "f").write_bytes(b"x")
        expect(stream, "modified", tmp_path / "f")


def test_missing_path(client, tmp_path):
    assert client.get("/v1/files/watch", path=str(tmp_path / "missing")).status == 404


def test_a_flood_is_not_lost_silently(client, tmp_path):
    with watching(client, tmp_path) as stream:
        client.exec("for i in $(seq 300); do : > f$i; done", cwd=str(tmp_path))
        seen = set()
        for event in stream.events():
            seen.add(event["path"])
            if len(seen) >= 300 or event["event"] == "overflow":
                break
        assert len(seen) >= 300


def test_watchers_are_released(own_host, tmp_path):
    client = own_host.client()
    before = len(os.listdir(f"/proc/{own_host.pid}/fd"))
    for _ in range(20):
        with watching(client, tmp_path):
            pass
    wait_until(lambda: len(os.listdir(f"/proc/{own_host.pid}/fd")) <= before + 2, what="closed descriptors")


@pytest.mark.slow
def test_a_quiet_watch_is_kept_alive(client, tmp_path):
    with client.stream("GET", "/v1/files/watch", query={"path": str(tmp_path)}, timeout=30) as stream:
        assert b"ready" in stream.response.readline()
        assert b"ping" in stream.response.readline()


def test_the_end_of_the_folder_ends_the_watch(client, tmp_path):
    (tmp_path / "d").mkdir()
    with watching(client, tmp_path / "d") as stream:
        (tmp_path / "d").rmdir()
        for _ in stream.events():
            pass  # would time out if the answer did not end


def test_overwriting_through_the_api_is_a_modification(client, tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    with watching(client, tmp_path) as stream:
        client.put("/v1/files/write", b"new", path=str(tmp_path / "f"))
        (tmp_path / "last").touch()
        expect(stream, "created", tmp_path / "last")
        assert {e["path"] for e in stream.seen} == {str(tmp_path / "f"), str(tmp_path / "last")}, "no temporary names"
        assert stream.seen[0]["event"] == "modified"
