"""Keys that a former life of the manager lent: which does it go on with, and can one of them keep it from starting?"""

import json
from types import SimpleNamespace
from typing import cast

from hansa.bootstrap import loans
from hansa.kernel.clock import SystemClock
from hansa.services import Room, Service
from hansa.services.ports import Record
from hansa.storage import Keys, LoanEnds, Loans, Reach, SureLoans

_RECORD = {"eventSource": "minio:s3", "s3": {"bucket": {"name": "b"}, "object": {"key": "in/x"}}}


class Lender:
    """Notes what is ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def new_name(self) -> str:
        raise AssertionError("nothing is lent anew")

    async def lend(self, name: str, reach: Reach) -> Keys:
        raise AssertionError("nothing is lent anew")

    async def end(self, name: str) -> None:
        self.ended.append(name)

    async def end_others(self, alive: frozenset[str]) -> int:
        return 0

    async def close(self) -> None: ...


class NoDebts:
    async def all(self) -> list[str]:
        return []


def a_room(event: bytes) -> Room:
    """As much of a manager as says what a job may touch."""
    record = Record(Service(name="gray", image="debian", script="true", owner="alice"), 1, "ready", False, (), 0, 0)

    async def job(name: str) -> SimpleNamespace:
        return SimpleNamespace(service="gray", event=event, owner="alice", ended=False)

    return cast(
        Room,
        SimpleNamespace(
            jobs=SimpleNamespace(get=job),
            records=SimpleNamespace(get=lambda name: record, secrets=lambda name: {}),
            receipts=SimpleNamespace(of=lambda *_: None),
            limits=SimpleNamespace(time_limit=60),
            disk=SimpleNamespace(of=lambda service: 0),
            peers=SimpleNamespace(endpoint_of=lambda cluster: ""),
            rules=lambda: SimpleNamespace(default_provider={}),
            buckets=SimpleNamespace(may_use=lambda *_: True, is_full=lambda _: False, owner_of=lambda _: "alice"),
            cluster_id="riga",
            volumes=None,
        ),
    )


async def test_a_job_that_names_an_input_its_service_had_keeps_no_manager_from_starting() -> None:
    """Its service was updated while the job was away."""
    store, inner = "minio.other", Lender()
    event = json.dumps({"storage_provider": store, "event": json.dumps({"Records": [_RECORD]})}).encode()
    lent = SureLoans(cast(Loans, inner), cast(LoanEnds, NoDebts()), SystemClock())
    await loans.take_over(a_room(event), lent, {"away job 1": "job"})
    assert inner.ended == ["away job 1"]
