"""The same stories at a manager that an ordinary user runs: its files are that user's, and so are all jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from journeys.attacks.whose_manager import as_user
from journeys.conftest import Person, signing_in
from journeys.test_isolation import *  # noqa: F403 - its tests, and what they ask for
from real import parts
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting


@pytest.fixture(scope="session")
def manager(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    parts.require("bubblewrap")
    settings = {**trusting(sign_in_provider), "jobs.page_size": 3, "log.level": "debug"}
    with running_manager(settings, user=as_user("not root")) as running:
        yield running


@pytest.fixture(scope="session")
def person(manager: Manager, sign_in_provider: IdentityProvider) -> Person:
    """At this manager: those of the session are signed in at another one."""
    return signing_in(manager, sign_in_provider)


def test_nothing_of_it_is_roots(manager: Manager) -> None:
    for process in (manager.pid, *children(manager.pid)):
        assert Path(f"/proc/{process}").stat().st_uid == manager.data.stat().st_uid != 0


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
