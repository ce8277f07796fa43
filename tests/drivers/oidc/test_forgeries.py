"""Does every forged, mutilated or monstrous token fail, quickly and for the right reason?"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import RSAKey

from drivers.oidc.hand_clock import OpenVerifier
from drivers.oidc.trusted import trusted
from hansa.drivers.oidc.tokens import look_at
from hansa.identity import errors
from hansa.kernel.errors import HansaError, Unauthenticated
from real.identity_provider import IdentityProvider
from real.rogue_issuer import rogue_issuer


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(value: object) -> str:
    return b64(json.dumps(value).encode())


def claims_of(token: str) -> dict[str, Any]:
    text = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return claims


def forged(token: str, public: dict[str, Any]) -> Iterator[tuple[str, str, type[HansaError]]]:
    """Attacks on a verifier that knows the public key, made from one good token."""
    head, body, signature = token.split(".")
    claims, kid = claims_of(token), public["kid"]
    promoted = part({**claims, "sub": "bob@test"})
    own = RSAKey.generate_key(2048)
    yield "none", f"{part({'alg': 'none'})}.{body}.", errors.TokenMalformed
    yield (
        "None with the old signature",
        f"{part({'alg': 'None', 'kid': kid})}.{body}.{signature}",
        (errors.TokenMalformed),
    )
    for secret in (
        RSAKey.import_key(public).as_pem(private=False),
        RSAKey.import_key(public).as_der(private=False),
        json.dumps(public).encode(),
    ):
        text = f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{promoted}"
        mac = b64(hmac.digest(secret, text.encode(), hashlib.sha256))
        yield "HS256 with the public key", f"{text}.{mac}", errors.TokenMalformed
    signed = jwt.encode({"alg": "RS256", "kid": kid}, claims, own)
    yield "another key under the same id", signed, errors.BadSignature
    yield "another key without an id", jwt.encode({"alg": "RS256"}, claims, own), errors.BadSignature
    carried = {"alg": "RS256", "kid": kid, "jwk": own.as_dict(private=False)}
    yield "a key in the token itself", jwt.encode(carried, claims, own), errors.BadSignature
    yield (
        "another algorithm of the same key",
        f"{part({'alg': 'PS256', 'kid': kid})}.{body}.{signature}",
        (errors.BadSignature),
    )
    yield "changed claims", f"{head}.{promoted}.{signature}", errors.BadSignature
    yield "no signature", f"{head}.{body}.", errors.BadSignature
    yield "a short signature", f"{head}.{body}.{signature[:-20]}", errors.BadSignature
    yield (
        "an unknown critical header",
        f"{part({'alg': 'RS256', 'kid': kid, 'crit': ['x'], 'x': 1})}.{body}.x",
        (errors.BadSignature),
    )


async def test_forgeries_of_a_real_token(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with open_verifier(trusted(provider.issuer())) as verifier:
        good = provider.token("alice")
        await verifier.verify(good)
        for attack, token, kind in forged(good, provider.published_keys()[0]):
            with pytest.raises(HansaError) as raised:
                await verifier.verify(token)
            assert type(raised.value) is kind, attack
        assert (await verifier.verify(good)).subject == "alice@test"


async def test_one_realms_key_does_not_sign_for_another(
    provider: IdentityProvider, open_verifier: OpenVerifier
) -> None:
    issuers = [trusted(provider.issuer(realm)) for realm in ("test", "other")]
    async with open_verifier(*issuers) as verifier, rogue_issuer() as rogue:
        good, foreign = provider.token("alice", "test"), provider.token("alice", "other")
        mixed = ".".join([foreign.split(".")[0], good.split(".")[1], foreign.split(".")[2]])
        with pytest.raises(errors.BadSignature):
            await verifier.verify(mixed)
        with pytest.raises(errors.BadSignature):
            await verifier.verify(rogue.token(iss=provider.issuer("other")))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "abc",
        "a.b",
        "a.b.c",
        "a.b.c.d.e",
        "..",
        "....",
        "0" * 64,
        f"{part([])}.{part({})}.x",
        f"{part({'alg': 'RS256'})}.{part([])}.x",
        f"{part({'alg': 'RS256'})}.{part({})}.x",
        f"{part({'alg': 'RS256'})}.{part({'iss': 7})}.x",
        f"{part({'alg': ['RS256']})}.{part({'iss': 'x'})}.x",
        f"{part({'alg': 'RS256', 'kid': 7})}.{part({'iss': 'x'})}.x",
        f"{b64(b'[' * 9000)}.{part({})}.x",
        f"{part({'alg': 'RS256'})}.{b64(b'[' * 9000)}.x",
        f"{b64(b'9' * 9000)}.{part({})}.x",
        f"{b64(bytes(range(256)))}.{part({})}.x",
        "ñ.ñ.ñ",
    ],
)
async def test_malformed_tokens(open_verifier: OpenVerifier, token: str) -> None:
    async with open_verifier(trusted("http://127.0.0.1:9")) as verifier:
        with pytest.raises(errors.TokenMalformed):
            await verifier.verify(token)


async def test_a_giant_token_is_refused_at_once(open_verifier: OpenVerifier) -> None:
    giant = f"{part({'alg': 'RS256'})}.{part({'iss': 'http://127.0.0.1:9', 'x': 'x' * 48_000})}.x"
    assert len(giant) > 64_000
    async with open_verifier(trusted("http://127.0.0.1:9")) as verifier:
        before = time.process_time()
        for _ in range(1000):
            with pytest.raises(errors.TokenMalformed):
                await verifier.verify(giant)
        assert time.process_time() - before < 1.0


@given(st.text() | st.lists(st.text(alphabet="ABCabc123-_=", max_size=40), max_size=6).map(".".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_looked_at_safely(token: str) -> None:
    with pytest.raises(Unauthenticated):
        look_at(token)


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        ({"exp": None}, errors.TokenMalformed),
        ({"exp": "tomorrow"}, errors.TokenMalformed),
        ({"exp": True}, errors.TokenMalformed),
        ({"sub": None}, errors.TokenMalformed),
        ({"sub": ""}, errors.TokenMalformed),
        ({"sub": 7}, errors.TokenMalformed),
        ({"sub": "x" * 256}, errors.TokenMalformed),
        ({"sub": "a\nb"}, errors.TokenMalformed),
        ({"typ": "ID"}, errors.NotAnAccessToken),
        ({"typ": "Refresh"}, errors.NotAnAccessToken),
        ({"nbf": time.time() + 3600}, errors.TokenNotYetValid),
        ({"exp": 1}, errors.TokenExpired),
    ],
)
async def test_well_signed_claims_must_make_sense(
    open_verifier: OpenVerifier, claims: dict[str, Any], kind: type[HansaError]
) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        with pytest.raises(kind):
            await verifier.verify(rogue.token(name="M", groups=[], **claims))


async def test_odd_but_honest_tokens_are_accepted(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        for token in (
            rogue.token(name="M", groups=[], exp=10**400),
            rogue.token(name="M", groups=[], header={"nonce": "n", "x5c": ["A" * 2000]}),
            rogue.token(name="M", groups=[], header={"kid": None}),
            rogue.token(name="line\nbreak", groups=["a", 7]),
        ):
            found = await verifier.verify(token)
            assert found.subject == "mallory@test"
            assert found.name.isprintable()


async def test_weak_and_foreign_keys_are_not_used(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue:
        public = rogue.key.as_dict(private=False)
        useless = [{**public, "use": "enc"}, {**public, "alg": "HS256"}, {"kty": "oct", "k": "AAAA"}, "x", {}]
        rogue.say("/certs", {"keys": useless})
        async with open_verifier(trusted(rogue.url)) as verifier:
            with pytest.raises(errors.IssuerUnavailable, match="no signing key"):
                await verifier.verify(rogue.token())
        rogue.say("/certs", {"keys": [*useless, public]})
        async with open_verifier(trusted(rogue.url)) as verifier:
            await verifier.verify(rogue.token(name="M", groups=[]))


async def test_a_key_serves_only_the_algorithm_it_is_published_for(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        unbound = RSAKey.import_key(rogue.key.as_pem(private=True))  # the same key, free to sign as it likes
        token = rogue.token(unbound, header={"alg": "RS512"}, name="M", groups=[])
        with pytest.raises(errors.BadSignature):
            await verifier.verify(token)
