"""What is wrong with one member does not hide how the others are."""

from types import SimpleNamespace
from typing import Any, cast

from hansa.services import replicas
from hansa.services.ports import Record
from hansa.services.service import Federation, Member, Service


async def test_trouble_of_any_kind_with_one_member_is_told_of_that_one() -> None:
    async def credentials(_service: Service, cluster: str, **_: str) -> list[Any]:
        if cluster == "visby":
            raise RuntimeError("nobody thought of this")
        return []

    members = tuple(Member(type="oscar", cluster_id=name, service_name="s") for name in ("visby", "riga"))
    service = Service(
        name="s",
        image="debian",
        script="true",
        annotations={"oscar.grycap/federation-worker": "true"},
        federation=Federation(topology="mesh", members=members),
    )
    room = SimpleNamespace(
        records=SimpleNamespace(secrets=lambda _: {}),
        peers=SimpleNamespace(find=lambda *_: None),
        keyring=SimpleNamespace(credentials=credentials),
        sightings=SimpleNamespace(last=lambda *_: None),
    )
    found = await replicas.look(cast(Any, room), cast(Record, SimpleNamespace(service=service)))
    assert [(one.key, one.reachable) for one in found] == [("visby/s", False), ("riga/s", True)]
    assert "RuntimeError" in found[0].trouble
    assert "no credentials" in found[1].trouble
