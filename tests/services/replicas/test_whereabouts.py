"""Credentials of people go where the owner of a service meant its members to be, not wherever a hub says they are."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.services import Address, Credentials, Peer, Room, Service, Touched, UntrustedCluster
from hansa.services.replicas import MemberKeys, Moved, showing, whereabouts
from hansa.services.service import ClusterRef, Federation, Member

VISBY = Member(type="oscar", cluster_id="visby", service_name="gray")
MEANT, ELSEWHERE = "https://visby.example.org", "https://elsewhere.example.org"


def service(**more: Any) -> Service:
    federation = Federation(group_id="gray", topology="star", members=(VISBY,))
    return Service(name="gray", cluster_id="lubeck", token="a" * 64, federation=federation, **more)


def at(endpoint: str, *, by_hub: bool = True) -> Peer:
    return cast(Peer, SimpleNamespace(address=Address("visby", endpoint, by_hub=by_hub)))


def room(told: Peer | None = None, **endpoints: str) -> Room:
    async def of_alice(*_: object, **__: object) -> list[Credentials]:
        return [Credentials("Basic of alice")]

    def find(cluster: str, endpoint: str = "") -> Peer:
        if told is None or endpoint not in ("", told.address.endpoint):
            raise UntrustedCluster(f"this manager knows no cluster {cluster}")
        return told

    made = SimpleNamespace(
        keyring=SimpleNamespace(credentials=of_alice, from_kept=of_alice),
        limits=SimpleNamespace(restore_replicas=True),
        member_keys=MemberKeys(b"of lubeck"),
        peers=SimpleNamespace(find=find),
        records=SimpleNamespace(get=lambda _: SimpleNamespace(endpoints=endpoints)),
    )
    return cast(Room, made)


@pytest.mark.parametrize(
    "peer", [at(MEANT), at(MEANT, by_hub=False), at(ELSEWHERE, by_hub=False)], ids=["meant", "both", "operator"]
)
async def test_they_go_where_it_was_meant_to_be_or_where_the_operator_says_it_is(peer: Peer) -> None:
    here = room(visby=MEANT)
    assert await showing.of_people(here, service(), peer)
    assert len(await showing.for_the_replica(here, service(), VISBY, peer, "key")) == 2


async def test_where_only_the_hub_says_it_is_there_is_nothing_of_people() -> None:
    here, peer = room(visby=MEANT), at(ELSEWHERE)
    for asked in (
        showing.of_people(here, service(), peer),
        showing.for_the_replica(here, service(), VISBY, peer, "key"),
        showing.for_jobs(here, service(), VISBY, peer, "token"),
    ):
        with pytest.raises(Moved, match="only the hub says so") as refused:
            await asked
        assert "federation.clusters.visby" in refused.value.hint
    [token] = await showing.for_jobs(here, service(), VISBY, peer, "key")
    assert token.replica == "gray"


async def test_nor_to_take_a_replica_back_there() -> None:
    here = room(visby=MEANT)
    kept = showing.keys_to_keep(here, service(), [VISBY.key])
    touched = Touched("visby", ELSEWHERE, "gray", False, moved=whereabouts.moved(here, service(), at(ELSEWHERE)))
    [by_key] = await showing.for_undoing(here, kept, touched, at(ELSEWHERE), "key")
    assert by_key.replica == "gray"
    with pytest.raises(Moved):
        await showing.for_undoing(here, kept, touched, at(ELSEWHERE), "token")
    assert len(await showing.for_undoing(here, kept, touched, at(ELSEWHERE, by_hub=False), "key")) == 2


async def test_a_service_of_an_earlier_release_knows_nothing_of_it() -> None:
    assert await showing.of_people(room(), service(), at(ELSEWHERE))


def test_an_owner_who_writes_agrees_and_nobody_else_does() -> None:
    here, before = room(at(ELSEWHERE)), {"visby": MEANT, "riga": "https://gone"}
    assert whereabouts.noted(here, service(), before, by_owner=True) == {"visby": ELSEWHERE}
    assert whereabouts.noted(here, service(), before, by_owner=False) == {"visby": MEANT}
    assert whereabouts.noted(here, service(), {}, by_owner=False) == {"visby": ELSEWHERE}


def test_one_that_is_out_of_the_federation_for_a_while_is_not_forgotten() -> None:
    """Or a hub could take it out, and put it somewhere else after the next change."""
    assert whereabouts.noted(room(), service(), {"visby": MEANT}, by_owner=True) == {"visby": MEANT}
    named = service(clusters={"visby": ClusterRef(endpoint=MEANT)})
    assert whereabouts.noted(room(at(ELSEWHERE)), named, {}, by_owner=True) == {}
