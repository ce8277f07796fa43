"""One writer, group commit, clear words when the database is away."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from hansa.store import Database, DatabaseDown, make_engine, schema, sqlite_url
from hansa.store.tables import facts


def put(name: str) -> sa.Insert:
    return facts.insert().values(name=name, value="1")


async def test_one_bad_write_does_not_spoil_its_neighbours(database: Database) -> None:
    names = [f"n{n}" for n in range(50)] + ["n7"]
    done = await asyncio.gather(
        *(database.write(lambda c, name=name: c.execute(put(name)) and None) for name in names),  # type: ignore[misc]
        return_exceptions=True,
    )
    assert [type(one) for one in done if one is not None] == [sa.exc.IntegrityError]
    count = await database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(facts)).scalar_one())
    assert count == 50


async def test_a_failed_write_leaves_nothing(database: Database) -> None:
    def write(connection: sa.Connection) -> None:
        connection.execute(put("half"))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await database.write(write)
    assert await database.read(lambda c: c.execute(sa.select(facts)).all()) == []


async def test_an_absent_server_is_said_clearly(tmp_path: Path) -> None:
    database = Database(make_engine(f"postgresql://nobody@/none?host={tmp_path}"))
    database.start()
    try:
        with pytest.raises(DatabaseDown) as caught:
            await database.read(lambda c: c.execute(sa.text("select 1")))
        assert caught.value.hint
        with pytest.raises(DatabaseDown):
            await database.write(lambda c: c.execute(sa.text("select 1")))
    finally:
        await database.close()


async def test_after_close_writes_are_refused(tmp_path: Path) -> None:
    database = Database(make_engine(sqlite_url(tmp_path)))
    database.start()
    await database.close()
    with pytest.raises(DatabaseDown):
        await database.write(lambda c: None)


async def test_a_database_that_hangs_is_said_in_time(database_url: str) -> None:
    engine = make_engine(database_url)
    schema.upgrade(engine)
    database = Database(engine, patience=0.2)
    database.start()
    try:
        hanging = asyncio.create_task(database.write(lambda c: time.sleep(0.8)))
        await asyncio.sleep(0.05)  # the writer is busy from here on
        with pytest.raises(DatabaseDown, match="gave no answer within"):
            await database.write(lambda c: c.execute(put("late")) and None)
        with pytest.raises(DatabaseDown):
            await database.read(lambda c: time.sleep(0.8))
        with pytest.raises(DatabaseDown):
            await hanging
        await asyncio.sleep(0.8)
        # what was not begun when its caller gave up is not done behind the caller's back
        assert await database.read(lambda c: c.execute(sa.select(facts)).all()) == []
    finally:
        await database.close()


async def test_questions_that_take_long_take_no_reader_from_others(database: Database) -> None:
    goes_on = threading.Event()
    long = [asyncio.ensure_future(database.read_long(lambda c: goes_on.wait(5))) for _ in range(16)]
    try:
        await asyncio.sleep(0)
        assert await database.read(lambda c: c.execute(sa.text("select 1")).scalar()) == 1
        assert not [one for one in long if one.done()]
    finally:
        goes_on.set()
    assert all(await asyncio.gather(*long))


async def test_a_question_that_nobody_waits_for_any_more_is_ended(database_url: str) -> None:
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n where x > 0) select count(*) from n"
    database = Database(make_engine(database_url), patience=0.5)
    try:
        asked = [database.read_long(lambda c: c.execute(sa.text(endless)).scalar()) for _ in range(2)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in answers] == [DatabaseDown] * 2
    finally:
        await asyncio.wait_for(database.close(), 20)  # which waits for what still runs
