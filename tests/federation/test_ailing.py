"""Is everybody who is not well named, also after records changed?"""

from federation.known_clusters import filled, record
from hansa.federation.ailing import Ailing


def test_who_is_not_well_and_since_when() -> None:
    registry = filled(record("visby", state="degraded", since=7.0), record("lubeck"), record("new", state="pending"))
    found = Ailing(registry)
    assert [one.cluster for one in found.all()] == ["visby"]
    registry.put(record("lubeck", state="unreachable", since=5.0, version=2, reason="3 heartbeats missed"))
    assert [(one.cluster, one.state, one.reason) for one in found.all()] == [
        ("lubeck", "unreachable", "3 heartbeats missed"),
        ("visby", "degraded", "it reports"),
    ]
    assert (found.ids("unreachable"), found.ids("degraded")) == (["lubeck"], ["visby"])
    registry.put(record("lubeck", version=3))
    registry.drop("visby")
    assert found.all() == ()


def test_whose_certificate_ends_soon() -> None:
    registry = filled(
        record("visby", certificate_until=50.0),
        record("lubeck", certificate_until=40.0),
        record("riga", certificate_until=60.0),
        record("gone", certificate_until=10.0, state="left"),
        record("away", certificate_until=10.0, state="unreachable"),
        record("valencia", kind="oscar"),
    )
    found = Ailing(registry)
    assert found.expiring(40.0) == []
    assert found.expiring(60.0) == ["lubeck", "visby"]  # the same records, later
    registry.put(record("lubeck", certificate_until=100.0, version=2))
    assert found.expiring(60.0) == ["visby"]
