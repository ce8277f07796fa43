"""A hub's word is not enough: a manager sends nobody's credentials to an address its own operator would not want."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from journeys.hub.members import Sea, eventually, member, membership
from real.hub import a_hub
from real.manager import Manager

FAR = "https://lubeck.example.org"


@pytest.fixture(scope="module")
def sea() -> Iterator[Sea]:
    """lubeck says that it is reached from elsewhere, so loopback, where visby is, is another machine for it."""
    with contextlib.ExitStack() as undo:
        hub = undo.enter_context(a_hub())
        lubeck = undo.enter_context(member(hub, "lubeck", **{"jobs.cpu": "100m", "cluster.public_url": FAR}))
        near = {
            "jobs.cpu": "250m",
            "egress.allow": ["127.0.0.0/8"],
        }  # the store of lubeck is not where lubeck says it is
        visby = undo.enter_context(member(hub, "visby", **near))
        found = Sea(hub, lubeck, visby)
        eventually(found.are_neighbours, "neighbours")
        yield found


def create(sea: Sea, name: str) -> tuple[int, str]:
    answer = sea.lubeck.admin.post("/system/services", json=sea.federated(name))
    return answer.status_code, answer.text


def link(manager: Manager) -> dict[str, Any]:
    return eventually(lambda: next(iter(membership(manager)["links"]), {}), "looked at")


def test_nothing_is_sent_to_loopback_by_a_manager_that_is_elsewhere(sea: Sea) -> None:
    (told,) = membership(sea.lubeck)["neighbours"]
    assert told["endpoint"] == sea.visby.url
    status, words = create(sea, "astray")
    assert (status, "loopback" in words) == (403, True), words
    assert sea.visby.admin.get("/system/services/astray").status_code == 404
    seen = link(sea.lubeck)
    assert (seen["up"], "loopback" in seen["reason"]) == (False, True), seen


def test_the_operator_s_own_word_wins(sea: Sea) -> None:
    sea.lubeck.kill()
    known = {"visby": {"endpoint": sea.visby.url}}
    sea.lubeck.settings = {**sea.lubeck.settings, "federation.clusters": known}
    sea.lubeck.start()
    evil = {"endpoint": "https://evil.example", "verify": False}
    assert sea.hub.admin.put("/v1/clusters/visby/address", json=evil).status_code == 200
    eventually(lambda: membership(sea.lubeck)["neighbours"][0]["endpoint"] == evil["endpoint"], "told otherwise")
    with sea.service("at-home") as name:
        assert sea.visby.admin.get(f"/system/services/{name}").status_code == 200
