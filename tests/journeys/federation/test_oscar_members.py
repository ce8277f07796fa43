"""OSCAR's own manager as a member: it has to be shown a person's token, so its owner is told, and operators decide."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.stories import absent, fresh, member
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider
from real.oscar_like import OscarLike, oscar_like

WARNING = "x-hansa-warning"


@pytest.fixture(scope="module")
def goslar() -> Iterator[OscarLike]:
    with oscar_like() as running:
        yield running


@pytest.fixture(scope="module")
def hansa(provider: IdentityProvider, goslar: OscarLike) -> Iterator[Federation]:
    """At bremen OSCARs get no refresh tokens, at danzig they are no members at all."""
    settings: dict[str, dict[str, Any]] = {
        "lubeck": {},
        "bremen": {"federation.oscar_refresh_tokens": False},
        "danzig": {"federation.oscar_members": False},
    }
    for one in settings.values():
        one["federation.allowed_clusters"] = [goslar.url]
    with federation(*settings, provider=provider, settings=settings) as running:
        yield running


def definition(hansa: Federation, goslar: OscarLike, name: str, topology: str, origin: str) -> dict[str, Any]:
    clusters = {"goslar": {"endpoint": goslar.url}}
    token = hansa.refresh_token("alice")
    return stories.federated(
        name, [member("goslar", name)], topology=topology, token=token, origin=origin, clusters=clusters
    )


def test_whoever_gives_an_oscar_a_refresh_token_is_told_what_that_means(hansa: Federation, goslar: OscarLike) -> None:
    alice, name = hansa.user("alice", "lubeck"), fresh("mesh")
    wanted = definition(hansa, goslar, name, "mesh", "lubeck")
    answer = alice.post("/system/services", json=wanted)
    assert answer.status_code == 201, answer.text
    assert "cluster goslar gets the refresh token" in answer.headers[WARNING]
    assert "act as you" in answer.headers[WARNING]
    given = goslar.services[name]["environment"]["secrets"]
    assert given.keys() == {"refresh_token"}  # no key of the federation, none of the replica
    assert goslar.services[name]["token"] != stories.definition_of(alice, name)["token"]
    assert WARNING in alice.put("/system/services", json=wanted).headers
    state = alice.get(f"/system/federation/{name}", params={"state": "true"}).json()["state"]
    assert [one["way"] for one in state] == ["token"]
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_a_star_gives_it_none_and_warns_of_nothing(hansa: Federation, goslar: OscarLike) -> None:
    alice, name = hansa.user("alice", "lubeck"), fresh("star")
    answer = alice.post("/system/services", json=definition(hansa, goslar, name, "star", "lubeck"))
    assert (answer.status_code, WARNING in answer.headers) == (201, False), answer.text
    assert not goslar.services[name]["environment"]["secrets"]
    assert alice.delete(f"/system/services/{name}").status_code == 204


def _refused(alice: httpx.Client, goslar: OscarLike, wanted: dict[str, Any], words: str) -> None:
    before = list(goslar.writes)
    answer = alice.post("/system/services", json=wanted)
    assert (answer.status_code, words in answer.text) == (403, True), answer.text
    assert goslar.writes == before
    assert absent(alice, wanted["name"])


def test_an_operator_may_forbid_it(hansa: Federation, goslar: OscarLike) -> None:
    at_bremen, at_danzig = hansa.user("alice", "bremen"), hansa.user("alice", "danzig")
    mesh = definition(hansa, goslar, fresh("mesh"), "mesh", "bremen")
    _refused(at_bremen, goslar, mesh, "gets no refresh token from here")
    star = definition(hansa, goslar, fresh("star"), "star", "bremen")
    assert at_bremen.post("/system/services", json=star).status_code == 201
    more: dict[str, list[Any]] = {"members": [], "update": []}
    assert at_bremen.put(f"/system/federation/{star['name']}", json=more).status_code == 200
    assert at_bremen.delete(f"/system/services/{star['name']}").status_code == 204
    for topology in ("star", "mesh"):
        wanted = definition(hansa, goslar, fresh(topology), topology, "danzig")
        _refused(at_danzig, goslar, wanted, "would have to be shown the owner's access token")
