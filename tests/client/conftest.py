"""A small real HTTP server that says what a hub could say."""

from collections.abc import Iterator

import pytest

from entrypoints.cli.small_server import SmallServer


@pytest.fixture
def server() -> Iterator[SmallServer]:
    with SmallServer() as small:
        yield small
