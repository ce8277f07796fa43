"""Output comes live, whole, and without filling the manager."""

import asyncio
import resource
from pathlib import Path

import pytest

from .conftest import Bench, heard

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_both_streams_come_in_order(bench: Bench) -> None:
    text, exit = await bench.shell("echo one; echo two >&2; echo three")
    assert (text, exit.code) == ("one\ntwo\nthree\n", 0)


async def test_a_flood_is_not_kept(full: Bench) -> None:
    process = await full.start("sh", "-c", "head -c 150000000 /dev/zero", seconds=60)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = 0
    async for chunk in process.output():
        count += len(chunk)
    assert count == 150_000_000
    assert (await process.wait()).code == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


async def test_a_job_that_nobody_hears_can_still_be_ended(full: Bench) -> None:
    unheard = await full.start("sh", "-c", "yes")
    output = unheard.output()
    assert (await anext(output)).startswith(b"y\n")
    text, _ = await full.shell("echo others run on")
    assert text == "others run on\n"
    await unheard.stop(grace=0.2)
    assert (await unheard.wait()).reason == "stopped"
    left = b"".join([chunk async for chunk in output])
    assert len(left) <= 1 << 20, "what fits into the pipe"


async def test_output_ends_with_the_tree_not_with_the_stream(full: Bench) -> None:
    process = await full.start("sh", "-c", "echo before; exec >/dev/null 2>&1; sleep 0.3")
    assert await heard(process) == "before\n"
    assert process._exit.done()


async def test_many_at_once(full: Bench) -> None:
    results = await asyncio.gather(*(full.shell(f"echo {number}") for number in range(12)))
    assert [text for text, _ in results] == [f"{number}\n" for number in range(12)]
    assert all(exit.code == 0 for _, exit in results)


async def test_no_descriptor_is_left(full: Bench) -> None:
    await full.run("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await full.run("true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
