#!/usr/bin/env python3
"""Keeps source files small: more than 600 lines is worth a word, more than 1000 is refused."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WARN, REFUSE = 600, 1000
SUFFIXES = {".h", ".cc", ".py", ".sh", ".cmake", ""}
# path -> why it may be longer
ALLOWED = {"LICENSE": "the text of the licence"}


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    refused = 0
    for name in listed:
        path = ROOT / name
        if name in ALLOWED or path.suffix not in SUFFIXES or "corpus" in path.parts or not path.is_file():
            continue
        lines = path.read_bytes().count(b"\n")
        if lines > REFUSE:
            print(f"{name}: {lines} lines, at most {REFUSE} are allowed")
            refused += 1
        elif lines > WARN:
            print(f"{name}: {lines} lines; consider splitting it")
    print(f"{len(listed)} files looked at, {refused} too long")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
