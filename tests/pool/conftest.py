"""One pool host for the tests of a module that need nothing special."""

import pytest

from pool_host import PoolHost


@pytest.fixture(scope="module")
def pool():
    running = PoolHost().start()
    try:
        yield running
        running.stop()
    finally:
        running.destroy()


@pytest.fixture
def sandbox(pool):
    made = pool.create()
    yield made
    made.delete()
