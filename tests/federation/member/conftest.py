"""A manager and its hub for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from federation.member.scene import Scene, opened_scene


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with opened_scene(tmp_path) as opened:
        yield opened
