"""Another cluster names the store of a job: is it asked only where that may be, for a bounded time and without keys?"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from drivers.egress.conftest import Names, Trap, trap
from drivers.oscar.rogue import rogue_server
from hansa.bootstrap import federating
from hansa.drivers.egress import AnswerTooLarge, Door, EgressRefused, EgressUnreachable, Rule
from hansa.kernel.clock import SystemClock
from real.self_signed import self_signed

KEYS = {"access_key": "AK", "secret_key": "SK", "region": "x", "verify": "true"}


@pytest.fixture
async def listening() -> AsyncIterator[Trap]:
    async with trap() as made:
        yield made


def named(url: str) -> dict[str, str]:
    return {"endpoint": url, **KEYS}


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f.1", "localhost", "[::ffff:127.0.0.1]", "rebinding.test", "169.254.169.254", "10.0.0.1"]
)
async def test_a_store_where_nobody_may_call_is_refused(listening: Trap, host: str) -> None:
    door = Door(Rule(), resolve=Names(rebinding_test=[["1.1.1.1"], ["127.0.0.1"]]), is_ours=lambda a: a.is_loopback)
    check = federating.checking(door, SystemClock())
    with pytest.raises(EgressRefused):
        await check(named(f"http://{host}:{listening.port}"), ())
    assert listening.calls == 0
    await door.close()


async def test_a_store_that_a_trusted_cluster_told_of_is_asked_without_keys(listening: Trap) -> None:
    door = Door(Rule())
    check = federating.checking(door, SystemClock())
    for _ in range(3):
        await check(named(f"http://127.0.0.1:{listening.port}"), [("127.0.0.1", listening.port)])
    (asked,) = listening.heard  # a yes holds for a moment
    assert b"AK" not in asked
    assert b"authorization" not in asked.lower()
    await door.close()


async def test_not_even_a_trusted_cluster_opens_the_inner_ports_of_our_store(listening: Trap) -> None:
    door = Door(Rule.of(["127.0.0.0/8"], never=[listening.port]))
    check = federating.checking(door, SystemClock())
    with pytest.raises(EgressRefused):
        await check(named(f"http://127.0.0.1:{listening.port}"), [("127.0.0.1", listening.port)])
    assert listening.calls == 0
    await door.close()


async def test_redirects_and_endless_and_broken_answers_lead_nowhere(listening: Trap) -> None:
    door = Door(Rule.of([f"127.0.0.1:{listening.port}"]))
    check = federating.checking(door, SystemClock())
    store = named(f"http://127.0.0.1:{listening.port}")
    async with trap() as elsewhere:
        listening.answer = (
            f"HTTP/1.1 302 Go\r\nlocation: http://127.0.0.1:{elsewhere.port}/\r\ncontent-length: 0\r\n\r\n".encode()
        )
        await check(store, ())  # something answers, which is all that is asked
        assert elsewhere.calls == 0
    for answer in (b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", b"nonsense\r\n\r\n"):
        listening.answer = answer
        with pytest.raises(EgressUnreachable):
            await federating.checking(door, SystemClock())(store, ())
    listening.answer, listening.endless = b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536
    async with asyncio.timeout(20):
        with pytest.raises(AnswerTooLarge):
            await federating.checking(door, SystemClock())(store, ())
    await door.close()


async def test_a_broken_tls_record_is_no_answer(tmp_path: Path) -> None:
    async with rogue_server(self_signed(tmp_path)) as secure:
        secure.spoil("/")
        host, port = "127.0.0.1", urlsplit(secure.url).port or 0
        door = Door(Rule.of([f"{host}:{port}"]))
        with pytest.raises(EgressUnreachable):
            await federating.checking(door, SystemClock())({**named(secure.url), "verify": "false"}, ())
        assert secure.paths() == ["/"]
        await door.close()
