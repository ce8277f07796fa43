"""What is wrong with one member or service does not hide how the others are, nor keep them from being repaired."""

from types import SimpleNamespace
from typing import Any, cast

import structlog

from hansa.services import Address, PeerRefused, PeerUnreachable, replicas
from hansa.services.complaints import Complaints
from hansa.services.ports import Record
from hansa.services.service import Federation, Member, Service


async def test_trouble_of_any_kind_with_one_member_is_told_of_that_one() -> None:
    async def credentials(_service: Service, cluster: str, **_: str) -> list[Any]:
        if cluster == "visby":
            raise RuntimeError("nobody thought of this")
        return []

    async def status(*_: object) -> None:
        raise PeerRefused("it says no", status=404)

    async def capabilities() -> frozenset[str]:
        return frozenset()

    members = tuple(Member(type="oscar", cluster_id=name, service_name="s") for name in ("visby", "riga"))
    service = Service(
        name="s",
        image="debian",
        script="true",
        annotations={"oscar.grycap/federation-worker": "true"},
        federation=Federation(topology="mesh", members=members),
    )

    def oscar(cluster: str, _: str) -> Any:
        address = Address(cluster, f"https://{cluster}", kind="oscar")
        return SimpleNamespace(address=address, capabilities=capabilities, status=status)

    room = SimpleNamespace(
        records=SimpleNamespace(secrets=lambda _: {}),
        peers=SimpleNamespace(find=oscar),
        limits=SimpleNamespace(call_timeout=5.0, oscar_members=True),
        keyring=SimpleNamespace(credentials=credentials),
        sightings=SimpleNamespace(last=lambda *_: None),
    )
    found = await replicas.look(cast(Any, room), cast(Record, SimpleNamespace(service=service)))
    assert [(one.key, one.reachable) for one in found] == [("visby/s", False), ("riga/s", True)]
    assert "RuntimeError" in found[0].trouble
    assert "it says no" in found[1].trouble


async def test_a_service_that_cannot_be_looked_at_keeps_no_other_from_being_repaired() -> None:
    asked: list[str] = []

    def secrets(service: str) -> dict[str, str]:
        if service == "poison":
            raise RuntimeError("nobody thought of this")
        return {}

    def find(cluster: str, _: str) -> Any:
        asked.append(cluster)
        raise PeerUnreachable("it is away")

    async def forget_others(_: object) -> None: ...

    def record(name: str, cluster: str) -> Any:
        members = (Member(type="oscar", cluster_id=cluster, service_name=name),)
        service = Service(name=name, image="debian", script="true", token="ab" * 32, cluster_id="lubeck",
                          federation=Federation(topology="star", members=members))  # fmt: skip
        return cast(Record, SimpleNamespace(service=service, phase="ready"))

    room = SimpleNamespace(
        own_endpoint="https://lubeck.example.org",
        complaints=Complaints(),
        limits=SimpleNamespace(restore_replicas=False),
        member_keys=SimpleNamespace(mark=lambda _: "", key=lambda *_: "k", token=lambda *_: "t"),
        peers=SimpleNamespace(find=find),
        records=SimpleNamespace(all=lambda: [record("poison", "visby"), record("gray", "riga")], secrets=secrets),
        sightings=SimpleNamespace(forget_others=forget_others, last=lambda *_: None),
    )
    with structlog.testing.capture_logs() as said:
        for _ in range(2):
            asked.clear()
            await replicas.repair(cast(Any, room))
            assert "riga" in asked
    assert [one["service"] for one in said if one["log_level"] == "error"] == ["poison"]
