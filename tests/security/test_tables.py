"""The tables of what is not stopped and of what is not tried name attacks that there are."""

from __future__ import annotations

import re
from pathlib import Path

import kinds
import promises
import score

ATTACKS = {
    name.replace("_", " ")
    for file in Path(__file__).parent.glob("test_attack_*.py")
    for name in re.findall(r"^def test_(\w+)\(", file.read_text(), re.MULTILINE)
}


def test_names():
    named = {*promises.NOT_PROMISED, *(attack for table in kinds.LEFT_OUT.values() for attack in table)}
    assert {name.split(" (")[0] for name in named} <= ATTACKS


def test_modes_and_reasons():
    assert set(kinds.LEFT_OUT) <= set(score.MODES)
    assert {mode for modes in promises.NOT_PROMISED.values() for mode in modes} <= set(score.MODES)
    assert all(reason for table in kinds.LEFT_OUT.values() for reason in table.values())
