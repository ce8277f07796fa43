"""Memory: the newest of what was heard and what was learned, whichever comes first, and nothing lost between."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hansa.federation import ClusterRecord, News, Note, Registry, Sighting
from hansa.federation.directory import Directory
from hansa.messages.clusters import Facts


def record(name: str = "visby", **changes: object) -> ClusterRecord:
    where = f"https://{name}.example"
    first = ClusterRecord(name, "hansa", "ready", 1.0, "", 1, 1.0, Facts(endpoint=where), endpoint=where, version=3)
    return replace(first, **changes)  # type: ignore[arg-type]


def registry() -> Registry:
    made = Registry()
    made.learn(News(3, 100.0, clusters=[record()]))
    return made


def test_totals_are_read_and_unreadable_ones_do_no_harm() -> None:
    known = registry()
    known.hear(Sighting("visby", 1, 101.0, 1, {"totals": (1, b'{"cpu":4000,"new":1}')}))
    found = known.get("visby")
    assert found is not None
    assert found.totals.cpu == 4000
    known.hear(Sighting("visby", 1, 102.0, 2, {"totals": (2, b'{"cpu":"many"}')}))
    assert found.totals.cpu == 0
    known.hear(Sighting("visby", 1, 103.0, 3, {"totals": (3, b'{"cpu":4611686018427387904}')}))
    assert found.totals.cpu == 2**62
    for number, odd in enumerate((b"4611686018427387905", b"18446744073709551616", b"-1"), 4):
        known.hear(Sighting("visby", 1, 100.0 + number, number, {"totals": (number, b'{"cpu":%b}' % odd)}))
        assert found.totals.cpu == 0


def test_a_new_life_forgets_the_former() -> None:
    known = registry()
    known.hear(Sighting("visby", 1, 101.0, 7, {"totals": (7, b'{"cpu":1}')}))
    known.learn(News(5, 103.0, clusters=[record(incarnation=2, version=5)]))
    found = known.get("visby")
    assert found is not None
    assert (found.number, found.sections, known.take_unsaved()) == (0, {}, [])


def test_who_watches_hears_of_changes_only() -> None:
    told: list[str] = []
    known = registry()
    known.watch(told.append)
    known.hear(Sighting("visby", 1, 101.0, 1, {"totals": (1, b"{}")}))
    known.hear(Sighting("visby", 1, 102.0, 2, {"totals": (2, b"{}")}))  # the same
    known.hear(Sighting("visby", 1, 103.0, 3))
    known.learn(News(6, 103.0, removed={"visby": 6}))
    assert told == ["visby", "visby"]
    assert known.get("visby") is None


def test_one_who_cannot_follow_keeps_nothing_from_the_others() -> None:
    told: list[str] = []

    def stumble(cluster: str) -> None:
        raise ValueError(cluster)

    known = registry()
    known.watch(stumble)
    known.watch(told.append)
    known.learn(News(4, 101.0, clusters=[record("riga", version=4)]))
    known.hear(Sighting("visby", 1, 101.0, 1, {"totals": (1, b"{}")}))
    assert told == ["riga", "visby"]


def note(number: int) -> tuple[int, Note]:
    return number, Note("visby", "job", str(number))


def test_a_report_that_comes_again_is_one_until_it_is_acknowledged() -> None:
    known = registry()
    known.hear(Sighting("visby", 1, 101.0, 1, reports=(note(1), note(2))))
    known.hear(Sighting("visby", 1, 102.0, 2, reports=(note(1), note(2), note(3))))
    taken = known.take_unsaved()
    assert [number for one in taken for number, _ in one.reports] == [1, 2, 3]
    known.hear(Sighting("visby", 1, 103.0, 3, reports=(note(2), note(3), note(4))))
    known.give_back(taken)
    (again,) = known.take_unsaved()
    assert [number for number, _ in again.reports] == [1, 2, 3, 4]
    known.saved([again])
    found = known.get("visby")
    assert found is not None
    assert found.received == 4


sightings = st.builds(
    lambda number, names: Sighting(
        "visby", 1, 100.0 + number, number, {name: (number, f"{name}{number}".encode()) for name in names}
    ),
    st.integers(1, 50),
    st.frozensets(st.sampled_from("abc")),
)


@given(st.lists(st.tuples(sightings, st.booleans())))
def test_whatever_way_they_come_the_newest_of_each_section_stays(arrivals: list[tuple[Sighting, bool]]) -> None:
    known, saved = registry(), registry()
    newest: dict[str, int] = {}
    for sighting, heard in arrivals:
        if heard:
            known.hear(sighting)
        else:
            known.learn(News(4, 100.0, sightings=[sighting]))
            saved.learn(News(4, 100.0, sightings=[sighting]))
        for name in sighting.sections:
            newest[name] = max(newest.get(name, 0), sighting.number)
    found = known.get("visby")
    assert found is not None
    assert {name: number for name, (number, _) in found.sections.items()} == newest
    for one in known.take_unsaved():  # what was heard here, seen by another hub through the database
        saved.learn(News(5, 100.0, sightings=[one]))
    there = saved.get("visby")
    assert there is not None
    assert there.sections == found.sections


def test_neighbours_are_told_once_and_together() -> None:
    directory = Directory()
    directory.learn(record("visby", version=1))
    directory.begin()
    directory.learn(record("riga", version=2))
    directory.learn(record("riga", version=3, state="degraded"))  # comes and goes: managers see for themselves
    assert directory.announce(10.0, learned=3)
    assert not directory.announce(10.1, learned=3)
    changed, gone, whole = directory.since(1, "visby")
    assert ([one.id for one in changed], gone, whole) == (["riga"], (), False)
    directory.learn(record("riga", version=4, state="left"))
    directory.forget("visby", 5)
    changed, gone, whole = directory.since(2, "lubeck")
    assert (changed, set(gone), whole) == ((), {"riga", "visby"}, False)
    assert directory.since(0, "lubeck")[2]  # who knows nothing is told everything


def test_another_process_goes_on_telling_where_the_former_stopped() -> None:
    """After a restart thousands of managers ask at once: what they know already is not told again."""
    directory = Directory()
    directory.learn(record("lubeck", version=1))
    directory.learn(record("visby", version=2))
    directory.learn(record("riga", version=3, state="left"))
    directory.forget("tallinn", 4)
    directory.begin()
    assert directory.announced == 4
    assert not directory.announce(10.0, learned=4)
    changed, gone, whole = directory.since(1, "lubeck")
    assert ([one.id for one in changed], set(gone), whole) == (["visby"], {"riga", "tallinn"}, False)
    assert directory.since(4, "lubeck") == ((), (), False)
    directory.learn(record("stade", version=5))  # what was told before is not told again
    assert [one.id for one in directory.since(4, "lubeck")[0]] == ["stade"]
    assert directory.since(4, "stade") == ((), (), False)


def test_who_heard_more_than_a_restored_backup_knows_hears_all() -> None:
    directory = Directory()
    directory.learn(record("visby", version=7))
    directory.begin(restored=100)
    assert directory.announced == 100
    changed, gone, whole = directory.since(42, "lubeck")  # it may know of clusters that joined after the backup
    assert ([one.id for one in changed], gone, whole) == (["visby"], (), True)
    assert directory.since(100, "lubeck") == ((), (), False)
