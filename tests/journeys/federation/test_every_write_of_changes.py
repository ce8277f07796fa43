"""A manager is killed at every commit of a create, a rollback, a member change and a delete: is it all or nothing?

Once as the coordinator, once as a member. The lists of moments are complete: a test goes through each story without a
kill and compares what was written. "After" stands only where something beyond the database is done before the next
commit; elsewhere it would be the next "before" once more.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from journeys.federation import stories
from journeys.federation.crashing import Moment, Scene, after, at, before, crashing_federation, undisturbed
from journeys.federation.stories import absent, definition_of, ended, eventually, fresh, member, members_at, submit
from real.identity_provider import IdentityProvider
from real.postgres import Server

if TYPE_CHECKING:
    from real.object_store import RunningStore

pytestmark = pytest.mark.deep

pytest_plugins = ("real.object_store",)

KEPT_WHOLE = "update operations (applying -> committed) + update services (creating -> ready)"
PLANNED = "update operations (applying: plan sealed)"
DEFINED = "update services (ready: definition sealed)"


@pytest.fixture(scope="module")
def _federation(
    provider: IdentityProvider, postgres_server: Server, object_store_server: "RunningStore"
) -> Iterator[Scene]:
    choosy = {"riga": {"images.allowed": ["debian"]}}
    with crashing_federation(provider, postgres_server, object_store_server, choosy) as running:
        yield running


@pytest.fixture
def scene(_federation: Scene) -> Iterator[Scene]:
    with undisturbed(_federation) as running:
        yield running


# What a create, a change and a delete are, and what has to be true afterwards.


def worker(name: str, cluster: str) -> str:
    return f"{name}-{cluster[0]}"


def definition(scene: Scene, name: str, *clusters: str, **more: Any) -> dict[str, Any]:
    members = [member(cluster, worker(name, cluster)) for cluster in clusters]
    return stories.federated(name, members, token=scene.token(), **more)


def older_worker(scene: Scene, name: str) -> dict[str, Any]:
    """visby has a worker of an earlier federation of that name; its definition."""
    stories.create(scene.alice(), definition(scene, name, "visby", script="echo first"))
    assert scene.alice().delete(f"/system/services/{name}", params={"workers": "keep"}).status_code == 204
    return definition_of(scene.alice("visby"), worker(name, "visby"))


def assert_nothing_at_home(scene: Scene, name: str) -> None:
    assert absent(scene.alice(), name)
    for table, column in (("services", "name"), ("buckets", "name"), ("uploads", "service"), ("jobs", "service")):
        assert not scene.written("lubeck", f"select {column} from {table} where {column} = %s", name), table
    buckets = [one["bucket_name"] for one in scene.hansa["lubeck"].admin.get("/system/buckets").json() or []]
    assert name not in buckets


def await_nothing(scene: Scene, name: str, *clusters: str) -> None:
    for cluster in clusters:
        gone = partial(absent, scene.alice(cluster), worker(name, cluster))
        eventually(gone, what=f"{worker(name, cluster)} is gone")
    eventually(partial(absent, scene.alice(), name), what=f"{name} is gone")
    scene.await_closed(name)
    assert_nothing_at_home(scene, name)
    if "visby" in clusters:
        assert not scene.written("visby", "select name from services where name = %s", worker(name, "visby"))


def assert_whole(scene: Scene, name: str, script: str, *clusters: str) -> None:
    assert members_at(scene.alice(), name) == [f"{cluster}/{worker(name, cluster)}" for cluster in clusters]
    for cluster in clusters:
        assert definition_of(scene.alice(cluster), worker(name, cluster))["script"] == script
    scene.await_closed(name)


def delete(scene: Scene, name: str, *clusters: str) -> None:
    assert scene.alice().delete(f"/system/services/{name}").status_code in (204, 404)
    await_nothing(scene, name, *clusters)


# A create.

CREATE = [
    before("insert lineages (ok)"),
    before("update lineages (ok: begun renewed rotates sealed) + insert audit (token.exchanged)"),
    before("insert services (creating)"),
    before("update services (creating: made_buckets sealed)"),
    before("insert buckets (creating)"),
    after("insert buckets (creating)"),
    before("update buckets (creating -> ready)"),
    before("insert uploads"),
    before("insert operations (applying)"),
    before(PLANNED),
    after(PLANNED),
    before(PLANNED, nth=2),
    after(PLANNED, nth=2),
    before(KEPT_WHOLE),
    after(KEPT_WHOLE),
]
TAKEN_OVER = [before(DEFINED), after(DEFINED)]


@at(CREATE)
def test_the_coordinator_dies_creating(scene: Scene, moment: Moment) -> None:
    """riga gets a worker, that of visby is taken over."""
    name = fresh("made")
    former = older_worker(scene, name)
    wanted = definition(scene, name, "visby", "riga", script="echo second")
    scene.dies("lubeck", moment, lambda: scene.send("POST", "/system/services", json=wanted))
    if moment == after(KEPT_WHOLE):
        assert_whole(scene, name, "echo second", "visby", "riga")
    else:
        await_nothing(scene, name, "riga")
        eventually(lambda: definition_of(scene.alice("visby"), worker(name, "visby")) == former, what="as it was")
        stories.create(scene.alice(), {**wanted, "environment": definition(scene, name)["environment"]})
    delete(scene, name, "visby", "riga")


def test_every_write_of_a_create_is_listed(scene: Scene) -> None:
    name = fresh("listed")
    older_worker(scene, name)
    for gate in scene.gates.values():
        gate.listen()
    stories.create(scene.alice(), definition(scene, name, "visby", "riga"))
    scene.assert_listed("lubeck", CREATE)
    scene.assert_listed("visby", TAKEN_OVER)
    delete(scene, name, "visby", "riga")


CREATE_AT_MEMBER = [
    before("insert services (creating)"),
    before("update services (creating: sealed)"),
    before("update services (creating -> ready)"),
    after("update services (creating -> ready)"),
]


@at(CREATE_AT_MEMBER)
def test_a_member_dies_creating(scene: Scene, moment: Moment) -> None:
    name = fresh("made")
    wanted = definition(scene, name, "visby", "riga")
    answer = scene.dies("visby", moment, lambda: scene.send("POST", "/system/services", json=wanted)).result(60)
    assert answer.status_code == 502, answer.text
    assert f"visby/{name}-v" in answer.text
    await_nothing(scene, name, "visby", "riga")
    stories.create(scene.alice(), {**wanted, "environment": definition(scene, name)["environment"]})
    delete(scene, name, "visby", "riga")


def test_every_write_of_a_create_at_a_member_is_listed(scene: Scene) -> None:
    name = fresh("listed")
    stories.create(scene.alice(), definition(scene, name, "visby", "riga"))
    scene.assert_listed("visby", CREATE_AT_MEMBER)
    delete(scene, name, "visby", "riga")


@at(TAKEN_OVER)
def test_a_member_dies_when_its_worker_is_taken_over(scene: Scene, moment: Moment) -> None:
    name = fresh("taken")
    former = older_worker(scene, name)
    wanted = definition(scene, name, "visby", "riga", script="echo second")
    answer = scene.dies("visby", moment, lambda: scene.send("POST", "/system/services", json=wanted)).result(60)
    assert answer.status_code == 502, answer.text
    await_nothing(scene, name, "riga")
    eventually(lambda: definition_of(scene.alice("visby"), worker(name, "visby")) == former, what="as it was")
    stories.create(scene.alice(), {**wanted, "environment": definition(scene, name)["environment"]})
    delete(scene, name, "visby", "riga")


def test_a_member_too_slow_for_the_coordinator_keeps_nothing(scene: Scene) -> None:
    """Nobody dies: the worker is made when it has been given up already."""
    name = fresh("slow")
    gate, seen = scene.gates["visby"], scene.hansa.gates["visby"].requests
    gate.arm("update services (creating -> ready)")
    answer = scene.send("POST", "/system/services", json=definition(scene, name, "visby", "riga"))
    gate.reached()
    question = f"GET /v1/replicas/{worker(name, 'visby')}?settled=true HTTP/1.1"
    eventually(lambda: question in seen, what="lubeck asks what became of it")
    gate.open()
    assert answer.result(60).status_code == 502
    await_nothing(scene, name, "visby", "riga")


# A create that a member refuses.

ROLLBACK = [
    before("update operations (applying -> undoing)"),
    after("update operations (applying -> undoing)"),
    before("update operations (undoing -> undone)"),
    before("update buckets (ready -> deleting)"),
    after("update buckets (ready -> deleting)"),
    before("delete buckets (deleting)"),
    before("delete uploads"),
    before("delete services (creating)"),
]


def refused(scene: Scene, name: str) -> dict[str, Any]:
    return definition(scene, name, "visby", "riga", script="echo second", image="alpine")


@at(ROLLBACK)
def test_the_coordinator_dies_taking_back(scene: Scene, moment: Moment) -> None:
    name = fresh("refused")
    former = older_worker(scene, name)
    wanted = refused(scene, name)
    scene.dies("lubeck", moment, lambda: scene.send("POST", "/system/services", json=wanted))
    await_nothing(scene, name, "riga")
    eventually(lambda: definition_of(scene.alice("visby"), worker(name, "visby")) == former, what="as it was")
    stories.create(scene.alice(), definition(scene, name, "visby", "riga"))
    delete(scene, name, "visby", "riga")


def test_every_write_of_a_rollback_is_listed(scene: Scene) -> None:
    name = fresh("listed")
    older_worker(scene, name)
    scene.gates["lubeck"].listen()
    answer = scene.alice().post("/system/services", json=refused(scene, name))
    assert answer.status_code == 502, answer.text
    assert_nothing_at_home(scene, name)
    scene.assert_listed("lubeck", [*CREATE[:-2], *ROLLBACK])
    assert scene.alice("visby").delete(f"/system/services/{worker(name, 'visby')}").status_code == 204


# A change of members; in a mesh everybody knows everybody.


def mesh(scene: Scene, name: str, *clusters: str) -> str:
    stories.create(scene.alice(), definition(scene, name, *clusters, topology="mesh"))
    return name


def agree(scene: Scene, name: str) -> bool:
    """Who is listed is deployed, who is not is not, and all say the same."""
    listed = members_at(scene.alice(), name)
    everybody = {f"lubeck/{name}", *listed}
    for cluster in ("visby", "riga"):
        key, there = f"{cluster}/{worker(name, cluster)}", scene.alice(cluster)
        if absent(there, worker(name, cluster)) != (key not in listed):
            return False
        if key in listed and set(members_at(there, worker(name, cluster))) != everybody - {key}:
            return False
    told = scene.alice().get(f"/system/federation/{name}", params={"state": "true"}).json()["state"]
    return all(one["in_sync"] for one in told)


def await_agreement(scene: Scene, name: str) -> list[str]:
    """The clusters that are members in the end."""
    eventually(partial(agree, scene, name), what="agreement")
    scene.await_closed(name)
    return sorted(key.partition("/")[0] for key in members_at(scene.alice(), name))


def removal(name: str, cluster: str) -> dict[str, Any]:
    return {"members": [member(cluster, worker(name, cluster))], "delete": True}


def addition(name: str, cluster: str) -> dict[str, Any]:
    return {"members": [member(cluster, worker(name, cluster))]}


REMOVE = [
    before("insert operations (undoing)"),
    before(DEFINED),
    after(DEFINED),
    before("update operations (undoing -> undone)"),
]


@at(REMOVE)
def test_the_coordinator_dies_removing_a_member(scene: Scene, moment: Moment) -> None:
    name = mesh(scene, fresh("left"), "visby", "riga")
    body = removal(name, "visby")
    scene.dies("lubeck", moment, lambda: scene.send("DELETE", f"/system/federation/{name}", json=body))
    stayed = REMOVE.index(moment) < REMOVE.index(after(DEFINED))
    assert await_agreement(scene, name) == (["riga", "visby"] if stayed else ["riga"])
    delete(scene, name, "visby", "riga")


ADD = [before(DEFINED), after(DEFINED)]


@at(ADD)
def test_the_coordinator_dies_adding_a_member(scene: Scene, moment: Moment) -> None:
    name = mesh(scene, fresh("joined"), "riga")
    body = addition(name, "visby")
    scene.dies("lubeck", moment, lambda: scene.send("POST", f"/system/federation/{name}", json=body))
    assert await_agreement(scene, name) == (["riga", "visby"] if moment.kept else ["riga"])
    delete(scene, name, "visby", "riga")


def test_every_write_of_a_member_change_is_listed(scene: Scene) -> None:
    name = mesh(scene, fresh("listed"), "riga")
    lubeck, visby = scene.gates["lubeck"], scene.gates["visby"]
    for verb, body, at_home, at_member in (
        ("POST", addition(name, "visby"), ADD, CREATE_AT_MEMBER),
        ("PUT", {"update": [member("visby", worker(name, "visby"), 7)]}, ADD, [before(DEFINED)]),
        ("DELETE", removal(name, "visby"), REMOVE, REMOVE_AT_MEMBER),
    ):
        lubeck.listen()
        visby.listen()
        answer = scene.alice().request(verb, f"/system/federation/{name}", json=body)
        assert (answer.status_code, "warnings" in answer.json()) == (200, False), answer.text
        scene.assert_listed("lubeck", at_home)
        scene.assert_listed("visby", at_member)
    delete(scene, name, "visby", "riga")


@at(CREATE_AT_MEMBER)
def test_a_member_dies_when_it_is_added(scene: Scene, moment: Moment) -> None:
    name = mesh(scene, fresh("joined"), "riga")
    body = addition(name, "visby")
    answer = scene.dies("visby", moment, lambda: scene.send("POST", f"/system/federation/{name}", json=body))
    assert answer.result(60).status_code == 200
    assert await_agreement(scene, name) == ["riga", "visby"]
    delete(scene, name, "visby", "riga")


@at([before(DEFINED), after(DEFINED)])
def test_a_member_dies_when_it_is_told_of_a_change(scene: Scene, moment: Moment) -> None:
    name = mesh(scene, fresh("told"), "visby", "riga")
    body = removal(name, "riga")
    answer = scene.dies("visby", moment, lambda: scene.send("DELETE", f"/system/federation/{name}", json=body))
    assert answer.result(60).status_code == 200
    assert await_agreement(scene, name) == ["visby"]
    delete(scene, name, "visby", "riga")


REMOVE_AT_MEMBER = [
    before("update services (ready -> deleting)"),
    after("update services (ready -> deleting)"),
    before("delete services (deleting)"),
    after("delete services (deleting)"),
]


@at(REMOVE_AT_MEMBER)
def test_a_member_dies_when_it_is_removed(scene: Scene, moment: Moment) -> None:
    name = mesh(scene, fresh("left"), "visby", "riga")
    body = removal(name, "visby")
    answer = scene.dies("visby", moment, lambda: scene.send("DELETE", f"/system/federation/{name}", json=body))
    assert answer.result(60).status_code == 200
    assert await_agreement(scene, name) == ["riga"]
    delete(scene, name, "visby", "riga")


# The end of a federation.

DELETE = [
    before("insert operations (undoing)"),
    before("update services (ready -> deleting)"),
    after("update services (ready -> deleting)"),
    before("update operations (undoing -> undone)"),
    before("delete jobs (Succeeded here) + delete delegations (back)"),
    before("update buckets (ready -> deleting)"),
    after("update buckets (ready -> deleting)"),
    before("delete buckets (deleting)"),
    before("delete uploads"),
    before("delete services (deleting)"),
    after("delete services (deleting)"),
]


def used(scene: Scene, name: str) -> str:
    """A federation with a job behind it."""
    stories.create(scene.alice(), definition(scene, name, "visby", "riga"))
    assert ended(scene.alice(), submit(scene.alice(), name))["status"] == "Succeeded"
    return name


@at(DELETE)
def test_the_coordinator_dies_deleting(scene: Scene, moment: Moment) -> None:
    name = used(scene, fresh("gone"))
    scene.dies("lubeck", moment, lambda: scene.send("DELETE", f"/system/services/{name}"))
    if DELETE.index(moment) < DELETE.index(after("update services (ready -> deleting)")):
        assert_whole(scene, name, stories.WHERE, "visby", "riga")
    else:
        await_nothing(scene, name, "visby", "riga")
    delete(scene, name, "visby", "riga")


def test_every_write_of_a_delete_is_listed(scene: Scene) -> None:
    name = used(scene, fresh("listed"))
    for gate in scene.gates.values():
        gate.listen()
    delete(scene, name, "visby", "riga")
    scene.assert_listed("lubeck", DELETE)
    scene.assert_listed("visby", REMOVE_AT_MEMBER)


@at(REMOVE_AT_MEMBER)
def test_a_member_dies_deleting(scene: Scene, moment: Moment) -> None:
    name = fresh("gone")
    stories.create(scene.alice(), definition(scene, name, "visby", "riga"))
    answer = scene.dies("visby", moment, lambda: scene.send("DELETE", f"/system/services/{name}"))
    assert answer.result(60).status_code == 204
    await_nothing(scene, name, "visby", "riga")
