"""Is the inventory what a fresh count of all clusters would say, whatever happened to them before?"""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from federation import known_clusters
from federation.known_clusters import STATES, filled, nodes, record, sighting
from hansa.federation import News, Registry, facts_of, inventory, selectors
from hansa.federation.inventory import Inventory
from hansa.messages.clusters import Cluster
from hansa.messages.inventory import Clusters, ClusterStatus
from hansa.messages.inventory import Inventory as Answer
from hansa.messages.members import Totals

MEMBERS = ("ready", "degraded", "unreachable", "draining", "leaving")
IDS = ["lubeck", "visby", "riga", "tallinn"]


def plus(one: Totals, other: Totals) -> Totals:
    return Totals(**{name: getattr(one, name) + getattr(other, name) for name in Totals.__struct_fields__})


def counted(answer: Answer) -> tuple[Totals, dict[str, Totals]]:
    """The sums, added up the plain way."""
    total, regions = Totals(), dict[str, Totals]()
    for one in answer.clusters:
        if one.state in MEMBERS:
            total = plus(total, one.totals)
            regions[one.region] = plus(regions.get(one.region, Totals()), one.totals)
    return total, regions


def read(found: Inventory, text: str = "", **options: Any) -> Answer:
    return msgspec.json.decode(found.answer(10.0, 0.5, selectors.parse(text), **options), type=Answer)


def listed(found: Inventory, text: str = "") -> Clusters:
    return msgspec.json.decode(asyncio.run(found.listing(0.5, selectors.parse(text))), type=Clusters)


class Life(RuleBasedStateMachine):
    """Clusters come, change, report and go in any order, by this hub and by others."""

    @initialize()
    def begin(self) -> None:
        self.registry = Registry()
        self.registry.put(record("first", region="eu"))
        self.inventory = Inventory(self.registry)
        self.number = 0
        self.version = 1

    @rule(ident=st.sampled_from(IDS), facts=known_clusters.facts, state=st.sampled_from(STATES), again=st.booleans())
    def change(self, ident: str, facts: Any, state: Any, again: bool) -> None:
        self.version += 1
        known = self.registry.get(ident)
        lives = (known.record.incarnation if known else 1) + again
        new = record(ident, told=facts, state=state, version=self.version, incarnation=lives)
        self.registry.put(new)

    @rule(ident=st.sampled_from(IDS), state=st.sampled_from(STATES), region=known_clusters.regions)
    def learn(self, ident: str, state: Any, region: str) -> None:
        self.version += 1
        new = record(ident, state=state, version=self.version, overrides={"region": region})
        self.registry.learn(
            News(self.version, 1.0, clusters=[new], removed={"visby": self.version} if ident == "riga" else {})
        )

    @rule(ident=st.sampled_from(IDS), totals=known_clusters.totals, count=st.integers(0, 3))
    def hear(self, ident: str, totals: Totals, count: int) -> None:
        known = self.registry.get(ident)
        if known is None:
            return
        self.number += 1
        heard = sighting(
            ident, self.number, incarnation=known.record.incarnation, totals=totals, nodes=nodes(count), odd={"a": 1}
        )
        self.registry.hear(heard)

    @rule(ident=st.sampled_from(IDS))
    def hear_nothing_new(self, ident: str) -> None:
        known = self.registry.get(ident)
        if known is not None:
            self.number += 1
            self.registry.hear(sighting(ident, self.number, incarnation=known.record.incarnation))

    @rule(ident=st.sampled_from(IDS))
    def drop(self, ident: str) -> None:
        self.registry.drop(ident)

    @invariant()
    def sums_are_a_fresh_count(self) -> None:
        answer = read(self.inventory)
        assert (answer.total, answer.regions) == counted(answer)
        assert [one.id for one in answer.clusters] == sorted(known.id for known in self.registry)
        for one in answer.clusters:
            known = self.registry.get(one.id)
            assert known is not None
            facts = facts_of(known.record)
            assert (one.state, one.region, one.zone) == (known.record.state, facts.region, facts.zone)
            assert (one.totals, one.seen) == (known.totals, known.seen)
        for text in ("region=eu", "state=ready gpu>0", "state in (left pending)"):
            some = read(self.inventory, text)
            chosen = [known.id for known in self.registry if selectors.parse(text).matches(known)]
            assert [one.id for one in some.clusters] == sorted(chosen)
            assert (some.total, some.regions) == counted(some)

    @invariant()
    def every_other_answer_agrees(self) -> None:
        whole = read(self.inventory, nodes=True)
        for one in whole.clusters:
            known = self.registry.get(one.id)
            assert known is not None
            told = known.sections.get("nodes", (0, b"[]"))[1]
            assert msgspec.json.encode([{"name": node.name} for node in one.nodes]) == msgspec.json.encode(
                [{"name": node["name"]} for node in msgspec.json.decode(told)]
            )
        assert listed(self.inventory).clusters == tuple(
            inventory.cluster_of(known) for known in sorted(self.registry, key=lambda known: known.id)
        )
        states = [known.record.state for known in self.registry]
        assert self.inventory.by_state() == {state: states.count(state) for state in set(states)}
        members = {known.id for known in self.registry if known.record.state in MEMBERS}
        assert {ident for ident, _ in self.inventory.each()} == members


Life.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestLife = Life.TestCase


def test_who_was_heard_when_is_always_new() -> None:
    registry = filled(record("lubeck"))
    found = Inventory(registry)
    assert read(found).clusters[0].seen is None
    registry.hear(sighting("lubeck", 1, seen=1_700_000_000.1234))
    assert read(found).clusters[0].seen == 1_700_000_000.123
    assert listed(found).clusters[0].seen == 1_700_000_000.123


@pytest.mark.parametrize("trick", ['"seen":null', '\\"seen\\":null', '","seen":null,"', "ü\u2028\n"])
def test_no_text_can_take_the_place_of_the_time(trick: str) -> None:
    known = record("lubeck", reason=trick, name=trick, region=trick, zone=trick, metadata={"seen": trick, trick: "x"})
    registry = filled(known)
    registry.hear(sighting("lubeck", 1, seen=5.0))
    found = Inventory(registry)
    assert listed(found).clusters[0] == Cluster(
        id="lubeck",
        kind="hansa",
        state="ready",
        since=100.0,
        reason=trick,
        cordoned=False,
        joined=50.0,
        seen=5.0,
        facts=known.told,
    )
    assert (read(found).clusters[0].region, read(found).clusters[0].seen) == (trick, 5.0)


@pytest.mark.parametrize("nonsense", [b'"\xff"', b"{}", b"[1]", b'[{"name":"\xff"}]', b"[" * 5000 + b"]" * 5000])
def test_one_clusters_nonsense_spoils_nothing(nonsense: bytes) -> None:
    registry = filled(record("lubeck"), record("visby"))
    registry.hear(sighting("lubeck", 1, nodes=nonsense, odd=nonsense, totals=nonsense))
    registry.hear(sighting("visby", 1, nodes=nodes(2), totals={"cpu": 5, "of tomorrow": 1}))
    answer = read(Inventory(registry), nodes=True)
    assert [len(one.nodes) for one in answer.clusters] == [0, 2]
    assert answer.total == Totals(cpu=5)
    for known in registry:
        msgspec.json.decode(msgspec.json.encode(inventory.status_of(known)), type=ClusterStatus)


def test_everything_one_cluster_said() -> None:
    registry = filled(record("lubeck"))
    registry.hear(sighting("lubeck", 1, totals={"cpu": 5}, unheard_of={"yes": [1, None]}))
    known = registry.get("lubeck")
    assert known is not None
    said = msgspec.json.decode(msgspec.json.encode(inventory.status_of(known)), type=ClusterStatus)
    assert said.sections == {"totals": {"cpu": 5}, "unheard_of": {"yes": [1, None]}}
    assert said.cluster == inventory.cluster_of(known)


def test_what_of_one_cluster_is_used() -> None:
    registry = filled(record("lubeck"), record("visby"))
    registry.hear(sighting("lubeck", 1, totals={"cpu": 3000, "cpu_used": 1000, "memory": 10, "memory_used": 20}))
    registry.hear(sighting("visby", 1, totals={"cpu": 1000}))
    known = registry.get("lubeck")
    assert known is not None
    found = inventory.allocation_of(known, Inventory(registry).total(), 0.2)
    assert (found.cpu.free, found.cpu.share, found.cpu.of_federation) == (2000, 0.3333, 0.75)
    assert (found.memory.free, found.memory.share) == (0, 2.0)
    assert (found.gpu.share, found.gpu.of_federation) == (0.0, 0.0)


def test_a_record_written_anew_keeps_what_was_said() -> None:
    registry = filled(record("lubeck"))
    found = Inventory(registry)
    registry.hear(sighting("lubeck", 1, totals={"cpu": 5}))
    read(found)
    registry.put(replace(record("lubeck"), state="unreachable", version=2))
    assert (read(found).clusters[0].state, read(found).total.cpu) == ("unreachable", 5)
    assert found.cpu_by_state() == {"unreachable": 5}


async def test_much_is_prepared_while_others_have_their_turn() -> None:
    """After a while without readers every cluster has said something new."""
    registry = filled(*(record(f"cluster-{number:04}", region="eu") for number in range(1000)))
    found = Inventory(registry)
    for number in range(1000):
        registry.hear(sighting(f"cluster-{number:04}", 1, totals={"cpu": number}))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            if turns == 2:  # what changes meanwhile is told as well
                registry.hear(sighting("cluster-0000", 2, totals={"cpu": 7000}))
                registry.drop("cluster-0001")
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await asyncio.gather(found.prepare(), found.prepare())
    beside.cancel()
    assert turns >= 2
    answer = read(found)
    assert {one.id: one.totals.cpu for one in answer.clusters} == {
        f"cluster-{number:04}": 7000 if number == 0 else number for number in range(1000) if number != 1
    }
    assert counted(answer) == (answer.total, dict(answer.regions))


async def test_a_long_list_is_made_while_others_have_their_turn() -> None:
    registry = filled(*(record(f"cluster-{number:04}") for number in range(1000)))
    found = Inventory(registry)
    making = asyncio.create_task(found.listing(0.0))
    await asyncio.sleep(0)
    assert not making.done()
    registry.drop("cluster-0999")  # asked before, told as it was then
    assert len(msgspec.json.decode(await making, type=Clusters).clusters) == 1000
    assert len(msgspec.json.decode(await found.listing(0.0), type=Clusters).clusters) == 999
