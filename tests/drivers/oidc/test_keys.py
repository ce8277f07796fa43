"""Are an issuer's keys read seldom, renewed in time, and kept while it is away?"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from drivers.oidc.hand_clock import HandClock, OpenVerifier
from drivers.oidc.trusted import trusted
from hansa.drivers.oidc import Policy
from hansa.identity import errors
from real import parts
from real.identity_provider import IdentityProvider, identity_provider
from real.rogue_issuer import DISCOVERY, Answer, RogueIssuer, rogue_issuer

_HONEST: dict[str, Any] = {"name": "M", "groups": ["g"]}


async def until(true: Callable[[], bool]) -> None:
    """Lets background tasks go on until the condition holds."""
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


async def test_fifty_first_requests_read_the_keys_once(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    tokens = [provider.token("alice", "crowded") for _ in range(10)] * 5
    async with open_verifier(trusted(provider.issuer("crowded"))) as verifier:
        found = await asyncio.gather(*(verifier.verify(token) for token in tokens))
    assert {one.subject for one in found} == {"alice@test"}
    assert provider.asked("openid-configuration", "crowded") == 1
    assert provider.asked("certs", "crowded") == 1


async def test_keys_change_while_we_run(provider: IdentityProvider, open_verifier: OpenVerifier) -> None:
    async with open_verifier(trusted(provider.issuer("turning"))) as verifier:
        old = provider.token("alice", "turning")
        await verifier.verify(old)
        provider.rotate_keys("turning", keep_old=True)
        before = provider.asked("certs", "turning")
        tokens = [provider.token("bob", "turning") for _ in range(20)]
        found = await asyncio.gather(*(verifier.verify(token) for token in tokens))
        assert {one.subject for one in found} == {"bob@test"}
        assert provider.asked("certs", "turning") == before + 1
        assert (await verifier.verify(old)).subject == "alice@test"


async def test_a_withdrawn_key_ends_remembered_tokens(
    provider: IdentityProvider, open_verifier: OpenVerifier, clock: HandClock
) -> None:
    policy = Policy(keys_fresh=60)
    async with open_verifier(trusted(provider.issuer("withdrawn")), policy=policy) as verifier:
        token = provider.token("alice", "withdrawn")
        await verifier.verify(token)
        provider.rotate_keys("withdrawn", keep_old=False)
        before = provider.asked("certs", "withdrawn")
        await verifier.verify(token)  # remembered, and nothing is old yet
        clock.ahead = 61
        await verifier.verify(token)  # still answered at once; the keys are renewed behind it
        await until(lambda: provider.asked("certs", "withdrawn") > before)
        async with asyncio.timeout(20):
            while True:
                try:
                    await verifier.verify(token)
                except errors.BadSignature:
                    break
                await asyncio.sleep(0.01)


async def test_unknown_key_ids_cannot_make_us_ask_for_each(
    provider: IdentityProvider, open_verifier: OpenVerifier, clock: HandClock
) -> None:
    async with (
        rogue_issuer() as rogue,
        open_verifier(trusted(provider.issuer("flooded"))) as verifier,
    ):
        await verifier.verify(provider.token("alice", "flooded"))
        before = provider.asked("certs", "flooded")
        junk = [rogue.token(iss=provider.issuer("flooded"), header={"kid": f"k{n}"}) for n in range(100)]
        for wave in (1, 2):
            answers = await asyncio.gather(*map(verifier.verify, junk), return_exceptions=True)
            assert {type(answer) for answer in answers} == {errors.BadSignature}
            assert provider.asked("certs", "flooded") == before + wave
            for token in junk[:10]:  # one after the other makes no difference
                with pytest.raises(errors.BadSignature):
                    await verifier.verify(token)
            assert provider.asked("certs", "flooded") == before + wave
            clock.ahead += 11


async def test_known_keys_serve_while_the_provider_is_down(open_verifier: OpenVerifier, clock: HandClock) -> None:
    parts.require("node")
    with identity_provider(realms={"test": {"access_ttl": 7200}}) as provider:
        issuer = provider.issuer()
        seen, unseen = provider.token("alice"), provider.token("bob")
        async with open_verifier(trusted(issuer)) as verifier, rogue_issuer() as rogue:
            await verifier.verify(seen)
            provider.stop()
            clock.ahead = 3600  # the keys are old by now
            for _ in range(2):
                assert (await verifier.verify(seen)).subject == "alice@test"
                assert (await verifier.verify(unseen)).subject == "bob@test"
            # Perhaps a new key: we cannot know, and say so instead of blaming the token.
            with pytest.raises(errors.IssuerUnavailable):
                await verifier.verify(rogue.token(iss=issuer, header={"kid": "new"}))
            assert (await verifier.verify(unseen)).subject == "bob@test"


async def test_an_issuer_that_is_down_from_the_start(open_verifier: OpenVerifier, clock: HandClock) -> None:
    async with rogue_issuer() as rogue:
        rogue.say(DISCOVERY, {}, status=503)
        async with open_verifier(trusted(rogue.url, name="Harbour")) as verifier:
            for _ in range(5):
                with pytest.raises(errors.IssuerUnavailable, match="Harbour") as raised:
                    await verifier.verify(rogue.token())
                assert raised.value.retry_after > 0
            assert sum(rogue.asked.values()) == 1  # it is left alone for a while
            healthy = RogueIssuer(int(rogue.url.rpartition(":")[2]))
            rogue.answers = healthy.answers
            rogue.say("/certs", {"keys": [rogue.key.as_dict(private=False)]})
            clock.ahead = 6
            assert (await verifier.verify(rogue.token(**_HONEST))).subject == "mallory@test"


async def test_a_hanging_issuer_costs_a_bounded_time(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue:
        rogue.answers["/certs"] = Answer(never=True)
        policy = Policy(time_limit=0.3)
        async with open_verifier(trusted(rogue.url), policy=policy) as verifier:
            before = time.monotonic()
            answers = await asyncio.gather(*(verifier.verify(rogue.token()) for _ in range(10)), return_exceptions=True)
            assert {type(answer) for answer in answers} == {errors.IssuerUnavailable}
            assert time.monotonic() - before < 5
            assert rogue.asked["/certs"] == 1


async def test_a_hanging_issuer_delays_nobody_whose_key_is_known(open_verifier: OpenVerifier, clock: HandClock) -> None:
    async with (
        rogue_issuer() as rogue,
        open_verifier(trusted(rogue.url), policy=Policy(keys_fresh=60)) as verifier,
    ):
        await verifier.verify(rogue.token(**_HONEST))
        rogue.answers["/certs"] = Answer(never=True)
        clock.ahead = 200  # old keys, valid token
        async with asyncio.timeout(2):
            await verifier.verify(rogue.token(**_HONEST, jti="another"))
            await until(lambda: rogue.asked["/certs"] == 2)  # asked behind our back, without an answer
            await verifier.verify(rogue.token(**_HONEST, jti="a third"))


async def test_one_who_leaves_does_not_take_the_answer_along(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue:
        rogue.answers["/certs"] = Answer(never=True)
        async with open_verifier(trusted(rogue.url), policy=Policy(time_limit=1, retry_pause=0)) as verifier:
            first = asyncio.create_task(verifier.verify(rogue.token(**_HONEST)))
            second = asyncio.create_task(verifier.verify(rogue.token(**_HONEST, jti="2")))
            await until(lambda: rogue.asked["/certs"] == 1)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            with pytest.raises(errors.IssuerUnavailable):  # it had its own answer, not a cancellation
                await second


async def test_closing_ends_what_is_under_way(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue:
        rogue.answers["/certs"] = Answer(never=True)
        async with open_verifier(trusted(rogue.url)) as verifier:
            waiting = asyncio.create_task(verifier.verify(rogue.token()))
            await until(lambda: rogue.asked["/certs"] == 1)
            await verifier.close()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert not any(name.startswith("keys of") for name in names)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/certs", Answer(body=b"no json")),
        ("/certs", Answer(body=b"[]")),
        ("/certs", Answer(body=b"[" * 100_000)),
        ("/certs", Answer(body=b'{"keys": "none"}')),
        ("/certs", Answer(status=302, headers={"location": "/elsewhere"})),
        (DISCOVERY, Answer(body=b"{}")),
        (DISCOVERY, Answer(status=404)),
    ],
)
async def test_useless_answers_are_a_fault_of_the_issuer(
    open_verifier: OpenVerifier, path: str, answer: Answer
) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        rogue.answers[path] = answer
        with pytest.raises(errors.IssuerUnavailable) as raised:
            await verifier.verify(rogue.token(**_HONEST))
        assert raised.value.hint
        assert rogue.asked["/elsewhere"] == 0


async def test_keys_at_an_odd_address_are_not_fetched(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        rogue.say(DISCOVERY, {"issuer": rogue.url, "jwks_uri": "file:///etc/passwd"})
        with pytest.raises(errors.IssuerUnavailable, match="jwks_uri"):
            await verifier.verify(rogue.token(**_HONEST))


async def test_an_answer_without_end_is_cut_off(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        rogue.say("/certs", {"keys": [rogue.key.as_dict(private=False)], "padding": "x" * 300_000})
        with pytest.raises(errors.IssuerUnavailable, match="more than"):
            await verifier.verify(rogue.token(**_HONEST))


async def test_one_issuer_does_not_speak_for_another(open_verifier: OpenVerifier) -> None:
    async with rogue_issuer() as rogue, open_verifier(trusted(rogue.url)) as verifier:
        rogue.say(DISCOVERY, {"issuer": "https://somebody.else", "jwks_uri": f"{rogue.url}/certs"})
        with pytest.raises(errors.IssuerUnavailable, match="another issuer"):
            await verifier.verify(rogue.token(**_HONEST))
        assert rogue.asked["/certs"] == 0
