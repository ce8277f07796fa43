"""Which addresses does a definition have its runs call, and may they? Its storage providers, of every kind.

Pure: this looks at what is written alone. `calling_out` also asks where names lead today.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from hansa.kernel.egress import HINT, BadTarget, Pair, Rule, may_name, target_of
from hansa.services.errors import BadService

Providers = Mapping[str, Mapping[str, Mapping[str, Any]]]

_STORES = ("minio", "s3")  # which ask every caller for a signature
_MOST = 256
_ADDRESSES = ("endpoint", "hostname", "host", "url")
_REGION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
_AMAZONS = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)


class Place(NamedTuple):
    """One address, and the field that names it."""

    kind: str
    field: str
    url: str

    def known(self, stores: Collection[Pair]) -> Collection[Pair]:
        """Who knows where a store is knows nothing of other servers at that address."""
        return stores if self.kind in _STORES else ()


def of(providers: Providers) -> Iterator[Place]:
    for kind, by_id in providers.items():
        for ident, given in by_id.items():
            for key, value in given.items():
                named = key in _ADDRESSES or key.endswith(tuple(f"_{word}" for word in _ADDRESSES))
                if named and isinstance(value, str) and value.strip():
                    yield Place(kind, f"storage_providers.{kind[:40]}.{ident[:40]}.{key[:40]}", value)


def check(providers: Providers, rule: Rule, stores: Collection[Pair] = ()) -> None:
    """Raises `BadService` for an address that could never be called, or that this manager may not call; `stores` are
    known without the operator's naming them."""
    if sum(len(by_id) for by_id in providers.values()) > _MOST:
        raise BadService(f"storage_providers has more than {_MOST} entries")
    for place in of(providers):
        try:
            target = target_of(place.url, scheme="https")
        except BadTarget as error:
            raise BadService(f"{place.field}: {error.message}", hint=error.hint) from error
        if why := may_name(target.host, target.port, rule.with_pairs(place.known(stores))):
            raise BadService(f"{place.field}: this manager does not call {target.host}: {why}", hint=HINT)
    for kind, by_id in providers.items():
        for ident, given in by_id.items():
            _check_region(f"storage_providers.{kind[:40]}.{ident[:40]}.region", given)


def _check_region(field: str, given: Mapping[str, Any]) -> None:
    """Without an endpoint the region becomes part of the host that is called."""
    region = given.get("region")
    if region and not (_REGION if given.get("endpoint") else _AMAZONS).fullmatch(str(region)):
        raise BadService(f"{field} is not the name of a region", hint="for example eu-west-1")
