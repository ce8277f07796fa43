"""From an order to the plan its stager follows: which stores, what is brought, what is carried. Pure.

The cluster's own store is `minio.default`, unless keys came with the order: a replica's data lives at its origin.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hansa import services
from hansa.drivers.runs import environment
from hansa.drivers.runs.stager import s3
from hansa.drivers.runs.stager.errors import Refused
from hansa.drivers.runs.stager.plan import Fetch, Mount, Output, Plan, Store
from hansa.kernel import errors
from hansa.services import events
from hansa.storage import Keys

_OWN = ("minio", "default")
_READABLE = ("minio", "s3")


class UnknownProvider(errors.Invalid):
    """The service names a store that it does not define, or of a kind this engine cannot reach."""

    code = "storage.unknown-provider"


def plan(
    order: services.RunOrder,
    own: Store | None,
    *,
    mounted: Mapping[str, list[int]] | None = None,
    patience: float = 300.0,
) -> Plan:
    """`own` is the cluster's own store, with keys for this run; None if the run has no right to anything there."""
    return _Planning(order, own).whole(dict(mounted or {}), patience)


def brings(order: services.RunOrder) -> bool:
    """Whether files have to be fetched before the script."""
    given = isinstance(events.interpret(order.event), events.ObjectInput) and not order.service.file_stage_in
    return given or bool(order.service.mount.path)


def carries(order: services.RunOrder) -> bool:
    """Whether files have to be stored after it."""
    return bool(order.service.output or order.service.mount.path)


def with_keys(store: Store, keys: Keys) -> Store:
    """Keys that were made for a run."""
    return replace(
        store,
        access_key=keys.access_key,
        secret_key=keys.secret_key,
        session_token=keys.session_token,
        lent=True,
        asks=False,
    )


class _Planning:
    def __init__(self, order: services.RunOrder, own: Store | None) -> None:
        self._order = order
        self._own = own
        self._numbers: dict[tuple[str, str], int] = {}
        self._stores: list[Store] = []

    def whole(self, mounted: dict[str, list[int]], patience: float) -> Plan:
        service = self._order.service
        given = events.meant(events.interpret(self._order.event), service)
        fetch = mount = None
        if isinstance(given, events.ObjectInput) and not service.file_stage_in:
            number = self._number("minio", given.provider)
            fetch = Fetch(number, given.bucket, given.key, environment.input_name(given))
        if service.mount.path:
            mount = Mount(self._number(*services.provider_of(service.mount)), *services.split_path(service.mount.path))
        outputs = tuple(self._output(one, given) for one in service.output)
        return Plan(tuple(self._stores), fetch, mount, outputs, mounted, patience, self._order.disk)

    def _output(self, output: services.StorageIO, given: events.ObjectInput | events.BytesInput) -> Output:
        kind, ident = services.provider_of(output)
        bucket, folder = services.output_place(self._order.service, output, given)
        return Output(self._number(kind, ident, writing=True), bucket, folder, output.prefix, output.suffix)

    def _number(self, kind: str, ident: str, *, writing: bool = False) -> int:
        if (kind, ident) not in self._numbers:
            self._stores.append(self._store(kind, ident))
            self._numbers[kind, ident] = len(self._stores) - 1
        if kind not in _READABLE and not (writing and kind == "webdav"):
            raise UnknownProvider(f"a store of kind {kind} cannot be used for this", hint="use minio or s3")
        return self._numbers[kind, ident]

    def _store(self, kind: str, ident: str) -> Store:
        given = services.provider_given(self._order, kind, ident)
        if given is None:
            if (kind, ident) != _OWN:
                raise UnknownProvider(
                    f"the store {kind}.{ident} is not defined", hint="add it to the service's storage_providers"
                )
            if self._own is None:
                raise errors.Forbidden("this run has no right to anything in the cluster's own store")
            return self._own
        made = _webdav(given) if kind == "webdav" else _s3(given)
        name = f"{kind}.{ident}"
        try:
            s3.server_of(made)
        except Refused as error:
            raise UnknownProvider(f"{name}: {error}", hint="correct it in the service's storage_providers") from error
        return replace(made, vouched=name in self._order.vouched, lent=name in self._order.lent)


def _s3(config: Mapping[str, Any]) -> Store:
    return Store(
        kind="s3",
        endpoint=str(config.get("endpoint") or ""),
        region=str(config.get("region") or ""),
        verify=_verify(config),
        access_key=str(config.get("access_key") or ""),
        secret_key=str(config.get("secret_key") or ""),
        session_token=str(config.get("session_token") or ""),
    )


def _webdav(config: Mapping[str, Any]) -> Store:
    host = str(config.get("hostname") or "").strip().rstrip("/")
    return Store(
        kind="webdav",
        endpoint=host if "://" in host else f"https://{host}",
        verify=_verify(config),
        access_key=str(config.get("login") or ""),
        secret_key=str(config.get("password") or ""),
    )


def _verify(config: Mapping[str, Any]) -> bool:
    return str(config.get("verify", "true")).lower() != "false"
