"""Sandbox.create of the unmodified huggingface_hub on a hub, in all its forms, and what the Jobs API says of it.

    eval "$(cay env)"; python creation.py FOLDER
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import huggingface_hub
from cases import end_after, run_all, wait_for
from huggingface_hub import HfApi, Sandbox, Volume
from huggingface_hub.errors import HfHubHTTPError, SandboxError

PROTOCOL_1 = huggingface_hub.__version__.startswith("1.31")


def stage_of(job_id: str) -> str:
    return HfApi().inspect_job(job_id=job_id).status.stage


def case_context_manager_kills(folder):
    with Sandbox.create() as sandbox:
        assert sandbox.run("echo hello").stdout == "hello\n"
        assert stage_of(sandbox.id) == "RUNNING"
    assert stage_of(sandbox.id) == "CANCELED"


def case_kill_by_id(folder):
    sandbox = Sandbox.create()
    Sandbox.kill(sandbox.id)
    assert stage_of(sandbox.id) == "CANCELED"
    try:
        sandbox.run("echo never")
    except SandboxError as error:
        assert error.status_code == 410 and "CANCELED" in str(error), error
    else:
        raise AssertionError("it is gone")


def case_it_is_a_machine_of_its_own(folder):
    with Sandbox.create() as one, Sandbox.create() as other:
        one.files.write("/etc/mine", b"x")
        assert one.run("cat /etc/mine").stdout == "x" and not other.files.exists("/etc/mine")
        assert not Path("/etc/mine").exists()
        assert one.run("id -u").stdout == "0\n" and one.run("hostname").stdout != other.run("hostname").stdout
        assert one.run("ps ax | wc -l").stdout.strip() < "9"
        one.run(["python3", "-m", "http.server", "8000", "--bind", "0.0.0.0"], background=True)
        address = one.run("hostname -I || true", check=False).stdout.split()
        wait_for(lambda: one.run("python3 -c \"import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000')\"",
                                 check=False).exit_code == 0)
        for theirs in address:
            tried = other.run(["python3", "-c", "import socket,sys; socket.create_connection((sys.argv[1], 8000), 2)",
                               theirs], check=False)
            assert tried.exit_code != 0, "jobs exchange no packets"


def case_env_and_secrets(folder):
    with Sandbox.create(env={"PLAIN": 1, "FLAG": True}, secrets={"HIDDEN": "s3cret"}) as sandbox:
        assert sandbox.run("echo $PLAIN,$FLAG,$HIDDEN").stdout == "1,true,s3cret\n"
        names = sandbox.run("env").stdout
        assert "SBX_TOKEN" not in names and "SBX_SERVER" not in names
        job = HfApi().inspect_job(job_id=sandbox.id)
        assert "s3cret" not in repr(job) and job.environment["PLAIN"] == "1"


def case_forward_hf_token(folder):
    with Sandbox.create() as sandbox:
        assert sandbox.run("echo [$HF_TOKEN]").stdout == "[]\n"
        found = sandbox.run(["sh", "-c", f"grep -rl {os.environ['HF_TOKEN']} /proc/*/environ /proc/*/cmdline /etc /root /tmp "
                                         "2>/dev/null"], check=False).stdout
        assert found.replace("/proc/self/cmdline\n", "").count("environ") == 0, found
    with Sandbox.create(forward_hf_token=True) as sandbox:
        assert sandbox.run("echo $HF_TOKEN").stdout.strip() == os.environ["HF_TOKEN"]


def case_labels(folder):
    if PROTOCOL_1:
        return  # came later
    run = f"r{os.getpid()}-{time.time_ns()}"
    with Sandbox.create(labels={"run": run}) as sandbox:
        assert [job.id for job in HfApi().list_jobs(labels={"run": run})] == [sandbox.id]


def case_volumes(folder):
    user = HfApi().whoami()["name"]
    bucket = f"{user}/notes"
    with Sandbox.create(volumes=[Volume(type="bucket", source=bucket, mount_path="/data")]) as sandbox:
        sandbox.run("echo kept > /data/note")
    with Sandbox.create(volumes=[Volume(type="bucket", source=bucket, mount_path="/data", read_only=True)]) as sandbox:
        assert sandbox.run("cat /data/note").stdout == "kept\n"
        assert sandbox.run("echo x > /data/more", check=False).exit_code != 0
    try:
        Sandbox.create(volumes=[Volume(type="model", source="nobody/nothing", mount_path="/model")], start_timeout=20)
    except SandboxError as error:
        assert "nobody/nothing" in str(error), error
    else:
        raise AssertionError("a model that is not there")


def case_connect_from_another_process(folder):
    with Sandbox.create() as sandbox:
        sandbox.files.write("/root/note", b"found")
        code = f"from huggingface_hub import Sandbox\nprint(Sandbox.connect({sandbox.id!r}).files.read('/root/note').decode())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "found\n", done.stderr


def case_idle_timeout(folder):
    sandbox = Sandbox.create(idle_timeout=2)
    sandbox.run("true")
    deadline = time.monotonic() + 30
    while stage_of(sandbox.id) == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    job = HfApi().inspect_job(job_id=sandbox.id)
    assert job.status.stage == "COMPLETED" and "idle" in job.status.message, job.status


def case_unknown_image(folder):
    began = time.monotonic()
    try:
        Sandbox.create(image="registry.invalid/nothing:here")
    except SandboxError as error:
        assert "cay image" in str(error), error
    else:
        raise AssertionError("there is no such image")
    assert time.monotonic() - began < 100, "told, not waited for"


def case_unknown_flavor(folder):
    try:
        Sandbox.create(flavor="a10g-small")
    except HfHubHTTPError as error:
        assert error.response.status_code == 400 and "GPU" in str(error), error
    else:
        raise AssertionError("this machine has no such GPU")


def case_the_job_tells_what_it_is(folder):
    with Sandbox.create(image="python:3.12") as sandbox:
        job = HfApi().inspect_job(job_id=sandbox.id)
        assert job.docker_image == "python:3.12" and str(job.flavor) == "cpu-basic"
        assert job.command[:2] == ["/bin/sh", "-c"]
        assert len(job.status.expose_urls) == 1 and f"{sandbox.id}--49983." in job.status.expose_urls[0]


def case_wrong_token_and_namespace(folder):
    for call, status in ((lambda: HfApi(token="hf_nobody").run_job(image="python:3.12", command=["true"], namespace="me"), 401),
                         (lambda: HfApi().run_job(image="python:3.12", command=["true"], namespace="somebody-else"), 403)):
        try:
            call()
        except HfHubHTTPError as error:
            assert error.response.status_code == status, error
        else:
            raise AssertionError("refused")


if __name__ == "__main__":
    end_after(400)
    run_all(globals(), Path(sys.argv[1]))
    os._exit(0)
