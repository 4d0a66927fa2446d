#!/usr/bin/env python3
"""Runs clang-tidy with the flags of the release build, several files at a time.

    scripts/tidy.py --all
    scripts/tidy.py --changed [--budget SECONDS]   what differs from the main line
    scripts/tidy.py FILE...

A coroutine source takes 10 to 25 s. With --budget no new file is begun after that time; how many were
left is said, and --all looks at them. A file that was clean is not looked at again until it, a header of
ours that it includes, its compile command or .clang-tidy changes.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "tidy"
CLEAN = OUT / "clean"  # an empty file for each state of a source that was found clean
TIDY = "clang-tidy-19"


def git(*arguments: str) -> list[str]:
    answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.splitlines() if answer.returncode == 0 else []


def write_database() -> dict[str, str]:
    """Sources, each with its command: that of the release build without the compiler launcher, which clang-tidy
    cannot read."""
    entries = json.loads((ROOT / "build" / "compile_commands.json").read_text())
    for entry in entries:
        words = shlex.split(entry["command"])
        compiler = next(i for i, word in enumerate(words) if Path(word).name.startswith("clang++"))
        entry["command"] = shlex.join(words[compiler:])
    CLEAN.mkdir(parents=True, exist_ok=True)
    (OUT / "compile_commands.json").write_text(json.dumps(entries))
    return {str(Path(e["file"]).resolve().relative_to(ROOT)): e["command"] for e in entries}


def with_headers(source: Path) -> set[Path]:
    """A source and every header of ours that it includes, by whatever way."""
    found, waiting = set(), [source]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        for name in re.findall(r'^\s*#include "(.+)"', file.read_text(encoding="utf-8"), re.MULTILINE):
            waiting += [ROOT / "src" / name, file.parent / name]
    return found


def state_of(source: str, command: str, version: str) -> Path:
    """Where it is noted that this source, as everything about it is now, is clean."""
    digest = hashlib.sha256("\0".join([source, command, version]).encode())
    for file in (ROOT / ".clang-tidy", *sorted(with_headers(ROOT / source))):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return CLEAN / digest.hexdigest()


def changed_files(sources: list[str]) -> list[str]:
    """Sources that differ from where this branch left the main line, or that include a header that does."""
    base = None
    for upstream in ("origin/main", "origin/master", "main"):
        found = git("merge-base", "HEAD", upstream)
        if found and found != git("rev-parse", "HEAD"):
            base = found[0]
            break
    base = base or next(iter(git("rev-parse", "--verify", "--quiet", "HEAD~1")), None)
    if base is None:
        return sources
    names = set(git("diff", "--name-only", base)) | set(git("ls-files", "--others", "--exclude-standard"))
    if names & {".clang-tidy"}:
        return sources
    headers = {n.removeprefix("src/") for n in names if n.endswith(".h")}

    def concerned(source: str) -> bool:
        if source in names:
            return True
        text = (ROOT / source).read_text(encoding="utf-8")
        return any(f'#include "{header}"' in text for header in headers)

    return [s for s in sources if concerned(s)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--budget", type=float, default=None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    ours = ("src/", "cmd/", "bench/", "fuzz/")
    commands = write_database()
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    sources = sorted(s for s in commands if s.startswith(ours))
    if options.changed:
        sources = changed_files(sources)
    elif not options.all:
        sources = options.files
    # What was touched last is most likely wrong, so it goes first.
    sources.sort(key=lambda s: -(ROOT / s).stat().st_mtime)
    began = time.monotonic()

    def check(source: str) -> tuple[str, str | None, str]:
        if options.budget is not None and time.monotonic() - began > options.budget:
            return source, None, ""
        # A file that is not built has no command, and clang-tidy makes one up.
        state = state_of(source, commands.get(source, ""), version)
        if state.exists():
            return source, "as before", ""
        answer = subprocess.run(
            [TIDY, "--quiet", "-p", str(OUT), str(ROOT / source)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )
        verdict = "clean" if answer.returncode == 0 else "WRONG"
        print(f"{verdict} {source}", flush=True)
        if verdict == "clean":
            state.touch()
        return source, verdict, answer.stdout if answer.returncode == 0 else answer.stdout + answer.stderr

    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(check, sources))
    wrong = [r for r in results if r[1] == "WRONG"]
    left = [r for r in results if r[1] is None]
    before = sum(r[1] == "as before" for r in results)
    for source, _, text in wrong:
        print(f"\n== {source}\n{text}")
    print(f"\n{len(results) - len(left)} files checked ({before} unchanged since they were clean), {len(wrong)} wrong, "
          f"{len(left)} left for --all")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
