"""Is a member shown what it needs, and nothing by its own word that it could use for anything else?"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from hansa.entrypoints.http.v1 import delegations
from hansa.services import Credentials, Peer, PeerUnreachable, Room, Service
from hansa.services.peers import Address
from hansa.services.replicas import MemberKeys, NotItself, creating, showing
from hansa.services.replicas.showing import OnlyByCoordinator
from hansa.services.service import Federation, Member

OWNERS = "Bearer of alice"
VISBY, RIGA = (Member(type="oscar", cluster_id=name, service_name="gray") for name in ("visby", "riga"))


def origin(*members: Member) -> Service:
    federation = Federation(group_id="gray", topology="mesh", members=members)
    return Service(name="gray", cluster_id="lubeck", token="a" * 64, federation=federation)


@dataclass
class Answering:
    """A member that says this of itself; None does not answer."""

    kind_set: str = ""
    says: frozenset[str] | None = frozenset()

    @property
    def address(self) -> Address:
        return Address("visby", "https://visby", kind=self.kind_set)

    async def capabilities(self) -> frozenset[str]:
        if self.says is None:
            raise PeerUnreachable("visby does not answer")
        return self.says

    def doubt(self) -> None:
        pass


@dataclass
class KeyHolders:
    known_ones: set[str] = field(default_factory=set)

    def known(self, cluster_id: str) -> bool:
        return cluster_id in self.known_ones

    async def add(self, cluster_id: str) -> None:
        self.known_ones.add(cluster_id)


def room(peer: Answering, *, restore: bool = True, people: bool = True) -> Room:
    async def credentials(service: Service, cluster_id: str, *, caller: str = "") -> list[Credentials]:
        return [Credentials(OWNERS)] if people else []

    made: dict[str, Any] = {
        "limits": SimpleNamespace(oscar_members=True, restore_replicas=restore),
        "key_holders": KeyHolders(),
        "member_keys": MemberKeys(b"of lubeck"),
        "keyring": SimpleNamespace(credentials=credentials),
        "peers": SimpleNamespace(find=lambda cluster_id, endpoint="": peer),
    }
    return cast(Room, SimpleNamespace(**made))


def as_peer(one: Answering) -> Peer:
    return cast(Peer, one)


HALVES = (["delegation-permits", "mesh-tokens"], ["replica-keys", "mesh-tokens"], ["something-new"])


@pytest.mark.parametrize("says", [*HALVES, []], ids=str)
async def test_one_that_is_known_as_a_hansa_has_to_be_a_whole_one_from_the_first_word_on(says: list[str]) -> None:
    poser = Answering(kind_set="hansa", says=frozenset(says))
    with pytest.raises(NotItself):
        await showing.way(room(poser), as_peer(poser))


@pytest.mark.parametrize("says", HALVES, ids=str)
async def test_so_has_one_that_names_anything_of_a_hansa(says: list[str]) -> None:
    poser = Answering(says=frozenset(says))
    with pytest.raises(NotItself):
        await showing.way(room(poser), as_peer(poser))
    named = Answering(kind_set="oscar", says=frozenset(says))  # the operator knows better
    assert await showing.way(room(named), as_peer(named)) == "token"


async def test_one_that_took_keys_once_is_never_an_oscar_again() -> None:
    visby = Answering(says=showing.NEEDED)
    here = room(visby)
    assert await showing.way(here, as_peer(visby)) == "key"
    visby.says = frozenset()
    with pytest.raises(NotItself):
        await showing.way(here, as_peer(visby))


def test_we_name_all_that_we_need_of_others() -> None:
    assert set(delegations.CAPABILITIES) >= showing.NEEDED


async def test_who_does_not_answer_is_not_taken_for_one_without_keys() -> None:
    """Or all the others would be given what a member without keys needs."""
    silent = await showing.judged(room(Answering(says=None)), origin(VISBY))
    assert (silent.keyless, list(silent.troubles)) == (frozenset(), [VISBY.key])
    assert (await showing.judged(room(Answering()), origin(VISBY))).keyless == {VISBY.key}


@pytest.mark.parametrize("restore", [True, False])
async def test_only_where_replicas_are_restored_a_refused_key_is_followed_by_a_token(restore: bool) -> None:
    visby = Answering()
    shown = await showing.for_the_replica(room(visby, restore=restore), origin(VISBY), VISBY, as_peer(visby), "key")
    assert [one.authorization.split()[0] for one in shown] == ["ReplicaKey", *(["Bearer"] if restore else [])]


async def test_a_hansa_is_given_jobs_with_no_token_of_a_person_also_by_a_replica_that_has_none_for_it() -> None:
    visby = as_peer(Answering())
    here = room(Answering())
    cast(Any, here).records = SimpleNamespace(secrets=lambda _: {})
    worker = msgspec.structs.replace(origin(VISBY), annotations={"oscar.grycap/federation-worker": "true"})
    for service in (origin(VISBY), worker):
        [shown] = await showing.for_jobs(here, service, VISBY, visby, "key")
        assert (shown.replica, shown.authorization == OWNERS) == ("gray", False)
    assert (await showing.for_jobs(here, worker, VISBY, visby, "token"))[0].authorization == OWNERS


async def test_a_replica_without_a_token_of_its_owner_leaves_to_its_coordinator_who_has_to_be_shown_one() -> None:
    here = room(Answering(), people=False)
    tokens = {"environment.secrets.hansa.member-tokens": f'{{"{VISBY.key}": "of this pair"}}'}
    cast(Any, here).records = SimpleNamespace(secrets=lambda _: tokens)
    worker = msgspec.structs.replace(origin(VISBY), annotations={"oscar.grycap/federation-worker": "true"})
    with pytest.raises(OnlyByCoordinator, match="only the coordinator hands jobs to visby"):
        await showing.for_jobs(here, worker, VISBY, as_peer(Answering()), "token")
    [shown] = await showing.for_jobs(here, worker, VISBY, as_peer(Answering()), "key")
    assert shown.authorization == "Bearer of this pair"


def test_a_group_key_of_an_earlier_release_is_dropped_when_the_service_is_written() -> None:
    secrets = {"environment.secrets.hansa.group-key": "f" * 64, "environment.secrets.PASSWORD": "users-own"}
    assert creating.without_group_key(secrets) == {"environment.secrets.PASSWORD": "users-own"}
