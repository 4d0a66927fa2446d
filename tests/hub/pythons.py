"""Pythons of this machine besides the one that runs the tests."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path


def newest_strict_python() -> str | None:
    """The newest one that demands X509_STRICT of certificates by itself, as all do from 3.13 on."""
    found = []
    folders = [Path(p) for p in os.environ["PATH"].split(":")] + list(Path.home().glob(".pyenv/versions/*/bin"))
    for folder in folders:
        for candidate in folder.glob("python3.*"):
            match = re.fullmatch(r"python3\.(\d+)", candidate.name)
            # A version manager's shim may stand for a Python that is not there.
            if match and int(match[1]) >= 13 and "shims" not in candidate.parts:
                found.append((int(match[1]), str(candidate)))
    return max(found)[1] if found else None


def strict_python() -> str:
    """That one, or this one, which then has to be told to be strict: the flag of OpenSSL is the same."""
    return newest_strict_python() or sys.executable
