"""One exchange for all who ask, and no rotated token lost: on SQLite and PostgreSQL, with a provider that revokes a
whole family of tokens when a used one comes back."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from hansa.drivers.oidc import OidcExchange, Policy
from hansa.identity import Vault
from hansa.services.credentials import Exchanged
from hansa.services.credentials.errors import IssuerUnreachable
from hansa.services.credentials.exchanging import Exchanging, Given
from hansa.services.credentials.lineage import mark
from hansa.services.credentials.ports import Unreachable
from hansa.store import make_engine
from real.identity_provider import IdentityProvider
from real.rogue_issuer import DISCOVERY, Answer, rogue_issuer
from services.credentials.clusters import OWNER, POLICY, TOKEN, Cluster, cluster, issuer_settings
from services.credentials.test_keyring import refresh_token

ROOT = Path(__file__).parents[3]


async def test_twenty_ask_at_once(provider: IdentityProvider, database_url: str) -> None:
    issuer = provider.issuer("parallel")
    async with cluster(database_url, issuer_settings(issuer)) as here:
        await here.sign_in(issuer)
        service = await here.with_token("hello", refresh_token(provider, "parallel"))
        before = provider.asked("/token", "parallel")
        for rounds in (1, 2):
            shown = await asyncio.gather(*(here.bearer(service) for _ in range(20)))
            assert len(set(shown)) == 1
            assert shown[0]
            assert provider.asked("/token", "parallel") == before + rounds
            here.clock.ahead += 301


async def test_successors_survive_restarts(provider: IdentityProvider, database_url: str) -> None:
    given, issuer, ahead = refresh_token(provider), provider.issuer(), 0.0
    seen = set()
    for life in range(4):
        async with cluster(database_url, issuer_settings(issuer)) as here:
            here.clock.ahead = ahead
            if life == 0:
                await here.sign_in(issuer)
                await here.with_token("hello", given)
            record = here.records.get("hello")
            assert record is not None
            seen.add(await here.bearer(record.service))
            line = await here.lineages.get(mark(OWNER, given))
            assert line is not None
            assert (line.state, line.rotates, line.begun) == ("ok", True, None)
            assert line.token != given
            ahead += 301
    assert len(seen) == 4
    assert "" not in seen


async def test_who_asked_may_go_away(provider: IdentityProvider, database_url: str) -> None:
    """A request that is cut during the exchange must not take the rotated token along."""
    async with cluster(database_url, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        service = await here.with_token("hello", refresh_token(provider))
        asked = provider.asked("/token")
        request = asyncio.create_task(here.bearer(service))
        async with asyncio.timeout(10):
            while await asyncio.to_thread(provider.asked, "/token") == asked:
                await asyncio.sleep(0)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        await here.keyring.close()
        here.clock.ahead += 301
        assert await here.bearer(service)


class Hesitating:
    """The real exchange; its answer is held back until the test lets it go."""

    def __init__(self, real: OidcExchange) -> None:
        self._real = real
        self.answered, self.go = asyncio.Event(), asyncio.Event()

    @property
    def issuers(self) -> Sequence[str]:
        return self._real.issuers

    async def exchange(self, issuer: str, refresh_token: str) -> Exchanged:
        got = await self._real.exchange(issuer, refresh_token)
        self.answered.set()
        await self.go.wait()
        return got

    async def revoke(self, issuer: str, refresh_token: str) -> bool:
        return await self._real.revoke(issuer, refresh_token)


async def test_a_store_that_is_away_when_the_issuer_rotates(provider: IdentityProvider, sqlite: str) -> None:
    """The successor waits in memory; no access token is shown, and no old one presented, before it is kept."""
    issuer = issuer_settings(provider.issuer())
    async with httpx.AsyncClient(trust_env=False) as http:
        slow = Hesitating(OidcExchange([issuer], http, policy=POLICY))
        async with cluster(sqlite, issuer, exchange=slow) as here:
            await here.sign_in(issuer.url)
            service = await here.with_token("hello", refresh_token(provider))
            asking = asyncio.create_task(here.bearer(service))
            await asyncio.wait_for(slow.answered.wait(), 10)
            engine = make_engine(sqlite)
            with engine.connect().execution_options(writing=True) as held, held.begin():
                here.database._patience = 0.05
                slow.go.set()
                assert await asyncio.wait_for(asking, 20) == ""
            engine.dispose()
            here.database._patience = 8.0
            asked = provider.asked("/token")
            assert await here.bearer(service)
            assert provider.asked("/token") == asked + 1
            assert (await here.keyring.standing("hello")).state == "ok"


async def test_a_revoked_token(provider: IdentityProvider, database_url: str) -> None:
    issuer = provider.issuer("refused")
    async with cluster(database_url, issuer_settings(issuer)) as here:
        await here.sign_in(issuer)
        given = refresh_token(provider, "refused")
        service = await here.with_token("hello", given)
        _revoke_at(provider, given)
        now = here.clock.now()
        assert await here.bearer(service) == ""
        standing = await here.keyring.standing("hello")
        assert standing.state == "expired-or-revoked"
        assert standing.since is not None
        assert abs(standing.since - now) < 30
        assert "refresh_token" in standing.hint
        asked = provider.asked("/token", "refused")
        here.clock.ahead += 3600
        for _ in range(3):
            assert await here.bearer(service) == ""
        assert await here.keyring.rotate_due() == []
        assert provider.asked("/token", "refused") == asked

        await _replace(here, "hello", refresh_token(provider, "refused"))
        assert (await here.keyring.standing("hello")).state == "ok"
        assert await here.bearer(service)


class Out:
    """An issuer that exchanges nothing, and revokes when the test lets it."""

    issuers = ("https://idp",)

    def __init__(self) -> None:
        self.told, self.go = asyncio.Event(), asyncio.Event()

    async def exchange(self, issuer: str, refresh_token: str) -> Exchanged:
        raise Unreachable("it is away", asked=False)

    async def revoke(self, issuer: str, refresh_token: str) -> bool:
        self.told.set()
        await self.go.wait()
        return True


def exchanging(here: Cluster, exchange: Out) -> Exchanging:
    return Exchanging(here.lineages, exchange, here.people, here.clock, skew=30, retry_pause=60)


async def test_a_manager_that_stops_revokes_to_the_end(sqlite: str) -> None:
    """Whoever asked for it has gone; that the token is of no use any more must be written down all the same."""
    out, given = Out(), Given("hello", OWNER, "a-token")
    async with cluster(sqlite) as here:
        here_exchanging = exchanging(here, out)
        asking = asyncio.create_task(here_exchanging.revoke(given, OWNER))
        async with asyncio.timeout(10):
            await out.told.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            closing = asyncio.create_task(here_exchanging.close())
            await asyncio.sleep(0)
            out.go.set()
            await closing
        line = await here.lineages.get(given.mark)
        assert line is not None
        assert line.spent


async def test_pauses_that_are_over_are_forgotten(sqlite: str) -> None:
    async with cluster(sqlite) as here:
        here_exchanging = exchanging(here, Out())
        for number in range(3):
            with pytest.raises(IssuerUnreachable):
                await here_exchanging.fresh(Given("hello", OWNER, f"token-{number}"))
            here.clock.ahead += 61
        assert len(here_exchanging._left_alone) == 1


async def test_killed_between_answer_and_store(provider: IdentityProvider, sqlite: str) -> None:
    """The one loss nobody can prevent: the new token is known to the issuer only. The state says so, and what to do."""
    key, given = Vault.new_key(), refresh_token(provider)
    command = [sys.executable, "-m", "services.credentials.dying_process", sqlite, provider.issuer(), key, given]
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests"))
    died = await asyncio.to_thread(
        subprocess.run, command, env={**os.environ, "PYTHONPATH": path}, timeout=60, capture_output=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    async with cluster(sqlite, issuer_settings(provider.issuer()), vault=Vault([key])) as here:
        record = here.records.get("hello")
        assert record is not None
        assert await here.bearer(record.service) == ""
        standing = await here.keyring.standing("hello")
        assert standing.state == "expired-or-revoked"
        assert "earlier exchange ended without an answer" in standing.sentence
        await _replace(here, "hello", refresh_token(provider))
        assert await here.bearer(record.service)


async def test_a_lost_answer_is_remembered(sqlite: str) -> None:
    hasty = Policy(time_limit=0.5)
    async with rogue_issuer() as rogue, cluster(sqlite, issuer_settings(rogue.url), policy=hasty) as here:
        rogue.say(DISCOVERY, {"issuer": rogue.url, "token_endpoint": f"{rogue.url}/token"})
        service = await here.with_token("hello", "opaque")
        rogue.answers["/token"] = Answer(never=True)
        assert await here.bearer(service) == ""
        assert (await here.keyring.standing("hello")).state == "issuer-unreachable"
        here.clock.ahead += 6
        rogue.say("/token", {"error": "invalid_grant"}, status=400)
        assert await here.bearer(service) == ""
        assert "without an answer" in (await here.keyring.standing("hello")).sentence


async def test_a_client_the_issuer_does_not_know(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer()).model_copy(update={"client_id": "wrong"})) as here:
        await here.sign_in(provider.issuer())
        service = await here.with_token("hello", refresh_token(provider))
        assert await here.bearer(service) == ""
        standing = await here.keyring.standing("hello")
        assert (standing.state, "invalid_client" in standing.sentence) == ("misconfigured", True)


async def _replace(here: Cluster, name: str, token: str) -> None:
    record = here.records.get(name)
    assert record is not None
    secrets = {**here.records.secrets(name), TOKEN: token}
    await here.records.replace(replace(record, updated=here.clock.now()), secrets, record.version)


def _revoke_at(provider: IdentityProvider, token: str, realm: str = "refused") -> None:
    address = f"{provider.issuer(realm)}/protocol/openid-connect/revoke"
    answer = httpx.post(address, data={"client_id": "hansa-tests", "token": token}, trust_env=False)
    assert answer.status_code == 200


@pytest.mark.parametrize("secret", ["opaque-and-secret-token"])
async def test_nothing_readable_in_the_database(database_url: str, secret: str) -> None:
    async with rogue_issuer() as rogue, cluster(database_url, issuer_settings(rogue.url)) as here:
        rogue.say(DISCOVERY, {"issuer": rogue.url, "token_endpoint": f"{rogue.url}/token"})
        rogue.say("/token", {"access_token": "short-lived-secret", "expires_in": 60, "refresh_token": "next-secret"})
        service = await here.with_token("hello", secret)
        assert await here.bearer(service) == "short-lived-secret"

        def dump(connection: sa.Connection) -> str:
            rows = [connection.execute(sa.text(f"select * from {t}")).all() for t in ("lineages", "services", "audit")]
            return repr(rows)

        stored = await here.database.read(dump)
        assert not [word for word in (secret, "short-lived-secret", "next-secret") if word in stored]
