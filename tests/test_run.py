"""The command ./run, and the counting at the end of ./test."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.request

import pytest

from host import BINARY, ROOT

built_here = pytest.mark.skipif(BINARY != ROOT / "build" / "bin" / "cay-host", reason="./run starts its own build")
# One after the other: each of them asks the build whether it is up to date.
pytestmark = pytest.mark.xdist_group("run")


@built_here
def test_once():
    done = subprocess.run([ROOT / "run", "--once"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "hello from Linux" in done.stdout
    assert '"cause":"exited"' in done.stdout


@built_here
def test_port_that_is_taken_is_replaced():
    taken = socket.socket()
    try:
        taken.bind(("127.0.0.1", 49983))
        taken.listen()
    except OSError:
        pass  # somebody else has it, which is as good
    done = subprocess.run([ROOT / "run", "--once"], capture_output=True, text=True, timeout=120, check=False)
    taken.close()
    assert done.returncode == 0 and "49983 is taken" in done.stderr
    assert "127.0.0.1:49983" not in done.stdout


@built_here
def test_stays_until_interrupted(tmp_path):
    """Uses what it prints, then Ctrl-C: nothing is left, not even the token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([ROOT / "run", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True)
    try:
        text = ""
        while "Ctrl-C" not in text:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            text += line
        token_file = re.search(r"The token is in (\S+)", text)[1]
        assert stat.S_IMODE(os.stat(token_file).st_mode) == 0o600
        with open(token_file) as f:
            token = f.read()
        assert re.fullmatch(r"[0-9a-f]{64}", token) and token not in text
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/exec", data=b'{"cmd":"echo used"}',
                                         headers={"X-Sandbox-Token": token})
        assert b"used" in urllib.request.urlopen(request, timeout=20).read()
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(20)
    assert status == 0
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=2).close()


def test_run_help_and_mistakes():
    done = subprocess.run([ROOT / "run", "--help"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0 and "--once" in done.stdout
    for arguments in (["--port"], ["--port", "x"], ["--nonsense"]):
        done = subprocess.run([ROOT / "run", *arguments], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2 and done.stderr


GTEST = {"testsuites": [{"name": "Suite", "testsuite": [
    {"name": "good", "status": "RUN", "result": "COMPLETED"},
    {"name": "bad", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "x"}]},
    {"name": "skipped", "status": "RUN", "result": "SKIPPED"},
    {"name": "filtered", "status": "NOTRUN", "result": "SUPPRESSED"}]}]}
JUNIT = ('<testsuites><testsuite><testcase classname="a" name="good"/>'
         '<testcase classname="a" name="bad"><failure/></testcase>'
         '<testcase classname="a" name="broken"><error/></testcase>'
         '<testcase classname="a" name="skipped"><skipped/></testcase></testsuite></testsuites>')


def summary(folder, steps):
    (folder / "steps.tsv").write_text("".join("\t".join(step) + "\n" for step in steps))
    return subprocess.run([sys.executable, ROOT / "scripts" / "summary.py", str(folder)], capture_output=True,
                          text=True, check=False)


def test_summary_counts_every_case(tmp_path):
    for name, file, text in (("unit", "base_test.json", json.dumps(GTEST)), ("e2e", "pytest.xml", JUNIT)):
        (tmp_path / "cases" / name).mkdir(parents=True)
        (tmp_path / "cases" / name / file).write_text(text)
    done = summary(tmp_path, [("work", "build", "0", "9"), ("check", "format", "0", "1"), ("cases", "unit", "8", "1"),
                              ("cases", "e2e", "1", "1")])
    assert done.stdout.splitlines()[-1] == "3 passed, 3 failed, 2 skipped"
    assert "Suite.bad" in done.stdout and "a.broken" in done.stdout
    assert done.returncode == 1


def test_summary_of_success(tmp_path):
    done = summary(tmp_path, [("check", "format", "0", "1")])
    assert (done.stdout.splitlines()[-1], done.returncode) == ("1 passed, 0 failed, 0 skipped", 0)


@pytest.mark.parametrize("step", [("work", "build", "1", "9"), ("cases", "unit", "139", "1"), ("check", "tidy", "1", "3")])
def test_summary_knows_steps_that_fail_without_a_case(tmp_path, step):
    """A build that breaks, a test program that crashes before it reports."""
    done = summary(tmp_path, [step])
    assert (done.stdout.splitlines()[-1], done.returncode) == ("0 passed, 1 failed, 0 skipped", 1)


def test_summary_of_nothing_is_no_success(tmp_path):
    assert subprocess.run([sys.executable, ROOT / "scripts" / "summary.py", str(tmp_path)], capture_output=True,
                          check=False).returncode == 1
