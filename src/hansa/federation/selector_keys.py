"""What can clusters be told apart by? Every key a selector may name, and how its values are read and compared.

`selectors` reads the language; here stands what its words mean. Figures are read by `kernel.quantities`, so "0.5",
"500m" and "8Gi" mean what they mean everywhere.
"""

import fnmatch
import functools
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from hansa.federation.registry import Known
from hansa.kernel import quantities
from hansa.kernel.errors import Invalid
from hansa.messages.clusters import Kind, State

Sort = Literal["text", "choice", "list", "count", "cpu", "bytes", "number", "flag", "version"]
Test = Callable[[Known], bool]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_EQUAL, _LIKE = ("=", "!=", "in"), ("~", "!~")
OPERATORS: dict[Sort, tuple[str, ...]] = {
    "text": (*_EQUAL, *_LIKE),
    "choice": (*_EQUAL, *_LIKE),
    "list": (*_EQUAL, *_LIKE),
    "count": (*_EQUAL, *_ORDER),
    "cpu": (*_EQUAL, *_ORDER),
    "bytes": (*_EQUAL, *_ORDER),
    "number": (*_EQUAL, *_ORDER),
    "flag": ("=", "!="),
    "version": (*_EQUAL, *_ORDER, *_LIKE),
}


@dataclass(frozen=True, slots=True)
class Key:
    """One thing that is known of every cluster."""

    sort: Sort
    of: Callable[[Known], Any]
    choices: tuple[str, ...] = ()


def _fact(name: str) -> Callable[[Known], Any]:
    def of(known: Known) -> Any:  # as `facts_of`, without making all of them
        record = known.record
        return record.overrides[name] if name in record.overrides else getattr(record.told, name)

    return of


def _within(whole: str, name: str) -> Callable[[Known], Any]:
    outer = _fact(whole)
    return lambda known: getattr(outer(known), name, None)


def _total(name: str) -> Callable[[Known], Any]:
    return lambda known: getattr(known.totals, name)


def _free(name: str) -> Callable[[Known], Any]:
    all_of, used = operator.attrgetter(name), operator.attrgetter(f"{name}_used")
    return lambda known: max(0, all_of(known.totals) - used(known.totals))


def _resource(name: str, sort: Sort) -> dict[str, Key]:
    return {
        name: Key(sort, _total(name)),
        f"{name}_used": Key(sort, _total(f"{name}_used")),
        f"{name}_free": Key(sort, _free(name)),
    }


_STATE = Key("choice", lambda known: known.record.state, get_args(State))

KEYS: dict[str, Key] = {
    "id": Key("text", lambda known: known.record.id),
    "name": Key("text", _fact("name")),
    "kind": Key("choice", lambda known: known.record.kind, get_args(Kind)),
    "state": _STATE,
    "cordoned": Key("flag", lambda known: known.record.cordoned),
    "region": Key("text", _fact("region")),
    "zone": Key("text", _fact("zone")),
    "endpoint": Key("text", lambda known: known.record.endpoint),
    "latitude": Key("number", _within("coordinates", "latitude")),
    "longitude": Key("number", _within("coordinates", "longitude")),
    "version": Key("version", _fact("version")),
    "speaks": Key("list", _fact("speaks")),
    **_resource("cpu", "cpu"),
    **_resource("memory", "bytes"),
    **_resource("disk", "bytes"),
    **_resource("gpu", "count"),
    "gpu_model": Key("list", _within("abilities", "gpus")),
    "nodes": Key("count", _total("nodes")),
    "nodes_ready": Key("count", _total("nodes_ready")),
    "vms": Key("count", _total("vms")),
    "services": Key("count", _total("services")),
    "jobs_running": Key("count", _total("jobs_running")),
    "jobs_waiting": Key("count", _total("jobs_waiting")),
    "storage_used": Key("bytes", _total("storage_used")),
    "live_migration": Key("flag", _within("abilities", "live_migration")),
    "cross_cluster_network": Key("flag", _within("abilities", "cross_cluster_network")),
    "snapshots": Key("flag", _within("abilities", "snapshots")),
    "runs_services": Key("flag", _within("abilities", "services")),
    "vm_type": Key("list", _within("abilities", "vm_types")),
    "max_vms": Key("count", _within("abilities", "max_vms")),
    "max_storage": Key("bytes", _within("abilities", "max_storage")),
    "cpu_hour": Key("number", _within("cost", "cpu_hour")),
    "memory_hour": Key("number", _within("cost", "memory_hour")),
    "gpu_hour": Key("number", _within("cost", "gpu_hour")),
    "storage_month": Key("number", _within("cost", "storage_month")),
    "egress": Key("number", _within("cost", "egress")),
}
ALIASES = {"status": "state"}
LABEL = "metadata."


def key_of(name: str) -> Key | None:
    if name.startswith(LABEL):
        label = name.removeprefix(LABEL)
        labels = _fact("metadata")
        return Key("text", lambda known: labels(known).get(label))
    return KEYS.get(name)


def test_of(key: Key, sign: str, texts: Sequence[str]) -> Test:
    """The question one term asks; raises `Invalid` for a value that makes no sense."""
    if sign in _LIKE:
        like = _pattern(texts[0])
        return _where(key, like, negated=sign == "!~")
    values = [_read(key, text) for text in texts]
    of = key.of
    if sign in _ORDER:
        order, value = _ORDER[sign], values[0]
        if key.sort == "version":
            return lambda known: (found := _version(of(known))) is not None and order(found, value)
        if key.sort == "number":
            return lambda known: (found := of(known)) is not None and order(found, value)
        return lambda known: order(of(known), value)
    if key.sort == "version":
        return _where(key, lambda text: _version(text) in values, negated=sign == "!=")
    if key.sort != "list" and len(values) == 1:
        one = values[0]
        return (lambda known: of(known) != one) if sign == "!=" else (lambda known: of(known) == one)
    return _where(key, values.__contains__, negated=sign == "!=")


def _where(key: Key, wanted: Callable[[Any], bool], *, negated: bool) -> Test:
    """Whether the value is a wanted one; of a list, any of them."""
    of = key.of
    if key.sort == "list":
        return lambda known: any(wanted(one) for one in of(known)) != negated
    return lambda known: wanted(of(known)) != negated


def _pattern(text: str) -> Callable[[Any], bool]:
    match = re.compile(fnmatch.translate(text)).match
    return lambda found: found is not None and match(found) is not None


def _read(key: Key, text: str) -> Any:
    match key.sort:
        case "choice":
            if text not in key.choices:
                raise Invalid(f"{text[:40]!r} is none of its values", hint=f"use one of {', '.join(key.choices)}")
            return text
        case "flag":
            if text not in ("true", "false"):
                raise Invalid(f"{text[:40]!r} is neither true nor false", hint="use true or false")
            return text == "true"
        case "cpu":
            return _exact(quantities.parse(text) * 1000)
        case "count" | "bytes":
            return _exact(quantities.parse(text))
        case "number":
            size = _exact(quantities.parse(text.removeprefix("-")))
            return -float(size) if text.startswith("-") else float(size)
        case "version":
            if (version := _version(text)) is None:
                raise Invalid(f"{text[:40]!r} is no version", hint="write for example 1.2 or 1.2.3")
            return version
    return text


def _exact(value: Decimal) -> int | Decimal:
    """Whole numbers as such: they are compared faster."""
    return int(value) if value == value.to_integral_value() else value


_VERSION = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,7})(?:(?:-|\.?(?=dev|a|b|rc))([0-9A-Za-z.-]+))?(?:\+.*)?", re.S)


@functools.lru_cache(1024)
def _version(text: str) -> tuple[Any, ...] | None:
    """1.10 is after 1.9, 1.2 is 1.2.0, and 1.2-rc1 comes before it; None is no version at all."""
    match = _VERSION.fullmatch(text) if len(text) <= 100 else None
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    before = match[2]
    parts = re.findall(r"[0-9]{1,9}|[^0-9.-]+", before) if before else []
    steps = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return tuple(numbers), (0, steps) if before else (1, ())
