"""A user's limits come from the defaults and from what an admin changed, and the admin has none."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hansa.identity import ADMIN_UID
from hansa.kernel.errors import Invalid
from hansa.kernel.quota import QuotaSettings
from hansa.resources import Gauges, QuotaChange, Quotas, Used
from hansa.store import Database, make_engine, schema, sqlite_url
from hansa.store.quotas import QuotaStore


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    opened = Database(engine)
    opened.start()
    try:
        yield opened
    finally:
        await opened.close()


async def test_a_change_stays_after_a_restart(database: Database) -> None:
    quotas = Quotas(QuotaStore(database), QuotaSettings())
    await quotas.change("alice", QuotaChange(cpu="4", buckets="9"))
    await quotas.change("alice", QuotaChange(memory="1Gi"))
    after = Quotas(QuotaStore(database), QuotaSettings(disk="9Gi"))
    await after.load()
    limits = after.limits("alice")
    assert (limits.cpu, limits.memory, limits.buckets) == (4000, 2**30, 9)
    assert limits.disk == 9 * 2**30  # what nobody changed follows the settings
    assert (after.share("alice").cpu, after.share("bob").memory) == (4000, 2 * 2**30)


async def test_the_admin_is_never_limited(database: Database) -> None:
    quotas = Quotas(QuotaStore(database), QuotaSettings())
    assert quotas.share(ADMIN_UID).cpu is None
    assert quotas.enforced("") is None
    free = Quotas(QuotaStore(database), QuotaSettings(enforce=False))
    assert free.share("alice").memory is None


async def test_a_report_asks_its_gauges(database: Database) -> None:
    async def jobs(uid: str) -> Used:
        return Used(300, 7) if uid == "alice" else Used()

    quotas = Quotas(QuotaStore(database), QuotaSettings(), Gauges(running=jobs))
    report = await quotas.report("alice")
    assert (report.running, report.volumes, report.limits.cpu) == (Used(300, 7), Used(), 2000)
    assert (await quotas.report("bob")).running == Used()


@pytest.mark.parametrize("uid", ["", "a\0b", "x" * 256, "a\nb"])
async def test_odd_users_are_refused(database: Database, uid: str) -> None:
    quotas = Quotas(QuotaStore(database), QuotaSettings())
    with pytest.raises(Invalid):
        await quotas.change(uid, QuotaChange(cpu="1"))
    with pytest.raises(Invalid):
        await quotas.report(uid)


async def test_other_defaults_reach_everybody_and_leave_what_was_set_for_one(database: Database) -> None:
    quotas = Quotas(QuotaStore(database), QuotaSettings())
    await quotas.change("alice", QuotaChange(cpu="4"))
    quotas.adopt(QuotaSettings(cpu="1", memory="8Gi"))
    assert (quotas.share("alice").cpu, quotas.share("alice").memory) == (4000, 8 * 2**30)
    assert (quotas.share("bob").cpu, quotas.share("bob").memory) == (1000, 8 * 2**30)
    quotas.adopt(QuotaSettings(enforce=False))
    assert quotas.enforced("bob") is None
    quotas.adopt(QuotaSettings())
    assert (quotas.share("alice").cpu, quotas.share("bob").cpu) == (4000, 2000)
