"""Keys that leave this machine, for a pod or another cluster: are they lent only for a right that holds?"""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.job_host import uploaded
from contracts.orders import order
from hansa.bootstrap import loans
from hansa.bootstrap.federating import AwayKeys
from hansa.drivers.s3 import OpenStore
from hansa.kernel.clock import SystemClock
from hansa.kernel.errors import Forbidden
from hansa.services import reach_of
from hansa.storage import Keys
from hansa.store import Database, make_engine, schema, sqlite_url

pytest_plugins = ("real.object_store",)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    opened = Database(engine)
    opened.start()
    yield opened
    await opened.close()


async def test_keys_for_pods_and_other_clusters_need_a_right_that_still_holds(
    database: Database, object_store: OpenStore
) -> None:
    """A pod may be waited for, and a member be asked late: what was decided for the order may be over."""
    bucket = "lent-away"
    await object_store.store.create_bucket(bucket)
    await object_store.store.put(bucket, "in/x", b"x")
    store = loans.surely_ended(object_store, database, SystemClock())
    away, may_use = AwayKeys(store), True
    job = order("true", event=uploaded(bucket, "in/x"))
    job = replace(job, reach=reach_of(job, "anybody", lambda user, bucket: may_use))
    lent = await away.lend(job.name, job)
    theirs = object_store.as_user(Keys(lent["access_key"], lent["secret_key"]))
    try:
        assert await theirs.get(bucket, "in/x") == b"x"
        may_use = False
        with pytest.raises(Forbidden, match=f"may not read bucket {bucket}"):
            await away.lend(job.name, job)
        with pytest.raises(Forbidden):
            await theirs.get(bucket, "in/x")
    finally:
        await theirs.close()
        await away.end(job.name)
        await object_store.store.delete_bucket(bucket)
