"""Which uploads does a service wait for?"""

from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hansa.services import Record, Service, StorageIO
from hansa.services.listening import Folders, Listening, input_folders, outermost

steps = st.lists(st.sampled_from(["in", "in-a", "a", "b"]), min_size=1, max_size=4).map("/".join)
folders = st.lists(st.tuples(st.sampled_from(["one", "two"]), steps), max_size=8)


def service(*paths: str) -> Service:
    places = tuple(StorageIO(storage_provider="minio.default", path=path) for path in paths)
    return Service(name="gray", input=places)


def test_equal_inputs_are_one_folder() -> None:
    assert input_folders(service(*["b/in"] * 256)) == [("b", "in")]


def test_folders_in_a_folder_are_not_looked_through_apart() -> None:
    assert outermost([("b", "in/a"), ("b", "in"), ("b", "in-a"), ("c", "in/a")]) == {
        "b": ("in-a/", "in/"),
        "c": ("in/a/",),
    }


@given(given=folders, bucket=st.sampled_from(["one", "two", "three"]), key=steps)
def test_the_outermost_folders_hold_the_same_uploads(given: list[tuple[str, str]], bucket: str, key: str) -> None:
    key = f"{key}/x"
    found = outermost(given).get(bucket, ())
    assert sum(key.startswith(prefix) for prefix in found) == any(
        ours == bucket and key.startswith(f"{folder}/") for ours, folder in given
    )


def test_a_service_that_was_changed_listens_elsewhere() -> None:
    listening, first = Listening(), service("b/in")
    assert listening.folders(first) == {"b": ("in/",)}
    changed = msgspec.structs.replace(first, input=service("c/in").input)
    assert listening.folders(changed) == {"c": ("in/",)}
    listening.forget_others([])
    assert listening.folders(first) == {"b": ("in/",)}


class Counted(Listening):
    looked = 0

    def folders(self, service: Service) -> Folders:
        self.looked += 1
        return super().folders(service)


def record(name: str, *paths: str) -> Record:
    named = msgspec.structs.replace(service(*paths), name=name)
    return Record(named, version=1, phase="creating", stopped=False, made_buckets=(), created=0, updated=0)


def test_uploads_to_a_bucket_are_the_business_of_those_who_listen_there() -> None:
    listening = Counted()
    one, two, both = record("one", "a/in", "a/more"), record("two", "b/in"), record("both", "a/in", "b/in")
    for _ in range(3):
        there = [one, two, both]
        assert list(listening.of_bucket("a", there)) == [one, both]
        assert list(listening.of_bucket("b", there)) == [two, both]
        assert list(listening.of_bucket("c", there)) == []
    assert listening.looked == 3, "all of them once, not at each upload"


def test_those_who_come_change_or_go_are_noticed() -> None:
    listening = Listening()
    one, two = record("one", "a/in"), record("two", "a/in")
    assert list(listening.of_bucket("a", [one])) == [one]
    assert list(listening.of_bucket("a", [one, two])) == [one, two]
    moved = replace(two, service=msgspec.structs.replace(two.service, input=service("b/in").input))
    assert list(listening.of_bucket("a", [one, moved])) == [one]
    assert list(listening.of_bucket("b", [one, moved])) == [moved]
    ready = replace(moved, phase="ready")
    assert list(listening.of_bucket("b", [one, ready])) == [ready]
    assert list(listening.of_bucket("b", [one])) == []
