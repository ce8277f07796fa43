"""Which uploads does a service wait for?"""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hansa.services import Service, StorageIO
from hansa.services.listening import Listening, input_folders, outermost

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
