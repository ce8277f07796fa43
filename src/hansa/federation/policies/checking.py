"""Are a policy's rules right? Read as their kind's type, every range and selector checked, refused with what to do."""

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from hansa.federation import document_rules, selectors
from hansa.federation.errors import BadPolicy
from hansa.federation.policies.rules import (
    RULES,
    AdmissionRules,
    FederationRules,
    MigrationRules,
    NetworkRules,
    PlacementRules,
    Rules,
    Window,
)
from hansa.federation.selector_keys import key_of, test_of
from hansa.kernel import near_names
from hansa.kernel.errors import Invalid
from hansa.kernel.hub import HubSettings
from hansa.messages.policies import PolicyKind

_MOST_RULES = 200
_MOST_WEIGHTS = 32
_WEIGHT = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_TIME = re.compile(r"(?:([01][0-9]|2[0-3]):([0-5][0-9])|24:00)")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")


def read(kind: PolicyKind, given: Mapping[str, Any]) -> Rules:
    """The rules as their type says; raises `BadPolicy`."""
    try:
        return msgspec.convert(given, RULES[kind], strict=True)
    except msgspec.ValidationError as error:
        said = str(error).replace("`$.", "`").replace("`$`", "the rules")
        raise BadPolicy(f"{kind}: {said[:1].lower()}{said[1:]}", hint=_nearest(kind, said)) from None


def checked(kind: PolicyKind, given: Mapping[str, Any], settings: HubSettings) -> Rules:
    """As `read`, and every value is one it can have."""
    rules = read(kind, given)
    match rules:
        case FederationRules():
            watched(rules, settings)
        case PlacementRules():
            _placement(rules)
        case NetworkRules():
            _network(rules)
        case MigrationRules():
            _migration(rules)
        case AdmissionRules():
            _admission(rules)
    return rules


def watched(rules: FederationRules, settings: HubSettings) -> HubSettings:
    """The hub's settings with the policy over them, by the settings' own limits."""
    said = {name: value for name, value in msgspec.structs.asdict(rules).items() if value is not None}
    try:
        return HubSettings.model_validate({**settings.model_dump(), **said})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        told = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        raise BadPolicy(f"{name}: {told}" if name else told, hint="docs/reference/settings.md, group hub") from None


def _placement(rules: PlacementRules) -> None:
    _selector("allowed", rules.allowed)
    _selector("forbidden", rules.forbidden)
    if not 0 < rules.max_share <= 1:
        raise BadPolicy("max_share must be more than 0 and at most 1", hint="0.5 is half of the copies")
    if len(rules.weights) > _MOST_WEIGHTS:
        raise BadPolicy(f"there are at most {_MOST_WEIGHTS} weights")
    for name, weight in rules.weights.items():
        if not _WEIGHT.fullmatch(name):
            raise BadPolicy(f"weights: {name[:40]!r} is no name of a score", hint="use a-z, 0-9, - and _")
        if not (math.isfinite(weight) and 0 <= weight <= 1000):
            raise BadPolicy(f"weights.{name} must be 0 to 1000")


def _network(rules: NetworkRules) -> None:
    _at_most("rules", len(rules.rules))
    for number, rule in enumerate(rules.rules):
        _selector(f"rules[{number}].source", rule.source)
        _selector(f"rules[{number}].target", rule.target)


def _migration(rules: MigrationRules) -> None:
    _at_most("paths", len(rules.paths))
    _at_most("windows", len(rules.windows))
    for number, path in enumerate(rules.paths):
        _selector(f"paths[{number}].source", path.source)
        _selector(f"paths[{number}].target", path.target)
    for number, window in enumerate(rules.windows):
        minutes(window)
        if not window.days:
            raise BadPolicy(f"windows[{number}]: it is on no day", hint="leave days out for every day")
    for name in ("bandwidth", "parallel", "parallel_per_cluster"):
        if getattr(rules, name) < 0:
            raise BadPolicy(f"{name} must not be negative", hint="0 is no limit")


def _admission(rules: AdmissionRules) -> None:
    for name, text in (("approve", rules.approve), ("required", rules.required)):
        _selector(name, text)
        document_rules.check_steady(selectors.parse(text), "who joins has not reported it yet", BadPolicy)
    if rules.least_version:
        version = key_of("version")
        assert version is not None
        try:
            test_of(version, ">=", (rules.least_version,))
        except Invalid as error:
            raise BadPolicy(f"least_version: {error.message}", hint=error.hint) from None
    if any(not region.strip() or len(region) > 255 for region in rules.regions):
        raise BadPolicy("regions must have names")
    _at_most("regions", len(rules.regions))
    if rules.most_clusters < 0:
        raise BadPolicy("most_clusters must not be negative", hint="0 is no limit")


def minutes(window: Window) -> tuple[int, int]:
    """From and to, in minutes of the day."""
    found = []
    for name, text in (("start", window.start), ("end", window.end)):
        match = _TIME.fullmatch(text)
        if match is None:
            raise BadPolicy(f"{name}: {text[:20]!r} is no time of the day", hint="write 00:00 to 24:00, UTC")
        found.append(24 * 60 if match[1] is None else int(match[1]) * 60 + int(match[2]))
    if found[0] == found[1]:
        raise BadPolicy(f"a window from {window.start} to {window.end} is empty", hint="00:00 to 24:00 is all day")
    return found[0], found[1]


def _at_most(name: str, count: int) -> None:
    if count > _MOST_RULES:
        raise BadPolicy(f"{name}: there are at most {_MOST_RULES}")


def _selector(name: str, text: str) -> None:
    try:
        selectors.parse(text)
    except Invalid as error:
        raise BadPolicy(f"{name}: {error.message}", hint=error.hint) from None


def _nearest(kind: PolicyKind, said: str) -> str:
    fields = RULES[kind].__struct_fields__
    unknown = _UNKNOWN.search(said)
    close = near_names.nearest(unknown[1], fields, cutoff=0.5) if unknown else ""
    return f"did you mean {close}?" if close else f"a {kind} policy may say: {', '.join(fields)}"
