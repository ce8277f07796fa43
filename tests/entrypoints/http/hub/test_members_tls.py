"""The members' listener: certificates and roots change while it serves, and every request is looked at anew."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509

from hansa.federation import Authority, Note, acting, joining, standing, syncing
from hansa.federation.errors import WasRemoved
from hansa.identity import authority
from hansa.messages.members import Join, Joined, Renew
from real.hub_door import ADMIN, HubDoor, hub_door
from real.postgres import Database

SNI = {"sni_hostname": "hub.hansa"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[HubDoor]:
    async with hub_door(tmp_path) as opened:
        yield opened


@dataclass(frozen=True)
class Member:
    joined: Joined
    key: str

    def context(self, roots: str = "") -> ssl.SSLContext:
        return authority.contexts.for_member(roots or self.joined.roots, self.joined.certificate, self.key)

    @property
    def shown(self) -> authority.Presented:
        return authority.presented_in(self.joined.certificate)


async def member(door: HubDoor, name: str = "visby") -> Member:
    made = authority.new_request(name)
    said = Join(token=await door.token(), cluster=name, request=made.request)
    return Member(await joining.join(door.hub, said), made.key)


class Connection:
    """One connection that stays: what is answered says who was on the line."""

    def __init__(self, door: HubDoor, context: ssl.SSLContext) -> None:
        self._client = httpx.AsyncClient(
            base_url=door.members, verify=context, trust_env=False, limits=httpx.Limits(max_connections=1), timeout=20
        )
        self._lines: set[Any] = set()

    async def post(self, path: str, json: Any = None) -> httpx.Response:
        answer = await self._client.post(f"/member/v1{path}", json=json or {}, extensions=SNI)
        stream = answer.extensions["network_stream"]
        self._lines.add(stream.get_extra_info("client_addr"))
        return answer

    async def beat(self, number: int = 1) -> httpx.Response:
        return await self.post("/heartbeat", {"incarnation": 1, "number": number})

    @property
    def connections(self) -> int:
        return len(self._lines)


@asynccontextmanager
async def connection(door: HubDoor, context: ssl.SSLContext) -> AsyncIterator[Connection]:
    made = Connection(door, context)
    try:
        yield made
    finally:
        await made._client.aclose()


def problem(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return str(answer.json()["type"]).removeprefix("/problems/")


async def test_an_expired_certificate_on_a_connection_that_stays(door: HubDoor) -> None:
    one = await member(door)
    async with connection(door, one.context()) as line:
        assert (await line.beat()).status_code == 200
        door.move(hours=24.1)
        refused = await line.beat(2)
        assert (refused.status_code, problem(refused)) == (403, "federation.certificate-expired")
        assert problem(await line.post("/leave")) == "federation.certificate-expired"
        # it was away, and comes back by itself: it may renew, and nothing else
        made = authority.new_request("visby")
        answer = await line.post("/renew", {"request": made.request})
        assert answer.status_code == 200
        door.move(hours=14 * 24)
        late = await line.post("/renew", {"request": made.request})
        assert problem(late) == "federation.certificate-expired"
        assert "new token" in late.json()["hint"]
        assert line.connections == 1
    await door.now()
    async with connection(door, Member(Joined(**answer.json()), made.key).context()) as line:
        assert (await line.beat(3)).status_code == 200


async def test_a_revoked_certificate_on_a_connection_that_stays(door: HubDoor) -> None:
    one = await member(door)
    async with connection(door, one.context()) as line:
        assert (await line.beat()).status_code == 200
        await acting.remove(door.hub, ADMIN, "visby", force=True)
        for path in ("/heartbeat", "/renew", "/leave"):
            refused = await line.post(path, {"incarnation": 1, "number": 2, "request": ""})
            assert (refused.status_code, problem(refused)) == (403, "federation.removed")
        await member(door)  # another one of that name
        assert problem(await line.beat(3)) == "federation.not-a-member"
        assert line.connections == 1


async def test_a_root_that_was_given_up_on_a_connection_that_stays(door: HubDoor) -> None:
    one = await member(door)
    old = door.hub.trust.active
    async with connection(door, one.context()) as line:
        assert (await line.beat()).status_code == 200
        await rotated(door, "retiring")
        assert (await line.beat(2)).status_code == 200
        await rotated(door, "gone")
        assert problem(await line.beat(3)) == "federation.not-a-member"
        assert line.connections == 1
    with pytest.raises(httpx.TransportError):  # and no new one comes to be
        async with connection(door, one.context(old.certificate + door.hub.trust.roots)) as line:
            await line.beat(4)


async def test_without_a_certificate(door: HubDoor) -> None:
    roots = door.hub.trust.roots
    async with connection(door, authority.contexts.for_member(roots)) as line:
        for path in ("/heartbeat", "/renew", "/leave"):
            assert problem(await line.post(path, {"incarnation": 1, "number": 1, "request": ""})) == (
                "federation.not-a-member"
            )


@pytest.mark.parametrize(
    "what",
    [
        "foreign",
        "self-made",
        "the hub's own",
        "of another federation",
        "never recorded",
        "of a former life",
        "of a later life",
        "of nobody",
        "for servers",
    ],
)
async def test_certificates_that_are_no_members(door: HubDoor, what: str) -> None:
    """Either TLS hangs up or the answer says why; nothing is served."""
    one, hub, now = await member(door), door.hub, door.hub.clock.now()
    made = authority.new_request("visby")
    key = authority.public_key(made.request)
    given: dict[str, Any] = {"cluster": "visby", "life": 1, "now": now, "seconds": 3600.0}
    later: dict[str, Any] = {**given, "trust_domain": "hansa", "seconds": 90_000.0}
    own, own_key = authority.sign_hub(hub.trust.active, trust_domain="hansa", now=now, seconds=3600)
    stranger = authority.new_root("hansa", now=now, seconds=3600)
    # a root of the same name and id, so that only the signature tells
    double = replace(authority.new_root("hansa", now=now, seconds=3600), id=hub.trust.active.id)
    chain, secret = {
        "foreign": (authority.sign_cluster(stranger, key, trust_domain="hansa", **given).chain, made.key),
        "self-made": (authority.sign_cluster(double, key, trust_domain="hansa", **given).chain, made.key),
        "the hub's own": (own.chain, own_key),
        "of another federation": (
            authority.sign_cluster(hub.trust.active, key, trust_domain="other", **given).chain,
            made.key,
        ),
        "never recorded": (
            authority.sign_cluster(hub.trust.active, key, trust_domain="hansa", **given).chain,
            made.key,
        ),
        "of a former life": (authority.sign_cluster(hub.trust.active, key, **{**later, "life": 0}).chain, made.key),
        "of a later life": (authority.sign_cluster(hub.trust.active, key, **{**later, "life": 2}).chain, made.key),
        "of nobody": (authority.sign_cluster(hub.trust.active, key, **{**later, "cluster": "vineta"}).chain, made.key),
        "for servers": (own.chain + one.joined.certificate, own_key),
    }[what]
    context = authority.contexts.for_member(hub.trust.roots, chain, secret)
    async with connection(door, context) as line:
        try:
            answer = await line.beat()
        except httpx.TransportError:
            assert what in ("foreign", "self-made", "the hub's own", "for servers")
            return
    assert problem(answer) == "federation.not-a-member"


async def test_old_protocols_and_wrong_names(door: HubDoor) -> None:
    one = await member(door)
    old = one.context()
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with connection(door, old) as line:
        assert (await line.beat()).status_code == 200
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError):
        async with connection(door, old) as line:
            await line.beat()
    async with httpx.AsyncClient(verify=one.context(), trust_env=False) as client:
        with pytest.raises(httpx.ConnectError, match="mismatch"):
            await client.get(f"{door.members}/member/v1/roots")  # by its address, without the hub's name


async def test_the_hubs_certificate_is_renewed_before_it_ends(door: HubDoor) -> None:
    first = await served_certificate(door)
    assert await served_certificate(door) == first
    door.move(hours=13)
    second = await served_certificate(door)
    assert second.serial_number != first.serial_number
    assert second.not_valid_after_utc > first.not_valid_after_utc
    await rotated(door, "retiring")
    third = await served_certificate(door)
    assert third.issuer != second.issuer


async def test_who_knows_the_former_root_only_is_served_and_serves(door: HubDoor) -> None:
    """A member that was away during the change: neither side has to know more than it did before."""
    one = await member(door)
    await rotated(door, "retiring")
    async with connection(door, one.context()) as line:
        assert (await line.beat()).status_code == 200
        made = authority.new_request("visby")
        answer = await line.post("/renew", {"request": made.request})
    new = Member(Joined(**answer.json()), made.key)
    assert authority.root_id(new.shown.serial) == door.hub.trust.active.id
    async with connection(door, new.context(one.joined.roots)) as line:
        assert (await line.beat(2)).status_code == 200


async def test_a_hub_that_has_not_heard_yet_looks_before_it_refuses(
    tmp_path: Path, postgres_database: Database
) -> None:
    """Two hubs on one database, none of which reads the news by itself here."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    given: dict[str, Any] = {"database": postgres_database.url, "key_file": tmp_path / "key"}
    async with hub_door(tmp_path / "a", **given) as first, hub_door(tmp_path / "b", **given) as second:
        assert second.hub.trust.roots == first.hub.trust.roots
        one = await member(first)
        async with connection(second, one.context()) as line:
            assert (await line.beat()).status_code == 200  # it had never heard of this cluster
            made = authority.new_request("visby")
            joined = await joining.renew(first.hub, one.shown, Renew(request=made.request))
            async with connection(second, Member(joined, made.key).context()) as other:
                assert (await other.beat(2)).status_code == 200
            await rotated(first, "retiring")
            newest = authority.new_request("visby")
            joined = await joining.renew(first.hub, one.shown, Renew(request=newest.request))
            async with connection(second, Member(joined, newest.key).context(one.joined.roots)) as other:
                assert (await other.beat(3)).status_code == 200
            assert second.hub.trust.version == first.hub.trust.version
            await acting.remove(first.hub, ADMIN, "visby", force=True)
            await syncing.learn(second.hub)
            assert problem(await line.beat(4)) == "federation.removed"


async def test_who_was_removed_long_ago_costs_no_question(door: HubDoor) -> None:
    one = await member(door)
    await acting.remove(door.hub, ADMIN, "visby", force=True)
    await syncing.learn(door.hub)
    door.hub.registry.learned = door.hub.clock.now() + 61
    await door.app.database.close()  # whoever asked it now would hear of it
    with pytest.raises(WasRemoved):
        await standing.member(door.hub, one.shown)


async def test_a_hub_restored_from_a_backup_does_not_lock_members_out(door: HubDoor) -> None:
    """It forgot a renewal; what it signed itself tells that there was one."""
    one = await member(door)
    before = acting.get(door.hub, "visby").record
    door.move(hours=0.1)
    made = authority.new_request("visby")
    newer = Member(await joining.renew(door.hub, one.shown, Renew(request=made.request)), made.key)
    forgotten = replace(before, version=acting.get(door.hub, "visby").record.version)
    assert await door.hub.clusters.put(forgotten) is not None
    await door.now()
    assert newer.shown.serial not in acting.get(door.hub, "visby").record.serials
    async with connection(door, newer.context()) as line:
        assert (await line.beat()).status_code == 200
        assert (await line.beat(2)).status_code == 200
    assert acting.get(door.hub, "visby").record.serials == (one.shown.serial, newer.shown.serial)
    (told, *_) = await door.hub.clusters.changes(cluster="visby")
    assert told.kind == "certificate"
    await acting.let_go(door.hub, ADMIN, "visby")
    await joining.leave(door.hub, "visby")  # who has left is not remembered
    async with connection(door, newer.context()) as line:
        assert problem(await line.beat(3)) == "federation.not-a-member"


async def rotated(door: HubDoor, state: str) -> None:
    """The step that makes the root that signs now `retiring`, or the one that is retiring `gone`."""
    trust, now = door.hub.trust, door.hub.clock.now()
    if state == "gone":
        changed = [replace(one, state="gone") for one in trust.all if one.state == "retiring"]
    else:
        new = authority.cross_sign(authority.new_root("hansa", now=now, seconds=86_400), trust.active)
        changed = [replace(one, state="retiring") for one in trust.all if one.state == "active"]
        changed.append(Authority(new, "active", now))
    assert await trust.authorities.put(changed, Note("", "authority", state), expected=trust.version)
    await trust.learn()


async def served_certificate(door: HubDoor) -> x509.Certificate:
    port = int(door.members.rpartition(":")[2])
    pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port), timeout=20)
    return x509.load_pem_x509_certificate(pem.encode())
