"""The one table of attacks that cannot be made against a kind of a hub's jobs, with the reason. What is not made is
deselected, and counted as such; what is about the hub instead is in test_attack_hub*.py."""

from __future__ import annotations

_POOL = "about routes and tokens of a pool host; test_attack_hub_identity.py has those of a hub"
_CHOSEN = "the token of a hub's sandbox is chosen by its client"
_NETWORK = "a job has a network of its own and may serve there; test_attack_hub_network.py is about its walls"
_API = "goes through file or process routes, which a plain job has not"
_TOLD = "looks at what the end of a command tells, which a plain job's does not"
_ONE = "about the log, the end and the successor of a plain job"
_LATER = "looks at what an earlier command left, and each command of a plain job is a job of its own"

# By the name of the attack, or of all its variants.
_OF_A_HUB = {
    "the victims routes with another token": _POOL,
    "managing the pool with a sandboxs token": _POOL,
    "tokens of others with ones own": _POOL,
    "routes that confuse": _POOL,
    "a connection does not remember its token": _POOL,
    "two tokens in one request": _POOL,
    "existence of others": _POOL,
    "tokens are long and random": _CHOSEN,
    "abstract socket of the victim (none)": _NETWORK,
    "serving tcp on the hosts network": _NETWORK,
    "network none reaches nothing": _NETWORK,
    "network none may serve and udp stays inside": _NETWORK,
    "cay hosts own port": _NETWORK,
}
_OF_PLAIN_JOBS = {
    "fork bomb is told": _TOLD,
    "processor hog": _TOLD,
    "disk fill": _LATER,
    "overlay attributes": _LATER,
    "setuid files are no danger outside": _LATER,
    "daemons that outlive their sandbox": _LATER,
    "what the last owner left": _LATER,
    **{
        name: _API
        for name in (
            "disk fill through the api",
            "output flood nobody reads",
            "output flood in the background",
            "input flood nobody reads",
            "folder of 100000 files",
            "deep folder",
            "tar bomb",
            "many commands at once",
            "requests that never end",
            "dots and proc paths",
            "dots in writes",
            "links out of the sandbox",
            "writes through links",
            "mkdir through links",
            "deletes through links",
            "moves through links",
            "archives that break out",
            "race of swapped links",
            "magic links of proc",
            "special files do not hold the host",
            "working folder through descriptors",
            "endless reads of growing files",
            "anothers idempotency key",
            "sysctls through the api",
            "device nodes through the api",
            "own abstract sockets work",
            "fields of requests that come through (sandbox-proxy)",
            "proxy sockets that lead elsewhere",
            "proxy to services of the host",
            "processes of others through the api",
        )
    },
}
_OF_SANDBOXES = {
    "a log that is filled": _ONE,
    "logs nobody reads": _ONE,
    "a log that confuses its readers": _ONE,
    "daemons that outlive their job": _ONE,
    "a job that does not want to end": _ONE,
    "what an ended job left": _ONE,
}
LEFT_OUT = {"dedicated": {**_OF_A_HUB, **_OF_SANDBOXES}, "plain": {**_OF_A_HUB, **_OF_PLAIN_JOBS}}


def why_not(attack: str, kind: str) -> str | None:
    table = LEFT_OUT.get(kind, {})
    return table.get(attack) or table.get(attack.split(" (")[0])
