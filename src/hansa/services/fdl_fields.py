"""Which fields may an FDL hold, and how does a YAML value become what OSCAR's JSON expects?

`fdl.py` calls `fit` on each service. YAML is looser than the wire: `cpu: 1` has to travel as "1",
`api_port: 80` as [80], `Variables` as `variables`. So scalars are read with their text beside their value,
and this table says which of the two a field wants.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import yaml

from hansa.kernel import bounded_yaml, errors, near_names

Warn = Callable[[str], None]
Fit = Callable[[Any, str, Warn], Any]

_YES = frozenset({"true", "yes", "on", "y"})
_NO = frozenset({"false", "no", "off", "n", "", "null", "~"})


class BadFdl(errors.Invalid):
    """The FDL file cannot be understood."""

    code = "fdl.invalid"


class Plain(str):
    """An unquoted scalar: its text, as a str, and the number, flag or null that YAML 1.2 reads in it."""

    value: int | float | bool | None

    def __new__(cls, text: str, value: float | bool | None) -> "Plain":
        plain = super().__new__(cls, text)
        plain.value = value
        return plain


class _Loader(bounded_yaml.BoundedLoader):
    """YAML 1.2's core scalars with their text kept.

    PyYAML's own 1.1 rules turn `no` into False, `12:30` into 750 and dates into objects that JSON cannot
    carry; OSCAR's Go clients do none of that.
    """


_Loader.yaml_implicit_resolvers = {}
for _tag, _form, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_form})$"), _first)


def _integer(text: str) -> int:
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _construct(read: Callable[[str], float | bool | None]) -> Callable[[_Loader, yaml.ScalarNode], Plain]:
    return lambda _, node: Plain(node.value, read(node.value))


_Loader.add_constructor("tag:yaml.org,2002:null", _construct(lambda _: None))
_Loader.add_constructor("tag:yaml.org,2002:bool", _construct(lambda text: text.lower() == "true"))
_Loader.add_constructor("tag:yaml.org,2002:int", _construct(_integer))
_Loader.add_constructor("tag:yaml.org,2002:float", _construct(float))


def load(text: str) -> Any:
    """The document with every unquoted scalar as `Plain`. Raises `yaml.YAMLError`."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader with fewer scalars


def settle(value: Any) -> Any:
    """Plain Python values, for the parts of a document that have no fixed form."""
    if isinstance(value, Plain):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): settle(item) for key, item in value.items()}
    if isinstance(value, list):
        return [settle(item) for item in value]
    return value


def is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, Plain) and value.value is None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" for the nearest known name, or nothing."""
    near = near_names.nearest(name.lower(), known)
    return f"; did you mean {near}?" if near else ""


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a map"
    return "a list" if isinstance(value, list) else repr(str(value)[:40])


def _refuse(where: str, wanted: str, value: Any) -> BadFdl:
    return BadFdl(f"{where} should be {wanted}, not {_shown(value)}")


def text(value: Any, where: str, warn: Warn) -> str:
    if is_empty(value):
        return ""
    if isinstance(value, str):
        return str(value)
    raise _refuse(where, "a text", value)


def flag(value: Any, where: str, warn: Warn) -> bool:
    word = str(value).lower()
    if isinstance(value, str) and word in _YES | _NO:
        return word in _YES
    raise _refuse(where, "true or false", value)


def number(value: Any, where: str, warn: Warn) -> int:
    if is_empty(value) or value == "":  # the dashboard sends "" for thresholds that are not set
        return 0
    try:
        return _integer(str(value).strip()) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        raise _refuse(where, "a whole number", value) from None


def numbers(value: Any, where: str, warn: Warn) -> list[int]:
    """A list of ports; version 3 wrote a single one, and 0 for none."""
    if is_empty(value):
        return []
    if isinstance(value, list):
        return [number(item, where, warn) for item in value]
    single = number(value, where, warn)
    return [single] if single else []


def texts(value: Any, where: str, warn: Warn) -> list[str]:
    if is_empty(value):
        return []
    if isinstance(value, list):
        return [text(item, where, warn) for item in value]
    return [text(value, where, warn)]


def text_map(value: Any, where: str, warn: Warn) -> dict[str, str]:
    if is_empty(value):
        return {}
    if not isinstance(value, Mapping):
        raise _refuse(where, "a map of names to texts", value)
    return {str(key): text(item, f"{where}.{key}", warn) for key, item in value.items()}


def anything(value: Any, where: str, warn: Warn) -> Any:
    return settle(value)


def table(fields: Mapping[str, Fit]) -> Fit:
    """A map with known fields, whatever the case of their letters. Unknown ones are kept, with a warning: the
    manager may be newer than this table."""
    canonical = {name.lower(): name for name in fields}

    def fit_table(value: Any, where: str, warn: Warn) -> dict[str, Any]:
        if is_empty(value):
            return {}
        if not isinstance(value, Mapping):
            raise _refuse(where, "a map", value)
        fitted: dict[str, Any] = {}
        for given, item in value.items():
            name = canonical.get(str(given).lower())
            if name is None:
                warn(f"{where}: unknown field {given}{did_you_mean(str(given), fields)}")
                fitted[str(given)] = settle(item)
            elif not is_empty(item):
                fitted[name] = fields[name](item, f"{where}.{name}", warn)
        return fitted

    return fit_table


def each(fit_item: Fit) -> Fit:
    """A list of such things; a single one counts as a list of one."""

    def fit_list(value: Any, where: str, warn: Warn) -> list[Any]:
        if is_empty(value):
            return []
        items = value if isinstance(value, list) else [value]
        return [fit_item(item, f"{where}[{index}]", warn) for index, item in enumerate(items)]

    return fit_list


def named(fit_item: Fit) -> Fit:
    """A map of names the author chose to such things."""

    def fit_map(value: Any, where: str, warn: Warn) -> dict[str, Any]:
        if is_empty(value):
            return {}
        if not isinstance(value, Mapping):
            raise _refuse(where, "a map", value)
        return {str(key): fit_item(item, f"{where}.{key}", warn) for key, item in value.items()}

    return fit_map


_STORAGE = {"storage_provider": text, "path": text, "suffix": texts, "prefix": texts, "options": text}
_MEMBER = table(
    {"type": text, "cluster_id": text, "service_name": text, "url": text, "ssl_verify": flag,
     "priority": number, "headers": text_map, "parent": text}
)  # fmt: skip
CLUSTERS = named(table({"endpoint": text, "auth_user": text, "auth_password": text, "ssl_verify": flag}))
_MINIO = {"endpoint": text, "verify": flag, "access_key": text, "secret_key": text, "region": text}
STORAGE_PROVIDERS = table(
    {
        "minio": named(table(_MINIO)),
        "s3": named(table(_MINIO)),
        "onedata": named(table({"oneprovider_host": text, "token": text, "space": text})),
        "webdav": named(table({"hostname": text, "login": text, "password": text})),
        "rucio": named(
            table({"host": text, "account": text, "rse": text, "refresh_token": text, "auth_host": text,
                   "oidc_audience": text, "token_endpoint": text})
        ),
    }
)  # fmt: skip
# Version 3's federation: managers still read these, Go's of version 4 ignore them.
LEGACY: Mapping[str, Fit] = {"replicas": each(_MEMBER), "delegation": text, "rescheduler_threshold": number}
SERVICE: Mapping[str, Fit] = {
    "name": text, "cluster_id": text, "memory": text, "cpu": text, "total_memory": text, "total_cpu": text,
    "ephemeral_storage_request": text, "enable_gpu": flag, "enable_sgx": flag, "image_prefetch": flag,
    "synchronous": table({"min_scale": number, "max_scale": number}),
    "federation": table(
        {"group_id": text, "topology": text, "delegation": text, "rescheduler_threshold": number,
         "members": each(_MEMBER)}
    ),
    "log_level": text, "image": text, "alpine": flag, "token": text, "file_stage_in": flag,
    "input": each(table(_STORAGE)), "output": each(table(_STORAGE)), "script": text,
    "image_pull_secrets": texts,
    "expose": table(
        {"min_scale": number, "max_scale": number, "api_port": numbers, "cpu_threshold": number,
         "rewrite_target": flag, "nodePort": numbers, "default_command": flag, "set_auth": flag,
         "auth_type": text, "health_path": text, "probe_mode": text}
    ),
    "environment": table({"variables": text_map, "secrets": text_map}),
    "annotations": text_map, "vo": text, "labels": text_map, "storage_providers": STORAGE_PROVIDERS,
    "clusters": CLUSTERS, "owner": text, "namespace": text, "interlink_node_name": text, "visibility": text,
    "allowed_users": texts, "isolation_level": text, "bucket_list": texts, "mount": table(_STORAGE),
    "volume": table({"name": text, "size": text, "mount_path": text, "lifecycle_policy": text}),
    "kserve": anything, **LEGACY,
}  # fmt: skip
_RENAMED = {"replicas": "members"}
_fit_service = table(SERVICE)


def fit(service: Mapping[str, Any], where: str, warn: Warn) -> dict[str, Any]:
    """One service of an FDL as the JSON that `POST /system/services` takes."""
    fitted = cast(dict[str, Any], _fit_service(service, where, warn))
    for name in LEGACY:
        if name in fitted:
            warn(f"{where}: {name} is the old form of federation.{_RENAMED.get(name, name)}")
    return fitted
