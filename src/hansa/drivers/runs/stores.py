"""Which store does a path of a service mean? The cluster's own, or one whose keys came with the order.

`staging.py` asks; foreign stores are opened for one run and closed after it.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol, Self

from hansa import services
from hansa.drivers.runs.webdav import WebDav
from hansa.kernel import errors
from hansa.storage import ObjectStore

_HIDDEN = "hidden"  # what a definition shows in place of the cluster's own keys
OpenForeign = Callable[[str, Mapping[str, Any]], ObjectStore]


class UnknownProvider(errors.Invalid):
    """The service names a store that it does not define, or of a kind this engine cannot reach."""

    code = "storage.unknown-provider"


class Target(Protocol):
    """Where an output can go."""

    async def upload(self, bucket: str, key: str, source: Path) -> None: ...


class OrderStores:
    """The stores of one order, by kind and id."""

    def __init__(self, own: ObjectStore, open_foreign: OpenForeign, order: services.RunOrder) -> None:
        self._own = own
        self._open_foreign = open_foreign
        self._order = order
        self._opened: dict[tuple[str, str], ObjectStore] = {}
        self._dav: dict[str, WebDav] = {}
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    def store(self, kind: str, ident: str) -> ObjectStore:
        """For reading and writing."""
        given = self._given(kind, ident)
        if given is None:
            if (kind, ident) == ("minio", "default"):
                return self._own
            raise UnknownProvider(
                f"the store {kind}.{ident} is not defined", hint="add it to the service's storage_providers"
            )
        if kind not in ("minio", "s3"):
            raise UnknownProvider(f"a store of kind {kind} cannot be used for this", hint="use minio or s3")
        store = self._opened.get((kind, ident))
        if store is None:
            store = self._opened[kind, ident] = self._open_foreign(kind, given)
            self._closing.push_async_callback(store.close)
        return store

    def target(self, kind: str, ident: str) -> Target:
        """For writing only."""
        if kind != "webdav":
            return self.store(kind, ident)
        given = self._given(kind, ident)
        if given is None:
            raise UnknownProvider(
                f"the store webdav.{ident} is not defined", hint="add it to the service's storage_providers"
            )
        dav = self._dav.get(ident)
        if dav is None:
            dav = self._dav[ident] = WebDav(given)
            self._closing.push_async_callback(dav.close)
        return dav

    def _given(self, kind: str, ident: str) -> dict[str, Any] | None:
        """The definition with its keys; None for the cluster's own store, and for one that nobody defined.

        `minio.default` is ours unless keys came with it: a federation may make it the origin's store.
        """
        keys = self._order.providers.get(f"{kind}.{ident}")
        if (kind, ident) == ("minio", "default") and (keys or {}).get("access_key", "") in ("", _HIDDEN):
            return None
        defined = self._order.service.storage_providers.get(kind, {}).get(ident)
        if keys is None and defined is None:
            return None
        return {**(defined or {}), **(keys or {})}
