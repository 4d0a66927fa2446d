"""The score of the attacks in tests/security: a table per run, and as Markdown in $CAY_SCORE_FILE."""

from __future__ import annotations

import os
from pathlib import Path

# Three of pool hosts, and two kinds of a hub's jobs.
MODES = ("full", "restricted", "unprivileged", "dedicated", "plain")
STOPPED, OPEN, BREACHED = "stopped", "open", "breached"


def results(reporter) -> list[dict]:
    """What each attack's test has noted (tests/security/conftest.py): group, attack, mode, result, reason."""
    noted = [
        dict(report.user_properties)
        for reports in reporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
    ]
    return [n for n in noted if "attack" in n]


def table(noted: list[dict]) -> str:
    groups = sorted({n["group"] for n in noted})
    modes = [m for m in MODES if any(n["mode"] == m for n in noted)]
    lines = ["| attacks on | " + " | ".join(modes) + " |", "|---|" + "---|" * len(modes)]
    for group in [*groups, None]:
        cells = []
        for mode in modes:
            those = [n for n in noted if n["mode"] == mode and group in (None, n["group"])]
            cells.append(f"{sum(n['result'] == STOPPED for n in those)}/{len(those)}" if those else "")
        lines.append(f"| {group or '**all**'} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def gaps(noted: list[dict]) -> str:
    """What is not stopped, with the reason, one line for each attack."""
    lines = []
    for attack in sorted({n["attack"] for n in noted if n["result"] == OPEN}):
        for reason in sorted({n["reason"] for n in noted if n["attack"] == attack and n["result"] == OPEN}):
            modes = [
                n["mode"] for n in noted if n["attack"] == attack and n["result"] == OPEN and n["reason"] == reason
            ]
            lines.append(f"| {attack} | {', '.join(sorted(modes))} | {reason} |")
    return "\n".join(["| not promised | mode | why |", "|---|---|---|", *lines]) if lines else ""


def report(reporter) -> None:
    noted = results(reporter)
    if not noted:
        return
    reporter.section("attacks stopped")
    text = table(noted)
    if gaps(noted):
        text += "\n\n" + gaps(noted)
    for line in text.splitlines():
        reporter.write_line(line)
    for breach in (n for n in noted if n["result"] == BREACHED):
        reporter.write_line(f"BREACH {breach['mode']}: {breach['attack']}: {breach['reason']}")
    if os.environ.get("CAY_SCORE_FILE"):
        Path(os.environ["CAY_SCORE_FILE"]).write_text(text + "\n")
