"""Rotation by age and on request, revocation, and the trail both leave; no secret in anything a person can read."""

import json
import logging
import traceback
from typing import Any

import pytest
import structlog

from hansa.services import ServiceBusy
from hansa.services.credentials import NoToken, TokenSpent
from hansa.services.credentials.lineage import mark
from hansa.services.credentials.standing import DAY
from real.identity_provider import IdentityProvider
from real.rogue_issuer import DISCOVERY, rogue_issuer
from services.credentials.clusters import GROUP_KEY, OWNER, TOKEN, cluster, issuer_settings
from services.credentials.test_keyring import refresh_token


async def test_rotation_on_request(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        given = refresh_token(provider)
        service = await here.with_token("hello", given)
        first = await here.bearer(service)
        here.clock.ahead += 1
        standing = await here.keyring.rotate("hello", actor=OWNER)
        assert (standing.state, standing.rotates) == ("ok", True)
        assert standing.obtained is not None
        assert abs(standing.obtained - here.clock.now()) < 5
        assert await here.bearer(service) not in ("", first)
        newest = (await here.keyring.history("hello"))[0]
        assert (newest.actor, newest.action) == (OWNER, "token.rotated")


async def test_rotation_by_age(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        given = refresh_token(provider)
        await here.with_token("hello", given)
        await here.with_token("plain", "")
        assert await here.keyring.rotate_due() == []
        here.clock.ahead += 29 * DAY
        assert await here.keyring.rotate_due() == []
        here.clock.ahead += 2 * DAY
        assert await here.keyring.rotate_due() == ["hello"]
        assert await here.keyring.rotate_due() == []
        line = await here.lineages.get(mark(OWNER, given))
        assert line is not None
        assert line.token != given
        assert (await here.keyring.history("hello"))[0].actor == "rotation policy"


async def test_an_issuer_that_does_not_replace_tokens_is_told_to_the_owner(
    provider: IdentityProvider, sqlite: str
) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer("fixed"))) as here:
        await here.sign_in(provider.issuer("fixed"))
        await here.with_token("hello", refresh_token(provider, "fixed"))
        assert (await here.keyring.rotate("hello")).rotates is False
        here.clock.ahead += 31 * DAY
        assert await here.keyring.rotate_due() == ["hello"]
        assert await here.keyring.rotate_due() == []
        standing = await here.keyring.standing("hello")
        assert standing.state == "ok"
        assert "31 days old" in standing.sentence
        assert standing.hint


async def test_lines_nobody_uses_are_forgotten(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer())) as here:
        await here.sign_in(provider.issuer())
        given = refresh_token(provider)
        await here.bearer(await here.with_token("hello", given))
        await here.records.remove("hello")
        here.clock.ahead += 10 * DAY
        await here.keyring.rotate_due()
        assert await here.lineages.get(mark(OWNER, given)) is not None  # an operation may still need it
        here.clock.ahead += 21 * DAY
        await here.keyring.rotate_due()
        assert await here.lineages.get(mark(OWNER, given)) is None


async def test_revocation(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer("revoking"))) as here:
        await here.sign_in(provider.issuer("revoking"))
        given = refresh_token(provider, "revoking")
        service = await here.with_token("hello", given)
        assert await here.bearer(service)
        line = await here.lineages.get(mark(OWNER, given))
        assert line is not None
        standing = await here.keyring.revoke("hello", actor=OWNER)
        assert (standing.state, "its issuer revoked it" in standing.sentence) == ("none", True)
        assert TOKEN not in here.records.secrets("hello")
        record = here.records.get("hello")
        assert record is not None
        assert "refresh_token" not in record.service.environment.secrets
        assert await here.bearer(service) == ""
        with pytest.raises(RuntimeError, match="invalid_grant"):
            provider.refresh(line.token, "revoking")
        with pytest.raises(NoToken):
            await here.keyring.rotate("hello")
        await here.with_token("again", given)
        with pytest.raises(TokenSpent):
            await here.keyring.rotate("again")


@pytest.mark.parametrize("revocation", ["none", "down"])
async def test_the_secret_goes_even_if_the_issuer_cannot_revoke_it(sqlite: str, revocation: str) -> None:
    async with rogue_issuer() as rogue, cluster(sqlite, issuer_settings(rogue.url)) as here:
        about = {"issuer": rogue.url, "token_endpoint": f"{rogue.url}/token"}
        if revocation == "down":
            about["revocation_endpoint"] = f"{rogue.url}/revoke"
            rogue.say("/revoke", {}, status=503)
        rogue.say(DISCOVERY, about)
        await here.with_token("hello", "opaque")
        standing = await here.keyring.revoke("hello", actor=OWNER)
        assert standing.state == "none"
        told = {"none": "offers no revocation", "down": "was not told"}[revocation]
        assert told in standing.sentence
        assert TOKEN not in here.records.secrets("hello")


async def test_a_change_at_the_same_time_does_not_bring_it_back(provider: IdentityProvider, sqlite: str) -> None:
    async with cluster(sqlite, issuer_settings(provider.issuer("revoking"))) as here:
        await here.sign_in(provider.issuer("revoking"))
        await here.with_token("hello", refresh_token(provider, "revoking"))
        before, secrets = here.records.get("hello"), dict(here.records.secrets("hello"))
        assert before is not None
        await here.keyring.revoke("hello")
        with pytest.raises(ServiceBusy):
            await here.records.replace(before, secrets, before.version)


async def test_no_secret_where_people_read(
    provider: IdentityProvider, sqlite: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets, shown = {GROUP_KEY, "Bearer c"}, []
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as lines:
        async with cluster(sqlite, issuer_settings(provider.issuer("revoking"))) as here:
            await here.sign_in(provider.issuer("revoking"))
            given = refresh_token(provider, "revoking")
            service = await here.with_token("hello", given)
            listed = await here.keyring.credentials(service, "visby", caller="Bearer c")
            secrets |= {given, listed[0].authorization.removeprefix("Bearer ")}
            token, _ = await here.keyring.token_for_member("hello", GROUP_KEY)
            line = await here.lineages.get(mark(OWNER, given))
            assert line is not None
            secrets |= {line.token, token}
            shown += [listed, line, here.keyring._exchanging.known, await here.keyring.standing("hello")]
            try:
                provider.refresh(given, "revoking")  # a used one: the whole family is over
            except RuntimeError:
                here.clock.ahead += 301
            try:
                await here.keyring.rotate("hello")
            except TokenSpent as error:
                shown += [error, error.facts, "".join(traceback.format_exception(error))]
            shown += [await here.keyring.standing("hello"), await here.keyring.history("hello")]
            await here.keyring.revoke("hello")
            shown += [await here.keyring.history("hello")]
    out, err = capsys.readouterr()
    text = _as_text([*shown, lines, caplog.text, out, err])
    assert "token.refused" in text
    assert [word for word in secrets if word in text] == []


def _as_text(values: list[Any]) -> str:
    return "\n".join(value if isinstance(value, str) else json.dumps(repr(value)) for value in values)
