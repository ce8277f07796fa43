"""Do keys end although the store is away when they should, or the manager is started anew before it is back?"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.loans import allowed, client, reach, tried
from hansa.drivers.s3 import OpenStore, open_embedded
from hansa.kernel.clock import SystemClock
from hansa.kernel.errors import Forbidden, HansaError, Temporary
from hansa.storage import NOTHING, Keys, Loans, Reach, SureLoans
from hansa.store import Database, LoanEndStore, make_engine, schema, sqlite_url

pytest_plugins = ("real.object_store",)

NAME = "away gray-1 1"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[LoanEndStore]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    yield LoanEndStore(database)
    await database.close()


def sure(inner: Loans, memory: LoanEndStore) -> SureLoans:
    return SureLoans(inner, memory, SystemClock())


async def opens(store: OpenStore, keys: Keys, bucket: str) -> bool:
    s3 = client(store, keys)
    with contextlib.closing(s3):
        return bool(await asyncio.to_thread(lambda: tried(allowed(s3, bucket))))


async def awake(store: OpenStore, bucket: str) -> None:
    """A store that was started anew finds its objects some moments after it answers."""
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(HansaError):
                await asyncio.gather(*(store.store.get(bucket, key) for key in ("in/mine.txt", "data/a")))
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("how", ["its end was asked for", "the manager died"])
async def test_a_store_that_was_away_ends_them_in_a_later_life(tmp_path: Path, memory: LoanEndStore, how: str) -> None:
    store = await open_embedded(tmp_path / "objects")
    assert store.loans is not None
    await store.store.create_bucket("one")
    for key in ("in/mine.txt", "data/a"):
        await store.store.put("one", key, b"x")
    first = sure(store.loans, memory)
    keys = await first.lend(NAME, reach("one"))
    assert await opens(store, keys, "one")
    await store.close()
    if how == "its end was asked for":
        await first.end(NAME)  # nobody answers
        assert first.owed == {NAME}
    store = await open_embedded(tmp_path / "objects")
    assert store.loans is not None
    try:
        second = sure(store.loans, memory)
        await second.load()
        await awake(store, "one")
        assert await opens(store, keys, "one")
        if how == "the manager died":
            await second.end_others(frozenset())
        async with working(second), asyncio.timeout(30):  # a store that just started may refuse the first try
            while await opens(store, keys, "one") or second.owed:
                await asyncio.sleep(0.05)
        assert await memory.all() == []
        assert second.owed == frozenset()
    finally:
        await store.close()


class Moody:
    """Loans of a store that is away at times."""

    def __init__(self) -> None:
        self.alive: set[str] = set()
        self.trouble: dict[str, Exception] = {}  # by name; "" for all
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.lending: asyncio.Queue[str] = asyncio.Queue()
        self.answers = asyncio.Event()  # to who wants to borrow
        self.answers.set()

    def _meet(self, name: str) -> None:
        if (error := self.trouble.get("") or self.trouble.get(name)) is not None:
            self.asked.put_nowait(name)
            raise error

    def new_name(self) -> str:
        return "another"

    async def lend(self, name: str, _reach: Reach) -> Keys:
        self._meet(name)
        self.lending.put_nowait(name)
        await self.answers.wait()
        self.alive.add(name)
        return Keys(name, "secret")

    async def end(self, name: str) -> None:
        self._meet(name)
        self.alive.discard(name)
        self.asked.put_nowait(name)

    async def end_others(self, alive: frozenset[str]) -> int:
        self._meet("others")
        self.alive &= alive
        self.asked.put_nowait("others")
        return 1

    async def close(self) -> None:
        return


AWAY = Temporary("the store is away", retry_after=1)


@contextlib.asynccontextmanager
async def working(loans: SureLoans) -> AsyncIterator[None]:
    task = asyncio.create_task(loans.work())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_is_tried_until_it_succeeded(memory: LoanEndStore) -> None:
    moody = Moody()
    loans = SureLoans(moody, memory, SystemClock(), first_pause=0.01)
    async with working(loans), asyncio.timeout(20):
        await loans.lend("one", NOTHING)
        moody.trouble[""] = AWAY
        await loans.end("one")
        for _ in range(4):
            assert await moody.asked.get() == "one"
        assert await memory.all() == ["one"]
        moody.trouble.clear()
        while moody.alive:
            assert await moody.asked.get() == "one"
    await loans.settle()
    assert await memory.all() == []


async def test_one_that_is_refused_holds_up_no_other(memory: LoanEndStore) -> None:
    moody = Moody()
    loans = sure(moody, memory)
    for name in ("one", "two"):
        await loans.lend(name, NOTHING)
    moody.trouble[""] = AWAY
    for name in ("one", "two"):
        await loans.end(name)
    moody.trouble = {"one": Forbidden("not with these keys")}
    await loans.settle()
    assert moody.alive == loans.owed == {"one"}
    assert await memory.all() == ["one"]


async def test_what_is_lent_again_is_not_ended_by_an_old_debt(memory: LoanEndStore) -> None:
    moody = Moody()
    loans = sure(moody, memory)
    await loans.lend("one", NOTHING)
    moody.trouble[""] = AWAY
    await loans.end("one")
    moody.trouble.clear()
    await loans.lend("one", NOTHING)
    await loans.settle()
    assert moody.alive == {"one"}
    assert await memory.all() == []


async def test_what_a_former_life_lent_ends_when_the_store_is_back_and_nothing_else_does(memory: LoanEndStore) -> None:
    moody = Moody()
    moody.alive = {"former", "goes on"}
    loans = sure(moody, memory)
    moody.trouble[""] = AWAY
    assert await loans.end_others(frozenset({"goes on"})) == 0
    await loans.settle()
    assert moody.alive == {"former", "goes on"}
    moody.trouble.clear()
    await loans.lend("fresh", NOTHING)
    await loans.settle()
    assert moody.alive == {"goes on", "fresh"}
    moody.alive.add("not swept again")
    await loans.settle()
    assert "not swept again" in moody.alive


async def test_a_bucket_that_goes_is_shut_for_runs_of_this_life_and_of_former_ones(
    object_store: OpenStore, memory: LoanEndStore
) -> None:
    """Its name may be somebody else's next, while a run that began before still has its keys."""
    assert object_store.loans is not None
    loans = sure(object_store.loans, memory)
    for bucket in ("shut-one", "kept-one"):
        await object_store.store.create_bucket(bucket)
        for key in ("in/mine.txt", "data/a"):
            await object_store.store.put(bucket, key, b"x")
    try:
        former = await object_store.loans.lend("former", reach("shut-one"))
        loans.take_over("former", reach("shut-one"))
        shut, kept = await loans.lend("shut", reach("shut-one")), await loans.lend("kept", reach("kept-one"))
        assert await opens(object_store, former, "shut-one")
        assert await opens(object_store, shut, "shut-one")
        await loans.shut("shut-one")
        assert not await opens(object_store, former, "shut-one")
        assert not await opens(object_store, shut, "shut-one")
        assert await opens(object_store, kept, "kept-one")
        await loans.end("kept")
    finally:
        for bucket in ("shut-one", "kept-one"):
            await object_store.store.delete_bucket(bucket)


class Rights:
    """Of the people behind a run; they may be lost."""

    def __init__(self) -> None:
        self.lost = False

    def require_rights(self) -> None:
        if self.lost:
            raise Forbidden("not any more")

    def reach(self, bucket: str) -> Reach:
        return replace(reach(bucket), require_rights=self.require_rights)


async def test_nothing_is_lent_for_a_right_that_is_lost_before_the_keys_are_there(memory: LoanEndStore) -> None:
    """Whoever takes the right away looks for keys to end, and may look before there are any."""
    moody, rights = Moody(), Rights()
    loans = sure(moody, memory)
    moody.answers.clear()
    lending = asyncio.create_task(loans.lend("one", rights.reach("bucket")))
    async with asyncio.timeout(20):
        await moody.lending.get()
        rights.lost = True
        moody.answers.set()
        with pytest.raises(Forbidden):
            await lending
    assert moody.alive == set()


async def test_a_bucket_that_is_shared_with_fewer_is_shut_for_their_runs_only(
    object_store: OpenStore, memory: LoanEndStore
) -> None:
    assert object_store.loans is not None
    loans = sure(object_store.loans, memory)
    for bucket in ("unshared", "another"):
        await object_store.store.create_bucket(bucket)
        for key in ("in/mine.txt", "data/a"):
            await object_store.store.put(bucket, key, b"x")
    theirs, hers = Rights(), Rights()
    try:
        former = await object_store.loans.lend("former", reach("unshared"))
        loans.take_over("former", theirs.reach("unshared"))
        out = await loans.lend("out", theirs.reach("unshared"))
        elsewhere = await loans.lend("elsewhere", theirs.reach("another"))
        stays = await loans.lend("stays", hers.reach("unshared"))
        theirs.lost = True
        await loans.shut_out("unshared")
        assert not await opens(object_store, former, "unshared")
        assert not await opens(object_store, out, "unshared")
        assert await opens(object_store, elsewhere, "another")
        assert await opens(object_store, stays, "unshared")
    finally:
        for name in ("former", "out", "elsewhere", "stays"):
            await loans.end(name)
        for bucket in ("unshared", "another"):
            await object_store.store.delete_bucket(bucket)


async def test_who_gives_up_waiting_for_an_end_leaves_a_debt(memory: LoanEndStore) -> None:
    """The same name is just being lent: its end waits until that is done, and whoever asked for it may be gone then."""
    moody = Moody()
    loans = sure(moody, memory)
    moody.answers.clear()
    lending = asyncio.create_task(loans.lend("one", NOTHING))
    async with asyncio.timeout(20):
        await moody.lending.get()
        ending = asyncio.create_task(loans.end("one"))
        await asyncio.sleep(0)  # it runs until it waits
        ending.cancel()
        await asyncio.wait({ending})
        moody.answers.set()
        await lending
    assert loans.owed == {"one"}
    await loans.settle()
    assert (moody.alive, loans.owed) == (set(), frozenset())
