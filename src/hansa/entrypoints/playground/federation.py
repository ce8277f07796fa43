"""How do the three clusters start, live and stop together? Whatever happens, nothing is left behind.

A signal only sets an event: stopping always goes the same way, from the end of `_live`.
"""

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from hansa.entrypoints.playground import environment, notes, plan
from hansa.entrypoints.playground.member import Address, BackOff, Member, NotStarted, in_words
from hansa.entrypoints.playground.report import Report

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run(folder: Path, env: Mapping[str, str], report: Report) -> None:
    """The playground of this folder, until it is told to stop; raises `NotStarted` if a manager does not start."""
    stop = asyncio.Event()
    for number in _STOPPING:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    environment.checked(env)  # before anything is made
    for name in environment.left_out(env):
        report.say(f"{name} is not passed on: every cluster has its own")
    waiting = asyncio.create_task(stop.wait(), name="stop")
    living = asyncio.create_task(_live(folder, env, report), name="playground")
    try:
        await asyncio.wait((waiting, living), return_when=asyncio.FIRST_COMPLETED)
        if living.done():
            living.result()
    finally:
        waiting.cancel()
        living.cancel()
        await asyncio.gather(waiting, living, return_exceptions=True)


async def _live(folder: Path, env: Mapping[str, str], report: Report) -> None:
    async with AsyncExitStack() as undo:
        lock = await undo.enter_async_context(plan.only_one(folder, report.say))
        claims = undo.enter_context(ExitStack())
        notes.remove(folder)  # of a playground that was killed
        places = plan.places(folder, claims)
        members = [_member(place, environment.for_place(place, places, env), lock) for place in places]
        undo.push_async_callback(_stop, members, report)
        undo.callback(notes.remove, folder)
        began = time.monotonic()
        async with report.starting([member.place.id for member in members]):
            addresses = await _start(members, report)
        notes.write(folder, addresses.values())
        report.federation(addresses.values(), time.monotonic() - began)
        async with asyncio.TaskGroup() as tasks:
            for member in members:
                tasks.create_task(_keep(member, folder, addresses, report), name=f"keep {member.place.id}")


def _member(place: plan.Place, env: Mapping[str, str], lock: int) -> Member:
    return Member(place, environment.checked(env), env, lock)


async def _start(members: Sequence[Member], report: Report) -> dict[str, Address]:
    """All at once; the first that fails ends the start of the others."""

    async def start(member: Member) -> Address:
        began = time.monotonic()
        address = await member.start()
        report.ready(member.place.id, time.monotonic() - began)
        return address

    failed: list[BaseException] = []
    try:
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(start(one), name=f"start {one.place.id}") for one in members]
    except* NotStarted as failures:
        failed = list(failures.exceptions)
    if failed:
        raise failed[0]
    return {address.id: address for address in (task.result() for task in started)}


async def _keep(member: Member, folder: Path, addresses: dict[str, Address], report: Report) -> None:
    """Starts a manager that died again, later and later if it keeps dying."""
    name, back_off = member.place.id, BackOff()
    while True:
        code = await member.ended()
        pause = back_off.pause()
        report.say(f"{name}: the manager ended with {in_words(code)}; starting it again in {pause:g} s", style="yellow")
        await asyncio.sleep(pause)
        back_off.began()
        try:
            addresses[name] = await member.start()
        except NotStarted as error:
            report.failure(error)
        else:
            notes.write(folder, addresses.values())  # its store may have had to take other ports
            report.say(f"{name}: ready again at {member.url}", style="green")


async def _stop(members: Sequence[Member], report: Report) -> None:
    report.say("stopping")
    await asyncio.gather(*(member.stop() for member in members))
    report.say("stopped; nothing is left running")
