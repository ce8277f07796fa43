"""Which settings can be changed without a restart, and is a tree of them right?

The one table both sides go by: the hub takes nothing else into a configuration document, and a manager applies all of
these while it runs. Their types, limits and sentences are those of `settings`; nothing is said twice.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from pydantic import BaseModel

from hansa import settings
from hansa.kernel import errors, near_names

NAMES: frozenset[str] = frozenset(
    {
        "federation.lost_after",
        "federation.oscar_members",
        "federation.oscar_refresh_tokens",
        "federation.probe_ttl",
        "federation.repair_every",
        "federation.rescheduler_threshold",
        "federation.restore_replicas",
        "federation.wait_at_members",
        "images.allowed",
        "jobs.cpu",
        "jobs.keep",
        "jobs.memory",
        "jobs.queue_limit",
        "jobs.queue_limit_per_owner",
        "jobs.queue_size_per_owner",
        "jobs.run_limit",
        "jobs.time_limit",
        "log.level",
        "membership.link_probe_every",
        "quotas.buckets",
        "quotas.cpu",
        "quotas.definitions",
        "quotas.disk",
        "quotas.enforce",
        "quotas.ephemeral_storage",
        "quotas.gpu",
        "quotas.max_disk_per_volume",
        "quotas.memory",
        "quotas.min_disk_per_volume",
        "quotas.services",
        "quotas.shared_definitions",
        "quotas.storage_per_bucket",
        "quotas.volumes",
    }
)
# Who is shown credentials of people: where the operator says no, nobody else's yes counts.
ONLY_FORBIDDEN: frozenset[str] = frozenset(
    {"federation.oscar_members", "federation.oscar_refresh_tokens", "federation.restore_replicas"}
)
_GROUPS = frozenset(name.partition(".")[0] for name in NAMES)


class NotLive(errors.Invalid):
    """A configuration document may hold only settings that can be changed without a restart."""

    code = "federation.not-live"


def validated(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The tree with every value checked as in a manager's own settings file, and written in one way. Raises `NotLive`,
    or `BadSetting` for a value that a setting cannot have."""
    given = dict(leaves(tree))
    for name in given:
        if name not in NAMES:
            raise _not_live(name)
    whole = settings.read_json(msgspec.json.encode(grown({name: _written(name, given[name]) for name in given})))
    checked = whole.model_dump(mode="json", include=dict.fromkeys(_GROUPS, True))
    return grown({name: _at(checked, name) for name in given})


def leaves(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each setting of a tree by its dotted name, in the order of names."""
    for group in sorted(tree):
        inner = tree[group]
        if not isinstance(inner, Mapping):
            hint = 'for example {"jobs": {"cpu": "2"}}'
            raise settings.BadSetting(f"{group[:80]} must be a table of settings", hint=hint)
        for key in sorted(inner):
            yield f"{group}.{key}", inner[key]


def grown(flat: Mapping[str, Any]) -> dict[str, Any]:
    """A tree again, from dotted names."""
    tree: dict[str, Any] = {}
    for name in sorted(flat):
        group, _, key = name.partition(".")
        tree.setdefault(group, {})[key] = flat[name]
    return tree


def _written(name: str, value: Any) -> Any:
    """A quantity without a unit may be a number: people write 2 where they mean "2"."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and _is_text(name) else value


def _is_text(name: str) -> bool:
    group, _, key = name.partition(".")
    return _group(group).model_fields[key].annotation is str


def _group(name: str) -> type[BaseModel]:
    model = settings.Settings.model_fields[name].annotation
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    return model


def schema() -> dict[str, Any]:
    """What `validated` takes, in the words of JSON Schema."""
    groups: dict[str, Any] = {}
    for name in sorted(NAMES):
        group, _, key = name.partition(".")
        said = _group(group).model_json_schema()["properties"][key]
        one = {word: what for word, what in said.items() if word not in ("title", "default")}
        if _is_text(name):
            one["type"] = ["string", "number"]
        groups.setdefault(group, _table())["properties"][key] = one
    return {**_table(), "properties": groups, "minProperties": 1}


def _table() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _at(tree: Mapping[str, Any], name: str) -> Any:
    group, _, key = name.partition(".")
    return tree[group][key]


def _not_live(name: str) -> NotLive:
    if name in settings.names():
        hint = "set it in the cluster's own settings"
        return NotLive(f"{name} can only be changed with a restart", hint=hint, setting=name)
    close = near_names.nearest(name, sorted(NAMES), cutoff=0.5)
    hint = f"did you mean {close}?" if close else "docs/reference/settings.md lists them all"
    return NotLive(f"{name[:80]} is not a setting", hint=hint, setting=name[:80])
