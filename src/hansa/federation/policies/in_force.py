"""Which policies hold now? The newest version of each that was not removed."""

from collections.abc import Iterator

from hansa.federation.detector import Limits
from hansa.federation.documents import DocumentRecord
from hansa.federation.policies import checking
from hansa.federation.policies.rules import (
    AdmissionRules,
    FederationRules,
    MigrationRules,
    NetworkRules,
    PlacementRules,
    Rules,
)
from hansa.federation.room import Hub
from hansa.federation.shelf import Shelf
from hansa.kernel.hub import HubSettings
from hansa.messages.policies import PolicyKind

_BEATS_TO_LEARN = 2  # heartbeats after which a cluster has heard how often it should report


def records(shelf: Shelf, kind: PolicyKind) -> Iterator[DocumentRecord]:
    """By name."""
    for record in shelf.newest("policy"):
        if record.body["kind"] == kind:
            yield record


def placement(hub: Hub) -> list[tuple[str, PlacementRules]]:
    return [(name, rules) for name, rules in _rules(hub, "placement") if isinstance(rules, PlacementRules)]


def network(hub: Hub) -> list[tuple[str, NetworkRules]]:
    return [(name, rules) for name, rules in _rules(hub, "network") if isinstance(rules, NetworkRules)]


def migration(hub: Hub) -> list[tuple[str, MigrationRules]]:
    return [(name, rules) for name, rules in _rules(hub, "migration") if isinstance(rules, MigrationRules)]


def admission(hub: Hub) -> AdmissionRules:
    """The one there is, or one that changes nothing."""
    for _, rules in _rules(hub, "admission"):
        if isinstance(rules, AdmissionRules):
            return rules
    return AdmissionRules()


def _rules(hub: Hub, kind: PolicyKind) -> Iterator[tuple[str, Rules]]:
    for record in records(hub.shelf, kind):
        yield record.name, checking.read(kind, record.body["rules"])


def limits_of(rules: FederationRules, settings: HubSettings) -> Limits:
    said = checking.watched(rules, settings)
    return Limits(said.heartbeat_every, said.suspect_after, said.dead_after)


def federation(hub: Hub) -> Limits:
    """How closely clusters are watched: by the policy, else by the hub's settings."""
    for record in records(hub.shelf, "federation"):
        return limits_of(_federation(record), hub.settings)
    return limits_of(FederationRules(), hub.settings)


def _federation(record: DocumentRecord) -> FederationRules:
    rules = checking.read("federation", record.body["rules"])
    assert isinstance(rules, FederationRules)
    return rules


class FederationLimits:
    """`federation`, asked for every heartbeat and every judgement. When clusters are to report more often than before,
    they learn it with the answer to their next heartbeat; until then nobody is judged by it."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._edition = -1
        self._now = self._until = federation(hub)
        self._from = 0.0

    def __call__(self) -> Limits:
        hub = self._hub
        if hub.shelf.edition != self._edition:
            self._edition = hub.shelf.edition
            self._now = federation(hub)
            former, changed = self._former()
            self._until = Limits(former.every, self._now.suspect_after, self._now.dead_after, asked=self._now.every)
            self._from = changed + _BEATS_TO_LEARN * former.every if former.every > self._now.every else 0.0
        return self._now if hub.clock.now() >= self._from else self._until

    def _former(self) -> tuple[Limits, float]:
        """What held before the newest version of any federation policy, and when that came."""
        shelf, settings = self._hub.shelf, self._hub.settings
        newest = [one for one in shelf.newest("policy", removed=True) if one.body["kind"] == "federation"]
        if not newest:
            return self._now, 0.0
        last = max(newest, key=lambda one: one.created)
        before = shelf.version("policy", last.name, last.version - 1)
        rules = FederationRules() if before is None or before.removed else _federation(before)
        return limits_of(rules, settings), last.created
