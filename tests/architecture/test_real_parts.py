"""Do the real parts keep their promises: a fresh database each time, no quiet skip where none is allowed?"""

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from architecture import tree
from real.postgres import Database, Server


def test_each_database_is_fresh_and_leaves_with_its_test(postgres_server: Server) -> None:
    with postgres_server.database() as first, postgres_server.database() as second:
        with psycopg.connect(first.conninfo) as link:
            link.execute("create table harbour (name text)")
        with psycopg.connect(second.conninfo) as link:
            row = link.execute("select count(*) from pg_tables where tablename = 'harbour'").fetchone()
        assert row == (0,)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(first.conninfo)


async def test_the_url_opens_an_async_engine(postgres_database: Database) -> None:
    engine = create_async_engine(postgres_database.url)
    try:
        async with asyncio.timeout(20), engine.connect() as link:
            assert (await link.execute(text("select current_database()"))).scalar() == postgres_database.name
    finally:
        await engine.dispose()


@pytest.mark.parametrize(
    ("environment", "outcome"),
    [
        ({}, "1 skipped"),
        ({"CI": "true"}, "1 failed"),
        ({"HANSA_TEST_STRICT": "1"}, "1 failed"),
        ({"HANSA_TEST_STRICT": "0"}, "1 skipped"),
    ],
)
def test_a_missing_part_is_named_and_never_passes(tmp_path: Path, environment: dict[str, str], outcome: str) -> None:
    (tmp_path / "conftest.py").write_text((tree.ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_lack.py").write_text(
        textwrap.dedent(
            """
            from real import parts

            def test_lack():
                parts.give_up("sextant", "none on board")
            """
        )
    )
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tree.ROOT / "tests"), "PATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert outcome in told.stdout
    assert "parts missing on this machine" in told.stdout
    assert "sextant: none on board (1 tests)" in told.stdout
