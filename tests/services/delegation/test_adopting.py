"""What does a coordinator keep of jobs that are none of its own, and how much may they hold up?"""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hansa.kernel.errors import Conflict
from hansa.services import AwayJob, Service, duty, events, orders
from hansa.services.delegation import NOBODY, Delegation, lending
from hansa.services.delegation.ledger import READS, SERVICE, adopted_name

NAME = adopted_name("gray", "visby", "gray-v", "one")
RECORD = SimpleNamespace(service=Service(name="gray", owner="alice"))


def adopted(job: str = NAME, **noted: Any) -> Delegation:
    said = {SERVICE: "gray", **noted}
    return Delegation(job, 1, "away", "visby", "gray-v", "https://visby", "ab" * 32, NOBODY, said, 0.0, named="one")


def coordinator(*known: Delegation, draining: bool = False) -> Any:
    async def answer(value: object) -> Any:
        return value

    return SimpleNamespace(
        cluster_id="lubeck",
        jobs=SimpleNamespace(get=lambda _: answer(None)),
        delegations=SimpleNamespace(
            get=lambda name: answer(next((one for one in known if one.job == name), None)),
            active=lambda: answer(known),
        ),
        records=SimpleNamespace(get=lambda name: RECORD if name == "gray" else None),
        dispatcher=SimpleNamespace(running=2, waiting=3),
        duty=SimpleNamespace(cordoned=True, draining=draining),
    )


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []

    def make(_room: Any, _record: Any, _name: str, event: bytes, *, submitter: str) -> Any:
        made.append((submitter, events.interpret(event)))
        return SimpleNamespace(reach=AwayJob("Running"))

    monkeypatch.setattr(orders, "make", make)
    return made


@pytest.mark.parametrize("provider", ["default", "elsewhere"])
async def test_after_a_restart_it_is_known_what_keys_of_such_a_job_open(ordered: list[Any], provider: str) -> None:
    """So that they end with a bucket, or with the right to it."""
    event = events.minio_event("hers", "in/a b", size=1, etag="", at=1.0).decode()
    body = json.dumps({"storage_provider": provider, "event": event}).encode()
    noted = json.loads(json.dumps(lending.reads("bob", body)))
    await lending.reach_now(coordinator(adopted(**{READS: noted})), NAME)
    submitter, given = ordered[-1]
    assert (submitter, given.provider, given.bucket, given.key) == ("bob", provider, "hers", "in/a b")


@pytest.mark.parametrize(("noted", "submitter"), [({}, "alice"), ({READS: ["bob"]}, "bob")])
async def test_of_one_without_an_object_its_service_says_it(
    ordered: list[Any], noted: dict[str, Any], submitter: str
) -> None:
    await lending.reach_now(coordinator(adopted(**noted)), NAME)
    assert ordered == [(submitter, events.BytesInput(b""))]


def test_no_more_of_an_event_is_kept_than_an_object_can_be_called() -> None:
    for bucket, key in (("b" * 70, "x"), ("hers", "x" * 5000)):
        assert lending.reads("bob", events.minio_event(bucket, key, size=1, etag="", at=1.0)) == ["bob"]
    assert lending.reads("bob", b"x" * 5000) == ["bob"]


async def test_a_cluster_that_drains_does_not_wait_for_jobs_of_its_members() -> None:
    found = await duty.workload(coordinator(adopted(), adopted("ours")))
    assert (found.running, found.waiting) == (3, 3)


def test_and_takes_no_more_of_them_then() -> None:
    duty.require_staying(coordinator())
    with pytest.raises(Conflict):
        duty.require_staying(coordinator(draining=True))
