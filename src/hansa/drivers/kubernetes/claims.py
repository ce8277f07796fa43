"""How are users' volumes kept in Kubernetes? As PersistentVolumeClaims in users' namespaces. The `VolumePlaces` port.

The claim is all of it: the storage class makes what stands behind it, and what becomes of the contents of a removed one
is the class' reclaim policy. A claim that somebody deletes is not made again while we run: an empty volume would look
like one that was lost by nobody.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import structlog
from lightkube.resources.core_v1 import Event, PersistentVolumeClaim

from hansa import storage
from hansa.drivers.kubernetes import claim_manifest, labels
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.following import Follow, Key
from hansa.kernel import errors

_log = structlog.get_logger("hansa.kubernetes")
_GONE_WITHIN = 15.0  # seconds for a claim that pods still hold
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_SOON, _LOOK_EVERY = 1.0, 8.0
_FRESH = 10.0  # seconds after which the watch is believed, whatever it shows
_OF_CLAIMS = {"involvedObject.kind": "PersistentVolumeClaim"}


class VolumeBusy(errors.Temporary):
    """A former volume of that name is not gone yet: pods that use it still end."""

    code = "kubernetes.volume-busy"


class Claims:
    """`many_nodes` says that the storage class can give one volume to several nodes at once. Most cannot, and a claim
    that asks for it would wait for ever; so by default it is for one node, and pods that share it go where it is."""

    def __init__(
        self,
        api: Connection,
        cluster: str,
        *,
        ensure: Callable[[str], Awaitable[None]],
        placed: Callable[[str], str] = lambda namespace: namespace,
        namespaces: Sequence[str] = (),
        growing: bool = False,
        storage_class: str = "",
        many_nodes: bool = False,
        gid: int = 10001,
    ) -> None:
        """`ensure` makes a namespace, `placed` tells in which one something of a user's namespace is."""
        self._api = api
        self._cluster = cluster
        self._ensure = ensure
        self._placed = placed
        self._storage_class = storage_class
        self._many_nodes = many_nodes
        self._gid = gid
        marks = labels.of_cluster(cluster)
        self._follow = Follow(
            api.client, PersistentVolumeClaim, marks, self._changed, namespaces=namespaces, growing=growing
        )
        self._fresh: dict[Key, tuple[Any, float]] = {}  # made by us a moment ago, when; the watch may not know it yet
        self._unmade: dict[Key, storage.Volume] = {}  # rows whose claims are missing, since we started
        self._said: dict[Key, storage.Standing] = {}  # of those that are not bound
        self._removing: dict[Key, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        works = {"follow claims": self._follow.run(), "look after claims": self._look_after()}
        self._tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]

    def include(self, namespace: str) -> None:
        """One more namespace in which something of ours is."""
        self._follow.include(namespace)

    async def close(self) -> None:
        ending = [*self._tasks, *self._removing.values()]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    # The port.

    async def load(self, volumes: Sequence[storage.Volume]) -> None:
        """Claims that are missing are made in the background: a cluster that is away keeps nobody from starting."""
        self._unmade = {self._key(one.namespace, one.name): one for one in volumes}
        self._news.set()

    async def make(self, volume: storage.Volume) -> None:
        key = self._key(volume.namespace, volume.name)
        if (removing := self._removing.pop(key, None)) is not None:
            removing.cancel()
            await asyncio.wait({removing})
        await self._ensure(key[0])
        await self._clear(key)
        await self._apply(key, volume)

    async def remove(self, namespace: str, name: str) -> None:
        key = self._key(namespace, name)
        self._unmade.pop(key, None)
        try:
            await self._delete(key)
        except ApiUnreachable:
            self._removing[key] = asyncio.create_task(self._patiently(self._delete, key), name=f"remove claim {name}")
            self._removing[key].add_done_callback(lambda _: self._removing.pop(key, None))
        self._fresh.pop(key, None)
        self._said.pop(key, None)

    def place(self, namespace: str, name: str) -> storage.Place:
        return storage.Place(self._key(namespace, name)[1], self._gid, one_node=not self._many_nodes)

    def standing(self, namespace: str, name: str) -> storage.Standing:
        key = self._key(namespace, name)
        if (found := self._seen(key)) is not None:
            said = self._said.get(key)
            judged = claim_manifest.judged(found, None)
            return said if said is not None and said.phase == judged.phase else judged
        if key in self._said:
            return self._said[key]
        if not self._follow.synced.is_set() or key in self._unmade:
            return storage.Standing("Pending", "Kubernetes has not told of it yet")
        return storage.Standing("Lost", "its claim was deleted in Kubernetes", trouble=True)

    # Steps.

    def _key(self, namespace: str, name: str) -> Key:
        placed = self._placed(namespace)
        return placed, claim_manifest.name_of(namespace, name, placed)

    async def _apply(self, key: Key, volume: storage.Volume) -> None:
        asked = claim_manifest.claim(
            volume,
            *key,
            self._cluster,
            storage_class=self._storage_class,
            many_nodes=self._many_nodes,
        )
        try:
            self._fresh[key] = await self._api.apply(asked), time.monotonic()
        except ApiRefused as error:
            if "exceeded quota" not in error.message:
                raise
            raise storage.VolumeQuota(
                f"Kubernetes' quota does not allow it: {error.message}",
                hint="a removed volume counts until the last pod that uses it has ended: try again, or ask for more",
            ) from None
        self._news.set()

    def _seen(self, key: Key) -> Any | None:
        """What the watch shows may for a moment be the former one of that name, or nothing yet."""
        known, (made, since) = self._follow.get(key), self._fresh.get(key, (None, 0.0))
        return made if made is not None and time.monotonic() - since < _FRESH else known

    async def _clear(self, key: Key) -> None:
        """What a removal left that died on its way. Raises `VolumeExists` if it is not ours."""
        namespace, name = key
        with suppress(TimeoutError):
            async with asyncio.timeout(_GONE_WITHIN):
                while (found := await self._api.get(PersistentVolumeClaim, name, namespace)) is not None:
                    if not claim_manifest.is_ours(found, self._cluster):
                        raise storage.VolumeExists(
                            f"a claim {name} exists in namespace {namespace} of Kubernetes, and is not ours",
                            hint="choose another name",
                        )
                    if found.metadata.deletionTimestamp is None:
                        await self._api.delete(PersistentVolumeClaim, name, namespace)
                    await asyncio.sleep(_PAUSE)
                return
        raise VolumeBusy(
            f"the former volume {name} is not gone yet: pods that use it still end",
            hint="try again in a moment",
            retry_after=_LOOK_EVERY,
        )

    async def _delete(self, key: Key) -> None:
        namespace, name = key
        found = await self._api.get(PersistentVolumeClaim, name, namespace)
        if found is not None and claim_manifest.is_ours(found, self._cluster):
            await self._api.delete(PersistentVolumeClaim, name, namespace)

    async def _patiently(self, work: Callable[[Key], Coroutine[Any, Any, None]], key: Key) -> None:
        """Until the API server answers."""
        pause = _PAUSE
        while True:
            try:
                return await work(key)
            except ApiUnreachable:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except errors.HansaError as error:
                _log.warning("a claim was not removed", claim=key[1], namespace=key[0], reason=error.message)
                return None

    # What is looked at again and again.

    def _changed(self, key: Key) -> None:
        known, (made, _) = self._follow.get(key), self._fresh.get(key, (None, 0.0))
        if known is not None and made is not None and known.metadata.uid == made.metadata.uid:
            del self._fresh[key]  # from now on the watch knows better
        self._news.set()

    async def _look_after(self) -> None:
        await self._follow.synced.wait()
        pause = _SOON
        while True:
            self._news.clear()
            await self._make_missing()
            waiting = self._waiting()
            await self._explain(waiting)
            try:
                async with asyncio.timeout(pause if waiting or self._unmade else None):
                    await self._news.wait()
                pause = _SOON
            except TimeoutError:
                pause = min(pause * 2, _LOOK_EVERY)

    async def _make_missing(self) -> None:
        for key, volume in list(self._unmade.items()):
            if self._follow.get(key) is None:
                try:
                    await self._ensure(key[0])
                    await self._apply(key, volume)
                except errors.HansaError as error:
                    self._said[key] = storage.Standing("Pending", error.message, trouble=True)
                    continue
                _log.warning("a volume had no claim; it is empty now", volume=volume.name, namespace=volume.namespace)
            self._unmade.pop(key, None)

    def _waiting(self) -> dict[Key, Any]:
        """Claims that are not bound."""
        keys = {(one.metadata.namespace, one.metadata.name) for one in self._follow.all()} | self._fresh.keys()
        found = {key: one for key in keys if (one := self._seen(key)) is not None}
        waiting = {key: one for key, one in found.items() if claim_manifest.phase(one) == "Pending"}
        for key in [key for key in self._said if key not in waiting and key not in self._unmade]:
            del self._said[key]
        return waiting

    async def _explain(self, waiting: dict[Key, Any]) -> None:
        """Why they are not: it stands in events alone."""
        for namespace in {key[0] for key in waiting}:
            try:
                events = await self._api.list(Event, namespace, fields=_OF_CLAIMS)
            except (ApiUnreachable, ApiRefused, errors.NotFound):
                continue
            for key, found in waiting.items():
                last = claim_manifest.newest(events, found.metadata.uid)
                if key[0] == namespace and last is not None:
                    self._said[key] = claim_manifest.judged(found, last)
