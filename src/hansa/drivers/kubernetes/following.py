"""What is there now, and what changes? One list-then-watch for a kind, for ever, whatever happens to the API server.

A list is the truth, a watch from its version tells what came after. A watch that fails, ends or says nothing for too
long (a half-open connection is silent for ever) is followed by another list, so nothing is missed and nothing is
believed for long that is not so any more.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import structlog
from lightkube import ApiError, AsyncClient

_log = structlog.get_logger("hansa.kubernetes")
_QUIET = 60  # seconds without a word after which all is listed again
_FIRST_PAUSE, _LONGEST_PAUSE, _GONE_PAUSE = 0.2, 5.0, 60.0  # seconds
_FORBIDDEN = 403
_PAGE = 500

Key = tuple[str, str]  # namespace and name


class Follow:
    """All objects of one kind with these labels, as far as we know. `changed` hears the key of each that did."""

    def __init__(
        self,
        client: AsyncClient,
        kind: Any,
        labels: dict[str, str],
        changed: Callable[[Key], None],
        *,
        namespaces: Sequence[str] = (),
        growing: bool = False,
        quiet: int = _QUIET,
    ) -> None:
        """Of these namespaces; of all if none are given, which takes rights in all. With `growing` it is these alone,
        and those that are included later. A kind without namespaces is followed with ("",)."""
        self._client = client
        self._kind = kind
        self._labels: dict[str, Any] = dict(labels)
        self._changed = changed
        self._growing = growing
        self._namespaces = list(namespaces) if growing else list(namespaces) or ["*"]
        self._listed: set[str] = set()
        self._wake: dict[str, asyncio.Event] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._quiet = quiet
        self._known: dict[Key, Any] = {}
        self.synced = asyncio.Event()

    def get(self, key: Key) -> Any | None:
        return self._known.get(key)

    def all(self) -> list[Any]:
        return list(self._known.values())

    def include(self, namespace: str) -> None:
        """One that is followed, too, from now on. Said again, it is looked at again now."""
        if not self._growing:
            return
        if namespace in self._namespaces:
            if (event := self._wake.get(namespace)) is not None:
                event.set()
            return
        self._namespaces.append(namespace)
        if self._tasks is not None:
            self._begin(self._tasks, namespace)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._note_synced()
            for namespace in list(self._namespaces):
                self._begin(tasks, namespace)
            await asyncio.Event().wait()

    def _begin(self, tasks: asyncio.TaskGroup, namespace: str) -> None:
        self._wake[namespace] = asyncio.Event()
        tasks.create_task(self._keep(namespace), name=f"follow {self._kind.__name__}s of {namespace}")

    async def _keep(self, namespace: str) -> None:
        pause = _FIRST_PAUSE
        while True:
            self._wake[namespace].clear()
            try:
                version = await self._list(namespace)
                pause = _FIRST_PAUSE
                await self._watch(namespace, version)
            except (TimeoutError, StopAsyncIteration):
                continue  # nothing happened for a while
            except (
                httpx2.HTTPError,
                OSError,
                ValueError,
            ) as error:  # an API error, 410 among them, is the first of these
                reason = str(error) or type(error).__name__
                if self._growing and isinstance(error, ApiError) and error.status.code == _FORBIDDEN:
                    # Our rights there go with the namespace: so there is nothing.
                    self._show(namespace, {})
                    pause = _GONE_PAUSE
                else:
                    _log.info("a watch ended; listing again", kind=self._kind.__name__, reason=reason)
                await self._rest(namespace, pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _rest(self, namespace: str, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake[namespace].wait()
        except TimeoutError:
            return

    async def _list(self, namespace: str) -> str:
        async with asyncio.timeout(self._quiet):
            listing = self._client.list(self._kind, namespace=namespace or None, labels=self._labels, chunk_size=_PAGE)
            found = {_key(one): one async for one in listing}
        self._show(namespace, found)
        return str(listing.resourceVersion)

    def _show(self, namespace: str, found: dict[Key, Any]) -> None:
        """All there is in this namespace now."""
        former = {key: one for key, one in self._known.items() if namespace in ("*", key[0])}
        self._known = {key: one for key, one in self._known.items() if key not in former} | found
        self._listed.add(namespace)
        self._note_synced()
        for key in former.keys() | found.keys():
            if _version(former.get(key)) != _version(found.get(key)):
                self._changed(key)

    def _note_synced(self) -> None:
        if self._listed.issuperset(self._namespaces):
            self.synced.set()

    async def _watch(self, namespace: str, version: str) -> None:
        events = self._client.watch(
            self._kind,
            namespace=namespace or None,
            labels=self._labels,
            resource_version=version,
            server_timeout=self._quiet,
        ).__aiter__()
        while True:
            async with asyncio.timeout(self._quiet):
                what, one = await events.__anext__()
            key = _key(one)
            if what == "DELETED":
                self._known.pop(key, None)
            else:
                self._known[key] = one
            self._changed(key)


def _key(one: Any) -> Key:
    return one.metadata.namespace or "", one.metadata.name


def _version(one: Any | None) -> str | None:
    return None if one is None else one.metadata.resourceVersion
