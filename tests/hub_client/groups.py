"""Network groups by the unmodified huggingface_hub: members find and reach each other, and nobody else does.

    eval "$(cay env)"; CAY_OTHER_TOKEN=… python groups.py FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cases import end_after, run_all, wait_for
from huggingface_hub import HfApi

MEMBER = """
import os, socket, sys, threading, time
name, other = sys.argv[1:]
server = socket.create_server(("0.0.0.0", 9000))
def serve():
    while True:
        client, _ = server.accept()
        client.sendall(name.encode())
        client.close()
threading.Thread(target=serve, daemon=True).start()
print("address", socket.gethostbyname(socket.gethostname()), flush=True)
def ask(host):
    until = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection((host, 9000), 5) as connection:
                return connection.recv(100).decode()
        except OSError:
            if time.monotonic() > until:
                return "nobody"
            time.sleep(0.1)
print("reached", ask(os.environ["HF_NETWORK_GROUP_PREFIX"] + other), flush=True)
found = socket.getaddrinfo(os.environ["HF_NETWORK_GROUP_HOSTNAME"], 9000, socket.AF_INET, socket.SOCK_STREAM)
print("members", *sorted({address[0] for *_, address in found}), flush=True)
time.sleep(1000)
"""
# Its own server answers it, so that what it cannot reach is not for want of a network.
OUTSIDER = """
import socket, sys
own = socket.create_server(("0.0.0.0", 9000))
for host in ["127.0.0.1", socket.gethostbyname(socket.gethostname()), *sys.argv[1:]]:
    try:
        socket.create_connection((host, 9000), 2).close()
        print("reached", host)
    except OSError as error:
        print("refused", host, type(error).__name__)
print("done")
"""


def start(program: str, *arguments: str, token: str | None = None, **options) -> str:
    api = HfApi(token=token)
    return api.run_job(image="python:3.12", command=["python3", "-c", program, *arguments], flavor="cpu-basic",
                       timeout=300, **options).id


def lines_of(job: str, token: str | None = None) -> list[list[str]]:
    return [line.split() for line in HfApi(token=token).fetch_job_logs(job_id=job)]


def said(job: str, word: str, token: str | None = None) -> list[str]:
    """What it says after this word, once it does."""
    found: list[list[str]] = []

    def has_said() -> bool:
        found[:] = [line[1:] for line in lines_of(job, token) if line[:1] == [word]]
        return bool(found)

    wait_for(has_said, 90)
    return found[0]


def case_members_reach_each_other_by_alias_and_nobody_else_does(folder):
    group = {"network_group": "team"}
    one = start(MEMBER, "one", "second", network_aliases=["first"], **group)
    two = start(MEMBER, "two", "first", network_aliases=["second"], **group)
    try:
        assert said(one, "reached") == ["two"] and said(two, "reached") == ["one"]
        addresses = [said(one, "address")[0], said(two, "address")[0]]
        assert addresses[0] != addresses[1]
        # Whichever asked last has seen both.
        assert sorted(addresses) in (said(one, "members"), said(two, "members"))
        info = HfApi().inspect_job(job_id=one)
        assert (info.network.group, info.network.aliases) == ("team", ["first"]), info.network

        stranger = os.environ["CAY_OTHER_TOKEN"]
        names = ["team-first", "team-second", "team.group.internal"]
        outsiders = [
            (start(OUTSIDER, *addresses, *names), None),
            (start(OUTSIDER, *addresses, *names, network_group="rivals", network_aliases=["first"]), None),
            # A group of the same name in another namespace is another group; its own name is its own.
            (start(OUTSIDER, *addresses, *names[:2], token=stranger, namespace="other", **group), stranger),
        ]
        for job, token in outsiders:
            lines = []

            def is_done(job=job, token=token) -> bool:
                lines[:] = HfApi(token=token).fetch_job_logs(job_id=job, namespace="other" if token else None)
                return "done" in lines

            wait_for(is_done, 90)
            tried = [line.split() for line in lines if line.split()[0] in ("reached", "refused")]
            assert [line[0] for line in tried[:2]] == ["reached"] * 2, f"it has no network of its own: {tried}"
            assert len(tried) >= 6 and all(line[0] == "refused" for line in tried[2:]), tried
    finally:
        for job in (one, two):
            HfApi().cancel_job(job_id=job)


def case_an_alias_goes_with_its_job(folder):
    group = {"network_group": "passing"}
    one = start(MEMBER, "one", "second", network_aliases=["first"], **group)
    two = start(MEMBER, "two", "first", network_aliases=["second"], **group)
    try:
        assert said(one, "reached") == ["two"]
        HfApi().cancel_job(job_id=two)
        asker = start("import os, socket\nfor alias in ('first', 'second'):\n"
                      "    try: print(alias, socket.gethostbyname(os.environ['HF_NETWORK_GROUP_PREFIX'] + alias))\n"
                      "    except OSError: print(alias, 'unknown')\n", **group)
        assert said(asker, "first") == said(one, "address") and said(asker, "second") == ["unknown"]
    finally:
        HfApi().cancel_job(job_id=one)


if __name__ == "__main__":
    end_after(600)
    run_all(globals(), Path(sys.argv[1]))
    os._exit(0)
