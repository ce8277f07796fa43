"""Policies: only what makes sense is taken, versions stay, a dry run says what would change, and two of them act."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from federation import small_federation
from federation.known_clusters import record
from federation.small_federation import ADMIN, SOMEBODY, join, later
from hansa import bootstrap
from hansa.federation import Hub, Known, errors, policies
from hansa.federation.policies import changing, migration, network, placement
from hansa.federation.policies.admission import judge
from hansa.federation.policies.rules import AdmissionRules, MigrationRules, NetworkRule, NetworkRules, Window
from hansa.kernel.errors import Forbidden
from hansa.messages.clusters import Abilities, Facts
from hansa.messages.policies import NewPolicy, PolicyKind


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as opened:
        yield opened.hub


def new(kind: PolicyKind, expected: int | None = None, **rules: Any) -> NewPolicy:
    return NewPolicy(kind=kind, rules=rules, expected=expected)


def told(found: Any) -> list[tuple[str, str, str]]:
    return [(one.subject, one.before, one.after) for one in found.effects]


REFUSED = [
    (new("federation", heartbeat_evry=3), "did you mean heartbeat_every?"),
    (new("federation", heartbeat_every=0), "greater than 0"),
    (new("federation", heartbeat_every="5"), "heartbeat_every"),
    (new("federation", dead_after=2), "greater than suspect_after"),
    (new("placement", allowed="regoin=eu"), "did you mean region"),
    (new("placement", max_share=0), "max_share"),
    (new("placement", weights={"load": -1}), "weights.load"),
    (new("placement", weights={"the load": 1}), "no name"),
    (new("placement", sprad="zone"), "did you mean spread?"),
    (new("network", rules=[{"source": "region=eu"}]), "action"),
    (new("network", rules=[{"source": "x==", "action": "deny"}]), "rules[0].source"),
    (new("migration", windows=[{"start": "25:00"}]), "no time of the day"),
    (new("migration", windows=[{"start": "08:00", "end": "08:00"}]), "empty"),
    (new("migration", windows=[{"days": []}]), "no day"),
    (new("migration", windows=[{"days": ["someday"]}]), "days"),
    (new("migration", parallel=-1), "parallel"),
    (new("admission", approve="cpu_free>3"), "not reported it yet"),
    (new("admission", least_version="newest"), "no version"),
    (new("admission", abilities=["flying"]), "flying"),
    (new("admission", most_clusters=-1), "most_clusters"),
]


async def test_what_is_refused_says_why(hub: Hub) -> None:
    for policy, said in REFUSED:
        with pytest.raises(errors.BadPolicy) as refused:
            await changing.put(hub, ADMIN, "rules", policy)
        assert said in f"{refused.value.message} {refused.value.hint}"


async def test_every_version_stays_and_says_who_made_it(hub: Hub) -> None:
    await changing.put(hub, ADMIN, "where", new("placement", allowed="region=eu"))
    await changing.put(hub, ADMIN, "where", new("placement", allowed="region=eu"))
    await changing.put(hub, ADMIN, "where", new("placement", allowed="region in (eu, us)", expected=1))
    with pytest.raises(errors.WrongVersion):
        await changing.put(hub, ADMIN, "where", new("placement", expected=1))
    await changing.remove(hub, ADMIN, "where")
    found = [
        (one.version, one.rules["allowed"], one.removed, one.author) for one in changing.versions(hub, "where").versions
    ]
    assert found == [
        (3, "region in (eu, us)", True, ADMIN.name),
        (2, "region in (eu, us)", False, ADMIN.name),
        (1, "region=eu", False, ADMIN.name),
    ]
    with pytest.raises(errors.NoSuchDocument):
        changing.get(hub, "where")
    with pytest.raises(errors.NoSuchDocument):
        await changing.remove(hub, ADMIN, "where")
    assert changing.everything(hub).policies == ()


async def test_one_of_its_kind_and_always_of_one_kind(hub: Hub) -> None:
    await changing.put(hub, ADMIN, "watch", new("federation", heartbeat_every=7.0))
    with pytest.raises(errors.SecondPolicy, match="watch"):
        await changing.put(hub, ADMIN, "other", new("federation", heartbeat_every=8.0))
    with pytest.raises(errors.BadPolicy, match="cannot become"):
        await changing.put(hub, ADMIN, "watch", new("placement"))
    await changing.put(hub, ADMIN, "eu", new("placement", allowed="region=eu"))
    await changing.put(hub, ADMIN, "big", new("placement", allowed="cpu>4"))
    assert [one.name for one in changing.everything(hub).policies] == ["big", "eu", "watch"]


async def test_only_the_admin_changes_them(hub: Hub) -> None:
    with pytest.raises(Forbidden):
        await changing.put(hub, SOMEBODY, "watch", new("federation"))
    with pytest.raises(Forbidden):
        await changing.remove(hub, SOMEBODY, "watch")


async def test_the_federation_policy_is_what_clusters_are_watched_by(hub: Hub) -> None:
    cluster = await join(hub, "visby")
    assert (hub.limits().every, hub.limits().pace) == (5.0, 5.0)
    await changing.put(hub, ADMIN, "watch", new("federation", heartbeat_every=20.0, dead_after=4))
    assert (hub.limits().every, hub.limits().pace, hub.limits().dead_after) == (20.0, 20.0, 4)
    later(hub, 45)
    await small_federation.judge(hub)
    known = hub.registry.get("visby")
    assert known is not None
    assert known.record.state == "degraded"
    await small_federation.in_step(hub)
    cluster.report()
    await changing.put(hub, ADMIN, "watch", new("federation", heartbeat_every=1.0))
    assert (hub.limits().every, hub.limits().pace) == (20.0, 1.0), "it reports every 20 s until it has heard of it"
    hub.clock.learn(time.time() + 3600, time.monotonic())
    assert (hub.limits().every, hub.limits().pace) == (1.0, 1.0)
    await changing.remove(hub, ADMIN, "watch")
    assert hub.limits().every == 5.0


async def test_dry_run_of_how_clusters_are_watched(hub: Hub) -> None:
    for name in ("lubeck", "visby"):
        await join(hub, name)
    later(hub, 17)
    await join(hub, "riga")
    found = changing.dry_run(hub, "watch", new("federation", heartbeat_every=10.0))
    assert found.differences == ("heartbeat_every: not said -> 10.0",)
    assert told(found) == [
        ("federation", "reports every 5 s", "every 10 s"),
        ("lubeck", "unreachable: no heartbeat for 17 s, 3 missed of 5 s", "ready: it reports, and nothing is missing"),
        ("visby", "unreachable: no heartbeat for 17 s, 3 missed of 5 s", "ready: it reports, and nothing is missing"),
    ]
    assert found.warnings == ("a loss is noticed after 30 s instead of 15 s",)
    assert found.version == 1
    assert hub.shelf.find("policy", "watch") is None, "nothing is written"


async def test_dry_run_of_where_things_may_run(hub: Hub) -> None:
    await join(hub, "lubeck", region="eu")
    await join(hub, "boston", region="us")
    await changing.put(hub, ADMIN, "where", new("placement", forbidden="region=us"))
    found = changing.dry_run(hub, "where", new("placement", allowed="region=us"))
    assert found.differences == ('allowed: not said -> "region=us"', 'forbidden: "region=us" -> not said')
    assert told(found) == [
        ("boston", "not: where forbids region=us", "may be used"),
        ("lubeck", "may be used", "not: where allows only region=us"),
    ]
    assert changing.dry_run(hub, "also", new("placement", allowed="region=eu")).warnings == ()
    assert changing.dry_run(hub, "also", new("placement", allowed="region=us")).warnings == (
        "nothing could be placed anywhere",
    )
    known = hub.registry.get("boston")
    assert known is not None
    assert placement.refusal(policies.in_force.placement(hub), known) == "where forbids region=us"


async def test_dry_run_of_who_may_talk_to_whom(hub: Hub) -> None:
    for name, region in (("lubeck", "eu"), ("visby", "eu"), ("boston", "us")):
        await join(hub, name, region=region)
    rules = [{"source": "region=eu", "target": "region=us", "action": "deny", "both": False}]
    found = changing.dry_run(hub, "net", new("network", rules=rules))
    denied = "not: net denies it: rule 1"
    assert told(found) == [
        ("lubeck -> boston", "may talk", denied),
        ("visby -> boston", "may talk", denied),
    ]
    deny_all = changing.dry_run(hub, "net", new("network", default="deny"))
    assert len(deny_all.effects) == 6


async def test_dry_run_of_thousands_is_short_and_says_so(hub: Hub) -> None:
    for number in range(40):
        hub.registry.put(record(f"c{number:02}"))
    found = changing.dry_run(hub, "net", new("network", default="deny"))
    assert len(found.effects) == 500
    assert found.warnings == ("1060 more would be different; the first 500 are shown",)


async def test_dry_run_of_how_vms_move(hub: Hub) -> None:
    await join(hub, "lubeck", region="eu")
    await join(hub, "boston", region="us")
    paths = [{"source": "region=eu", "target": "region=us"}]
    found = changing.dry_run(hub, "moves", new("migration", paths=paths, parallel=2))
    assert told(found) == [
        ("boston -> lubeck", "may move", "not: moves allows 1 other ways only"),
        ("federation", "migrations at once: any", "migrations at once: 2"),
    ]


async def test_dry_run_of_who_may_join(hub: Hub) -> None:
    await join(hub, "lubeck", region="eu")
    await join(hub, "boston", region="us")
    await join(hub, "visby", region="eu")
    await small_federation.mark(hub, "visby", state="pending")
    found = changing.dry_run(hub, "door", new("admission", approve="region=eu", regions=["eu"], most_clusters=2))
    assert told(found) == [
        ("boston", "meets what is required", "not: region in (eu) is required"),
        ("visby", "by-hand: somebody must approve it", "refuse: the federation has 2 clusters, and 2 are the most"),
    ]
    assert found.warnings == ("there are 2 members already: nobody else could join",)
    found = changing.dry_run(hub, "door", new("admission", approve="region=eu"))
    assert told(found) == [
        ("visby", "by-hand: somebody must approve it", "approve: approved by policy: region=eu"),
    ]


async def test_the_admission_policy_lets_in_who_it_says(hub: Hub) -> None:
    facts = Facts(name="visby", region="eu", version="0.3.1")
    assert policies.admit(hub, "visby", facts, True).kind == "approve"
    assert policies.admit(hub, "visby", facts, False).kind == "by-hand"
    await changing.put(hub, ADMIN, "door", new("admission", approve="region=eu", least_version="0.4"))
    assert policies.admit(hub, "visby", facts, True) == policies.Verdict("refuse", "version>=0.4 is required")
    await changing.put(hub, ADMIN, "door", new("admission", approve="region=eu", tokens=False))
    assert policies.admit(hub, "visby", facts, False).kind == "approve"
    assert policies.admit(hub, "boston", Facts(region="us"), True).kind == "by-hand"
    await join(hub, "lubeck")
    await changing.put(hub, ADMIN, "door", new("admission", most_clusters=1))
    assert policies.admit(hub, "visby", facts, True).reason == "the federation has 1 clusters, and 1 are the most"
    assert policies.admit(hub, "lubeck", facts, True).kind == "approve", "who comes again takes its own place"


def test_all_requirements_that_are_not_met_are_named() -> None:
    rules = AdmissionRules(required="zone=a", regions=("eu", "us"), abilities=("snapshots",), least_version="1.2")
    known = Known(record("visby", region="asia", zone="a", version="1.1"))
    assert judge(rules, known, 0, True).reason == (
        "region in (eu, us) is required; snapshots is required; version>=1.2 is required"
    )
    good = Known(record("visby", region="eu", zone="a", version="1.10", abilities=Abilities(snapshots=True)))
    assert judge(rules, good, 0, True).kind == "approve"


def test_the_first_rule_that_means_a_pair_decides_and_every_policy_must_agree() -> None:
    eu, us = Known(record("a", region="eu")), Known(record("b", region="us"))
    open_inside = NetworkRules(
        default="deny", rules=(NetworkRule(source="region=eu", target="region=eu", action="allow"),)
    )
    assert network.refusal([("n", open_inside)], eu, eu) == ""
    assert network.refusal([("n", open_inside)], eu, us) == "n denies it: by default"
    allow = NetworkRules()
    assert network.refusal([("a", allow), ("n", open_inside)], us, eu) == "n denies it: by default"
    both = NetworkRules(rules=(NetworkRule(source="region=us", target="region=eu", action="deny"),))
    assert network.refusal([("n", both)], eu, us) == "n denies it: rule 1"


def test_windows_open_and_close_also_past_midnight() -> None:
    friday_noon = 1_704_456_000.0  # 2024-01-05 12:00 UTC
    hour = 3600.0
    night = Window(days=("fri",), start="22:00", end="06:00")
    opened = {hours: migration.is_open(night, friday_noon + hours * hour) for hours in (-8, 9, 10, 17, 18, 34)}
    assert opened == {-8: False, 9: False, 10: True, 17: True, 18: False, 34: False}
    rules = MigrationRules(windows=(night, Window(start="00:00", end="01:00")))
    assert migration.time_refusal([("m", rules)], friday_noon) == (
        "m allows it only fri 22:00-06:00 UTC and 00:00-01:00 UTC"
    )
    assert migration.time_refusal([("m", rules)], friday_noon + 11 * hour) == ""
    assert migration.parallel([("m", MigrationRules(parallel=4)), ("n", MigrationRules(parallel=2, bandwidth=9))]) == (
        2,
        0,
        9,
    )
