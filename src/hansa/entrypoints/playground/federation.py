"""How do the clusters and their hub start, live and stop together? Whatever happens, nothing is left behind.

A signal only sets an event: stopping always goes the same way, from the end of `_live`.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from hansa.entrypoints.playground import environment, notes, plan
from hansa.entrypoints.playground import hub as joining
from hansa.entrypoints.playground.hub import Hub
from hansa.entrypoints.playground.member import Member
from hansa.entrypoints.playground.report import Report
from hansa.entrypoints.playground.server import BackOff, NotStarted, Server, in_words

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run(folder: Path, env: Mapping[str, str], report: Report) -> None:
    """The playground of this folder, until it is told to stop; raises `NotStarted` if a server does not start."""
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
        hub, members = _servers(folder, env, claims, lock)
        servers = (hub, *members)
        undo.push_async_callback(_stop, servers, report)
        undo.callback(notes.remove, folder)
        began = time.monotonic()
        async with report.starting([one.name for one in servers]):
            await _start(servers, report)
            await joining.join(hub, members)

        def write_notes() -> None:
            notes.write(folder, [one.address for one in members], hub.address)

        write_notes()
        report.federation([one.address for one in members], hub.address, time.monotonic() - began)
        async with asyncio.TaskGroup() as tasks:
            for server in servers:
                tasks.create_task(_keep(server, write_notes, report), name=f"keep {server.name}")


def _servers(folder: Path, env: Mapping[str, str], claims: ExitStack, lock: int) -> tuple[Hub, list[Member]]:
    places, own = plan.places(folder, claims), plan.hub_place(folder, claims)
    members = []
    for place in places:
        theirs = environment.for_place(place, places, env)
        members.append(Member(place, environment.checked(theirs), theirs, lock))
    its = environment.for_hub(own, env)
    return Hub(own, environment.checked(its), its, lock), members


async def _start(servers: Sequence[Server], report: Report) -> None:
    """All at once; the first that fails ends the start of the others."""

    async def start(server: Server) -> None:
        began = time.monotonic()
        await server.run()
        report.ready(server.name, time.monotonic() - began)

    failed: list[BaseException] = []
    try:
        async with asyncio.TaskGroup() as tasks:
            for one in servers:
                tasks.create_task(start(one), name=f"start {one.name}")
    except* NotStarted as failures:
        failed = list(failures.exceptions)
    if failed:
        raise failed[0]


async def _keep(server: Server, write_notes: Callable[[], None], report: Report) -> None:
    """Starts a server that died again, later and later if it keeps dying."""
    back_off = BackOff()
    while True:
        code = await server.ended()
        pause = back_off.pause()
        report.say(
            f"{server.name}: {server.kind} ended with {in_words(code)}; starting it again in {pause:g} s",
            style="yellow",
        )
        await asyncio.sleep(pause)
        back_off.began()
        try:
            await server.run()
        except NotStarted as error:
            report.failure(error)
        else:
            write_notes()  # a store may have had to take other ports
            report.say(f"{server.name}: ready again at {server.url}", style="green")


async def _stop(servers: Sequence[Server], report: Report) -> None:
    report.say("stopping")
    await asyncio.gather(*(one.stop() for one in servers))
    report.say("stopped; nothing is left running")
