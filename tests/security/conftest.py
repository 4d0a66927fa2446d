"""Each attack runs in each mode of a pool and against each kind of a hub's jobs where it can be made (kinds.py). It must
be stopped, or be in promises.py as one that the mode does not stop."""

from __future__ import annotations

import os

import pytest

import kinds
import promises
import score
from arena import Arena, Breach
from hub_arena import DedicatedArena, PlainArena

HUB_ARENAS = {"dedicated": DedicatedArena, "plain": PlainArena}


def pytest_generate_tests(metafunc) -> None:
    if "arena" in metafunc.fixturenames:
        # One worker plays a mode from end to end: its attacks may load the machine, but not each other.
        marks = {
            m: [pytest.mark.xdist_group(f"security-{m}"), *([pytest.mark.slow] if m != "full" else [])]
            for m in score.MODES
        }
        modes = getattr(metafunc.module, "KINDS", score.MODES)
        metafunc.parametrize("arena", [pytest.param(m, marks=marks[m]) for m in modes], indirect=True, scope="session")


def attack_of(item) -> tuple[str, str]:
    """What an attack is called in the tables, and its mode."""
    mode = item.callspec.params["arena"]
    name = item.originalname.removeprefix("test_").replace("_", " ")
    variant = item.callspec.id.replace(mode, "").strip("-")
    return name + (f" ({variant})" if variant else ""), mode


def pytest_collection_modifyitems(config, items) -> None:
    left_out = [
        item
        for item in items
        if "arena" in getattr(getattr(item, "callspec", None), "params", {}) and kinds.why_not(*attack_of(item))
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session")
def arena(request):
    if os.getuid() != 0:
        pytest.skip("needs root to make all modes")
    scene = HUB_ARENAS.get(request.param, Arena)(request.param)
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
    attack, _ = attack_of(pyfuncitem)
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
