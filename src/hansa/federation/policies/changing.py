"""What people do with policies: write a new version, try it out first, take it away. Each is one conditional write."""

from collections.abc import Callable
from typing import Any

import msgspec

from hansa.federation import acting, document_rules
from hansa.federation.documents import DocumentRecord
from hansa.federation.errors import BadPolicy, ChangedMeanwhile, SecondPolicy
from hansa.federation.learning import learn
from hansa.federation.policies import checking, effects, in_force
from hansa.federation.policies.rules import ONE_ONLY, Rules
from hansa.federation.ports import Note
from hansa.federation.room import Hub
from hansa.federation.shelf import missing
from hansa.identity import Caller
from hansa.messages.policies import DryRun, NewPolicy, Policies, Policy, PolicyKind, PolicyVersions

_TRIES = 5
_MOST_EFFECTS = 500


async def put(hub: Hub, caller: Caller, name: str, new: NewPolicy) -> DocumentRecord:
    """The next version, in force at once; the newest as it is if nothing would be different."""
    acting.require_admin(caller)
    rules = _checked(hub, name, new)
    body = {"kind": new.kind, "rules": msgspec.to_builtins(rules)}

    def decide(newest: DocumentRecord | None) -> dict[str, Any] | None:
        document_rules.check_expected(newest, new.expected)
        _check_kind(hub, name, newest, new.kind)
        return body

    return await _publish(hub, caller, name, new.comment, decide)


async def remove(hub: Hub, caller: Caller, name: str) -> DocumentRecord:
    """Its history stays."""
    acting.require_admin(caller)

    def decide(newest: DocumentRecord | None) -> dict[str, Any] | None:
        if newest is None or newest.removed:
            raise missing("policy", name)
        return None

    return await _publish(hub, caller, name, "", decide)


async def _publish(
    hub: Hub,
    caller: Caller,
    name: str,
    comment: str,
    decide: Callable[[DocumentRecord | None], dict[str, Any] | None],
) -> DocumentRecord:
    document_rules.check_comment(comment)
    for _ in range(_TRIES):
        newest = hub.shelf.find("policy", name)
        body = decide(newest)
        if newest is not None and not newest.removed and newest.body == body:
            return newest
        number = newest.version + 1 if newest is not None else 1
        said = body if body is not None else newest.body if newest is not None else {}
        record = DocumentRecord("policy", name, number, said, caller.name, comment, removed=body is None)
        did = "removed" if body is None else "in force"
        told = f"{name} version {number} {did}, by {caller.name}" + (f": {comment}" if comment else "")
        added = await hub.documents.add(record, Note("", "policy", told))
        if added is not None:
            hub.shelf.learn_documents((added[0],))
            return added[0]
        await learn(hub)
    raise ChangedMeanwhile(f"policy {name} is being changed by others", hint="look at it, and try again")


def dry_run(hub: Hub, name: str, new: NewPolicy) -> DryRun:
    """What would be different with it, at this moment; nothing is written."""
    rules = _checked(hub, name, new)
    newest = hub.shelf.find("policy", name)
    document_rules.check_expected(newest, new.expected)
    _check_kind(hub, name, newest, new.kind)
    holds = newest is not None and not newest.removed
    old = checking.read(new.kind, newest.body["rules"]) if newest is not None and holds else effects.empty(new.kind)
    before = _all(hub, new.kind)
    after = sorted([*((other, said) for other, said in before if other != name), (name, rules)], key=lambda one: one[0])
    shown, more = effects.of(hub, new.kind, before, after, _MOST_EFFECTS)
    warned = [*effects.warnings(hub, new.kind, before, after)]
    if more:
        warned.append(f"{more} more would be different; the first {_MOST_EFFECTS} are shown")
    return DryRun(
        policy=name,
        version=newest.version + 1 if newest is not None else 1,
        differences=tuple(effects.differences(old, rules)),
        effects=tuple(shown),
        warnings=tuple(warned),
    )


def _all(hub: Hub, kind: PolicyKind) -> list[tuple[str, Any]]:
    return [(record.name, checking.read(kind, record.body["rules"])) for record in in_force.records(hub.shelf, kind)]


def _checked(hub: Hub, name: str, new: NewPolicy) -> Rules:
    document_rules.check_name(name, "policy")
    return checking.checked(new.kind, new.rules, hub.settings)


def _check_kind(hub: Hub, name: str, newest: DocumentRecord | None, kind: PolicyKind) -> None:
    if newest is not None and not newest.removed and newest.body["kind"] != kind:
        raise BadPolicy(
            f"{name} is a {newest.body['kind']} policy and cannot become a {kind} policy",
            hint="give the new one another name",
        )
    if kind in ONE_ONLY:
        for other in in_force.records(hub.shelf, kind):
            if other.name != name:
                raise SecondPolicy(
                    f"there is a {kind} policy already: {other.name}", hint="change that one, or remove it first"
                )


# What people see.


def view(record: DocumentRecord) -> Policy:
    return Policy(
        name=record.name,
        kind=record.body["kind"],
        version=record.version,
        rules=record.body["rules"],
        author=record.author,
        comment=record.comment,
        created=record.created,
        removed=record.removed,
    )


def get(hub: Hub, name: str) -> Policy:
    return view(hub.shelf.get("policy", name))


def everything(hub: Hub) -> Policies:
    return Policies(age=hub.age, policies=tuple(view(record) for record in hub.shelf.newest("policy")))


def versions(hub: Hub, name: str) -> PolicyVersions:
    return PolicyVersions(versions=tuple(view(record) for record in hub.shelf.versions("policy", name)))
