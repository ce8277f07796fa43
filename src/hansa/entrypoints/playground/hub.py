"""The playground's hub, and how the clusters become members of its federation.

A manager that belongs already is left alone, so a playground that starts again is as it was; one that does not, or
whose hub is not this one any more, joins with a token made for it.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from hansa import settings
from hansa.client import AsyncHubClient, errors
from hansa.entrypoints.playground.member import Member
from hansa.entrypoints.playground.plan import HubPlace
from hansa.entrypoints.playground.server import NotStarted, Server, reached
from hansa.messages.clusters import NewToken
from hansa.messages.membership import JoinHub, Membership
from hansa.settings import Settings

_SLOW = 30.0  # seconds for a manager to join
_HEARD_SECONDS = 15.0
_ASK_EVERY = 0.1
_PATH = "/v1/membership"
_BELONGS = frozenset({"joining", "pending", "member", "leaving"})


@dataclass(frozen=True, slots=True)
class HubAddress:
    """How to reach the hub."""

    url: str
    admin_user: str
    admin_password: str


class Hub(Server):
    def __init__(self, place: HubPlace, given: Settings, env: Mapping[str, str], lock: int) -> None:
        url = f"http://{reached(given.hub.host)}:{place.port}"
        super().__init__("hub", "the hub", place.log, url, env, lock)
        self.auth = (given.admin.user, settings.admin_password(given))
        self.members_url = f"https://{reached(given.hub.members_host)}:{place.members_port}"

    @property
    def address(self) -> HubAddress:
        return HubAddress(self.url, *self.auth)

    async def look(self, http: httpx.AsyncClient) -> None:
        answer = await http.get("/v1/federation/status", auth=self.auth)
        if answer.status_code != 200:
            raise self.not_started(f"answers {answer.status_code} to its admin; does another server use {self.url}?")

    def client(self) -> AsyncHubClient:
        user, password = self.auth
        return AsyncHubClient(self.url, user=user, password=password, trust_env=False)


async def join(hub: Hub, members: Sequence[Member]) -> None:
    """Returns when the hub has heard of every member; raises `NotStarted` if one cannot join."""
    began = time.time()
    async with hub.client() as client:
        failed: list[BaseException] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                for member in members:
                    tasks.create_task(_join(client, hub, member), name=f"join {member.name}")
        except* NotStarted as failures:
            failed = list(failures.exceptions)
        if failed:
            raise failed[0]
        await _heard(client, {member.name for member in members}, began)


async def _join(client: AsyncHubClient, hub: Hub, member: Member) -> None:
    try:
        async with member.asking(member.auth) as http:
            found = _standing(member, await http.get(_PATH))
            if found.state in _BELONGS and found.hub == hub.members_url and await _is_known(client, member.name):
                return
            if found.state in _BELONGS:
                _standing(member, await http.delete(_PATH, params={"force": "true"}))
            token = (await client.create_token(NewToken(cluster=member.name, minutes=10))).token
            said = msgspec.json.encode(JoinHub(hub=hub.members_url, token=token))
            _standing(member, await http.post(_PATH, content=said, timeout=_SLOW))
    except (errors.HubError, httpx.HTTPError) as error:
        raise member.not_started(f"does not join the hub: {error}") from error


def _standing(member: Member, answer: httpx.Response) -> Membership:
    if answer.is_success:
        return msgspec.json.decode(answer.content, type=Membership)
    try:
        said = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        said = {}
    raise member.not_started(f"does not join the hub: {said.get('detail') or answer.status_code}")


async def _is_known(client: AsyncHubClient, cluster: str) -> bool:
    try:
        return (await client.cluster(cluster)).state != "left"
    except errors.NotFound:
        return False


async def _heard(client: AsyncHubClient, wanted: set[str], since: float) -> None:
    """Until all have reported; one that takes longer shows up later, and says itself what holds it up."""
    give_up = time.monotonic() + _HEARD_SECONDS
    while time.monotonic() < give_up:
        found = (await client.clusters()).clusters
        if wanted <= {one.id for one in found if one.seen is not None and one.seen >= since}:
            return
        await asyncio.sleep(_ASK_EVERY)
