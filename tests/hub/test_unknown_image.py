"""A job whose image is not here and cannot be brought: it ends, and says once what to do."""

import pytest

from hub_jobs import ENDED, Jobs

pytestmark = pytest.mark.slow

NAME = "registry.invalid/nobody/nothing:1"


def test_what_to_do_is_said_once(hub):
    jobs = Jobs(hub)
    status = jobs.until(jobs.start(["true"], dockerImage=NAME), *ENDED)["status"]
    assert status["stage"] == "ERROR"
    message = status["message"]
    for words in (f"image '{NAME}' is not here", "cannot be reached", f"`cay image pull {NAME}`",
                  f"`cay image import {NAME} FOLDER`", f"`cay image alias {NAME} host`"):
        assert message.count(words) == 1, (words, message)
