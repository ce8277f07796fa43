"""Joining, approving, renewing, leaving and coming back, on a real database. The wire: tests/drivers/hub."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from hansa.federation import Authority, JoinToken, Note, acting, desired, errors, joining, syncing, tokens
from hansa.identity import Caller, authority
from hansa.kernel.errors import Forbidden, Invalid
from hansa.kernel.names import BadName
from hansa.messages.clusters import Coordinates, Facts, FactsChange, NewToken
from hansa.messages.members import Join, Joined, Renew
from real.hub_door import ADMIN, HubDoor, hub_door

pytestmark = pytest.mark.asyncio(loop_scope="module")
SOMEBODY = Caller(kind="user", uid="ann@test", name="Ann")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HubDoor]:
    async with hub_door(tmp_path_factory.mktemp("hub")) as opened:
        yield opened


def cluster() -> str:
    return f"c{secrets.token_hex(4)}"


def asked(token: str, name: str, facts: Facts | None = None) -> Join:
    return Join(token=token, cluster=name, request=authority.new_request(name).request, facts=facts or Facts(name=name))


async def member(door: HubDoor, name: str = "", **token: object) -> Joined:
    name = name or cluster()
    return await joining.join(door.hub, asked(await door.token(**token), name))


async def renewed(door: HubDoor, joined: Joined) -> Joined:
    shown = authority.presented_in(joined.certificate)
    return await joining.renew(door.hub, shown, Renew(request=authority.new_request("any").request))


async def test_who_may_make_tokens_and_how_long_they_live(door: HubDoor) -> None:
    hub = door.hub
    for refused in (tokens.create(hub, SOMEBODY, NewToken()), tokens.listed(hub, SOMEBODY)):
        with pytest.raises(Forbidden):
            await refused
    with pytest.raises(Forbidden):
        await tokens.revoke(hub, SOMEBODY, "x")
    for minutes in (0.0, -1.0, 20_000.0, float("nan"), float("inf")):
        with pytest.raises(Invalid):
            await tokens.create(hub, ADMIN, NewToken(minutes=minutes))
    with pytest.raises(BadName):
        await tokens.create(hub, ADMIN, NewToken(cluster="No Name"))
    made = await tokens.create(hub, ADMIN, NewToken(minutes=5))
    assert made.expires == pytest.approx(hub.clock.now() + 300, abs=5)
    listed = {one.id: one for one in await tokens.listed(hub, ADMIN)}
    assert listed[made.id].token == ""
    secret = JoinToken.read(made.token).secret
    assert secret not in repr(await hub.trust.tokens.all())
    await tokens.revoke(hub, ADMIN, made.id)
    with pytest.raises(errors.NoSuchToken):
        await tokens.revoke(hub, ADMIN, made.id)
    with pytest.raises(errors.BadToken, match="not known"):
        await joining.join(hub, asked(made.token, cluster()))


async def test_a_member_and_its_story(door: HubDoor) -> None:
    joined = await member(door)
    record = acting.get(door.hub, joined.cluster).record
    assert (record.state, record.incarnation, record.kind) == ("ready", 1, "hansa")
    assert record.serials == (authority.presented_in(joined.certificate).serial,)
    assert record.certificate_until == authority.expires(joined.certificate)
    await syncing.learn(door.hub)
    assert desired.generation(door.hub, joined.cluster) >= record.version
    told = await door.hub.clusters.changes(cluster=joined.cluster)
    assert told[0].kind == "joined"
    assert "of cluster_admin" in told[0].detail


async def test_of_the_request_only_the_key_counts(door: HubDoor) -> None:
    """Somebody with a token for one cluster asks for a certificate of another."""
    victim = await member(door)
    name = cluster()
    said = asked(await door.token(cluster=name), name)
    said = Join(token=said.token, cluster=name, request=authority.new_request(victim.cluster).request)
    assert authority.presented_in((await joining.join(door.hub, said)).certificate).cluster == name


async def test_by_hand(door: HubDoor) -> None:
    joined = await member(door, approve=False)
    assert joined.state == "pending"
    before = acting.get(door.hub, joined.cluster).record
    assert "approved" in before.reason
    with pytest.raises(Forbidden):
        await joining.approve(door.hub, SOMEBODY, joined.cluster)
    await joining.approve(door.hub, ADMIN, joined.cluster)
    after = acting.get(door.hub, joined.cluster).record
    assert after.state == "ready"
    assert after.desired > before.desired
    assert (await joining.approve(door.hub, ADMIN, joined.cluster)).record == after  # once is enough
    with pytest.raises(errors.NoSuchCluster):
        await joining.approve(door.hub, ADMIN, "nobody")


async def test_a_name_that_is_taken(door: HubDoor) -> None:
    first = await member(door)
    token = await door.token()
    with pytest.raises(errors.ClusterExists, match="already"):
        await joining.join(door.hub, asked(token, first.cluster))
    assert (await joining.join(door.hub, asked(token, cluster()))).incarnation == 1  # the token was not used up
    # a token made for it lets it take its own place, and the former life is over
    await acting.describe(door.hub, ADMIN, first.cluster, FactsChange(region="north"))
    again = await member(door, first.cluster, cluster=first.cluster)
    assert again.incarnation == 2
    record = acting.get(door.hub, first.cluster).record
    assert record.serials == (authority.presented_in(again.certificate).serial,)
    assert record.overrides == {"region": "north"}
    with pytest.raises(errors.NotAMember):
        await renewed(door, first)


async def test_leaving_and_coming_back(door: HubDoor) -> None:
    first = await member(door)
    name = first.cluster
    await acting.let_go(door.hub, ADMIN, name)
    await joining.leave(door.hub, name)
    left = acting.get(door.hub, name).record
    assert (left.state, left.serials, left.certificate_until) == ("left", (), None)
    await joining.leave(door.hub, name)  # twice is harmless
    with pytest.raises(errors.NotAMember):
        await renewed(door, first)
    with pytest.raises(errors.WrongState):
        await joining.approve(door.hub, ADMIN, name)
    back = await member(door, name)
    record = acting.get(door.hub, name).record
    assert (back.incarnation, record.state, record.cordoned, record.wanted) == (2, "ready", False, "member")


async def test_removed_and_back_with_a_new_token_only(door: HubDoor) -> None:
    name, token = cluster(), await door.token()
    said = asked(token, name)
    await joining.join(door.hub, said)
    await acting.remove(door.hub, ADMIN, name, force=True)
    with pytest.raises(errors.BadToken, match="not known"):  # also with the key that used it
        await joining.join(door.hub, said)
    assert (await member(door, name)).incarnation == 2
    again = asked(await door.token(cluster=name), name)
    assert (await joining.join(door.hub, again)).incarnation == 3
    await joining.join(door.hub, asked(await door.token(cluster=name), name))
    with pytest.raises(errors.BadToken, match="joined again"):
        await joining.join(door.hub, again)


async def test_a_hub_that_died_between_the_two_writes(door: HubDoor) -> None:
    """The token is used, the record was not written: the same key finds its way in."""
    name, token = cluster(), await door.token()
    said = asked(token, name)
    mark = authority.key_digest(authority.public_key(said.request))
    ident = JoinToken.read(token).id
    assert await door.hub.trust.tokens.use(ident, cluster=name, key=mark, life=1)
    with pytest.raises(errors.BadToken, match="used already"):
        await joining.join(door.hub, asked(token, name))
    assert (await joining.join(door.hub, said)).incarnation == 1


async def test_the_same_key_at_once(door: HubDoor) -> None:
    """An impatient manager asks several times: one life, and each answer is good."""
    name, token = cluster(), await door.token()
    said = asked(token, name)
    answers = await asyncio.gather(*(joining.join(door.hub, said) for _ in range(3)))
    assert {one.incarnation for one in answers} == {1}
    serials = {authority.presented_in(one.certificate).serial for one in answers}
    assert set(acting.get(door.hub, name).record.serials) == serials


async def test_bad_facts_and_names(door: HubDoor) -> None:
    token = await door.token()
    for facts in (
        Facts(endpoint="https://user:secret@example.org"),
        Facts(endpoint="https://example.org/?a=b"),
        Facts(endpoint="https://[broken"),
        Facts(endpoint="javascript:alert(1)"),
        Facts(name="x" * 201),
        Facts(description="a\0b"),
        Facts(metadata={f"label-{number}": "x" * 100 for number in range(400)}),
        Facts(coordinates=Coordinates(latitude=91, longitude=0)),
    ):
        with pytest.raises(errors.BadFacts) as refused:
            await joining.join(door.hub, asked(token, cluster(), facts))
        assert "secret" not in str(refused.value)
    for name in ("", "UPPER", "a" * 64, "../x", "a/b", "-a"):
        with pytest.raises(BadName):
            await joining.join(door.hub, replace_name(asked(token, "good"), name))
    with pytest.raises(authority.BadRequest):
        await joining.join(door.hub, Join(token=token, cluster=cluster(), request="nonsense"))
    assert (await joining.join(door.hub, asked(token, cluster()))).state == "ready"  # nothing of this used it up


async def test_renewals(door: HubDoor) -> None:
    first = await member(door)
    latest = first
    for _ in range(5):
        latest = await renewed(door, latest)
    record = acting.get(door.hub, first.cluster).record
    assert len(record.serials) == 2  # the one that was shown, and the new one
    assert record.certificate_until == authority.expires(latest.certificate)
    with pytest.raises(errors.NotAMember):
        await renewed(door, first)
    await syncing.learn(door.hub)
    changes = await door.hub.clusters.changes(cluster=first.cluster)
    assert len(changes) == 1  # everyday business leaves no trace among the news


async def test_a_renewal_is_signed_by_the_root_that_others_made_active(door: HubDoor) -> None:
    """The cluster was told by another hub process, which had heard of it before this one."""
    joined, trust, now = await member(door), door.hub.trust, door.hub.clock.now()
    former = next(one for one in trust.all if one.state == "active")
    new = authority.cross_sign(authority.new_root(trust.domain, now=now, seconds=1000), former.root)
    changed = [Authority(new, "active", now), replace(former, state="retiring", since=now)]
    assert await trust.authorities.put(changed, Note("", "authority", "by another"), expected=trust.version)
    assert trust.active.id == former.root.id
    latest = await renewed(door, joined)
    assert authority.root_id(authority.presented_in(latest.certificate).serial) == new.id


def replace_name(said: Join, name: str) -> Join:
    return Join(token=said.token, cluster=name, request=said.request, facts=said.facts)


async def test_tokens_are_read_or_refused() -> None:
    made = JoinToken.new(fingerprint="a" * 32, trust_domain="hansa.example")
    assert JoinToken.read(f" {made.text}\n") == made
    assert made.secret not in repr(made)
    assert made.is_the_one(made.digest)
    assert not replace(made, secret="x" * 43).is_the_one(made.digest)
    for text in ("", "hansa1", made.text[:-30], made.text + "x!", made.text.replace("hansa1", "hansa2"), "a" * 10_000):
        with pytest.raises(errors.BadToken):
            JoinToken.read(text)
