"""One owner cannot make services without end, neither one by one nor all at once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from journeys.conftest import Person, signing_in
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

MOST = 5
SCRIPT = "#" * 60_000


@pytest.fixture(scope="module")
def few(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    limits = {"quotas.services": MOST, "quotas.definitions": "100Ki", "quotas.shared_definitions": "24Ki"}
    with running_manager({**trusting(sign_in_provider), **limits}) as running:
        yield running


@pytest.fixture(scope="module")
def person(few: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(few, sign_in_provider)


@pytest.fixture(autouse=True)
def afterwards_there_is_none(few: Manager) -> Iterator[None]:
    yield
    for one in few.admin.get("/system/services").json():
        assert few.admin.delete(f"/system/services/{one['name']}").status_code == 204


def made(client: httpx.Client, name: str, script: str = "true", verb: str = "POST", **more: Any) -> bool:
    body = {"name": name, "image": "debian", "memory": "64Mi", "script": script, **more}
    answer = client.request(verb, "/system/services", json=body)
    assert answer.status_code in (201, 204, 403), answer.text
    assert answer.is_success or "quota" in answer.text
    return answer.is_success


def test_as_many_as_the_quota_says_however_they_come(few: Manager, person: Person) -> None:
    alice, bob = person("alice"), person("bob")
    with ThreadPoolExecutor(8) as many:
        answers = list(many.map(lambda number: made(alice, f"many-{number}"), range(2 * MOST)))
    assert answers.count(True) == MOST
    assert len(alice.get("/system/services").json()) == MOST
    few.restart()
    assert not made(alice, "one-more")
    assert made(bob, "bobs")
    assert made(few.admin, "admins")
    name = alice.get("/system/services").json()[0]["name"]
    assert made(alice, name, "echo changed", verb="PUT")
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert made(alice, "one-more")


def test_long_scripts_have_a_quota_too(person: Person) -> None:
    alice, bob = person("alice"), person("bob")
    assert made(alice, "long", SCRIPT)
    assert not made(alice, "longer", SCRIPT)
    assert made(alice, "short")
    assert not made(alice, "short", SCRIPT, verb="PUT")
    assert made(alice, "long", "true", verb="PUT")
    assert made(alice, "short", SCRIPT, verb="PUT")
    assert made(bob, "bobs", SCRIPT)


@pytest.mark.parametrize("visibility", ["public", "restricted"])
def test_one_owner_does_not_fatten_the_list_of_everybody(few: Manager, person: Person, visibility: str) -> None:
    """A list holds whole definitions: whoever shows theirs to others has less of them than for themselves."""
    alice, bob = person("alice"), person("bob")
    shown: dict[str, Any] = {
        "visibility": visibility,
        "allowed_users": ["bob@test"] if visibility == "restricted" else [],
    }
    assert made(alice, "first", SCRIPT[:15_000], **shown)
    assert not made(alice, "second", SCRIPT[:15_000], **shown)
    assert made(alice, "second", SCRIPT[:15_000])  # for herself
    assert not made(alice, "second", SCRIPT[:15_000], verb="PUT", **shown)
    assert len(bob.get("/system/services").content) < 24 * 1024
    assert made(bob, "bobs", SCRIPT[:15_000], **{**shown, "allowed_users": []})
    assert made(few.admin, "admins", SCRIPT, visibility="public")


@pytest.mark.parametrize(
    "field",
    [
        {"environment": {"secrets": {f"S{number}": "x" * 30_000 for number in range(10)}}},
        {"annotations": {f"a{number}": "x" * 30_000 for number in range(10)}},
        {"storage_providers": {"s3": {f"s{number}": {} for number in range(300)}}},
        {"labels": {f"l{number}": "" for number in range(300)}},
    ],
    ids=lambda one: next(iter(one)),
)
def test_nothing_in_a_definition_may_be_of_any_size(person: Person, field: dict[str, Any]) -> None:
    body = {"name": "heavy", "image": "debian", "memory": "64Mi", "script": "true", **field}
    answer = person("alice").post("/system/services", json=body)
    assert answer.status_code == 400
    assert next(iter(field)) in answer.text
