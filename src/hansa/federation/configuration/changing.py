"""What people do with configuration: write a new version, go back to an older one, remove it, hold its rollout.

Each is one conditional write of the version together with its rollout; who is faster wins, the other decides anew.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from hansa.federation import acting, document_rules, live, selectors
from hansa.federation.configuration import assigning, driving, observing, stepping
from hansa.federation.documents import DocumentRecord, RolloutRecord
from hansa.federation.errors import BadDocument, ChangedMeanwhile, NoSuchDocument, NotInThisState
from hansa.federation.learning import learn, take
from hansa.federation.ports import Note
from hansa.federation.room import Hub
from hansa.federation.shelf import missing
from hansa.identity import Caller
from hansa.kernel import near_names
from hansa.messages.configuration import NewDocument, RollBack, Scope, Stages

AT_ONCE = Stages(canary=0, percentages=(100,), soak=0.0)
_TRIES = 5
_MOST_STAGES = 20
_LONGEST = 30 * 86_400.0  # seconds


async def put(hub: Hub, caller: Caller, name: str, new: NewDocument) -> DocumentRecord:
    """The next version; the newest as it is if nothing would be different."""
    acting.require_admin(caller)
    document_rules.check_name(name, "document")
    _check_stages(new.stages)
    _check_scope(hub, new.scope)
    settings = live.validated(new.settings)
    if not settings:
        raise BadDocument("the document sets nothing", hint=f"to take it away: hansa config rm {name}")
    body = {"settings": settings, "scope": msgspec.to_builtins(new.scope)}
    return await _publish(hub, caller, name, new.stages, new.comment, lambda _: body, expected=new.expected)


async def roll_back(hub: Hub, caller: Caller, name: str, asked: RollBack) -> DocumentRecord:
    """A new version that says what an older one said."""
    acting.require_admin(caller)
    _check_stages(asked.stages)
    older = version(hub, name, asked.version)
    if older.removed:
        raise BadDocument(
            f"version {asked.version} of {name} says that it is removed",
            hint=f"to take it away: hansa config rm {name}",
        )
    settings = live.validated(assigning.settings_of(older))  # what was live then may need a restart now
    body = {**older.body, "settings": settings}
    comment = asked.comment or f"as version {asked.version}"
    return await _publish(hub, caller, name, asked.stages, comment, lambda _: body, back=True)


async def remove(hub: Hub, caller: Caller, name: str, stages: Stages) -> DocumentRecord:
    """A new version that says nothing; it spreads as others do."""
    acting.require_admin(caller)
    hub.shelf.get("config", name)

    def body(newest: DocumentRecord | None) -> dict[str, Any] | None:
        if newest is None or newest.removed:
            raise missing("config", name)
        return None

    return await _publish(hub, caller, name, stages, "", body)


async def _publish(
    hub: Hub,
    caller: Caller,
    name: str,
    stages: Stages,
    comment: str,
    body_on: Callable[[DocumentRecord | None], dict[str, Any] | None],
    *,
    expected: int | None = None,
    back: bool = False,
) -> DocumentRecord:
    """Writes what `body_on` makes of the newest version (None: that it is removed), and opens its rollout."""
    document_rules.check_comment(comment)
    for _ in range(_TRIES):
        newest, rollout, now = hub.shelf.find("config", name), hub.shelf.rollout(name), hub.clock.now()
        body = body_on(newest)
        document_rules.check_expected(newest, expected)
        number = newest.version + 1 if newest is not None else 1
        if newest is not None and _says_the_same(newest, body) and rollout is not None and _is_alive(rollout):
            return newest
        former, kept = assigning.base_of(rollout, back=back)
        opens = RolloutRecord(
            document=name,
            version=number,
            former=former,
            since=now,
            reason="begins",
            stages=stages,
            kept={cluster: version for cluster, version in kept.items() if hub.registry.get(cluster) is not None},
        )
        closes = _superseded(rollout, number, now, back=back)
        record = DocumentRecord(
            "config",
            name,
            number,
            body if body is not None else {**(newest.body if newest else {}), "settings": {}},
            caller.name,
            comment,
            removed=body is None,
        )
        did = "removed" if body is None else "rolled back" if back else "written"
        told = f"{name} version {number} {did} by {caller.name}" + (f": {comment}" if comment else "")
        added = await hub.documents.add(record, Note("", "config", told), opens=opens, closes=closes)
        if added is not None:
            hub.shelf.learn_documents((added[0],))
            take(hub, [added[1]] if added[1] is not None else [])
            return added[0]
        await learn(hub)
    raise ChangedMeanwhile(f"document {name} is being changed by others", hint="look at it, and try again")


def _is_alive(rollout: RolloutRecord) -> bool:
    return rollout.state == "done" or rollout.state in stepping.OPEN


def _superseded(rollout: RolloutRecord | None, number: int, now: float, *, back: bool) -> RolloutRecord | None:
    if rollout is None or rollout.state not in stepping.OPEN:
        return None
    ended = stepping.stopped(rollout, f"version {number} came after it", now)
    return msgspec.structs.replace(ended, state="rolled-back") if back else ended


async def pause(hub: Hub, caller: Caller, name: str) -> RolloutRecord:
    """Nobody else gets the new version until it is resumed."""

    def decide(rollout: RolloutRecord) -> RolloutRecord:
        if rollout.state == "paused":
            return rollout
        _must_be(rollout, stepping.UNDER_WAY, "paused")
        return stepping.paused(rollout, caller.name, hub.clock.now())

    return await _change(hub, caller, name, decide)


async def resume(hub: Hub, caller: Caller, name: str) -> RolloutRecord:
    """Goes on with a rollout that was paused or has stopped; who failed is told to try once more."""

    def decide(rollout: RolloutRecord) -> RolloutRecord:
        if rollout.state in stepping.UNDER_WAY:
            return rollout
        _must_be(rollout, frozenset({"paused", "stopped"}), "resumed")
        now = hub.clock.now()
        return stepping.resumed(rollout, observing.audience(hub, rollout, now), caller.name, now)

    rollout = await _change(hub, caller, name, decide)
    seen = observing.audience(hub, rollout, hub.clock.now())
    behind = (cluster for cluster in rollout.given if cluster in seen and not seen[cluster].has)
    await driving.tell(hub, (known for cluster in behind if (known := hub.registry.get(cluster)) is not None))
    return rollout


async def stop(hub: Hub, caller: Caller, name: str) -> RolloutRecord:
    """Ends it where it is: everyone keeps what it has."""

    def decide(rollout: RolloutRecord) -> RolloutRecord:
        if rollout.state == "stopped":
            return rollout
        _must_be(rollout, stepping.OPEN, "stopped")
        return stepping.stopped(rollout, f"stopped by {caller.name}", hub.clock.now())

    return await _change(hub, caller, name, decide)


async def _change(
    hub: Hub, caller: Caller, name: str, decide: Callable[[RolloutRecord], RolloutRecord]
) -> RolloutRecord:
    acting.require_admin(caller)
    for _ in range(_TRIES):
        rollout = hub.shelf.rollout(name)
        if rollout is None:
            raise missing("config", name)
        new = decide(rollout)
        if new == rollout:
            return rollout
        written = await hub.rollouts.put(new, *driving.notes(rollout, new))
        if written is not None:
            take(hub, (written,))
            return written
        await learn(hub)
    raise ChangedMeanwhile(f"the rollout of {name} is being changed by others", hint="look at it, and try again")


def version(hub: Hub, name: str, number: int) -> DocumentRecord:
    found = hub.shelf.version("config", name, number)
    if found is None:
        newest = hub.shelf.versions("config", name)[0].version
        raise NoSuchDocument(f"document {name} has no version {number}", hint=f"its newest is {newest}")
    return found


def _says_the_same(newest: DocumentRecord, body: dict[str, Any] | None) -> bool:
    return newest.removed if body is None else not newest.removed and newest.body == body


def _must_be(rollout: RolloutRecord, states: frozenset[str], verb: str) -> None:
    if rollout.state not in states:
        raise NotInThisState(
            f"the rollout of {rollout.document} version {rollout.version} is {rollout.state} and cannot be {verb}",
            hint=f"hansa config show {rollout.document}",
        )


def _check_scope(hub: Hub, scope: Scope) -> None:
    if scope.cluster and scope.selector.strip():
        raise BadDocument("a document is for a selector or for one cluster, not both", hint="leave one of them out")
    if scope.cluster and hub.registry.get(scope.cluster) is None:
        close = near_names.nearest(scope.cluster, (known.id for known in hub.registry))
        raise BadDocument(
            f"there is no cluster {scope.cluster[:63]!r} in this federation",
            hint=f"did you mean {close}?" if close else "hansa cluster ls",
        )
    why = "configuration would come and go with it"
    document_rules.check_steady(selectors.parse(scope.selector), why, BadDocument)


def _check_stages(stages: Stages) -> None:
    shares = stages.percentages
    if not shares or shares[-1] != 100 or list(shares) != sorted(set(shares)) or shares[0] < 1:
        raise BadDocument("percentages must grow from 1 to 100, and end there", hint="for example [25, 100]")
    if len(shares) > _MOST_STAGES:
        raise BadDocument(f"there are at most {_MOST_STAGES} stages")
    if not 0 <= stages.canary <= 10_000 or not 0 <= stages.most_failures <= 10_000:
        raise BadDocument("canary and most_failures are numbers of clusters, 0 to 10000")
    if not 0 <= stages.soak <= _LONGEST or not 0 < stages.patience <= _LONGEST:
        raise BadDocument("soak and patience are seconds, at most 30 days", hint="patience must be more than 0")
