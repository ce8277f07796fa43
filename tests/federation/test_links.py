"""Are links what the managers said of them, between clusters that belong, and is it seen where two disagree?"""

import random
from typing import Any

from federation.known_clusters import filled, record, sighting
from hansa.federation import Registry, links
from hansa.federation.links import Links
from hansa.messages.members import LinkSeen


def said(registry: Registry, source: str, number: int = 1, **targets: bool) -> None:
    seen = [
        LinkSeen(target=target, up=up, since=5.0, latency=0.01 if up else None, loss=0.0 if up else 1.0)
        for target, up in targets.items()
    ]
    registry.hear(sighting(source, number, links=seen))


def pairs(found: list[Any]) -> list[tuple[str, str, bool]]:
    return [(link.source, link.target, link.up) for link in found]


def test_by_source_and_target() -> None:
    registry = filled(record("visby"), record("lubeck"), record("riga", state="left"))
    found = Links(registry)
    said(registry, "visby", lubeck=True, riga=True, visby=True, nobody=True)
    said(registry, "lubeck", visby=True)
    assert pairs(found.all()) == [("lubeck", "visby", True), ("visby", "lubeck", True)]
    assert pairs(found.all("riga")) == []
    assert (found.all("lubeck")[0].latency, found.all("lubeck")[0].since) == (0.01, 5.0)
    said(registry, "visby", 2, lubeck=False)
    assert pairs(found.all("visby")) == [("lubeck", "visby", True), ("visby", "lubeck", False)]
    registry.drop("visby")
    assert found.all() == []


def test_one_that_was_there_before_counts_too() -> None:
    registry = filled(record("visby"), record("lubeck"))
    said(registry, "visby", lubeck=False)
    found = Links(registry)
    assert pairs(found.count()[1]) == [("visby", "lubeck", False)]


def test_links_of_lost_clusters_say_nothing_more() -> None:
    registry = filled(record("visby"), record("lubeck"), record("riga", state="unreachable"))
    found = Links(registry)
    said(registry, "visby", lubeck=True, riga=False)
    said(registry, "lubeck", visby=False, riga=False)
    said(registry, "riga", visby=False)
    total, down = found.count()
    assert (total, pairs(down)) == (2, [("lubeck", "visby", False)])


def test_the_count_follows_whatever_happens() -> None:
    """Kept up to date by every report, it is what a fresh count says."""
    chance, names = random.Random(7), ["lubeck", "visby", "riga", "tallinn"]
    registry = filled(*map(record, names))
    found, version = Links(registry), 1
    for number in range(1, 400):
        name = chance.choice(names)
        version += 1
        match chance.randrange(6):
            case 0:
                registry.put(record(name, version=version, state=chance.choice(["ready", "unreachable", "left"])))
            case 1:
                registry.drop(name)
            case _ if registry.get(name) is not None:
                said(registry, name, number, **{other: chance.random() < 0.7 for other in chance.sample(names, 2)})
        if chance.random() < 0.7:
            total, down = found.count()
            fresh_total, fresh_down = Links(registry).count()
            assert (total, sorted(pairs(down))) == (fresh_total, sorted(pairs(fresh_down)))


def test_where_two_disagree() -> None:
    registry = filled(record("visby"), record("lubeck"), record("riga"))
    found = Links(registry)
    said(registry, "visby", lubeck=True, riga=False)
    said(registry, "lubeck", visby=False)
    said(registry, "riga", visby=False, lubeck=True)
    (one,) = links.disagreements(found.all())
    assert one.clusters == ("visby", "lubeck")
    assert one.detail == "visby reaches lubeck, but lubeck does not reach visby"


def test_nonsense_is_no_link() -> None:
    registry = filled(record("visby"), record("lubeck"))
    found = Links(registry)
    said(registry, "visby", lubeck=True)
    registry.hear(sighting("visby", 2, links={"of tomorrow": True}))
    assert found.all() == []
