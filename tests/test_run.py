"""The command ./run, and the counting at the end of ./test."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from host import BINARY, ROOT

built_here = pytest.mark.skipif(BINARY != ROOT / "build" / "bin" / "cay-host", reason="./run starts its own build")
# One after the other: each of them asks the build whether it is up to date.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("run")]


def run_once(state, *flags):
    return subprocess.run([ROOT / "run", "--once", "--state", state, *flags], capture_output=True, text=True, timeout=180,
                          check=False)


@built_here
def test_once(tmp_path):
    done = run_once(tmp_path / "state", "--port", "0", "--tls-port", "0")
    assert done.returncode == 0, done.stderr
    assert "hello from Linux" in done.stdout and "as root on" in done.stdout
    again = run_once(tmp_path / "state", "--port", "0", "--tls-port", "0")
    assert again.returncode == 0 and "hello from Linux" in again.stdout, again.stderr


@built_here
def test_ports_that_are_taken_are_replaced(tmp_path):
    taken = []
    for port in (7340, 7343):
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", port))
            one.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        taken.append(one)
    done = run_once(tmp_path / "state")
    for one in taken:
        one.close()
    assert done.returncode == 0, done.stderr
    assert "7340 is taken" in done.stderr and "7343 is taken" in done.stderr
    assert "127.0.0.1:7340" not in done.stdout


@built_here
def test_what_it_prints_works_when_pasted(tmp_path):
    """Then Ctrl-C: nothing runs any more."""
    process = subprocess.Popen([ROOT / "run", "--state", tmp_path / "state", "--port", "0", "--tls-port", "0"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True)
    try:
        text = ""
        while "Ctrl-C" not in text:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            text += line
        pasted = re.search(r"^eval .*?^PYTHON$", text, re.MULTILINE | re.DOTALL)[0]
        path = f"{ROOT}/.venvs/hub-2.4.0/bin:/usr/sbin:/usr/bin:/bin"
        done = subprocess.run(["bash", "-c", pasted], env={"PATH": path, "HOME": str(tmp_path)}, capture_output=True,
                              text=True, timeout=60, check=False)
        assert "written from outside" in done.stdout and "Python 3" in done.stdout, done.stderr
        token = (tmp_path / "state" / "tokens" / "user").read_text().strip()
        assert token not in text
        port = int(re.search(r"Jobs API on http://127.0.0.1:(\d+)", text)[1])
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(30)
    assert status == 0
    assert not list(tmp_path.glob("cay-run.*"))
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=2).close()


def test_run_help_and_mistakes():
    done = subprocess.run([ROOT / "run", "--help"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0 and "--once" in done.stdout
    for arguments in (["--port"], ["--port", "x"], ["--tls-port", "x"], ["--state"], ["--nonsense"]):
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
