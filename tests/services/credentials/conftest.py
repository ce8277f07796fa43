"""What the tests of credentials share: one identity provider with realms that rotate and one that does not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hansa.store import sqlite_url
from real import parts
from real.identity_provider import IdentityProvider, identity_provider

OFFLINE = "openid offline_access groups"
_REALMS = {
    "test": {},
    "parallel": {},
    "mesh": {},
    "fixed": {"rotate": False},
    "unseen": {},
    "revoking": {},
    "refused": {},
}


@pytest.fixture(scope="session")
def provider() -> Iterator[IdentityProvider]:
    parts.require("node")
    parts.require("npm")
    with identity_provider(realms=_REALMS) as running:
        yield running


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return sqlite_url(tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    return str(request.getfixturevalue("postgres_database").url)
