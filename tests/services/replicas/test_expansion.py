"""Does a member whose answer nobody thought of keep other operations and members from being looked after?"""

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from hansa.kernel.errors import Conflict
from hansa.services import Burden, Operation, Outline, Service, Touched
from hansa.services.burden import MOST_UNDOING, TooMuchToUndo
from hansa.services.complaints import Complaints
from hansa.services.peers import Address, Credentials
from hansa.services.replicas import expansion
from hansa.services.service import FEDERATION_WORKER, ORIGIN_CLUSTER, ORIGIN_SERVICE

NOW = 1000.0


@pytest.fixture
def said() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as found:
        yield found


class Plans:
    """Operations as a database keeps them."""

    def __init__(self, *given: Operation) -> None:
        self.kept = {one.id: one for one in given}

    async def open(self) -> list[Outline]:
        return [
            Outline(one.id, one.state, one.created, one.updated)
            for one in self.kept.values()
            if one.state in ("applying", "undoing")
        ]

    async def get(self, ident: str) -> Operation | None:
        return self.kept.get(ident)

    async def save(self, operation: Operation, *, expected: str) -> bool:
        self.kept[operation.id] = operation
        return True


class Cluster:
    """A cluster with a worker of `service`, unless it has `trouble`."""

    address = Address("visby", "https://visby.example.org", kind="oscar")

    def __init__(self, service: str, trouble: Exception | None = None) -> None:
        self.trouble = trouble
        self.removed: list[str] = []
        self._marks = {FEDERATION_WORKER: "true", ORIGIN_CLUSTER: "lubeck", ORIGIN_SERVICE: service}

    async def capabilities(self) -> frozenset[str]:
        return frozenset()

    async def read(self, _service: str, _credentials: Credentials, **_: object) -> dict[str, Any]:
        if self.trouble is not None:
            raise self.trouble
        return {"annotations": self._marks}

    async def remove(self, service: str, _credentials: Credentials) -> None:
        self.removed.append(service)


def removal(service: str, member: str) -> Operation:
    plan = (Touched(member, f"https://{member}.example.org", f"{service}-there", False),)
    return Operation(f"op-{service}", "remove", service, "alice", "undoing", plan, {}, NOW - 10, NOW - 10)


def room_of(plans: Plans, members: dict[str, Cluster]) -> Any:
    async def from_kept(*_: object) -> list[Credentials]:
        return [Credentials("Bearer t")]

    return SimpleNamespace(
        cluster_id="lubeck",
        clock=SimpleNamespace(now=lambda: NOW),
        complaints=Complaints(),
        limits=SimpleNamespace(oscar_members=True, restore_replicas=True),
        operations=plans,
        being_undone=set(),
        changing=lambda _: nullcontext(),
        records=SimpleNamespace(get=lambda _: None),
        peers=SimpleNamespace(find=lambda cluster, _: members[cluster]),
        keyring=SimpleNamespace(from_kept=from_kept),
    )


async def test_an_answer_nobody_thought_of_keeps_no_other_operation_from_being_finished(said: list[Any]) -> None:
    plans = Plans(removal("poison", "visby"), removal("gray", "riga"))
    members = {"visby": Cluster("poison", AttributeError("no get")), "riga": Cluster("gray")}
    room = room_of(plans, members)
    assert await expansion.recover(room, NOW + 1) == 1
    assert members["riga"].removed == ["gray-there"]
    assert (plans.kept["op-gray"].state, plans.kept["op-poison"].state) == ("undone", "undoing")
    assert "AttributeError" in plans.kept["op-poison"].plan[0].error
    assert plans.kept["op-poison"].updated == NOW  # so it is tried later and later
    assert await expansion.recover(room, NOW + 1) == 1
    assert [one["operation"] for one in said if one["log_level"] == "error"] == ["op-poison"]


async def test_an_operation_that_cannot_even_be_written_keeps_no_other_from_being_finished(said: list[Any]) -> None:
    class Broken(Plans):
        async def get(self, ident: str) -> Operation | None:
            if ident == "op-poison":
                raise RuntimeError("nobody thought of this")
            return await super().get(ident)

    plans = Broken(removal("poison", "visby"), removal("gray", "riga"))
    room = room_of(plans, {"visby": Cluster("poison"), "riga": Cluster("gray")})
    for _ in range(2):
        assert await expansion.recover(room, NOW + 1) == 1
    assert plans.kept["op-gray"].state == "undone"
    assert [one["operation"] for one in said if one["log_level"] == "error"] == ["op-poison"]


async def test_each_tells_of_every_member_that_failed_in_whatever_way() -> None:
    async def call(member: str) -> None:
        if member == "visby":
            raise OverflowError("nobody thought of this")
        if member == "riga":
            raise Conflict("it says no")

    failures = await expansion.each(["visby", "riga", "tallinn"], call, str)
    assert [(one.member, one.reason) for one in failures] == [
        ("visby", "its answer could not be dealt with: OverflowError"),
        ("riga", "it says no"),
    ]


async def test_nothing_is_begun_while_too_much_of_its_owner_is_taken_back() -> None:
    async def burden(owner: str) -> Burden:
        return Burden(MOST_UNDOING if owner == "alice" else 0, 0)

    room: Any = SimpleNamespace(clock=SimpleNamespace(now=lambda: NOW), operations=SimpleNamespace(burden=burden))
    record: Any = SimpleNamespace(service=Service(name="gray", image="debian", script="true", owner="alice"))
    with pytest.raises(TooMuchToUndo):
        await expansion.begin(room, record, "")
