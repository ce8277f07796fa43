"""Does the hub show a password only at the address it was given for, also when two register at once?"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from federation import small_federation
from federation.small_federation import ADMIN
from hansa import bootstrap
from hansa.bootstrap import HubApp
from hansa.federation import acting, outsiders
from hansa.federation.errors import ChangedMeanwhile
from hansa.federation.outsiders import Login
from hansa.messages.clusters import Facts, NewOscarCluster
from hansa.messages.members import Totals
from hansa.settings import Settings


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = "" if request.param == "sqlite" else str(request.getfixturevalue("postgres_database").url)
    return small_federation.settings(tmp_path, database={"url": url})


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[HubApp]:
    async with bootstrap.opened_hub(settings) as opened:
        yield opened


@dataclass
class Meeting:
    """Clusters that answer when so many were asked; what is kept is kept as ever."""

    kept: outsiders.Outsiders
    expected: int
    asked: int = 0
    all_there: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, facts: Facts, login: Login) -> Totals:
        self.asked += 1
        if self.asked >= self.expected:
            self.all_there.set()
        await self.all_there.wait()
        return Totals()

    def sealed(self, cluster: str, login: Login) -> bytes:
        return self.kept.sealed(cluster, login)

    async def login(self, cluster: str) -> Login | None:
        return await self.kept.login(cluster)


async def test_who_comes_second_leaves_nothing_behind(app: HubApp) -> None:
    meeting = Meeting(app.outsiders, expected=5)

    async def register(number: int) -> str:
        wanted = NewOscarCluster(
            id="gdansk", endpoint=f"https://{number}.example.org", user=f"user-{number}", password=f"secret-{number}"
        )
        known = await outsiders.register(app.hub, meeting, ADMIN, wanted)
        return known.record.told.endpoint

    ended = await asyncio.gather(*map(register, range(5)), return_exceptions=True)
    won = [one for one in ended if isinstance(one, str)]
    assert len(won) == 1
    assert all(isinstance(one, ChangedMeanwhile) for one in ended if not isinstance(one, str))
    login = await app.outsiders.login("gdansk")
    assert login is not None
    assert won == [f"https://{login.user.removeprefix('user-')}.example.org"]
    assert login.password.removeprefix("secret-") == login.user.removeprefix("user-")


async def test_what_one_of_them_says_keeps_no_other_from_being_heard(app: HubApp) -> None:
    """Not even if its answer is something that nobody foresaw."""

    class Odd(Meeting):
        async def ask(self, facts: Facts, login: Login) -> Totals:
            if facts.endpoint == "https://gdansk.example.org" and self.asked >= 2:
                raise ssl.SSLError("bad record")
            self.asked += 1
            return Totals(cpu=self.asked)

    odd = Odd(app.outsiders, expected=0)
    for name in ("gdansk", "riga"):
        wanted = NewOscarCluster(id=name, endpoint=f"https://{name}.example.org", user="user", password="secret")
        await outsiders.register(app.hub, odd, ADMIN, wanted)
    fence = await app.hub.leases.hold("probes", 60)
    assert fence is not None
    await outsiders.probe_all(app.hub, odd, fence)
    assert [acting.get(app.hub, name).totals.cpu for name in ("gdansk", "riga")] == [1, 3]
