"""Each attack runs in each mode. It must be stopped, or be in promises.py as one that the mode does not stop."""

from __future__ import annotations

import os

import pytest

import promises
import score
from arena import Arena, Breach


def pytest_generate_tests(metafunc) -> None:
    if "arena" in metafunc.fixturenames:
        # One worker plays a mode from end to end: its attacks may load the machine, but not each other.
        marks = {
            m: [pytest.mark.xdist_group(f"security-{m}"), *([pytest.mark.slow] if m != "full" else [])]
            for m in score.MODES
        }
        metafunc.parametrize(
            "arena", [pytest.param(m, marks=marks[m]) for m in score.MODES], indirect=True, scope="session"
        )


@pytest.fixture(scope="session")
def arena(request):
    if os.getuid() != 0:
        pytest.skip("needs root to make all three modes")
    scene = Arena(request.param)
    try:
        yield scene.open()
    finally:
        scene.close()


@pytest.fixture
def attacker(arena):
    return arena.attacker()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    scene = pyfuncitem.funcargs.get("arena")
    if scene is None:
        return (yield)
    attack = pyfuncitem.originalname.removeprefix("test_").replace("_", " ")
    variant = pyfuncitem.callspec.id.replace(scene.walls, "").strip("-")
    attack += f" ({variant})" if variant else ""
    reason = promises.not_promised(attack, scene.walls)
    note = {
        "attack": attack,
        "mode": scene.walls,
        "group": pyfuncitem.module.GROUP,
        "result": score.BREACHED,
        "reason": "the test failed",
    }
    pyfuncitem.user_properties.extend(note.items())

    def record(result: str, why: str) -> None:
        for place, (key, _) in enumerate(pyfuncitem.user_properties):
            if key in ("result", "reason"):
                pyfuncitem.user_properties[place] = (key, result if key == "result" else why)

    try:
        outcome = yield
        if reason is not None:
            record(score.STOPPED, "")
            pytest.fail(f"stopped, but promises.py says that it is not in mode {scene.walls}: {reason}")
        scene.unharmed()
        record(score.STOPPED, "")
        return outcome
    except Breach as breach:
        if reason is None:
            record(score.BREACHED, str(breach))
            raise
        scene.unharmed()
        record(score.OPEN, reason)
        return True
