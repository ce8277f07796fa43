"""What did a job print? From its pod while there is one, from the object store afterwards; bounded in size.

The lines of the script, and of the stager beside it, are one log in the order of their times, as Kubernetes stamps
them. It is kept in a bucket of the manager's own when a job has ended, before anything of it is discarded.
"""

import asyncio
import heapq
import time
from collections.abc import Sequence
from typing import Any

import httpx2
from lightkube import AsyncClient

from hansa.drivers.kubernetes.board import Board
from hansa.drivers.runs import log_levels
from hansa.drivers.runs.log_shares import LogShares
from hansa.kernel import clock, quantities
from hansa.kernel.errors import NotFound
from hansa.resources import NO_LIMIT
from hansa.storage import ObjectStore

_READ_WITHIN = 30.0
_REMEMBERED = 1000
_END = ".log"


class KubernetesLogs:
    """The `JobLogs` port."""

    def __init__(
        self, client: AsyncClient, board: Board, store: ObjectStore, bucket: str, limit: int, most: int = NO_LIMIT
    ) -> None:
        """`limit` is for one log, `most` for all of one owner that are kept."""
        self._shares = LogShares(most)
        self._client = client
        self._board = board
        self._store = store
        self._bucket = bucket
        self._limit = limit
        self._removed: dict[str, None] = {}  # whose pods may still be about to go

    async def read(self, name: str, *, timestamps: bool) -> str | None:
        text = await self._kept(name)
        if text is None:
            text = await self.live(name)
        if text is None or timestamps:
            return text
        return "".join(line.partition(" ")[2] + "\n" for line in text.split("\n")[:-1])

    async def keep(self, name: str, text: str, *, owner: str) -> None:
        body = text.encode(errors="replace")[: self._limit]
        whole = body if body.endswith(b"\n") or not body else body + b"\n"
        self._shares.forget(name)
        await self._make_room(owner, len(whole))
        if len(whole) > (room := self._shares.left(owner)):
            cut = whole.rfind(b"\n", 0, room) + 1
            whole = whole[:cut] + _line(self._shares.cut(len(whole) - cut)).encode()
        self._shares.set(name, owner, len(whole))
        self._shares.end(name, time.time())
        await self._put(name, whole)

    async def recall(self, ended: Sequence[tuple[str, str, float]]) -> None:
        sizes: dict[str, int] = {}
        page = ""
        while True:
            try:
                listed = await self._store.list(self._bucket, _key("").removesuffix(_END), page)
            except NotFound:
                return
            sizes |= {one.key: one.size for one in listed.objects}
            page = listed.next_page
            if not page:
                break
        there = [(name, owner, at, sizes[_key(name)]) for name, owner, at in ended if _key(name) in sizes]
        self._shares.recall(there)
        for owner in self._shares.owners():
            await self._make_room(owner, 0)

    async def _make_room(self, owner: str, size: int) -> None:
        for old in self._shares.make_room(owner, size):
            await self._put(old, _line(self._shares.dropped()).encode())

    async def _put(self, name: str, whole: bytes) -> None:
        try:
            await self._store.put(self._bucket, _key(name), whole)
        except NotFound:  # the first of all
            await self._store.create_bucket(self._bucket)
            await self._store.put(self._bucket, _key(name), whole)

    async def keep_last(self, name: str, wanted: str, level: str, text: str, *, owner: str) -> None:
        """What the pod says, and our own word on it if the service's log level lets it through."""
        own = ""
        if log_levels.lets_through(wanted, level):
            own = _line(f"hansa {level}: {text}")
        await self.keep(name, await self._longest(name) + own, owner=owner)

    async def keep_so_far(self, name: str, *, owner: str) -> None:
        """Before a pod is taken away with all it said."""
        await self.keep(name, await self._longest(name), owner=owner)

    async def _longest(self, name: str) -> str:
        """A pod that is being taken away may have lost what it said before."""
        kept, live = await asyncio.gather(self._kept(name), self.live(name))
        return max(kept or "", live or "", key=len)

    async def remove(self, name: str) -> None:
        self._removed[name] = None
        self._shares.forget(name)
        for old in list(self._removed)[:-_REMEMBERED]:
            del self._removed[old]
        try:
            await self._store.delete(self._bucket, _key(name))
        except NotFound:
            return

    async def live(self, name: str) -> str | None:
        """None if there is no pod."""
        pod = self._board.pod(name)
        if pod is None or name in self._removed:
            return None
        containers = [one.name for one in (*(pod.spec.initContainers or ()), *pod.spec.containers)]
        said = await asyncio.gather(*(self._container(pod, one) for one in containers))
        text = "".join(f"{line}\n" for line in heapq.merge(*said, key=lambda line: line.partition(" ")[0]))
        if len(text) > self._limit:
            cut = text.rfind("\n", 0, self._limit) + 1
            most = quantities.show_size(self._limit)
            text = text[:cut] + _line(f"hansa: {len(text) - cut} bytes dropped: the limit of a log is {most}")
        return text

    async def _kept(self, name: str) -> str | None:
        try:
            return (await self._store.get(self._bucket, _key(name))).decode(errors="replace")
        except NotFound:
            return None

    async def _container(self, pod: Any, container: str) -> list[str]:
        lines: list[str] = []
        size, meta = 0, pod.metadata
        try:
            async with asyncio.timeout(_READ_WITHIN):
                asked = self._client.log(
                    meta.name, namespace=meta.namespace, container=container, timestamps=True, newlines=False
                )
                async for line in asked:
                    lines.append(line)
                    size += len(line) + 1
                    if size > self._limit:
                        break
        except (httpx2.HTTPError, TimeoutError, OSError):
            return lines  # it has not begun, or its node does not answer: what came is better than nothing
        return lines


def _key(name: str) -> str:
    return f"logs/{name}{_END}"


def _line(text: str) -> str:
    return f"{clock.rfc3339_nanos(time.time())} {text}\n"
