"""The doors of `keeping.py`, open for one test."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from entrypoints.http.oscar.keeping import Keeping, application, furnished
from hansa.drivers.s3 import OpenStore


@pytest.fixture
async def keeping(tmp_path: Path, object_store: OpenStore) -> AsyncIterator[Keeping]:
    async with furnished(tmp_path, object_store) as made:
        yield made


@pytest.fixture
async def client(keeping: Keeping) -> AsyncIterator[httpx.AsyncClient]:
    """Without a user's header it is the admin."""
    transport = httpx.ASGITransport(application(keeping))
    async with httpx.AsyncClient(transport=transport, base_url="http://manager") as made:
        yield made
