"""What does Kubernetes keep of our services? Written, read and watched; what should be there decides `kept_services`.

Every object is applied by us as the manager of its fields, and only if it is ours or nobody's. What stands there as we
wrote it last is not written again. One list-then-watch of each kind shows what others do to it.
"""

import asyncio
import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from lightkube.resources.core_v1 import ConfigMap, Secret

from hansa import services
from hansa.drivers.kubernetes import service_manifest
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.following import Follow, Key
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.service_manifest import Kept, Where
from hansa.kernel import errors

_WITHIN = 15.0  # seconds for all that one change takes


class InTheWay(errors.Conflict):
    """An object of somebody else has the name that one of ours needs."""

    code = "kubernetes.in-the-way"


@dataclass(frozen=True, slots=True)
class Found:
    """A service that Kubernetes has, or why it cannot be taken for one."""

    name: str
    namespace: str
    record: services.Record | None
    secrets: Mapping[str, str]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    what: str
    behind: bool  # of an earlier version: nobody else's doing


_Stand = tuple[int, str, str, str]  # the service's version, and those of its three objects as we are shown them


class ServiceMaps:
    def __init__(self, api: Connection, homes: Namespaces) -> None:
        self._api = api
        self._homes = homes
        self._applied: dict[tuple[str, str, str], str] = {}  # kind, namespace and name, with what we wrote
        self._verified: dict[str, _Stand] = {}
        self._suspects: set[str] = set()
        self._news = asyncio.Event()
        marks = service_manifest.followed(homes.cluster)
        private = () if homes.everywhere else (homes.private,)
        self._follows = {
            kind: Follow(
                api.client,
                made,
                marks,
                functools.partial(self._changed, kind),
                namespaces=spaces,
                growing=homes.growing,
            )
            for kind, made, spaces in (
                ("ConfigMap", ConfigMap, homes.followed()),
                ("Secret", Secret, (*homes.followed(), *private)),
            )
        }
        homes.on_new(self._include)

    async def follow(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind, follow in self._follows.items():
                tasks.create_task(follow.run(), name=f"follow {kind}s of services")

    def _include(self, namespace: str) -> None:
        for follow in self._follows.values():
            follow.include(namespace)

    async def synced(self) -> None:
        """What is there is known."""
        for follow in self._follows.values():
            await follow.synced.wait()

    async def news(self, within: float) -> set[str]:
        """The services about which something changed, whoever did it; none if nothing did for so long."""
        try:
            async with asyncio.timeout(within):
                await self._news.wait()
        except TimeoutError:
            return set()
        self._news.clear()
        told, self._suspects = self._suspects, set()
        return told

    def wake(self, service: str) -> None:
        """Whoever waits for news hears of this one."""
        self._suspects.add(service)
        self._news.set()

    def check(self, record: services.Record, secrets: Mapping[str, str]) -> None:
        """Raises `DefinitionTooLarge` for what could not be kept."""
        self._rendered(record, secrets)

    async def keep(self, record: services.Record, secrets: Mapping[str, str], *, whole: bool = False) -> None:
        """It is in Kubernetes when this returns. `whole` writes also what we believe to be there."""
        made = self._rendered(record, secrets)
        try:
            async with asyncio.timeout(_WITHIN):
                try:
                    await self._write(made, record.service.owner, whole=whole)
                except errors.NotFound:  # somebody deleted a namespace
                    self._forget(*_spaces(made))
                    await self._write(made, record.service.owner, whole=True)
        except TimeoutError:
            raise ApiUnreachable(f"service {record.service.name} was not kept in time: try again") from None
        except errors.NotFound as error:
            raise ApiRefused(
                f"service {record.service.name} cannot be kept: {error.message}",
                hint="a namespace is missing: " + " and ".join(_spaces(made)),
            ) from None

    async def remove(self, record: services.Record) -> None:
        """Nothing of it is left. What is not ours stays."""
        made = self._rendered(record, {})
        name, (space, private) = record.service.name, _spaces(made)
        # Without its ConfigMap it is no service any more, whatever happens before the rest is gone.
        await self._take(ConfigMap, space, name)
        await self._take(Secret, space, name)
        await self._take(Secret, private, str(made.private.metadata and made.private.metadata.name))
        self._verified.pop(name, None)

    async def found(self) -> list[Found]:
        """All services of this cluster that Kubernetes keeps."""
        marks: dict[str, Any] = dict(service_manifest.followed(self._homes.cluster))
        maps: list[Any] = []
        for space in self._homes.listed():
            maps += await self._api.list(ConfigMap, space, marks)
        papers = await self._api.list(Secret, self._homes.private, marks)
        private = {one.metadata.name: one for one in papers}
        return [self._read(one, private) for one in maps]

    async def unknown(self, service: str) -> str:
        """Where one is kept that nobody else knows of; "" if there is none."""
        for shown in self._follows["ConfigMap"].all():
            if shown.metadata.name == service:
                space = str(shown.metadata.namespace)
                found = await self._api.get(ConfigMap, service, space)
                if found is not None and service_manifest.is_ours(found, self._homes.cluster):
                    return space
        return ""

    def is_verified(self, record: services.Record) -> bool:
        """Whether it was compared before and nothing moved since; costs next to nothing."""
        return self._verified.get(record.service.name) == self._stand(record)

    async def difference(self, record: services.Record, secrets: Mapping[str, str]) -> Difference | None:
        """In what Kubernetes has it otherwise; None if it has not. What we were shown may be a moment old, so before
        we say so, we look."""
        made, stand = self._rendered(record, secrets), self._stand(record)
        if not any(service_manifest.unlike(self._shown(one), one) for one in _objects(made)) and self._no_more(made):
            self._verified[record.service.name] = stand
            return None
        config_map, what = None, ""
        for one in _objects(made):
            meta = one.metadata
            live = await self._api.get(type(one), meta.name, meta.namespace)
            config_map = live if isinstance(one, ConfigMap) else config_map
            what = what or service_manifest.unlike(live, one)
        if not what and made.secret is None:
            space, name = _spaces(made)[0], record.service.name
            live = await self._api.get(Secret, name, space)
            if live is not None and service_manifest.is_ours(live, self._homes.cluster):
                what = f"the Secret {name} should not be there"
        if not what:
            return None
        behind = config_map is not None and service_manifest.version_of(config_map) < record.version
        return Difference(what, behind)

    def _stand(self, record: services.Record) -> _Stand:
        name, space = record.service.name, self._homes.placed(record.service.namespace)
        private = self._homes.private, service_manifest.private_name(name, self._homes.cluster)
        shown = (("ConfigMap", (space, name)), ("Secret", (space, name)), ("Secret", private))
        first, second, third = (_version(self._follows[kind].get(key)) for kind, key in shown)
        return record.version, first, second, third

    def _rendered(self, record: services.Record, secrets: Mapping[str, str]) -> Kept:
        space = self._homes.placed(record.service.namespace)
        return service_manifest.render(record, secrets, Where(self._homes.cluster, space, self._homes.private))

    async def _write(self, made: Kept, owner: str, *, whole: bool) -> None:
        space, private = _spaces(made)
        await self._homes.ensure(private)
        await self._homes.ensure(space, owner)
        for one in _objects(made):
            await self._put(one, whole=whole)
        if made.secret is None:
            name = str(made.config_map.metadata and made.config_map.metadata.name)
            if ("Secret", space, name) in self._applied or self._follows["Secret"].get((space, name)) is not None:
                await self._take(Secret, space, name)

    async def _put(self, one: Any, *, whole: bool) -> None:
        key = (type(one).__name__, str(one.metadata.namespace), str(one.metadata.name))
        mark = hashlib.sha256(msgspec.json.encode(one.to_dict())).hexdigest()
        if not whole and self._applied.get(key) == mark:
            return
        if key not in self._applied:
            found = await self._api.get(type(one), key[2], key[1])
            if found is not None and not service_manifest.is_ours(found, self._homes.cluster):
                raise InTheWay(
                    f"a {key[0]} named {key[2]} that is not ours is in namespace {key[1]}",
                    hint="choose another name for the service, or delete that object",
                )
        self._applied.pop(key, None)  # until it answers nobody knows
        await self._api.apply(one)
        self._applied[key] = mark

    async def _take(self, kind: Any, namespace: str, name: str) -> None:
        found = await self._api.get(kind, name, namespace)
        if found is not None and service_manifest.is_ours(found, self._homes.cluster):
            await self._api.delete(kind, name, namespace)
        self._applied.pop((kind.__name__, namespace, name), None)

    def _read(self, one: Any, private: Mapping[str, Any]) -> Found:
        name, space = str(one.metadata.name), str(one.metadata.namespace)
        paper = private.get(service_manifest.private_name(name, self._homes.cluster))
        if paper is None:
            trouble = f"its Secret in namespace {self._homes.private} is gone, and with it its secrets and whose it is"
            return Found(name, space, None, {}, trouble)
        try:
            record, secrets = service_manifest.read(one, paper)
        except service_manifest.UnreadableService as error:
            return Found(name, space, None, {}, error.message)
        if self._homes.placed(record.service.namespace) != space:
            return Found(name, space, None, {}, f"it belongs into namespace {record.service.namespace}")
        return Found(name, space, record, secrets)

    def _shown(self, one: Any) -> Any | None:
        return self._follows[type(one).__name__].get((one.metadata.namespace, one.metadata.name))

    def _no_more(self, made: Kept) -> bool:
        """No Secret is shown of a service that has none."""
        meta = made.config_map.metadata
        assert meta is not None
        key = (str(meta.namespace), str(meta.name))
        return made.secret is not None or self._follows["Secret"].get(key) is None

    def _forget(self, *spaces: str) -> None:
        for space in spaces:
            self._homes.forget(space)
        self._applied = {key: mark for key, mark in self._applied.items() if key[1] not in spaces}

    def _changed(self, kind: str, key: Key) -> None:
        if self._follows[kind].get(key) is None:
            self._applied.pop((kind, *key), None)
        self.wake(service_manifest.service_of(key[1], private=key[0] == self._homes.private))


def _objects(made: Kept) -> Iterator[Any]:
    """In the order they are written: a ConfigMap that is there is complete."""
    yield made.private
    if made.secret is not None:
        yield made.secret
    yield made.config_map


def _spaces(made: Kept) -> tuple[str, str]:
    assert made.config_map.metadata is not None
    assert made.private.metadata is not None
    return str(made.config_map.metadata.namespace), str(made.private.metadata.namespace)


def _version(one: Any | None) -> str:
    return "" if one is None else str(one.metadata.resourceVersion)
