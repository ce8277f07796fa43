"""A real hub for the commands that ask one; make things with fresh names, it is shared."""

from collections.abc import Iterator

import pytest

from entrypoints.cli.small_server import Hansa
from real.hub import ADMIN, Hub, a_hub


@pytest.fixture(scope="session")
def real_hub() -> Iterator[Hub]:
    with a_hub() as started:
        yield started


@pytest.fixture
def at_hub(real_hub: Hub, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> Hansa:
    monkeypatch.setenv("HANSA_HUB", real_hub.url)
    monkeypatch.setenv("HANSA_HUB_USER", ADMIN)
    monkeypatch.setenv("HANSA_HUB_PASSWORD", real_hub.password)
    return hansa
