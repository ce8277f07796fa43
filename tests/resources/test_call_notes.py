"""However often somebody calls, what is written down of it does not grow with every call, and all are counted."""

from dataclasses import replace

from hansa.resources import CallNotes, Invocation

DAY = 86_400.0
CALL = Invocation(10 * DAY + 61.0, "sync", "gray", "mallory", 503, 0.1, "127.0.0.1", "POST", "/run/gray")


def test_beyond_so_many_a_day_calls_are_counted_by_the_hour() -> None:
    notes = CallNotes(most_a_day=3)
    for number in range(1000):
        notes.add(replace(CALL, at=CALL.at + number, latency=float(number)))
    notes.add(replace(CALL, user="alice"))
    notes.add(replace(CALL, at=CALL.at + DAY))
    each, counted = notes.take(5000)
    assert [one.user for one in each] == ["mallory"] * 3 + ["alice", "mallory"]
    assert counted == {replace(CALL, at=10 * DAY, latency=0.0, client_ip=""): 997}
    assert not notes


def test_calls_of_exposed_services_are_counted_by_the_minute() -> None:
    notes = CallNotes()
    for at in (60.0, 61.0, 119.0, 120.0):
        notes.count_exposed("page", at)
    _, counted = notes.take(10)
    assert [(kind.at, calls) for kind, calls in counted.items()] == [(60.0, 3), (120.0, 1)]


def test_they_are_taken_some_at_a_time_and_what_was_not_written_comes_back() -> None:
    notes = CallNotes(most_a_day=5)
    for number in range(7):
        notes.add(replace(CALL, at=CALL.at + number))
    each, counted = notes.take(2)
    assert (len(each), sum(counted.values())) == (2, 2)
    notes.put_back(each, counted)
    whole, all_counted = notes.take(100)
    assert [one.at - CALL.at for one in whole] == [0, 1, 2, 3, 4]
    assert sum(all_counted.values()) == 2
