"""Three managers with copies of one refresh token do not burn it: members ask the coordinator, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from drivers.oidc.hand_clock import HandClock
from hansa.services import Service
from hansa.services.credentials import GroupKeyRefused, NotCoordinator
from hansa.store import sqlite_url
from real.identity_provider import IdentityProvider
from services.credentials.clusters import GROUP_KEY, Cluster, cluster, issuer_settings
from services.credentials.test_keyring import refresh_token


class Mesh:
    def __init__(self, clusters: list[Cluster], services: list[Service]) -> None:
        self.clusters = clusters
        self.services = services
        self.lubeck, self.visby, self.riga = clusters

    async def bearers(self, times: int = 1) -> list[str]:
        pairs = list(zip(self.clusters, self.services, strict=True)) * times
        return list(await asyncio.gather(*(one.bearer(service) for one, service in pairs)))


@asynccontextmanager
async def mesh(provider: IdentityProvider, realm: str, folder: Path) -> AsyncIterator[Mesh]:
    issuer, clock = issuer_settings(provider.issuer(realm)), HandClock()
    token = refresh_token(provider, realm)
    async with AsyncExitStack() as parts:
        clusters: list[Cluster] = []
        services: list[Service] = []
        for ident in ("lubeck", "visby", "riga"):
            (folder / ident).mkdir()
            known = {one.id: one.url for one in clusters[:1]}
            opened = cluster(
                sqlite_url(folder / ident), issuer, ident=ident, known=known, clock=clock, serve=ident == "lubeck"
            )
            here = await parts.enter_async_context(opened)
            await here.sign_in(issuer.url)
            clusters.append(here)
            if ident == "lubeck":
                services.append(await here.with_token("hello", token))
            else:
                services.append(await here.replica(f"hello-{ident}", clusters[0], "hello", token))
        yield Mesh(clusters, services)


async def test_nobody_burns_anothers_token(provider: IdentityProvider, tmp_path: Path) -> None:
    async with mesh(provider, "mesh", tmp_path) as group:
        before = provider.asked("/token", "mesh")
        for turn in range(1, 5):
            shown = set(await group.bearers(7))
            assert len(shown) == 1
            (token,) = shown
            assert await asyncio.to_thread(_accepted, provider, token)
            assert provider.asked("/token", "mesh") == before + turn
            group.lubeck.clock.ahead += 301
        states = [await one.keyring.standing(s.name) for one, s in zip(group.clusters, group.services, strict=True)]
        assert [one.state for one in states] == ["ok"] * 3
        assert [one.source for one in states] == ["own", "coordinator", "coordinator"]
        actions = [one.action for one in await group.lubeck.keyring.history("hello")]
        assert actions.count("token.rotated") == 4
        assert actions.count("token.handed-out") == 8
        borrowed = await group.visby.keyring.history("hello-visby")
        assert {one.action for one in borrowed} == {"token.borrowed"}


async def test_without_its_coordinator_a_member_spares_the_token(provider: IdentityProvider, tmp_path: Path) -> None:
    """The issuer may rotate, for all the member knows: using its copy could revoke everybody's."""
    issuer = issuer_settings(provider.issuer("unseen"))
    async with cluster(sqlite_url(tmp_path), issuer, ident="riga", known={"lubeck": _unused_address()}) as riga:
        await riga.sign_in(issuer.url)
        dead = Cluster(**{**vars(riga), "id": "lubeck", "url": _unused_address()})
        lonely = await riga.replica("lonely", dead, "hello", refresh_token(provider, "unseen"))
        asked = provider.asked("/token", "unseen")
        assert await riga.bearer(lonely) == ""
        assert await riga.bearer(await riga.with_token("own", refresh_token(provider, "unseen")))  # it learns the worst
        riga.clock.ahead += 6
        assert await riga.bearer(lonely) == ""
        assert provider.asked("/token", "unseen") == asked + 2  # one by this test, one for the service of its own
        standing = await riga.keyring.standing("lonely")
        assert standing.state == "issuer-unreachable"
        assert "coordinator lubeck/hello" in standing.sentence


async def test_an_issuer_seen_not_to_rotate_may_be_asked_instead(provider: IdentityProvider, tmp_path: Path) -> None:
    issuer = issuer_settings(provider.issuer("fixed"))
    async with cluster(sqlite_url(tmp_path), issuer, ident="riga", known={"lubeck": _unused_address()}) as riga:
        await riga.sign_in(issuer.url)
        dead = Cluster(**{**vars(riga), "id": "lubeck", "url": _unused_address()})
        lonely = await riga.replica("lonely", dead, "hello", refresh_token(provider, "fixed"))
        assert await riga.bearer(lonely) == ""
        assert await riga.bearer(await riga.with_token("own", refresh_token(provider, "fixed")))  # it learns here
        riga.clock.ahead += 6
        assert await riga.bearer(lonely)


async def test_only_with_the_key_and_only_at_the_coordinator(provider: IdentityProvider, tmp_path: Path) -> None:
    async with mesh(provider, "test", tmp_path) as group:
        for service, key in (("hello", "cd" * 32), ("hello", ""), ("nothing", GROUP_KEY)):
            with pytest.raises(GroupKeyRefused) as refused:
                await group.lubeck.keyring.token_for_member(service, key, asked_from="10.0.0.7")
            assert "group key is not accepted for this service" in refused.value.message
        with pytest.raises(NotCoordinator):
            await group.visby.keyring.token_for_member("hello-visby", GROUP_KEY)
        refusals = [one for one in await group.lubeck.keyring.history("hello") if one.action.endswith("refused")]
        assert len(refusals) == 1  # a stranger cannot fill the trail
        assert "10.0.0.7" in refusals[0].detail


async def test_a_revoked_token_is_over_for_all(provider: IdentityProvider, tmp_path: Path) -> None:
    async with mesh(provider, "revoking", tmp_path) as group:
        assert "" not in await group.bearers()
        await group.lubeck.keyring.revoke("hello", actor="alice@test")
        group.lubeck.clock.ahead += 301
        asked = provider.asked("/token", "revoking")
        assert await group.bearers() == ["", "", ""]
        assert provider.asked("/token", "revoking") == asked
        standing = await group.visby.keyring.standing("hello-visby")
        assert (standing.state, standing.source) == ("expired-or-revoked", "coordinator")


def _accepted(provider: IdentityProvider, token: str) -> bool:
    address = f"{provider.issuer('mesh')}/protocol/openid-connect/userinfo"
    return httpx.get(address, headers={"authorization": f"Bearer {token}"}, trust_env=False).status_code == 200


def _unused_address() -> str:
    return "http://127.0.0.1:9"  # the port of `discard`, where nobody listens
