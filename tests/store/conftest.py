"""Every store test runs twice: on SQLite in a file and on a real PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hansa.store import Database, make_engine, schema, sqlite_url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    return str(request.getfixturevalue("postgres_database").url)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    engine = make_engine(database_url)
    schema.upgrade(engine)
    opened = Database(engine)
    opened.start()
    try:
        yield opened
    finally:
        await opened.close()
