"""Is a refresh token sent only where it belongs, in the right form, and every odd answer given a name?"""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from drivers.oidc.hand_clock import HandClock
from drivers.oidc.trusted import trusted
from entrypoints.cli.small_server import SmallServer
from hansa.drivers.oidc import OidcExchange, Policy
from hansa.kernel.issuer import IssuerSettings
from hansa.services.credentials import ClientRefused, InvalidGrant, Unreachable
from real.identity_provider import IdentityProvider
from real.rogue_issuer import DISCOVERY, Answer, RogueIssuer, rogue_issuer

TOKEN = "opaque+token/with&odd=characters %20"
GOOD = {"access_token": "fresh", "token_type": "Bearer", "expires_in": 120}


@asynccontextmanager
async def exchanging(*issuers: IssuerSettings, **policy: Any) -> AsyncIterator[OidcExchange]:
    clock = HandClock()
    async with httpx.AsyncClient(trust_env=False) as http:
        yield OidcExchange(
            issuers, http, policy=Policy(**{"time_limit": 3.0, **policy}), clock=clock, ticks=clock.ticks
        )


def issuer(url: str, **more: Any) -> IssuerSettings:
    return trusted(url, **{"client_id": "harbour", **more})


def jwt(**claims: Any) -> str:
    parts = [{"alg": "HS512"}, claims]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "signature"])


def published(server: SmallServer, **more: Any) -> SmallServer:
    about = {"issuer": server.url, "token_endpoint": f"{server.url}/t", "revocation_endpoint": f"{server.url}/r"}
    return server.on(f"GET {DISCOVERY}", {**about, **more}).on("POST /t", GOOD).on("POST /r", b"")


def form(server: SmallServer) -> dict[str, str]:
    asked = server.calls("POST")[-1]
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.query == {}
    return {key: values[0] for key, values in parse_qs(asked.body.decode(), strict_parsing=True).items()}


async def test_a_real_provider_rotates_and_revokes(provider: IdentityProvider) -> None:
    url = provider.issuer()
    first = provider.tokens("alice", scope="openid offline_access")["refresh_token"]
    async with exchanging(issuer(url, client_id="hansa-tests")) as driver:
        got = await driver.exchange(url, first)
        assert got.refresh_token not in (None, first)
        assert got.refresh_token is not None
        assert 290 < got.expires_in <= 300
        assert first not in repr(got)
        assert got.access_token not in repr(got)
        assert await driver.revoke(url, got.refresh_token)
        with pytest.raises(InvalidGrant):
            await driver.exchange(url, got.refresh_token)


async def test_a_public_client() -> None:
    with SmallServer() as server:
        published(server)
        async with exchanging(issuer(server.url)) as driver:
            got = await driver.exchange(server.url, TOKEN)
            assert (got.access_token, got.expires_in, got.refresh_token) == ("fresh", 120, None)
            assert form(server) == {"grant_type": "refresh_token", "refresh_token": TOKEN, "client_id": "harbour"}
            await driver.exchange(server.url, TOKEN)
            assert len(server.calls("GET")) == 1  # discovery is remembered


async def test_a_client_with_a_secret() -> None:
    with SmallServer() as server:
        published(server)
        async with exchanging(issuer(server.url, client_secret="pass:word&")) as driver:
            await driver.exchange(server.url, TOKEN)
            assert form(server) == {"grant_type": "refresh_token", "refresh_token": TOKEN}
            sent = server.calls("POST")[-1].headers["authorization"].removeprefix("Basic ")
            assert base64.b64decode(sent) == b"harbour:pass%3Aword%26"
    with SmallServer() as server:
        published(server, token_endpoint_auth_methods_supported=["client_secret_post"])
        async with exchanging(issuer(server.url, client_secret="pass:word&")) as driver:
            await driver.exchange(server.url, TOKEN)
            assert (form(server)["client_id"], form(server)["client_secret"]) == ("harbour", "pass:word&")
            assert "authorization" not in server.calls("POST")[-1].headers


async def test_a_jwt_names_its_client_and_our_secret_is_not_for_it() -> None:
    with SmallServer() as server:
        published(server)
        async with exchanging(issuer(server.url, client_secret="hush")) as driver:
            await driver.exchange(server.url, jwt(azp="oidc-agent"))
            assert form(server)["client_id"] == "oidc-agent"
            assert b"hush" not in server.calls("POST")[-1].body
            assert "authorization" not in server.calls("POST")[-1].headers
        async with exchanging(issuer(server.url, client_id="")) as driver:
            await driver.exchange(server.url, jwt(azp="oidc-agent"))
            for strange in (TOKEN, jwt(), jwt(azp=7), "a.b.c", "..", "a.bm90IGpzb24.c"):
                with pytest.raises(ClientRefused) as refused:
                    await driver.exchange(server.url, strange)
                assert "client_id" in refused.value.hint


async def test_an_issuer_nobody_configured_is_not_asked() -> None:
    with SmallServer() as server:
        published(server)
        async with exchanging(issuer("https://elsewhere.test")) as driver:
            with pytest.raises(ClientRefused):
                await driver.exchange(server.url, TOKEN)
            with pytest.raises(ClientRefused):
                await driver.revoke(server.url, TOKEN)
        assert server.seen == []


@pytest.mark.parametrize(
    "address",
    ["http://tokens.example.test/t", "ftp://127.0.0.1/t", "http://user@127.0.0.1/t", "//x", "http://[::1", "file:///t"],
)
async def test_tokens_travel_over_tls_or_stay_on_this_machine(address: str) -> None:
    with SmallServer() as server:
        published(server, token_endpoint=address)
        async with exchanging(issuer(server.url)) as driver:
            with pytest.raises(ClientRefused) as refused:
                await driver.exchange(server.url, TOKEN)
            assert TOKEN not in str(refused.value)
        assert server.calls("POST") == []


async def test_no_revocation_offered() -> None:
    with SmallServer() as server:
        published(server, revocation_endpoint=None)
        async with exchanging(issuer(server.url)) as driver:
            assert await driver.revoke(server.url, TOKEN) is False
            assert server.calls("POST") == []
    with SmallServer() as server:
        published(server)
        async with exchanging(issuer(server.url)) as driver:
            assert await driver.revoke(server.url, TOKEN)
            assert form(server) == {"token": TOKEN, "token_type_hint": "refresh_token", "client_id": "harbour"}


def said(rogue: RogueIssuer, answer: Answer) -> None:
    rogue.say(DISCOVERY, {"issuer": rogue.url, "token_endpoint": f"{rogue.url}/t"})
    rogue.answers["/t"] = answer


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(400, body(error="invalid_grant", error_description=TOKEN)), InvalidGrant),
        (Answer(401, body(error="invalid_client")), ClientRefused),
        (Answer(400, body(error=TOKEN)), ClientRefused),
        (Answer(400, b"<html>" + TOKEN.encode()), ClientRefused),
        (Answer(302, b"", {"location": "http://127.0.0.1:9/t"}), ClientRefused),
        (Answer(500, TOKEN.encode()), Unreachable),
        (Answer(429), Unreachable),
        (Answer(200, b"no json"), Unreachable),
        (Answer(200, b"[]"), Unreachable),
        (Answer(200, body(expires_in=5)), Unreachable),
        (Answer(200, body(access_token="two words")), Unreachable),
        (Answer(200, body(access_token="line\r\nX-Evil: 1")), Unreachable),
        (Answer(200, body(access_token="x" * 20_000)), Unreachable),
        (Answer(200, body(access_token="x", token_type="mac")), Unreachable),
        (Answer(200, b" " * 300_000), Unreachable),
        (Answer(never=True), Unreachable),
    ],
)
async def test_what_an_issuer_may_answer(answer: Answer, kind: type[Exception]) -> None:
    async with rogue_issuer() as rogue, exchanging(issuer(rogue.url), time_limit=0.5) as driver:
        said(rogue, answer)
        with pytest.raises(kind) as failure:
            await driver.exchange(rogue.url, TOKEN)
        assert rogue.asked["/t"] == 1
        assert TOKEN not in f"{failure.value!r} {failure.value} {vars(failure.value)}"
        assert failure.value.__cause__ is None
        if isinstance(failure.value, Unreachable):
            assert failure.value.asked  # the token may be gone


async def test_an_issuer_that_was_never_reached_has_not_got_the_token() -> None:
    async with rogue_issuer() as rogue:
        url = rogue.url
    async with exchanging(issuer(url)) as driver:
        with pytest.raises(Unreachable) as failure:
            await driver.exchange(url, TOKEN)
        assert not failure.value.asked


@pytest.mark.parametrize(
    ("told", "life"),
    [
        ({"expires_in": 90}, 90.0),
        ({"expires_in": "90"}, 90.0),
        ({"expires_in": -5}, 0.0),
        ({"expires_in": 1e12}, 7 * 86_400.0),
        ({}, 60.0),
        ({"expires_in": None}, 60.0),
        ({"expires_in": True}, 60.0),
    ],
)
async def test_how_long_a_token_lives(told: dict[str, Any], life: float) -> None:
    async with rogue_issuer() as rogue, exchanging(issuer(rogue.url)) as driver:
        said(rogue, Answer(200, body(access_token="fresh", **told)))
        assert (await driver.exchange(rogue.url, TOKEN)).expires_in == life


async def test_a_life_nobody_tells_is_read_in_the_token() -> None:
    async with rogue_issuer() as rogue, exchanging(issuer(rogue.url)) as driver:
        said(rogue, Answer(200, body(access_token=rogue.token())))
        assert 290 < (await driver.exchange(rogue.url, TOKEN)).expires_in <= 300


async def test_the_same_refresh_token_again_is_no_rotation() -> None:
    async with rogue_issuer() as rogue, exchanging(issuer(rogue.url)) as driver:
        said(rogue, Answer(200, body(access_token="fresh", refresh_token=TOKEN)))
        assert (await driver.exchange(rogue.url, TOKEN)).refresh_token is None


def test_a_clients_secret_is_not_shown() -> None:
    assert "hush" not in repr(issuer("https://host", client_secret="hush"))
