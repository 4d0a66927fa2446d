"""What users do with the unmodified client of the Hub, against an API whose jobs do what they are told.

    python api_scenarios.py SCENARIO        in the client's own environment, which has no pytest

HF_ENDPOINT, HF_TOKEN and OTHER_TOKEN say where and as whom. Ends with 0 if all went as it should."""

import json
import os
import sys
import threading
import time
import urllib.request

from huggingface_hub import HfApi, Volume
from huggingface_hub import __version__ as VERSION
from huggingface_hub.errors import BadRequestError, HfHubHTTPError, JobNotFoundError

ENDPOINT = os.environ["HF_ENDPOINT"]
api = HfApi()
NEWEST = tuple(int(part) for part in VERSION.split(".")[:2]) >= (2, 1)
NETWORKS = tuple(int(part) for part in VERSION.split(".")[:2]) >= (1, 32)


def tell(job_id: str, *acts: dict) -> None:
    """Makes a job do something."""
    urllib.request.urlopen(
        urllib.request.Request(f"{ENDPOINT}/test/{job_id}", json.dumps(acts).encode(), method="POST"), timeout=30).read()


def run(**more):
    return api.run_job(**{"image": "python:3.12", "command": ["python", "-c", "print(1)"], **more})


def raises(kind, call, *words: str) -> Exception:
    try:
        call()
    except kind as error:
        for word in words:
            assert word in str(error), (word, str(error))
        return error
    raise AssertionError(f"no {kind.__name__}")


def later(seconds: float, call) -> threading.Thread:
    def wait():
        time.sleep(seconds)
        call()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def run_and_inspect():
    more = {"network_group": "train", "network_aliases": ["master"]} if NETWORKS else {}
    if NEWEST:
        more |= {"attempts": 3, "expose_public": [9000]}
    job = run(env={"A": 1, "B": True, "C": "x"}, secrets={"KEY": "hidden"}, labels={"team": "ml"}, timeout="5m",
              flavor="cpu-upgrade", expose=[8000], volumes=[Volume(type="bucket", source="tester/data", mount_path="/data")],
              **more)
    assert job.status.stage == "SCHEDULING" and job.owner.name == "tester" and job.flavor == "cpu-upgrade"
    assert job.url == f"{ENDPOINT}/jobs/tester/{job.id}"
    assert job.environment == {"A": "1", "B": "true", "C": "x"}
    assert list(job.secrets) == ["KEY"] and "hidden" not in repr(job)
    assert job.labels["team"] == "ml" and "name" in job.labels
    assert job.volumes[0].mount_path == "/data"
    assert f"https://{job.id}--8000.cay.localhost:7343" in job.status.expose_urls
    assert job.initiator.id == api.whoami()["id"]
    if NETWORKS:
        assert job.network.group == "train" and job.network.aliases == ["master"]
    if NEWEST:
        assert job.retry == 2 and sorted(job.expose) == [8000, 9000] and job.expose_public == [9000]
    assert api.inspect_job(job_id=job.id).status.stage == "SCHEDULING"
    tell(job.id, {"start": True})
    running = api.inspect_job(job_id=job.id)
    assert running.status.stage == "RUNNING" and running.started_at is not None
    tell(job.id, {"finish": "ERROR", "message": "Job failed with exit code: 3"})
    ended = api.inspect_job(job_id=job.id)
    assert (ended.status.stage, ended.status.message) == ("ERROR", "Job failed with exit code: 3")
    assert ended.finished_at >= ended.started_at >= ended.created_at
    assert ended.durations.total_secs is not None
    space = api.run_job(image="hf.co/spaces/org/app", command=["true"])
    assert space.space_id == "org/app" and space.docker_image is None
    assert run(namespace="lab").owner.name == "lab"


def lists():
    mark = {"mark": f"m{time.time_ns()}"}
    ids = [run(labels=mark | {"n": str(n % 2)}).id for n in range(5)]
    tell(ids[0], {"start": True})
    tell(ids[1], {"start": True}, {"finish": "COMPLETED"})
    found = list(api.list_jobs(labels=mark))
    assert [job.id for job in found] == ids[::-1]
    assert [job.id for job in api.list_jobs(labels=mark | {"n": "1"})] == [ids[3], ids[1]]
    assert [job.id for job in api.list_jobs(labels=mark, status="RUNNING")] == [ids[0]]
    assert [job.id for job in api.list_jobs(labels=mark, status=["running", "completed"])] == [ids[1], ids[0]]
    assert list(api.list_jobs(labels=mark, status="DELETED")) == []
    assert list(api.list_jobs(labels=mark, namespace="lab")) == []


def pages():
    mark = {"mark": f"p{time.time_ns()}"}
    ids = [run(labels=mark).id for _ in range(230)]
    assert [job.id for job in api.list_jobs(labels=mark)] == ids[::-1]


def cancel_and_labels():
    job = run()
    api.cancel_job(job_id=job.id)
    api.cancel_job(job_id=job.id)
    assert api.inspect_job(job_id=job.id).status.stage == "CANCELED"
    changed = api.update_job_labels(job_id=job.id, labels={"a": "1"})
    assert changed.labels == {"a": "1"} == api.inspect_job(job_id=job.id).labels
    raises(BadRequestError, lambda: api.update_job_labels(job_id=job.id, labels={"a b": "1"}), "labels")


def wait_for_job():
    good, bad = run(), run()
    threads = [later(0.5, lambda: tell(good.id, {"start": True}, {"finish": "COMPLETED"})),
               later(0.6, lambda: tell(bad.id, {"start": True}, {"finish": "ERROR", "message": "no"}))]
    done = api.wait_for_job(job_id=[good.id, bad.id])
    assert [job.status.stage for job in done] == ["COMPLETED", "ERROR"]
    for thread in threads:
        thread.join()


HOSTILE = ["plain", "", "ünïcode", "a\u2028b\u2029c\u0085d", 'data: {"data":"no"}', "\x01\x1b[31m\x0b\x0c\x1c", "x" * 100_000]


def logs_of_an_ended_job():
    job = run()
    tell(job.id, {"start": True}, {"say": "===== Job started at 2026-01-01 00:00:00 ====="}, *({"say": line} for line in HOSTILE),
         {"finish": "COMPLETED"})
    begin = time.monotonic()
    assert list(api.fetch_job_logs(job_id=job.id)) == HOSTILE
    assert list(api.fetch_job_logs(job_id=job.id, follow=True)) == HOSTILE
    assert list(api.fetch_job_logs(job_id=job.id, tail=3)) == HOSTILE[-3:]
    assert list(api.fetch_job_logs(job_id=job.id, tail=2, follow=True)) == HOSTILE[-2:]
    assert time.monotonic() - begin < 4, "an ended log ends at once"
    empty = run()
    tell(empty.id, {"finish": "ERROR", "message": "image not found"})
    assert list(api.fetch_job_logs(job_id=empty.id)) == []


def logs_that_are_followed():
    job = run()
    lines = [f"line {n}" for n in range(50)]

    def play():
        time.sleep(1.5)  # while it waits, the stream is open
        tell(job.id, {"start": True}, {"say": "===== Job started"})
        for line in lines:
            tell(job.id, {"say": line})
        time.sleep(0.5)
        tell(job.id, {"say": "the last one"}, {"finish": "COMPLETED"})

    thread = later(0, play)
    assert list(api.fetch_job_logs(job_id=job.id, follow=True)) == [*lines, "the last one"]
    thread.join()


def logs_of_a_silent_job():
    job = run()
    tell(job.id, {"start": True}, {"say": "one"}, {"say": "two"})
    begin = time.monotonic()
    assert list(api.fetch_job_logs(job_id=job.id)) == ["one", "two"]
    assert list(api.fetch_job_logs(job_id=job.id, tail=1)) == ["two"]
    assert 8 < time.monotonic() - begin < 14, "five silent seconds each, not the next sign of life"
    tell(job.id, {"finish": "COMPLETED"})


def metrics():
    job = run()
    tell(job.id, {"usage": True}, {"start": True})
    first = next(iter(api.fetch_job_metrics(job_id=job.id)))
    assert first["memory_used_bytes"] == 256 << 20 and first["memory_total_bytes"] == 1 << 30
    assert first["cpu_millicores"] == 2000 and first["gpus"] is None and first["replica"] == job.id[:5]
    for key in ("cpu_usage_pct", "rx_bps", "tx_bps"):
        assert first[key] >= 0
    thread = later(2.5, lambda: tell(job.id, {"finish": "COMPLETED"}))
    options = {"follow": True} if NEWEST else {}
    seen = list(api.fetch_job_metrics(job_id=job.id, **options))
    thread.join()
    assert len(seen) >= 2
    assert list(api.fetch_job_metrics(job_id=job.id, **options)) == []


def scheduled():
    made = api.create_scheduled_job(image="python:3.12", command=["true"], schedule="@hourly", env={"A": 1},
                                    secrets={"KEY": "hidden"}, labels={"mark": f"s{time.time_ns()}"}, timeout=60)
    labels = made.job_spec.labels
    assert made.schedule == "@hourly" and made.suspend is False and made.concurrency is False
    assert made.status.last_job is None and made.status.next_job_run_at.minute == 0
    assert made.job_spec.docker_image == "python:3.12" and made.job_spec.timeout == 60
    assert "hidden" not in repr(made)
    one = {"mark": labels["mark"]}
    assert [job.id for job in api.list_scheduled_jobs(labels=one)] == [made.id]
    assert made.id in [job.id for job in api.list_scheduled_jobs()]
    api.suspend_scheduled_job(scheduled_job_id=made.id)
    assert api.inspect_scheduled_job(scheduled_job_id=made.id).suspend is True
    api.resume_scheduled_job(scheduled_job_id=made.id)
    assert api.inspect_scheduled_job(scheduled_job_id=made.id).suspend is False
    job = api.trigger_scheduled_job(scheduled_job_id=made.id)
    assert job.status.stage == "SCHEDULING" and job.initiator.type == "scheduled-job" and job.initiator.id == made.id
    assert api.inspect_scheduled_job(scheduled_job_id=made.id).status.last_job.id == job.id
    error = raises(HfHubHTTPError, lambda: api.trigger_scheduled_job(scheduled_job_id=made.id))
    assert error.response.status_code == 409
    assert api.update_scheduled_job_labels(scheduled_job_id=made.id, labels={"k": "v"}).job_spec.labels == {"k": "v"}
    if NEWEST:
        moved = api.update_scheduled_job_schedule(scheduled_job_id=made.id, schedule="30 5 * * *")
        assert moved.schedule == "30 5 * * *" and moved.status.next_job_run_at.hour == 5
    api.delete_scheduled_job(scheduled_job_id=made.id)
    raises(JobNotFoundError, lambda: api.inspect_scheduled_job(scheduled_job_id=made.id))
    raises(BadRequestError, lambda: api.create_scheduled_job(image="a", command=["x"], schedule="now and then"))


def hardware():
    flavors = api.list_jobs_hardware()
    assert flavors[0].name == "cpu-basic" and flavors[0].cpu == "2 vCPU"
    assert all(flavor.accelerator is None and flavor.unit_cost_usd == 0 for flavor in flavors)
    raises(BadRequestError, lambda: run(flavor="h200"), "GPU")
    raises(BadRequestError, lambda: run(flavor="no-such"), "cpu-basic")


def errors():
    raises(JobNotFoundError, lambda: api.inspect_job(job_id="0123456789abcdef01234567"))
    raises(JobNotFoundError, lambda: api.cancel_job(job_id="0123456789abcdef01234567"))
    raises(JobNotFoundError, lambda: list(api.fetch_job_logs(job_id="0123456789abcdef01234567")))
    # Found while it begins: the body is what the client passes on as it is.
    raises(BadRequestError, lambda: run(ssh=True), "ssh", "Request ID: ")
    other = HfApi(token=os.environ["OTHER_TOKEN"])
    assert other.whoami()["name"] == "other"
    job = run()
    foreign = raises(HfHubHTTPError, lambda: other.inspect_job(job_id=job.id, namespace="tester"), "tester")
    assert foreign.response.status_code == 403
    raises(JobNotFoundError, lambda: other.inspect_job(job_id=job.id, namespace="other"))
    wrong = raises(HfHubHTTPError, lambda: HfApi(token="hf_nobody").whoami(), "Invalid user token.")
    assert wrong.response.status_code == 401
    none = raises(HfHubHTTPError, lambda: api.inspect_job(job_id=job.id, namespace="tester", token=False))
    assert none.response.status_code == 401


def whoami():
    me = api.whoami()
    assert me["name"] == "tester" and me["type"] == "user" and len(me["id"]) == 24
    assert [org["name"] for org in me["orgs"]] == ["lab"]


def ports_and_copies():
    job = run(secrets={"KEY": "x"})
    opened = api.update_job_expose(job_id=job.id, expose=[8000], expose_public=[9000])
    assert sorted(opened.expose) == [8000, 9000] and opened.expose_public == [9000]
    assert len(opened.status.expose_urls) == 2
    assert api.update_job_expose(job_id=job.id, expose=[], expose_public=[]).status.expose_urls is None
    copy = api.rerun_job(job_id=job.id)
    assert copy.id != job.id and copy.command == job.command and list(copy.secrets) == ["KEY"]
    assert (copy.initiator.type, copy.initiator.id) == ("duplicated-job", job.id)


def local_files():
    script = os.path.join(os.environ["HF_HOME"], "script.py")
    with open(script, "w") as file:
        file.write("print(1)\n")
    raises(HfHubHTTPError, lambda: api.run_uv_job(script), "Xet", "/volumes/buckets/tester/jobs-artifacts")
    assert api.run_uv_job("ruff", script_args=["--version"]).command[0] == "uv"


if __name__ == "__main__":
    globals()[sys.argv[1]]()
