"""A member may change its mind about what it is between any two calls. Nothing of a person's goes there for that."""

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drivers.oscar.rogue import Rogue, rogue_server
from hansa.drivers.oscar import Limits, OscarPeers
from hansa.kernel.clock import SystemClock
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.services import Credentials, Record, Room, Service, replicas
from hansa.services.complaints import Complaints
from hansa.services.replicas import MemberKeys
from hansa.services.service import Federation, Member

REFRESH = "r3fresh-token-of-alice"
TODAY = ["delegation-permits", "mesh-tokens", "replica-keys"]
ABOUT, REPLICA = "/v1/about", "/v1/replicas/gray"
SECRETS = {"environment.secrets.refresh_token": REFRESH, "environment.secrets.PASSWORD": "of the script"}


class KeyHolders:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def known(self, cluster_id: str) -> bool:
        return cluster_id in self._known

    async def add(self, cluster_id: str) -> None:
        self._known.add(cluster_id)


def mesh() -> Record:
    federation = Federation(
        group_id="gray", topology="mesh", members=(Member(type="oscar", cluster_id="visby", service_name="gray"),)
    )
    service = Service(
        name="gray", cluster_id="lubeck", image="debian", script="true", token="a" * 64, federation=federation
    )
    return Record(service, 1, "ready", False, (), 0.0, 0.0)


def room_of(peers: OscarPeers, record: Record) -> Room:
    async def credentials(_service: Service, _cluster: str, **_: str) -> list[Credentials]:
        return [Credentials("Bearer eyJ.of.alice")]

    async def keep(*_: object) -> None: ...

    made: dict[str, Any] = {
        "own_endpoint": "https://lubeck.example.org",
        "home_mark": "",
        "clock": SystemClock(),
        "complaints": Complaints(),
        "changing": lambda _: nullcontext(),
        "limits": SimpleNamespace(oscar_members=False, oscar_refresh_tokens=False, restore_replicas=False),
        "records": SimpleNamespace(get=lambda _: record, secrets=lambda _: SECRETS),
        "key_holders": KeyHolders(),
        "member_keys": MemberKeys(b"of lubeck"),
        "keyring": SimpleNamespace(credentials=credentials),
        "sightings": SimpleNamespace(keep=keep),
        "peers": peers,
    }
    return cast(Room, SimpleNamespace(**made))


def says_of_itself(rogue: Rogue, *capabilities: str) -> None:
    rogue.say(ABOUT, {"product": "hansa", "version": "1", "capabilities": list(capabilities)})


def definition_of(record: Record) -> dict[str, Any]:
    """As a worker of ours that runs something else."""
    marks = {
        "oscar.grycap/federation-worker": "true",
        "oscar.grycap/origin-cluster": record.service.cluster_id,
        "oscar.grycap/origin-service": record.service.name,
        "hansa/definition": "another",
    }
    return {"name": "gray", "annotations": marks}


@pytest.mark.parametrize("then", [["delegation-permits"], ["replica-keys"], []], ids=str)
async def test_what_a_member_says_before_it_is_sent_a_definition_changes_nothing_of_it(then: list[str]) -> None:
    """What it said is old, so that it is asked again whenever somebody wants to know."""
    record = mesh()
    async with rogue_server() as rogue:
        known = FederationSettings(clusters={"visby": KnownCluster(endpoint=rogue.url)})
        peers = OscarPeers(known, limits=Limits(kind_fresh=0.0))
        room = room_of(peers, record)
        says_of_itself(rogue, *TODAY)
        rogue.say(REPLICA, definition_of(record))
        read = rogue.acts[REPLICA]

        async def turns(writer: Any) -> None:
            says_of_itself(rogue, *then)
            await read(writer)

        rogue.acts[REPLICA] = turns
        failures = await replicas.spread(room, record, "")
        await peers.close()
        written = [one for one in rogue.got if one.method == "PUT"]
        assert len(written) == 1, failures
        assert json.loads(written[0].body)["environment"]["secrets"]["PASSWORD"] == "of the script"
        assert all(REFRESH.encode() not in one.body for one in rogue.got)
        assert not any("eyJ" in one.headers.get("authorization", "") for one in rogue.got)


@pytest.mark.parametrize("says", [["delegation-permits"], ["replica-keys"], ["something-new"]], ids=str)
async def test_who_is_half_a_hansa_gets_nothing_from_the_first_word_on(says: list[str]) -> None:
    record = mesh()
    async with rogue_server() as rogue:
        peers = OscarPeers(FederationSettings(clusters={"visby": KnownCluster(endpoint=rogue.url)}))
        room = room_of(peers, record)
        room.limits = cast(Any, SimpleNamespace(oscar_members=True, oscar_refresh_tokens=True, restore_replicas=True))
        says_of_itself(rogue, *says)
        [failure] = await replicas.spread(room, record, "")
        await peers.close()
        assert "does not answer as one" in failure.reason
        assert [one.path for one in rogue.got] == [ABOUT]
