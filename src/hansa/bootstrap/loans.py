"""Keys that the store lends to runs: how they end for certain, and what a manager that starts takes over."""

from collections.abc import Mapping
from dataclasses import replace

import structlog

from hansa import services, storage
from hansa.drivers import s3
from hansa.kernel import errors
from hansa.kernel.clock import Clock
from hansa.services import Room
from hansa.store import Database, LoanEndStore

_log = structlog.get_logger("hansa")


def surely_ended(store: s3.OpenStore, database: Database, clock: Clock) -> s3.OpenStore:
    """The store, whose loans end for certain, also if it is away when they should."""
    if store.loans is None:
        return store
    return replace(store, loans=storage.SureLoans(store.loans, LoanEndStore(database), clock))


def of(store: s3.OpenStore) -> storage.SureLoans | None:
    """None if this store lends no keys."""
    return store.loans if isinstance(store.loans, storage.SureLoans) else None


async def take_over(room: Room, loans: storage.SureLoans, alive: Mapping[str, str]) -> None:
    """Keys that a former life lent, for jobs that go on: job by name of the loan. All others end."""
    await loans.load()
    await loans.end_others(frozenset(alive))
    for name, job in alive.items():
        try:
            reach = await services.lending.reach_now(room, job)
        except errors.Temporary:
            raise
        except errors.HansaError as error:  # whatever is wrong with one job, the manager starts
            _log.warning("keys of a job that is away end: it may not use its data now", job=job, error=error.message)
            await loans.end(name)
        else:
            loans.take_over(name, reach)
