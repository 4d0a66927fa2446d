"""Sandboxes that stand ready before they are asked for."""

from __future__ import annotations

import pytest

from host import wait_until

pytestmark = pytest.mark.slow

MODES = ["full", "restricted", "unprivileged"]


def marks(pool) -> list[str]:
    return [p.parent.name for p in pool.state.glob("sandboxes/*/ready.*")]


def use(pool, **options):
    sandbox = pool.create(**options)
    assert sandbox.client().exec("echo used").stdout == "used\n"
    return sandbox


def take_ready(pool, **options):
    """One that stood there before it was asked for: with its keeper, which comes a little after its folder."""
    use(pool)

    def take():
        before = marks(pool)
        assert not set(before) & set(pool.listed())
        taken = pool.create(**options)
        return taken if taken.id in before else None

    return wait_until(take, what="a create that takes one")


@pytest.mark.parametrize("walls", MODES)
def test_a_create_takes_one_and_it_is_like_any_other(start_pool, walls):
    pool = start_pool(walls=walls)
    assert marks(pool) == []
    taken = take_ready(pool, env={"WHOSE": "mine"}, labels={"a": "b"}, idle_timeout_secs=0)
    shown = pool.client().get(f"/v1/sandboxes/{taken.id}").json()
    assert shown["labels"] == {"a": "b"} and shown["created_at_ms"] <= shown["last_activity_ms"]
    done = taken.client().exec("echo $WHOSE $SBX_SANDBOX_ID; cat /proc/self/status")
    assert done.stdout.startswith(f"mine {taken.id}\n")
    assert "\nNoNewPrivs:\t1\n" in done.stdout and "\nSeccomp:\t2\n" in done.stdout
    assert pool.client().get(f"/v1/sandboxes/{taken.id}").json()["walls"]


def test_what_nobody_took_is_gone_after_a_crash_and_after_a_stop(start_pool):
    pool = start_pool()
    kept = use(pool)
    use(pool)
    wait_until(lambda: len(marks(pool)) == 2, what="two that stand ready")
    left = marks(pool)
    pool.kill9()
    again = start_pool(after=pool)
    assert marks(again) == [] and len(again.listed()) == 2
    wait_until(lambda: not any((again.state / "trash").iterdir()), what="the end of what was left")
    for sandbox_id in left:
        assert again.sandbox_client(sandbox_id, kept.token).get("/v1/processes").status == 403
    assert again.sandbox_client(kept.id, kept.token).exec("echo works").stdout == "works\n"
    wait_until(lambda: marks(again), what="new ones")
    again.stop()
    assert again.keepers() == []


def test_the_token_of_one_that_stands_ready_does_not_exist(start_pool):
    pool = start_pool()
    use(pool)
    wait_until(lambda: marks(pool), what="one that stands ready")
    (ready,) = marks(pool)
    for token in (pool.token, "", "0" * 64):
        assert pool.sandbox_client(ready, token).post("/v1/exec", {"cmd": "id"}).status in (401, 403)
    assert pool.client().get(f"/v1/sandboxes/{ready}").status in (403, 404)
    (mark,) = (pool.state / "sandboxes" / ready).glob("ready.*")
    assert mark.read_bytes() == b"", "there is none to be read"
