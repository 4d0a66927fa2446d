"""Hubs for tests: one for the tests of a module that need nothing special, and a maker of others."""

import pytest

from host import hosts_of_a_test
from hub_host import Hub


@pytest.fixture(scope="module")
def hub():
    running = Hub()
    try:
        running.start()
        yield running
        running.stop()
    finally:
        running.destroy()


@pytest.fixture(scope="module")
def default_image(hub):
    """What clients ask for that name no image."""
    done = hub.cay("image", "alias", "python:3.12", "host")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def start_hub():
    """start_hub(flags=…, …): a hub of this test's own, stopped and checked at its end.
    start_hub(after=hub, …): another one with the state of one that has ended."""
    with hosts_of_a_test() as made:
        def start_one(*, after=None, **options):
            made.append(after.again(**options) if after else Hub(**options))
            return made[-1].start()

        yield start_one
