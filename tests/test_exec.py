"""POST /v1/exec: what a command gets and what its answer says."""

import os
import re
import signal

import pytest

from host import SANITIZED

MODES = ("dedicated", "attached", "pool")
QUICK_IN_POOLS = True

EXIT_KEYS = {"event", "exit_code", "signal", "timed_out", "duration_ms", "exec_id", "cause", "limits_hit",
             "usage", "output_bytes"}
USAGE_KEYS = {"user_ms", "system_ms", "max_rss_bytes", "read_bytes", "write_bytes"}


def test_shell_string(client):
    done = client.exec("echo hello; echo problem >&2; exit 3")
    assert (done.stdout, done.stderr) == ("hello\n", "problem\n")
    assert done.exit["exit_code"] == 3
    assert done.exit["signal"] is None
    assert done.exit["cause"] == "exited"


def test_argv_is_not_interpreted(client):
    assert client.exec(["echo", "$HOME", "a  b", "*"]).stdout == "$HOME a  b *\n"


def test_shell_flag_may_state_the_obvious(client):
    assert client.exec("echo $((1+1))", shell=True).stdout == "2\n"
    assert client.exec(["echo", "x"], shell=False).stdout == "x\n"


def test_answer_headers(client):
    headers = client.exec("true").headers
    assert headers["Content-Type"] == "application/x-ndjson"
    assert headers["X-Accel-Buffering"] == "no"


def test_start_event(client):
    done = client.exec("echo $$")
    assert isinstance(done.start["pid"], int)
    assert done.start["pid"] == int(done.stdout)
    assert re.fullmatch(r"x-[0-9a-f]{16}", done.start["exec_id"])


def test_exit_event_is_complete(client):
    done = client.exec("printf 12345; printf 123 >&2")
    assert set(done.exit) == EXIT_KEYS
    assert set(done.exit["usage"]) == USAGE_KEYS
    assert all(isinstance(v, int) and v >= 0 for v in done.exit["usage"].values())
    assert done.exit["output_bytes"] == {"stdout": 5, "stderr": 3}
    assert done.exit["limits_hit"] == []
    assert done.exit["timed_out"] is False
    assert done.exit["exec_id"] == done.exec_id


def test_exec_ids_are_unique(client):
    ids = {client.exec("true").exec_id for _ in range(20)}
    assert len(ids) == 20


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_death_by_signal(client, number):
    done = client.exec(f"ulimit -c 0; kill -{int(number)} $$")
    assert done.exit["exit_code"] is None
    assert done.exit["signal"] == number
    assert done.exit["cause"] == "signaled"


def test_environment_values_become_strings(client):
    done = client.exec("echo $A,$B,$C,$D,$E", env={"A": "x y", "B": 1, "C": True, "D": 1.5, "E": False})
    assert done.stdout == "x y,1,true,1.5,false\n"


@pytest.mark.dedicated
def test_environment_is_inherited_without_secrets(start_host):
    host = start_host(env={"SBX_SOMETHING": "hidden", "VISIBLE": "yes"})
    names = dict(line.split("=", 1) for line in host.client().exec("env").stdout.splitlines() if "=" in line)
    assert names["VISIBLE"] == "yes"
    assert not [name for name in names if name.startswith("SBX_")]
    assert host.token not in "".join(names.values())


def test_request_environment_wins(client):
    assert client.exec("echo $PATH", env={"PATH": "/usr/bin:/bin:/marker"}).stdout == "/usr/bin:/bin:/marker\n"


def test_command_is_looked_up_in_its_own_path(client, folder):
    program = folder / "my-program"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    done = client.exec(["my-program"], env={"PATH": f"{folder}:/usr/bin:/bin"})
    assert done.stdout == "found\n"


def test_cwd(client, folder):
    assert client.exec("pwd -P", cwd=str(folder)).stdout.strip() == str(folder.resolve())


def test_stdin_text(client):
    assert client.exec("cat", stdin="line ä\n").stdout == "line ä\n"


def test_without_stdin_the_command_reads_the_end(client):
    assert client.exec("cat; echo end").stdout == "end\n"


def test_large_stdin_flows_while_output_does(client):
    text = "0123456789abcdef" * 262_144  # 4 MiB, far more than the pipes hold
    assert client.exec("cat", stdin=text).stdout == text


def test_stdin_that_nobody_reads_is_no_error(client):
    done = client.exec("exec <&-; echo closed", stdin="x" * 1_000_000)
    assert (done.stdout, done.exit["exit_code"]) == ("closed\n", 0)
    assert client.exec("echo alive").stdout == "alive\n"


def test_command_inherits_only_its_three_descriptors(client):
    listing = client.exec(["ls", "/proc/self/fd"]).stdout.split()
    assert listing == ["0", "1", "2", "3"], "3 is the folder that ls reads"


def test_signals_have_their_default_actions(start_host):
    """Started from a script, cay-host itself may have SIGINT and others ignored."""
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

    host = start_host(popen_options={"preexec_fn": ignore, "restore_signals": False})
    status = host.client().exec(["cat", "/proc/self/status"]).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    libc_own = 1 << 31 | 1 << 32  # 32 and 33 are no business of programs
    assert int(fields["SigIgn"], 16) & ~libc_own == 0
    assert int(fields["SigBlk"], 16) == 0


def test_usage_of_a_small_command_is_small(client):
    """The kernel counts a child's peak memory from its spawner's size on; the answer must not."""
    usage = client.exec(["/bin/true"]).exit["usage"]
    assert 0 < usage["max_rss_bytes"] < (64 if SANITIZED else 16) << 20


def test_usage_counts_memory_cpu_and_writes(client, folder):
    code = ("import os,time; b=bytearray(100<<20); t=time.process_time()\n"
            "while time.process_time()-t < 0.4: pass\n"
            f"f=open({str(folder / 'f')!r},'wb'); f.write(b'x'*(8<<20)); f.flush(); os.fsync(f.fileno())")
    done = client.exec(["/usr/bin/python3", "-c", code])
    assert done.exit["exit_code"] == 0, done.stderr
    usage = done.exit["usage"]
    assert usage["max_rss_bytes"] > 100 << 20
    assert usage["user_ms"] + usage["system_ms"] >= 390
    assert usage["write_bytes"] >= 8 << 20


def test_usage_includes_children(client):
    code = "import time\nt=time.process_time()\nwhile time.process_time()-t < 0.3: pass"
    usage = client.exec(f"/usr/bin/python3 -c '{code}'; true").exit["usage"]
    assert usage["user_ms"] + usage["system_ms"] >= 290


def test_duration(client):
    done = client.exec("sleep 0.3")
    assert 290 <= done.exit["duration_ms"] < 5000


def test_output_appears_while_the_command_runs(client):
    with client.exec_stream("echo first; read x; echo second", on_disconnect="kill", stdin="go\n") as stream:
        assert stream.next("start")["pid"] > 0
        assert stream.rest().stdout == "first\nsecond\n"
    with client.exec_stream("echo first; sleep 30") as stream:
        stream.until_text("first\n")  # would time out if output were held until the end


@pytest.mark.slow
def test_silence_is_filled_with_pings(client):
    answer = client.request("POST", "/v1/exec", body={"cmd": "sleep 17; echo end"})
    assert b'{"event":"ping"}' in answer.body.replace(b" ", b"")


def test_many_commands_at_once(client):
    streams = [client.exec_stream(f"read x; echo {n}", stdin="x\n") for n in range(40)]
    assert [s.rest().stdout for s in streams] == [f"{n}\n" for n in range(40)]


@pytest.mark.dedicated
def test_command_runs_as_the_host_does(client):
    assert client.exec("id -u").stdout.strip() == str(os.getuid())


def test_null_fields_are_as_if_absent(client):
    done = client.exec("echo ok", env=None, cwd=None, timeout=None, stdin=None, shell=None)
    assert done.stdout == "ok\n"
