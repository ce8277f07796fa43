"""Is a worker that somebody changed at its member told and brought back, and a member's own way left in peace?"""

import concurrent.futures
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.stories import absent, definition_of, eventually, fresh, member
from real.federation import Federation, cuttable_federation
from real.identity_provider import IdentityProvider
from real.oscar_like import OscarLike, oscar_like

PASSES = 2  # of repair, until something that should not happen would have
Make = Callable[..., str]


@pytest.fixture(scope="module")
def goslar() -> Iterator[OscarLike]:
    with oscar_like() as running:
        yield running


@pytest.fixture(scope="module")
def pair(provider: IdentityProvider, goslar: OscarLike) -> Iterator[Federation]:
    settings = {"lubeck": {"federation.allowed_clusters": [goslar.url], "federation.repair_every": 0.3}}
    with cuttable_federation(
        "lubeck", "visby", provider=provider, settings=settings, neighbours=[goslar.url]
    ) as running:
        yield running


@pytest.fixture
def make(pair: Federation) -> Iterator[Make]:
    """A federated service of alice, or of whom it is told; gives its name. It goes with its test."""
    made: list[tuple[httpx.Client, str]] = []

    def create(members: list[dict[str, Any]], client: httpx.Client | None = None, **more: Any) -> str:
        name = str(more.pop("name", "") or fresh("drift"))
        if client is None:
            client = pair.user("alice", "lubeck")
            more.setdefault("token", pair.refresh_token("alice"))
        stories.create(client, stories.federated(name, members, **more))
        made.append((client, name))
        return name

    yield create
    for client, name in made:
        assert client.delete(f"/system/services/{name}").status_code in (204, 404)


def told(client: httpx.Client, service: str) -> dict[str, Any]:
    answer = client.get(f"/system/federation/{service}", params={"state": "true"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def state(client: httpx.Client, service: str) -> dict[str, tuple[bool, str]]:
    return {one["member"]: (one["in_sync"], one["trouble"]) for one in told(client, service)["state"]}


def edit(client: httpx.Client, service: str, **changes: Any) -> None:
    answer = client.put("/system/services", json={**definition_of(client, service), **changes})
    assert answer.status_code == 204, answer.text


def puts(pair: Federation) -> int:
    return sum(line.startswith("PUT /v1/replicas/") for line in pair.gates["visby"].requests)


def looks(pair: Federation, service: str) -> int:
    return sum(line.startswith(f"GET /v1/replicas/{service} ") for line in pair.gates["visby"].requests)


def test_a_worker_changed_at_its_member_is_told_and_brought_back(pair: Federation, make: Make) -> None:
    alice, there = pair.user("alice", "lubeck"), pair.user("alice", "visby")
    name = fresh("edited")
    make([member("visby", f"{name}-v"), member("visby", f"{name}-w")], name=name)
    assert set(state(alice, name).values()) == {(True, "")}
    held = pair.gates["visby"].hold("PUT /v1/replicas/")  # the repair, for it comes soon
    edit(there, f"{name}-v", script="echo mine", environment={"variables": {"A": "2"}, "secrets": {}})
    assert state(alice, name) == {
        f"visby/{name}-v": (False, "it was changed there: environment, script"),
        f"visby/{name}-w": (True, ""),
    }
    held.reached()
    held.release()
    eventually(lambda: definition_of(there, f"{name}-v")["script"] == stories.WHERE, what="brought back")
    back = definition_of(there, f"{name}-v")
    assert back["environment"]["variables"] == {"A": "1"}
    assert set(state(alice, name).values()) == {(True, "")}
    assert "it was changed there: environment, script" in pair["lubeck"].log  # why it was repaired


def test_what_takes_our_mark_off_is_told_and_left_alone(pair: Federation, make: Make) -> None:
    alice, there = pair.user("alice", "lubeck"), pair.user("alice", "visby")
    name = fresh("taken")
    make([member("visby", f"{name}-v")], name=name)
    edit(there, f"{name}-v", script="echo mine", annotations={})
    in_sync, trouble = state(alice, name)[f"visby/{name}-v"]
    assert (in_sync, "no worker that takes our key" in trouble) == (False, True)
    seen = looks(pair, f"{name}-v")
    eventually(lambda: looks(pair, f"{name}-v") >= seen + PASSES, what="looked at again")
    assert definition_of(there, f"{name}-v")["script"] == "echo mine"
    assert there.delete(f"/system/services/{name}-v").status_code == 204


RICH: dict[str, Any] = {
    "cpu": "50m",
    "annotations": {"mine": "yes", "hansa/time-limit": "10m"},
    "labels": {"colour": "green"},
    "visibility": "restricted",
    "allowed_users": ["bob@test"],
    "isolation_level": "USER",
    "synchronous": {"min_scale": 0, "max_scale": 2},
    "log_level": "debug",
    "total_memory": "1Gi",
    "storage_providers": {"s3": {"far": {"access_key": "a", "secret_key": "b", "region": "eu-west-1"}}},
}


@pytest.mark.parametrize("topology", ["star", "tree", "mesh"])
def test_what_nobody_changed_is_in_sync_and_left_in_peace(pair: Federation, make: Make, topology: str) -> None:
    alice = pair.user("alice", "lubeck")
    name = fresh(topology)
    below = {"parent": f"visby/{name}-v"} if topology == "tree" else {}
    members = [member("visby", f"{name}-v"), member("visby", f"{name}-w", 3, **below)]
    make(members, name=name, topology=topology, federation={"weights": {"visby": 3}}, **RICH)
    assert set(state(alice, name).values()) == {(True, "")}
    before, seen = puts(pair), looks(pair, f"{name}-w")
    eventually(lambda: looks(pair, f"{name}-w") >= seen + PASSES, what="looked at again")
    assert puts(pair) == before
    # a change through the coordinator is nothing but that, to the admin and on a member too
    edit(alice, name, script="echo other", cpu="0.06")
    assert set(state(alice, name).values()) == {(True, "")}
    assert set(state(pair["lubeck"].admin, name).values()) == {(True, "")}
    if topology == "mesh":
        there = state(pair.user("alice", "visby"), f"{name}-v")
        assert there == {f"lubeck/{name}": (True, ""), f"visby/{name}-w": (True, "")}


@pytest.mark.deep
def test_an_oscars_own_ways_are_neither_alarm_nor_fought(pair: Federation, goslar: OscarLike, make: Make) -> None:
    admin, name = pair["lubeck"].admin, fresh("far")
    clusters = {"goslar": {"endpoint": goslar.url, "auth_user": "oscar", "auth_password": "pw"}}
    make([member("goslar", name)], admin, name=name, clusters=clusters)
    in_sync = {f"goslar/{name}": (True, "")}

    def in_peace(writes: int) -> None:
        assert state(admin, name) == in_sync
        seen = goslar.reads
        eventually(lambda: goslar.reads >= seen + PASSES, what="looked at again")
        assert (goslar.writes, state(admin, name)) == (goslar.writes[:writes], in_sync)

    assert goslar.services[name]["expose"]["max_scale"] == 10
    assert state(admin, name) == in_sync
    goslar.services[name]["deployment"] = {"state": "degraded"}
    goslar.services[name]["labels"] = {"uid": "other"}
    in_peace(1)

    goslar.services[name]["script"] = "echo mine"
    eventually(lambda: goslar.services[name]["script"] == stories.WHERE, what="brought back")
    in_peace(2)
    edit(admin, name, script="echo other")
    assert goslar.services[name]["script"] == "echo other"
    in_peace(3)

    pair["lubeck"].kill()
    goslar.services[name]["expose"]["max_scale"] = 20
    pair["lubeck"].start()
    eventually(lambda: goslar.services[name]["expose"]["max_scale"] == 10, what="brought back")
    in_peace(4)
    assert goslar.writes == [f"POST {name}", *[f"PUT {name}"] * 3]


def test_an_admin_who_asks_a_worker_is_sent_to_the_coordinator(pair: Federation, make: Make) -> None:
    """Basic is this cluster's own password, and goes nowhere else."""
    admin, visby = pair["lubeck"].admin, pair["visby"].admin
    alice, there = pair.user("alice", "lubeck"), pair.user("alice", "visby")
    owned, own = fresh("hers"), fresh("admins")
    make([member("visby", f"{owned}-v")], name=owned)
    make([member("visby", f"{own}-v")], admin, name=own, topology="mesh", clusters=pair.credentials("visby"))
    for service in (owned, own):
        before = (admin if service == own else alice).get(f"/system/federation/{service}").json()
        for verb in ("POST", "PUT", "DELETE"):
            body = {"members": [member("visby", f"{service}-x")]}
            answer = visby.request(verb, f"/system/federation/{service}-v", json=body)
            assert answer.status_code == 403, (verb, answer.text)
            assert f"{pair.endpoints['lubeck']}/system/federation/{service}" in answer.text
            assert "bearer token" in answer.text
            assert "www-authenticate" not in answer.headers
        assert admin.get(f"/system/federation/{service}").json() == before
        assert absent(visby, f"{service}-x")
    # what the hint says works
    fresh_member = {"members": [member("visby", f"{owned}-x")]}
    assert there.post(f"/system/federation/{owned}-v", json=fresh_member).status_code == 200
    assert not absent(there, f"{owned}-x")


def test_a_removal_the_loop_was_quicker_with_is_no_warning(pair: Federation, make: Make) -> None:
    """The change is still telling the member that stays when the loop takes the other's worker away."""
    alice, gate = pair.user("alice", "lubeck"), pair.gates["visby"]
    name = fresh("leaving")
    make([member("visby", f"{name}-v"), member("visby", f"{name}-w")], name=name)
    telling, removing = gate.hold("PUT /v1/replicas/"), gate.hold(f"DELETE /v1/replicas/{name}-w")
    gone = {"members": [member("visby", f"{name}-w")], "delete": True}
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        change = threads.submit(alice.request, "DELETE", f"/system/federation/{name}", json=gone)
        telling.reached()
        removing.reached()
        before = looks(pair, f"{name}-v")
        telling.release()
        eventually(lambda: looks(pair, f"{name}-v") > before, what="read back, the last of telling")
        removing.release()
        answer = change.result(60)
    assert (answer.status_code, "warnings" in answer.json()) == (200, False), answer.text
    assert absent(pair.user("alice", "visby"), f"{name}-w")


def test_the_state_says_how_the_refresh_token_stands(pair: Federation, make: Make) -> None:
    alice, name = pair.user("alice", "lubeck"), fresh("token")
    token = pair.refresh_token("alice")
    make([member("visby", f"{name}-v")], name=name, token=token)
    shown = told(alice, name)["credentials"]
    assert (shown["state"], shown["source"]) == ("ok", "own")
    assert shown == alice.get(f"/v1/services/{name}/credentials").json()
    assert told(pair.user("alice", "visby"), f"{name}-v")["credentials"]["source"] == "coordinator"

    assert pair.provider is not None
    pair.provider.burn(token, pair.realm)
    assert alice.post(f"/v1/services/{name}/credentials/rotate").status_code == 409
    shown = told(alice, name)["credentials"]
    assert shown["state"] == "expired-or-revoked"
    assert "refresh_token" in shown["hint"]
    assert alice.delete(f"/v1/services/{name}/credentials").status_code == 200
    shown = told(pair["lubeck"].admin, name)["credentials"]
    assert (shown["state"], "revoked" in shown["sentence"]) == ("none", True)
    assert token not in alice.get(f"/system/federation/{name}", params={"state": "true"}).text
    assert "credentials" not in alice.get(f"/system/federation/{name}").json()
