"""What is shown to another cluster, in which order, and what is never shown."""

import base64

from hansa.services import ClusterRef
from hansa.services.credentials import Keyring
from real.identity_provider import IdentityProvider
from real.rogue_issuer import DISCOVERY, rogue_issuer
from services.credentials.clusters import GROUP_KEY, OWNER, TOKEN, cluster, issuer_settings
from services.credentials.conftest import OFFLINE

CLUSTERS = {"visby": ClusterRef(endpoint="http://visby", auth_user="oscar")}
BASIC = "Basic " + base64.b64encode(b"oscar:pw").decode()


def refresh_token(provider: IdentityProvider, realm: str = "test", user: str = "alice") -> str:
    return str(provider.tokens(user, realm, OFFLINE)["refresh_token"])


async def test_best_first(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        service = await here.with_token("hello", refresh_token(provider), clusters=CLUSTERS)
        own, caller, basic = await here.headers(service, caller="Bearer of-the-caller")
        assert own.startswith("Bearer ey")
        assert (caller, basic) == ("Bearer of-the-caller", BASIC)
        assert await here.headers(service) == [own, BASIC]
        assert await here.headers(service, "riga") == [own]


async def test_a_callers_password_goes_nowhere(provider: IdentityProvider, sqlite: str) -> None:
    """It is this cluster's, and OSCAR's forwarding of it gives the admin's password to every member."""
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        service = await here.with_token("hello", "", clusters=CLUSTERS)
        admin = "Basic " + base64.b64encode(b"admin:secret").decode()
        assert await here.headers(service, caller=admin) == [BASIC]
        assert admin not in (await here.keyring.keep("hello", admin)).values()


async def test_an_issuer_that_is_down_blocks_nobody(sqlite: str) -> None:
    async with rogue_issuer() as rogue:
        gone = rogue.url
    async with cluster(sqlite, issuer_settings(gone)) as here:
        service = await here.with_token("hello", "opaque", clusters=CLUSTERS)
        assert await here.headers(service, caller="Bearer c") == ["Bearer c", BASIC]
        standing = await here.keyring.standing("hello")
        assert standing.state == "issuer-unreachable"
        assert standing.since is not None
        assert gone in standing.sentence
        assert standing.hint


async def test_an_issuer_that_is_down_is_not_asked_for_every_job(sqlite: str) -> None:
    async with rogue_issuer() as rogue, cluster(sqlite, issuer_settings(rogue.url)) as here:
        rogue.say(DISCOVERY, {}, status=500)
        service = await here.with_token("hello", "opaque")
        for _ in range(5):
            assert await here.bearer(service) == ""
        assert rogue.asked[DISCOVERY] == 1
        here.clock.ahead += 6
        await here.bearer(service)
        assert rogue.asked[DISCOVERY] == 2


async def test_the_admins_token_needs_an_issuer_one_can_tell(provider: IdentityProvider, sqlite: str) -> None:
    both = [issuer_settings(provider.issuer(realm)) for realm in ("test", "fixed")]
    async with cluster(sqlite, *both) as here:
        service = await here.with_token("hello", refresh_token(provider), owner="cluster_admin")
        assert await here.bearer(service) == ""
        standing = await here.keyring.standing("hello")
        assert (standing.state, "configured issuers" in standing.sentence) == ("misconfigured", True)
    async with cluster(sqlite, both[0]) as here:
        assert await here.bearer(service)


async def test_before_a_service_is_kept_and_after(provider: IdentityProvider, sqlite: str) -> None:
    """A create probes with the token, which rotates it; the service is then kept with the token that was given."""
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        given = refresh_token(provider)
        draft = (await here.with_token("draft", "")).__class__(name="hello", owner=OWNER)
        first = await here.keyring.offered(draft, {TOKEN: given}, "visby")
        assert len(first) == 1
        service = await here.with_token("hello", given)
        here.clock.ahead += 301
        assert await here.bearer(service) not in ("", first[0].authorization)


async def test_two_services_with_one_token(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        given = refresh_token(provider)
        one, two = await here.with_token("one", given), await here.with_token("two", given)
        for _ in range(3):
            assert await here.bearer(one) == await here.bearer(two) != ""
            here.clock.ahead += 301


async def test_a_used_token_is_of_no_use_to_a_thief(provider: IdentityProvider, sqlite: str) -> None:
    """Who finds the token that was first given must not be led to the one that took its place."""
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        for uid in (OWNER, "mallory@test"):
            await here.sign_in(provider.issuer(), uid)
        given = refresh_token(provider)
        assert await here.bearer(await here.with_token("hello", given))
        assert await here.bearer(await here.with_token("theft", given, owner="mallory@test")) == ""
        assert (await here.keyring.standing("theft")).state == "expired-or-revoked"


async def test_what_is_kept_for_undoing_works_after_a_rotation(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        service = await here.with_token("hello", refresh_token(provider), clusters=CLUSTERS)
        kept = await here.keyring.keep("hello", "Bearer c")
        await here.bearer(service)
        await here.records.remove("hello")
        here.clock.ahead += 301
        shown = [one.authorization for one in await here.keyring.from_kept(kept, "visby")]
        assert shown[0].startswith("Bearer ey")
        assert shown[1:] == ["Bearer c", BASIC]
        assert GROUP_KEY not in kept.values()


async def test_a_service_without_anything(sqlite: str) -> None:
    async with cluster(sqlite) as here:
        service = await here.add((await here.with_token("other", "")).__class__(name="plain", owner=OWNER), {})
        assert await here.headers(service) == []
        assert (await here.keyring.standing("plain")).state == "none"
        assert await Keyring.from_kept(here.keyring, {}, "visby") == []
