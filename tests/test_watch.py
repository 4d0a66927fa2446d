"""GET /v1/files/watch: changes below a folder as they happen."""

import contextlib
import os

import pytest

from host import wait_until

MODES = ("dedicated", "attached", "pool")


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


def test_created_modified_deleted(client, folder):
    with watching(client, folder) as stream:
        (folder / "f").write_bytes(b"x")
        expect(stream, "created", folder / "f")
        expect(stream, "modified", folder / "f")
        (folder / "f").unlink()
        expect(stream, "deleted", folder / "f")


def test_moved(client, folder):
    (folder / "a").touch()
    with watching(client, folder) as stream:
        (folder / "a").rename(str(folder / "b"))
        event = expect(stream, "moved", folder / "b")
        assert event["from"] == str(folder / "a")


def test_moved_in_and_out(client, folder):
    (folder / "in").mkdir()
    (folder / "f").touch()
    with watching(client, folder / "in") as stream:
        (folder / "f").rename(str(folder / "in/f"))
        expect(stream, "created", folder / "in/f")
        (folder / "in/f").rename(str(folder / "g"))
        expect(stream, "deleted", folder / "in/f")


def test_recursive_sees_new_folders(client, folder):
    (folder / "old").mkdir()
    with watching(client, folder, recursive=1) as stream:
        (folder / "old/f").touch()
        expect(stream, "created", folder / "old/f")
        (folder / "new").mkdir()
        expect(stream, "created", folder / "new")
        (folder / "new/f").touch()
        expect(stream, "created", folder / "new/f")


def test_recursive_misses_nothing_in_folders_made_at_once(client, folder):
    """Files that are there before the watch on their new folder is."""
    with watching(client, folder, recursive=1) as stream:
        (folder / "a/b/c").mkdir(parents=True)
        (folder / "a/b/c/f").touch()
        wanted = {str(folder / p) for p in ("a", "a/b", "a/b/c", "a/b/c/f")}
        for event in stream.events():
            wanted.discard(event["path"])
            if not wanted:
                break
        assert not wanted


def test_not_recursive_stays_on_its_level(client, folder):
    (folder / "d").mkdir()
    with watching(client, folder) as stream:
        (folder / "d/f").touch()
        (folder / "last").touch()
        expect(stream, "created", folder / "last")
        assert not [e for e in stream.seen if e["path"] == str(folder / "d/f")]


def test_changes_by_commands_and_by_the_file_api(client, folder):
    with watching(client, folder) as stream:
        client.exec(f"echo x > {folder}/by-command")
        expect(stream, "created", folder / "by-command")
        client.put("/v1/files/write", b"x", path=str(folder / "by-api"))
        expect(stream, "created", folder / "by-api")


def test_watch_of_one_file(client, folder):
    (folder / "f").touch()
    with watching(client, folder / "f") as stream:
        (folder / "f").write_bytes(b"x")
        expect(stream, "modified", folder / "f")


def test_missing_path(client, folder):
    assert client.get("/v1/files/watch", path=str(folder / "missing")).status == 404


def test_a_flood_is_not_lost_silently(client, folder):
    with watching(client, folder) as stream:
        client.exec("for i in $(seq 300); do : > f$i; done", cwd=str(folder))
        seen = set()
        for event in stream.events():
            seen.add(event["path"])
            if len(seen) >= 300 or event["event"] == "overflow":
                break
        assert len(seen) >= 300


def test_watchers_are_released(own_host, own_folder):
    client = own_host.client()
    before = len(os.listdir(f"/proc/{own_host.pid}/fd"))
    for _ in range(20):
        with watching(client, own_folder):
            pass
    wait_until(lambda: len(os.listdir(f"/proc/{own_host.pid}/fd")) <= before + 2, what="closed descriptors")


@pytest.mark.slow
def test_a_quiet_watch_is_kept_alive(client, folder):
    with client.stream("GET", "/v1/files/watch", query={"path": str(folder)}, timeout=30) as stream:
        assert b"ready" in stream.response.readline()
        assert b"ping" in stream.response.readline()


def test_the_end_of_the_folder_ends_the_watch(client, folder):
    (folder / "d").mkdir()
    with watching(client, folder / "d") as stream:
        (folder / "d").rmdir()
        for _ in stream.events():
            pass  # would time out if the answer did not end


def test_overwriting_through_the_api_is_a_modification(client, folder):
    (folder / "f").write_bytes(b"old")
    with watching(client, folder) as stream:
        client.put("/v1/files/write", b"new", path=str(folder / "f"))
        (folder / "last").touch()
        expect(stream, "created", folder / "last")
        assert {e["path"] for e in stream.seen} == {str(folder / "f"), str(folder / "last")}, "no temporary names"
        assert stream.seen[0]["event"] == "modified"
