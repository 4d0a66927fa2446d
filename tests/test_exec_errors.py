"""What cannot start, and requests that are wrong, are answered with what is wrong."""

import pytest

MODES = ("dedicated", "attached", "pool")


def failed_start(client, cmd, **fields):
    done = client.exec(cmd, **fields)
    assert done.exit["cause"] == "start_failed", done.exit
    assert done.exit["signal"] is None and done.exit["timed_out"] is False
    assert done.exit["error"] in done.stderr, "the reason is on stderr too"
    return done.exit


def test_command_not_found(client):
    exit = failed_start(client, ["no-such-command-here", "x"])
    assert exit["exit_code"] == 127
    assert "no-such-command-here" in exit["error"] and "not found" in exit["error"]


def test_missing_path(client):
    exit = failed_start(client, ["/no/such/program"])
    assert exit["exit_code"] == 127
    assert "/no/such/program" in exit["error"]


def test_not_executable(client, folder):
    plain = folder / "plain.txt"
    plain.write_text("text")
    plain.chmod(0o644)
    exit = failed_start(client, [str(plain)])
    assert exit["exit_code"] == 126
    assert str(plain) in exit["error"]


def test_folder_as_command(client, folder):
    assert failed_start(client, [str(folder)])["exit_code"] == 126


def test_missing_interpreter(client, folder):
    script = folder / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    exit = failed_start(client, [str(script)])
    assert exit["exit_code"] in (126, 127)
    assert str(script) in exit["error"]


def test_unknown_format(client, folder):
    binary = folder / "binary"
    binary.write_bytes(b"\x00\x01\x02 no format at all")
    binary.chmod(0o755)
    exit = failed_start(client, [str(binary)])
    assert exit["exit_code"] == 126


@pytest.mark.parametrize("cwd", ["/no/such/folder", "/etc/passwd"])
@pytest.mark.parametrize("route", ["/v1/exec", "/v1/processes"])
def test_bad_cwd_is_named(client, route, cwd):
    answer = client.post(route, {"cmd": "echo never", "cwd": cwd})
    assert answer.status == 400
    assert cwd in answer.error
    assert "/bin/sh" not in answer.error, "the shell is not what is missing"


def test_argument_list_too_long(client):
    exit = failed_start(client, ["echo", *["x" * 100_000] * 60])
    assert exit["exit_code"] == 126
    assert "argument list too long" in exit["error"].lower()


def test_one_argument_too_long(client):
    assert "too long" in failed_start(client, ["echo", "x" * 200_000])["error"].lower()


def test_shell_command_not_found_is_the_shells_own_answer(client):
    done = client.exec("no-such-command-here")
    assert done.exit["exit_code"] == 127 and done.exit["cause"] == "exited"
    assert "not found" in done.stderr


@pytest.mark.parametrize("body, words", [
    (b'{"cmd": ', []),
    (b"not json", []),
    (b"", []),
    (b'{"cmd":"x"} trailing', []),
    (b'{"cmd":"\xff"}', []),
    (b"[1]", ["object"]),
    (b"{}", ["cmd"]),
    (b'{"cmd":5}', ["cmd"]),
    (b'{"cmd":[]}', ["cmd"]),
    (b'{"cmd":[1]}', ["cmd"]),
    (b'{"cmd":["a",null]}', ["cmd"]),
    (b'{"cmd":"a","env":[]}', ["env"]),
    (b'{"cmd":"a","env":{"A=B":"x"}}', ["env"]),
    (b'{"cmd":"a","env":{"":"x"}}', ["env"]),
    (b'{"cmd":"a","env":{"A":"x\\u0000y"}}', ["A"]),
    (b'{"cmd":"a\\u0000b"}', ["cmd"]),
    (b'{"cmd":["a\\u0000b"]}', ["cmd"]),
    (b'{"cmd":"a","cwd":5}', ["cwd"]),
    (b'{"cmd":"a","timeout":"soon"}', ["timeout"]),
    (b'{"cmd":"a","timeout":-1}', ["timeout"]),
    (b'{"cmd":"a","stdin":5}', ["stdin"]),
    (b'{"cmd":"a","shell":"yes"}', ["shell"]),
    (b'{"cmd":"a","shell":false}', ["shell"]),
    (b'{"cmd":["a"],"shell":true}', ["shell"]),
    (b'{"cmd":"a","on_disconnect":"maybe"}', ["on_disconnect"]),
    (b'{"cmd":"a","encoding":"rot13"}', ["encoding"]),
])
def test_bad_requests_are_named(client, body, words):
    answer = client.post("/v1/exec", body)
    assert answer.status == 400, answer.body
    for word in words:
        assert word in answer.error
    assert not answer.error.endswith(".")


def test_bad_json_says_where(client):
    answer = client.post("/v1/exec", b'{"cmd": "echo", oops}')
    assert answer.status == 400
    assert "16" in answer.error or "17" in answer.error, answer.error


def test_very_deep_json_is_refused(client):
    assert client.post("/v1/exec", b'{"cmd":' + b"[" * 100_000).status == 400


def test_background_command_that_cannot_start(client):
    answer = client.post("/v1/processes", {"cmd": ["no-such-command-here"]})
    assert answer.status == 400
    assert "no-such-command-here" in answer.error


def test_unknown_ids(client):
    for path in ("/v1/execs/x-0123456789abcdef", "/v1/execs/x-0123456789abcdef/output", "/v1/execs/nonsense",
                 "/v1/execs/..%2f..%2fetc%2fpasswd", "/v1/processes/p-0123456789abcdef/output"):
        answer = client.get(path)
        assert answer.status == 404, path
        assert answer.error


def test_exec_takes_post_only(client):
    for method in ("GET", "PUT", "DELETE"):
        answer = client.request(method, "/v1/exec")
        assert answer.status == 405
        assert "POST" in answer.headers["Allow"]
