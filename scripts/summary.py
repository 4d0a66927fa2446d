#!/usr/bin/env python3
"""Counts the results of ./test and prints them; exits with 1 if anything failed.

Reads FOLDER/steps.tsv (kind, name, exit status, seconds) and, for each step of kind `cases`, the results
below FOLDER/cases/<name>: GoogleTest JSON and JUnit XML.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, name: str, outcome: str) -> None:
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome == "failed":
            self.failures.append(name)

    def include(self, other: "Count") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


def count_gtest(path: Path, count: Count) -> None:
    for suite in json.loads(path.read_text()).get("testsuites", []):
        for case in suite.get("testsuite", []):
            if case.get("status") == "NOTRUN":
                continue  # left out by the filter
            outcome = "failed" if case.get("failures") else "skipped" if case.get("result") == "SKIPPED" else "passed"
            count.add(f"{suite['name']}.{case['name']}", outcome)


def count_junit(path: Path, count: Count) -> None:
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        count.add(f"{case.get('classname')}.{case.get('name')}", outcome)


def count_step(folder: Path, kind: str, name: str, status: int) -> Count:
    count = Count()
    if kind == "cases":
        for path in sorted((folder / "cases" / name).glob("*")):
            try:
                (count_gtest if path.suffix == ".json" else count_junit)(path, count)
            except (ValueError, ElementTree.ParseError):
                count.add(f"{name}: {path.name} cannot be read", "failed")
    elif kind == "check" and status == 0:
        count.add(name, "passed")
    if status != 0 and count.failed == 0:
        count.add(f"{name} (exit status {status})", "failed")
    return count


def main() -> int:
    folder = Path(sys.argv[1])
    total = Count()
    steps = folder / "steps.tsv"
    lines = steps.read_text().splitlines() if steps.exists() else []
    print(f"\n{'':34} {'seconds':>8} {'passed':>8} {'failed':>8} {'skipped':>8}")
    for line in lines:
        kind, name, status, seconds = line.split("\t")
        count = count_step(folder, kind, name, int(status))
        total.include(count)
        print(f"{name:34} {seconds:>8} {count.passed:>8} {count.failed:>8} {count.skipped:>8}")
    for failure in total.failures:
        print(f"failed: {failure}")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
