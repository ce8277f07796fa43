"""A root of trust is replaced while members call all the time, over two hubs behind one address: no call fails.

There are members that do what they are told, one that never asks what it should know, one that was away while the
roots changed, and one that joins in the middle with a token that was made before.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hansa.drivers.hub import HubLine
from hansa.federation import errors
from hansa.identity import authority
from hansa.kernel.errors import HansaError
from hansa.messages.clusters import Facts
from hansa.messages.members import Applied, Heartbeat
from journeys.hub.members import eventually
from real.hub import Hub, StartHub
from real.manager import Manager, StartManager
from real.postgres import Database
from real.relay import Relay, relay

pytestmark = pytest.mark.deep

SETTINGS = {"hub.heartbeat_every": 0.5, "hub.lease_seconds": 1.0, "hub.sync_every": 0.05}
PATIENCE = 60.0


@dataclass(slots=True)
class Calling:
    """A member's line, everything that was said over it, and everything that failed."""

    line: HubLine
    calls: int = 0
    handshakes: int = 0
    failed: list[HansaError] = field(default_factory=list)
    generation: int = 0
    over: bool = False

    async def beats(self) -> None:
        while not self.over:
            await self.beat()
            await asyncio.sleep(0.02)

    async def beat(self) -> None:
        held = self.line.held()
        assert held is not None
        self.calls += 1
        applied = msgspec.Raw(msgspec.json.encode(Applied(generation=self.generation)))
        said = Heartbeat(incarnation=held.incarnation, number=self.calls, sections={"applied": applied}, whole=True)
        await self._do(self.line.heartbeat(said))
        if self.calls % 4 == 0:
            self.handshakes += 1
            await self.line.close()  # the next call has to shake hands again

    async def watch(self) -> None:
        while not self.over:
            told = await self._do(self.line.desired(self.generation, 2))
            if told is None:
                continue
            await self._do(self.line.trust(told.roots))
            if told.renew:
                await self._do(self.line.renew())
            self.generation = told.generation

    async def _do(self, call: Awaitable[Any]) -> Any:
        try:
            return await call
        except HansaError as error:
            self.failed.append(error)
            return None


def roots(hub: Hub) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in hub.admin.get("/v1/authority").raise_for_status().json()["roots"]}


async def until(
    hub: Hub, true: Callable[[dict[str, dict[str, Any]]], bool], members: Sequence[Calling]
) -> dict[str, dict[str, Any]]:
    end = asyncio.get_running_loop().time() + PATIENCE
    while not true(found := await asyncio.to_thread(roots, hub)):
        seen = [(one["id"], one["state"], one["holders"]) for one in found.values()]
        told = [(one.generation, one.calls, one.failed) for one in members]
        assert asyncio.get_running_loop().time() < end, f"{seen}; generations, calls, failures: {told}"
        await asyncio.sleep(0.1)  # another program's state: there is nothing to await
    return found


@asynccontextmanager
async def calling(*members: Calling, watching: Sequence[Calling]) -> AsyncIterator[None]:
    """They end by themselves: a call that is cancelled in its handshake leaves its socket to the garbage collector."""
    tasks = [asyncio.ensure_future(one.beats()) for one in members]
    tasks += [asyncio.ensure_future(one.watch()) for one in watching]
    try:
        yield
    finally:
        for one in members:
            one.over = True
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*tasks)


@pytest.mark.slow
async def test_no_call_fails_while_a_root_is_replaced(
    start_hub: StartHub, postgres_database: Database, tmp_path: Path
) -> None:
    one = await asyncio.to_thread(start_hub, SETTINGS, database=postgres_database.url)
    two = await asyncio.to_thread(start_hub, SETTINGS, database=postgres_database.url, key_file=one.key_file)
    async with AsyncExitStack() as parts:
        way = await parts.enter_async_context(relay(one.members_port, two.members_port))
        members = {name: await _joined(parts, way, one, tmp_path / name) for name in ("a", "b", "c", "deaf", "away")}
        obedient, deaf, away = [members[name] for name in "abc"], members["deaf"], members["away"]
        known = list(members.values())
        early = one.token()
        (old,) = roots(one)

        async with calling(*obedient, deaf, watching=obedient):
            assert one.admin.post("/v1/authority/rotate").status_code == 202
            assert two.admin.post("/v1/authority/rotate").json()["type"] == "/problems/federation.rotation-under-way"
            new = next(iter(roots(one).keys() - {old}))
            found = await until(two, lambda now: now[old]["state"] == "retiring" and now[old]["holders"] == 2, known)
            assert found[new]["state"] == "active"
            assert found[new]["holders"] == 3  # those who do as they are told have renewed
            assert one.admin.delete(f"/v1/authority/{new}").status_code == 409

            await away.beat()  # it is back, with what it knew before
            late = await _joined(parts, way, two, tmp_path / "late", token=early)
            await late.beat()
            await asyncio.gather(deaf.line.renew(), away.line.renew())  # as each does after half the life
            await away.beat()
            found = await until(one, lambda now: now[old]["state"] == "gone", known)
            assert found[new]["holders"] == 6
            before = [member.calls for member in (*obedient, deaf)]
            await until(two, lambda now: now[old]["state"] == "gone", known)
            async with asyncio.timeout(PATIENCE):
                while any(member.calls < then + 8 for member, then in zip((*obedient, deaf), before, strict=True)):
                    await asyncio.sleep(0.05)

        everybody = [*members.values(), late]
        assert [member.failed for member in everybody] == [[]] * len(everybody)
        assert min(member.handshakes for member in (*obedient, deaf)) > 5
        for member in (*obedient,):
            assert list(authority.fingerprints(member.line.roots)) == [found[new]["fingerprint"]]
        # A token of the former root is worth nothing now: nobody could tell this hub by it.
        with pytest.raises(errors.WrongHub):
            await HubLine(tmp_path / "later").join(f"https://127.0.0.1:{way.port}", early, "later", Facts())
    for hub in (one, two):
        assert "Traceback" not in hub.log
        assert "PRIVATE KEY" not in hub.log


async def _joined(parts: AsyncExitStack, way: Relay, hub: Hub, folder: Path, *, token: str = "") -> Calling:
    line = HubLine(folder)
    parts.push_async_callback(line.close)
    token = token or await asyncio.to_thread(hub.token)
    await line.join(f"https://127.0.0.1:{way.port}", token, folder.name, Facts(name=folder.name))
    return Calling(line)


def test_a_real_manager_follows(start_hub: StartHub, start_manager: StartManager) -> None:
    """It trusts the new root, renews, and gives the old one up, without being asked twice or started again."""
    hub = start_hub(SETTINGS)
    settings = {"membership.hub": hub.members_url, "membership.token": hub.token(), "cluster.id": "visby"}
    manager = start_manager(settings)
    (old,) = roots(hub)
    eventually(lambda: hub.state("visby") == "ready", "ready")
    assert hub.admin.post("/v1/authority/rotate").status_code == 202
    new = next(iter(roots(hub).keys() - {old}))
    eventually(lambda: roots(hub)[old]["state"] == "gone", "gone")
    assert roots(hub)[new]["holders"] == 1
    assert hub.state("visby") == "ready"
    kept = json.loads((manager.data / "membership" / "hub-credentials.json").read_text())
    eventually(lambda: _trusts(manager) == {roots(hub)[new]["fingerprint"]}, "without the old root")
    assert kept["incarnation"] == 1
    assert manager.admin.get("/v1/membership").json()["state"] == "member"
    assert "Traceback" not in hub.log + manager.log


def _trusts(manager: Manager) -> set[str]:
    kept = json.loads((manager.data / "membership" / "hub-credentials.json").read_text())
    return set(authority.fingerprints(kept["roots"]))
