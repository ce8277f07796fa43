"""Does what instances of a service print cost the manager little, however much and in whatever lines it is?"""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from hansa.drivers.local.instance import RecentLines
from hansa.drivers.local.launch import Exit
from hansa.drivers.local.runtime import Process, follow

CHUNK = b"\n" * 65536


class Printing:
    """Has always more to say, so many times."""

    def __init__(self, times: int) -> None:
        self._times = times

    async def output(self) -> AsyncIterator[bytes]:
        for _ in range(self._times):
            yield CHUNK

    async def wait(self) -> Exit:
        return Exit(code=0, reason="exit", seconds=0, cpu_seconds=None)


async def test_who_prints_more_than_is_taken_waits() -> None:
    loop, heard = asyncio.get_running_loop(), bytearray()
    began = loop.time()
    await follow(cast(Process, Printing(10)), heard.extend, most=20 * len(CHUNK))
    assert len(heard) == 10 * len(CHUNK)
    assert loop.time() - began > 0.4


async def test_others_are_heard_without_a_pause() -> None:
    heard = bytearray()
    assert (await follow(cast(Process, Printing(3)), heard.extend)).code == 0
    assert len(heard) == 3 * len(CHUNK)


def test_the_last_lines_are_kept_as_far_as_they_are_not_too_long() -> None:
    lines = RecentLines()
    lines.add([b"%d" % number for number in range(5000)])
    lines.add([b"x" * 65536, b"\xff odd"])
    lines.say("ended")
    kept = lines.last(100_000)
    assert (len(kept), kept[0].text) == (1000, "4003")
    assert [len(kept[-3].text), kept[-2].text, kept[-1].text] == [8192, "\ufffd odd", "hansa: ended"]
    assert [line.text for line in lines.last(1)] == ["hansa: ended"]
    assert lines.last(0) == ()
