"""A job is submitted to a replica twice at once, as by a client that tries again: do replica and coordinator agree on
its permit? And who gets to know a permit by a job's name?
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from hansa.identity import Caller, Vault
from hansa.kernel.errors import Conflict
from hansa.services import Address, Backlog, Job, Limits, Service, secret_parts, submission
from hansa.services.delegation import adopting, receiving
from hansa.services.peers import Adoption
from hansa.services.service import FEDERATION_WORKER, ORIGIN_CLUSTER, ORIGIN_SERVICE
from hansa.store import Database, DelegationStore, JobStore, ReceiptStore, make_engine, schema, sqlite_url

STORE = {"endpoint": "https://store", "access_key": "a", "secret_key": "b"}
LIMITS = Limits(time_limit=100, run_limit=1, attempts=1, queue_limit=100, keep=1, page_size=1)
MEMBER = {"type": "oscar", "cluster_id": "visby", "service_name": "gray"}


def replica(name: str, home: str = "lubeck") -> Service:
    said = {
        "name": name,
        "owner": "alice",
        "cluster_id": "visby",
        "output": [{"storage_provider": "minio.default", "path": "gray/out"}],
        "federation": {"topology": "mesh", "members": [MEMBER]},
        "annotations": {FEDERATION_WORKER: "true", ORIGIN_CLUSTER: home, ORIGIN_SERVICE: name},
    }
    return msgspec.convert(said, Service)


class Coordinator:
    """Notes the first permit of a job, and answers when it is told to."""

    def __init__(self, cluster_id: str) -> None:
        self.address = Address(cluster_id, f"https://{cluster_id}")
        self.noted: dict[str, str] = {}
        self.asked: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def adopt(self, wanted: Adoption, _key: str, _event: bytes) -> dict[str, str]:
        answer = asyncio.Event()
        known = self.noted.setdefault(wanted.job, wanted.permit)
        self.asked.put_nowait(answer)
        await answer.wait()
        if wanted.permit != known:
            raise Conflict(f"there is another job {wanted.job} at that member")
        return STORE


class Replicas:
    """Of services whose data is elsewhere, with real records."""

    def __init__(self, database: Database, *services: Service) -> None:
        self.coordinators = {home: Coordinator(home) for home in ("lubeck", "riga", "visby")}
        there = {one.name: SimpleNamespace(service=one, phase="ready") for one in services}
        self.room: Any = SimpleNamespace(
            cluster_id="visby",
            own_endpoint="https://visby",
            clock=SimpleNamespace(now=lambda: 1000.0),
            limits=LIMITS,
            records=SimpleNamespace(
                get=there.get, secrets=lambda _: {secret_parts.path_of(secret_parts.REPLICA_KEY): "key"}
            ),
            receipts=ReceiptStore(database, Vault([Vault.new_key()])),
            jobs=JobStore(database),
            delegations=DelegationStore(database, Vault([Vault.new_key()])),
            backlog=Backlog(),
            borrowed={},
            webhook=None,
            peers=SimpleNamespace(
                find=lambda cluster, _: self.coordinators[cluster], endpoint_of=lambda cluster: f"https://{cluster}"
            ),
            check_store=self._fine,
            dispatcher=SimpleNamespace(waiting=0, offer=lambda _: None, surely=nullcontext),
        )

    async def _fine(self, *_: Any) -> None: ...

    def submit(self, service: str = "gray") -> "asyncio.Task[Job]":
        caller = Caller(kind="user", uid="alice", name="alice")
        return asyncio.create_task(submission.submit(self.room, caller, service, b"hello", job_name="one"))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    yield database
    await database.close()


@pytest.mark.parametrize("first", [0, 1])
async def test_whichever_is_answered_first_its_coordinator_can_ask_about_the_job(
    database: Database, first: int
) -> None:
    visby = Replicas(database, replica("gray"))
    lubeck = visby.coordinators["lubeck"]
    async with asyncio.timeout(10):
        tries = [visby.submit()]
        answers = [await lubeck.asked.get()]
        tries.append(visby.submit())
        answers.append(await lubeck.asked.get())
        for number in (first, 1 - first):
            answers[number].set()
            assert (await tries[number]).name == "one"
            assert await receiving.state(visby.room, "one", lubeck.noted["one"])
    assert visby.room.borrowed == {}
    assert visby.room.receipts.get("one").permit == lubeck.noted["one"]
    assert (await receiving.state(visby.room, "one", lubeck.noted["one"])).status == "Pending"


@pytest.mark.parametrize("when", ["while it is submitted", "when it is there"])
async def test_the_permit_of_a_job_is_told_to_no_coordinator_of_another_service(database: Database, when: str) -> None:
    """Whoever has it may read the job's log, and end it. Names of jobs are no secret."""
    visby = Replicas(database, replica("gray"), replica("theirs", "riga"))
    lubeck, riga = visby.coordinators["lubeck"], visby.coordinators["riga"]
    async with asyncio.timeout(10):
        ours = visby.submit()
        answer = await lubeck.asked.get()
        if when == "when it is there":
            answer.set()
            await ours
        theirs = visby.submit("theirs")
        refusal = await riga.asked.get()
        answer.set()
        await ours
        refusal.set()
        with pytest.raises(receiving.NotTheSameJob):
            await theirs
    assert riga.noted["one"] != lubeck.noted["one"]
    assert visby.room.receipts.get("one").permit == lubeck.noted["one"]


async def test_an_origin_that_shows_nothing_is_told_nothing(database: Database) -> None:
    visby = Replicas(database, replica("gray"))
    with adopting.under_way(visby.room, replica("gray"), "one"), pytest.raises(receiving.NoSuchDelegation):
        await receiving.state(visby.room, "one", "")


async def test_the_coordinator_takes_note_once_of_what_it_is_told_twice_at_once(database: Database) -> None:
    lubeck = Replicas(database, replica("gray")).room
    record = SimpleNamespace(service=replica("gray"))
    [member] = cast(Any, record.service.federation).members
    first, second = await asyncio.gather(
        *(adopting._note(lubeck, cast(Any, record), member, "one", "ab" * 32, {}) for _ in range(2))
    )
    assert first.permit == second.permit == "ab" * 32
    assert [one.named for one in await lubeck.delegations.active()] == ["one"]
