"""Whose tokens are accepted, as whom, and what is said to the others? Against a real provider."""

import time

import pytest

from drivers.oidc.hand_clock import HandClock, OpenVerifier
from drivers.oidc.trusted import trusted
from hansa import identity
from hansa.drivers.oidc import OidcVerifier, Policy
from hansa.identity import errors
from hansa.kernel.errors import HansaError, Invalid
from real.identity_provider import IdentityProvider
from real.rogue_issuer import rogue_issuer


async def refusal(verifier: OidcVerifier, token: str, kind: type[HansaError]) -> HansaError:
    """The error, after a look that it helps and does not repeat the token."""
    with pytest.raises(kind) as raised:
        await verifier.verify(token)
    told = f"{raised.value} {raised.value.hint} {raised.value.facts}"
    assert raised.value.hint
    assert not any(part in told for part in token.split(".") if len(part) > 8)
    return raised.value


@pytest.mark.parametrize("realm", ["test", "curves", "pss"])
async def test_a_valid_token(provider: IdentityProvider, open_verifier: OpenVerifier, realm: str) -> None:
    async with open_verifier(trusted(provider.issuer(realm))) as verifier:
        found = await verifier.verify(provider.token("alice", realm))
    assert (found.subject, found.name, found.issuer) == ("alice@test", "Alice", provider.issuer(realm))
    assert found.groups == {"vo-test", "vo-one"}
    assert found.expires == pytest.approx(time.time() + 300, abs=30)


async def test_several_issuers_side_by_side(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    issuers = [trusted(provider.issuer(realm)) for realm in ("test", "other")]
    async with open_verifier(*issuers) as verifier:
        for realm in ("test", "other"):
            found = await verifier.verify(provider.token("bob", realm))
            assert found.issuer == provider.issuer(realm)


async def test_a_trailing_slash_makes_no_difference(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with open_verifier(trusted(provider.issuer() + "/")) as verifier:
        assert (await verifier.verify(provider.token("bob"))).subject == "bob@test"


async def test_an_expired_token_also_when_it_was_seen_before(
    provider: IdentityProvider, open_verifier: OpenVerifier, clock: HandClock
) -> None:
    async with open_verifier(trusted(provider.issuer(), name="Harbour")) as verifier:
        seen, unseen = provider.token("alice"), provider.token("bob")
        await verifier.verify(seen)
        clock.ahead = 299
        await verifier.verify(seen)
        clock.ahead = 305
        await verifier.verify(unseen)  # within the leeway
        clock.ahead = 315
        for token in (seen, unseen, provider.token("carol")):
            error = await refusal(verifier, token, errors.TokenExpired)
            assert "Harbour" in str(error)


async def test_a_token_from_the_future(
    provider: IdentityProvider, open_verifier: OpenVerifier, clock: HandClock
) -> None:
    async with open_verifier(trusted(provider.issuer())) as verifier:
        token = provider.token("alice")
        clock.ahead = -5
        await verifier.verify(provider.token("bob"))  # within the leeway
        clock.ahead = -3600
        await refusal(verifier, token, errors.TokenNotYetValid)


async def test_the_audience(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    token = provider.token("alice")
    async with open_verifier(trusted(provider.issuer(), audience="urn:hansa:test")) as verifier:
        assert (await verifier.verify(token)).subject == "alice@test"
    async with open_verifier(trusted(provider.issuer(), audience="somebody-else")) as verifier:
        error = await refusal(verifier, token, errors.WrongAudience)
        assert "somebody-else" in error.hint


async def test_an_audience_is_wanted_and_missing(open_verifier: OpenVerifier) -> None:
    async with (
        rogue_issuer() as rogue,
        open_verifier(trusted(rogue.url, audience="a")) as verifier,
    ):
        assert (await verifier.verify(rogue.token(aud=["b", "a"], groups=[], name="M"))).name == "M"
        await refusal(verifier, rogue.token(), errors.WrongAudience)
        await refusal(verifier, rogue.token(aud=["b"]), errors.WrongAudience)


async def test_groups_decide_who_gets_in(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    issuer = trusted(provider.issuer(), groups=("vo-one", " vo-two "))
    async with open_verifier(issuer) as verifier:
        assert (await verifier.verify(provider.token("alice"))).groups == {"vo-test", "vo-one"}
        for user in ("bob", "carol"):  # in another group, in none
            error = await refusal(verifier, provider.token(user), errors.NotInGroup)
            assert "vo-one, vo-two" in error.hint


@pytest.mark.parametrize("claim", ["realm_access.roles", "group_membership"])
async def test_the_groups_claim_can_be_named(
    provider: IdentityProvider, open_verifier: OpenVerifier, claim: str
) -> None:
    issuer = trusted(provider.issuer(), groups=("vo-one",), groups_claim=claim)
    async with open_verifier(issuer) as verifier:
        assert "vo-one" in (await verifier.verify(provider.token("alice"))).groups


async def test_egi_entitlements(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    issuer = trusted(provider.issuer("egi"), groups=("vo.example.eu",))
    async with open_verifier(issuer) as verifier:
        assert (await verifier.verify(provider.token("erik", "egi"))).groups == {"vo.example.eu"}
        await refusal(verifier, provider.token("alice", "egi"), errors.NotInGroup)


async def test_an_unknown_issuer_is_never_contacted(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with (
        rogue_issuer() as rogue,
        open_verifier(trusted(provider.issuer())) as verifier,
    ):
        error = await refusal(verifier, rogue.token(), errors.UnknownIssuer)
        assert provider.issuer() in error.hint
        assert not rogue.asked


async def test_no_issuer_at_all(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with open_verifier() as verifier:
        await refusal(verifier, provider.token("alice"), errors.UnknownIssuer)


async def test_an_issuer_given_twice_is_a_mistake(open_verifier: OpenVerifier) -> None:
    twice = [trusted("https://issuer.test"), trusted("https://issuer.test/")]
    with pytest.raises(Invalid):
        async with open_verifier(*twice):
            pass


async def test_sign_in_with_a_real_token(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with open_verifier(trusted(provider.issuer())) as verifier:
        signin = identity.SignIn(
            identity.Basic("oscar", "secret"), verifier, identity.Uids(provider.issuer()), ["alice@test"]
        )
        caller = await signin.caller(f"Bearer {provider.token('alice')}")
        assert (caller.kind, caller.uid, caller.admin_view) == ("user", "alice@test", True)
        with pytest.raises(errors.TokenRefused):  # a user whose subject is the admin's name
            await signin.caller(f"Bearer {provider.token('boss')}")


async def test_a_token_seen_before_costs_no_signature_check(
    provider: IdentityProvider, open_verifier: OpenVerifier
) -> None:
    async with open_verifier(trusted(provider.issuer())) as verifier:
        token = provider.token("alice")
        first = await verifier.verify(token)
        before = time.process_time()
        for _ in range(2000):
            assert await verifier.verify(token) is first
        assert time.process_time() - before < 0.5  # 250 µs each; some 10 µs are usual


async def test_remembered_tokens_are_bounded(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    policy = Policy(remembered_tokens=2)
    async with open_verifier(trusted(provider.issuer()), policy=policy) as verifier:
        tokens = [provider.token("alice") for _ in range(3)]
        first = [await verifier.verify(token) for token in tokens]
        assert await verifier.verify(tokens[2]) is first[2]
        assert await verifier.verify(tokens[0]) is not first[0]  # the oldest had to go
        assert await verifier.verify(tokens[0]) == first[0]
