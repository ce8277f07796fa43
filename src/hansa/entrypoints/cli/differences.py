"""What would an update change? Compares the service a file asks for with the one a manager has. Pure.

Only fields the file gives count: a manager fills in the rest. What it writes in another form (paths,
quantities, log levels) is compared by meaning; secrets cannot be read back, so they are only named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hansa.entrypoints.cli import secrets
from hansa.kernel import errors, quantities

_QUANTITIES = frozenset({"cpu", "memory", "total_cpu", "total_memory", "ephemeral_storage_request"})
_UNREADABLE = frozenset({"access_key", "secret_key", "auth_password", "password", "refresh_token", "token"})
# Made by the manager, or legacy fields that it translates.
_IGNORED = frozenset({"token", "owner", "namespace", "replicas", "delegation", "rescheduler_threshold"})
_HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Change:
    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.before == _HIDDEN:
            return f"{self.field}: set again (its value cannot be compared)"
        return f"{self.field}: {_short(self.before)} → {_short(self.after)}"


def between(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[Change]:
    name = str(wanted.get("name", ""))
    changes: list[Change] = []
    for field, value in wanted.items():
        if field not in _IGNORED:
            changes += _compare(field, existing.get(field), value, name)
    return changes


def _compare(where: str, before: Any, after: Any, service: str) -> Iterator[Change]:
    leaf = where.rpartition(".")[2]
    if isinstance(after, Mapping):
        known = before if isinstance(before, Mapping) else {}
        for key, value in after.items():
            if leaf == "secrets" or (key in _UNREADABLE and value):
                yield Change(f"{where}.{key}", _HIDDEN, secrets.MASK)
            else:
                yield from _compare(f"{where}.{key}", known.get(key), value, service)
    elif isinstance(after, list) and isinstance(before, list) and len(after) == len(before):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _compare(f"{where}[{index}]", old, new, service)
    elif _meaning(leaf, before, service) != _meaning(leaf, after, service):
        yield Change(where, secrets.hide(before), secrets.hide(after))


def _meaning(leaf: str, value: Any, service: str) -> Any:
    """A form in which equal things are equal; everything empty is the same."""
    if value in (None, "", 0, False, [], {}):
        return None
    if not isinstance(value, str):
        return value
    if leaf in _QUANTITIES:
        try:
            return quantities.parse(value)
        except errors.Invalid:
            return value
    if leaf == "path":
        tidy = value.strip(" /")
        return tidy if "/" in tidy else f"{service}/{tidy}"
    if leaf == "storage_provider":
        kind, _, ident = value.partition(".")
        return f"{kind.lower()}.{ident or 'default'}"
    if leaf in ("log_level", "isolation_level"):
        return value.upper()
    return value


def _short(value: Any) -> str:
    if value in (None, "", [], {}):
        return "nothing"
    if isinstance(value, str) and "\n" in value:
        return f"{value.count(chr(10))} lines"
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
