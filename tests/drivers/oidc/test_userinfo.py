"""Is the issuer asked for what a token does not say, and believed only about the right user?"""

import asyncio

import pytest

from drivers.oidc.hand_clock import HandClock, OpenVerifier
from drivers.oidc.trusted import trusted
from hansa.drivers.oidc import Policy
from hansa.identity import errors
from real.identity_provider import IdentityProvider
from real.rogue_issuer import Answer, rogue_issuer


async def test_name_and_groups_come_from_userinfo(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    issuer = trusted(provider.issuer("sparse"), groups=("vo-one",))
    async with open_verifier(issuer) as verifier:
        found = await verifier.verify(provider.token("alice", "sparse"))
        assert (found.name, found.groups) == ("Alice", frozenset({"vo-test", "vo-one"}))
        with pytest.raises(errors.NotInGroup):
            await verifier.verify(provider.token("carol", "sparse"))


async def test_a_token_that_says_it_all_asks_nothing(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    before = provider.asked("userinfo")
    async with open_verifier(trusted(provider.issuer())) as verifier:
        await verifier.verify(provider.token("alice"))
    assert provider.asked("userinfo") == before


async def test_fifty_requests_with_one_token_ask_once(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with open_verifier(trusted(provider.issuer("sparse-crowded"))) as verifier:
        token = provider.token("alice", "sparse-crowded")
        found = await asyncio.gather(*(verifier.verify(token) for _ in range(50)))
        assert {one.name for one in found} == {"Alice"}
        await verifier.verify(token)
    assert provider.asked("userinfo", "sparse-crowded") == 1


async def test_a_token_the_issuer_no_longer_accepts(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with open_verifier(trusted(provider.issuer("sparse-revoked"))) as verifier:
        await verifier.verify(provider.token("bob", "sparse-revoked"))
        token = provider.token("alice", "sparse-revoked")
        provider.rotate_keys("sparse-revoked", keep_old=False)  # our keys still say yes, userinfo says no
        with pytest.raises(errors.TokenRefused):
            await verifier.verify(token)


async def test_an_answer_about_somebody_else_is_not_believed(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        rogue.say("/userinfo", {"sub": "root@test", "groups": ["wheel"]})
        with pytest.raises(errors.TokenRefused):
            await verifier.verify(rogue.token())


async def test_what_is_signed_goes_before_what_userinfo_says(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        rogue.say("/userinfo", {"sub": "mallory@test", "name": "M", "groups": ["wheel"], "exp": 10**12})
        found = await verifier.verify(rogue.token(groups=["guests"], name=""))
        assert (found.name, found.groups) == ("M", frozenset({"guests"}))
        assert found.expires < 10**11


@pytest.mark.parametrize("answer", [Answer(status=503), Answer(never=True), Answer(body=b"no json")])
async def test_userinfo_out_of_order(open_verifier: OpenVerifier, clock: HandClock, answer: Answer) -> None:
    policy = Policy(time_limit=0.3)
    async with rogue_issuer() as rogue:
        rogue.answers["/userinfo"] = answer
        async with open_verifier(trusted(rogue.url, groups=("g",)), policy=policy) as verifier:
            with pytest.raises(errors.IssuerUnavailable):  # whether the user is in the group, nobody knows
                await verifier.verify(rogue.token())
        async with open_verifier(trusted(rogue.url), policy=policy) as verifier:
            token = rogue.token()
            found = await verifier.verify(token)
            assert (found.name, found.groups) == ("mallory@test", frozenset())
            asked = rogue.asked["/userinfo"]
            await verifier.verify(token)
            assert rogue.asked["/userinfo"] == asked  # not again for a while
            rogue.say("/userinfo", {"sub": "mallory@test", "name": "M", "groups": ["g"]})
            clock.ahead = 31
            assert (await verifier.verify(token)).groups == {"g"}


async def test_a_token_without_the_scope_speaks_for_itself(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        rogue.say("/userinfo", {"error": "insufficient_scope"}, status=403)
        found = await verifier.verify(rogue.token(preferred_username="mal"))
        assert (found.name, found.groups) == ("mal", frozenset())


async def test_one_who_leaves_does_not_disturb_the_others(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue:
        rogue.answers["/userinfo"] = Answer(never=True)
        policy = Policy(time_limit=0.5)
        async with open_verifier(trusted(rogue.url), policy=policy) as verifier:
            token = rogue.token()
            first, second = (asyncio.create_task(verifier.verify(token)) for _ in range(2))
            async with asyncio.timeout(10):
                while not rogue.asked["/userinfo"]:
                    await asyncio.sleep(0.01)
            first.cancel()
            assert (await second).subject == "mallory@test"
            assert rogue.asked["/userinfo"] == 1
