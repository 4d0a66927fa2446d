#!/usr/bin/env python3
"""Holds the rooms below src/ to their order: a room includes only itself and rooms above it.

Also: test helpers (src/testing, *_fixture.h) stay in tests, every quoted include names its room, and the
HTTP parser's headers stay in at most three files of net that no other header includes.
"""

import re
import sys
from pathlib import Path

ROOMS = ["base", "sys", "net", "isolation", "layers", "sandbox", "files", "host", "engine", "hub", "cli"]
ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
MAX_BEAST_FILES = 3


def is_test(path: Path) -> bool:
    return path.stem.endswith(("_test", "_fixture"))


def allowed_rooms(path: Path) -> set[str]:
    """The rooms that this file may include from."""
    parts = path.relative_to(ROOT).parts
    if parts[0] != "src":  # cmd, bench, fuzz wire everything together
        return {*ROOMS, "testing"} if parts[0] in ("bench", "fuzz") else set(ROOMS)
    room = parts[1]
    if room == "testing":
        return {*ROOMS, "testing"}
    rooms = set(ROOMS[: ROOMS.index(room) + 1])
    return rooms | {"testing"} if is_test(path) else rooms


def problems_in(path: Path) -> list[str]:
    found = []
    name = path.relative_to(ROOT)
    allowed = allowed_rooms(path)
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        target = match.group(1)
        beside = (path.parent / target).exists() and name.parts[0] != "src"
        if target.split("/")[0] not in allowed and not beside:
            found.append(f'{name}:{line}: may not include "{target}"')
        if target.endswith("_fixture.h") and not is_test(path):
            found.append(f'{name}:{line}: "{target}" is for tests')
    return found


def beast_problems(files: list[Path]) -> list[str]:
    texts = {f.relative_to(ROOT): f.read_text(encoding="utf-8") for f in files}
    beast = [f for f, text in texts.items() if "<boost/beast" in text]
    found = [f"{f}: only net may see boost/beast" for f in beast if f.parts[:2] != ("src", "net")]
    for header in (f for f in beast if f.suffix == ".h"):
        line = f'#include "{header.relative_to("src")}"'
        found += [f"{f}: carries boost/beast on" for f, text in texts.items() if f.suffix == ".h" and line in text]
    if len(beast) > MAX_BEAST_FILES:
        found.append(f"boost/beast is in {len(beast)} files, {MAX_BEAST_FILES} are allowed: {beast}")
    return found


def main() -> int:
    problems = []
    unknown = [d.name for d in (ROOT / "src").iterdir() if d.is_dir() and d.name not in [*ROOMS, "testing"]]
    problems += [f"src/{name}: not in the list of rooms in scripts/check_includes.py" for name in unknown]
    files = [
        f
        for top in ("src", "cmd", "bench", "fuzz")
        for f in sorted((ROOT / top).rglob("*"))
        if f.suffix in (".h", ".cc") and not (top == "src" and f.relative_to(ROOT).parts[1] in unknown)
    ]
    for path in files:
        problems += problems_in(path)
    problems += beast_problems(files)
    print(*problems, sep="\n")
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
