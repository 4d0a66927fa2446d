"""Running functions named case_* one after the other in the environment of a client, and telling of each."""

from __future__ import annotations

import json
import os
import threading
import time
import traceback


def wait_for(condition, timeout: float = 15.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def report(case: str, began: float, error: str | None) -> None:
    print(json.dumps({"case": case, "error": error, "seconds": round(time.monotonic() - began, 3)}), flush=True)


def names_of(namespace: dict) -> list[str]:
    return [name for name in namespace if name.startswith("case_")]


def end_after(seconds: float) -> None:
    """A case that hangs must not take the report of the others with it."""
    timer = threading.Timer(seconds, lambda: os._exit(9))
    timer.daemon = True
    timer.start()


def run_all(namespace: dict, *arguments) -> None:
    for name in names_of(namespace):
        began = time.monotonic()
        try:
            namespace[name](*arguments)
            report(name, began, None)
        except Exception:
            report(name, began, traceback.format_exc())
