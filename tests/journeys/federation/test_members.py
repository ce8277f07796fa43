"""Do changes of members reach the whole federation, whoever is asked, without losing each other?"""

import concurrent.futures
from functools import partial
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.conftest import Deploy
from journeys.federation.stories import (
    absent,
    definition_of,
    eventually,
    fresh,
    in_sync,
    member,
    members_at,
    state_of,
)
from real.federation import Federation
from real.netns import Network


def of_alice(hansa: Federation, cluster: str) -> httpx.Client:
    return hansa.user("alice", cluster)


def change(client: httpx.Client, verb: str, service: str, body: Any, base: str = "federation") -> dict[str, Any]:
    answer = client.request(verb, f"/system/{base}/{service}", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    assert "warnings" not in told, told
    return told


@pytest.mark.parametrize("base", ["federation", "replicas"])
def test_a_member_is_added_changed_and_removed(
    hansa: Federation, alice: httpx.Client, deploy: Deploy, base: str
) -> None:
    name = fresh("grow")
    deploy([member("visby", f"{name}-v")], name=name)
    riga = of_alice(hansa, "riga")
    told = change(alice, "POST", name, {"members": [member("riga", f"{name}-r")]}, base)
    assert [one["cluster_id"] for one in told["members"]] == ["visby", "riga"]
    assert definition_of(riga, f"{name}-r")["annotations"]["oscar.grycap/origin-service"] == name
    # the same again, with its type written otherwise, is the same member
    change(alice, "POST", name, {"members": [member("riga", f"{name}-r", type="OSCAR")]}, base)
    assert members_at(alice, name) == [f"visby/{name}-v", f"riga/{name}-r"]

    # as oscar-python and as oscar-cli send it
    both = {"members": [member("riga", f"{name}-r")], "update": [member("riga", f"{name}-r", 7)]}
    told = change(alice, "PUT", name, both, base)
    assert [one["priority"] for one in told["members"]] == [0, 7]
    told = change(alice, "PUT", name, {"members": None, "update": [member("visby", f"{name}-v", 3)]}, base)
    assert [one["priority"] for one in told["members"]] == [3, 7]

    change(alice, "DELETE", name, {"members": [member("riga", f"{name}-r")]}, base)
    assert members_at(alice, name) == [f"visby/{name}-v"]
    assert not absent(riga, f"{name}-r")  # nobody said that it should go
    change(alice, "POST", name, {"members": [member("riga", f"{name}-r")]}, base)
    change(alice, "DELETE", name, {"members": [member("riga", f"{name}-r")], "delete": True}, base)
    assert absent(riga, f"{name}-r")
    told = change(alice, "DELETE", name, {"members": [member("visby", f"{name}-v")], "delete": True}, base)
    assert told["members"] is None  # as clients rely on


def test_the_first_member_makes_a_star_of_a_plain_service(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("plain")
    stories.create(alice, {"name": name, "image": "debian", "script": "echo a", "memory": "64Mi"})
    assert alice.get(f"/system/federation/{name}").json() == {"topology": "none", "members": None}
    assert change(alice, "POST", name, {"members": [member("visby", f"{name}-v")]})["topology"] == "star"
    worker = definition_of(of_alice(hansa, "visby"), f"{name}-v")
    assert worker["cluster_id"] == "visby"
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert absent(of_alice(hansa, "visby"), f"{name}-v")


def test_any_member_of_a_mesh_may_be_asked(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("mesh")
    deploy([member("visby", f"{name}-v"), member("riga", f"{name}-r")], name=name, topology="mesh")
    visby, riga, tallinn = (of_alice(hansa, cluster) for cluster in ("visby", "riga", "tallinn"))
    told = change(visby, "POST", f"{name}-v", {"members": [member("tallinn", f"{name}-t")]})
    assert f"{name}-t" in [one["service_name"] for one in told["members"]]
    assert members_at(alice, name) == [f"visby/{name}-v", f"riga/{name}-r", f"tallinn/{name}-t"]
    assert members_at(riga, f"{name}-r") == [f"lubeck/{name}", f"visby/{name}-v", f"tallinn/{name}-t"]
    assert members_at(tallinn, f"{name}-t") == [f"lubeck/{name}", f"visby/{name}-v", f"riga/{name}-r"]
    assert definition_of(alice, name)["annotations"].get("oscar.grycap/federation-worker") is None
    change(riga, "DELETE", f"{name}-r", {"members": [member("tallinn", f"{name}-t")], "delete": True})
    assert absent(tallinn, f"{name}-t")
    assert members_at(visby, f"{name}-v") == [f"lubeck/{name}", f"riga/{name}-r"]


def test_changes_at_the_same_time_do_not_lose_each_other(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("crowd")
    deploy([member("visby", f"{name}-v0")], name=name, topology="mesh")
    visby = of_alice(hansa, "visby")
    asked = [(alice, name, "riga", 1), (visby, f"{name}-v0", "tallinn", 2), (alice, name, "visby", 3)]
    with concurrent.futures.ThreadPoolExecutor(len(asked)) as threads:
        doing = [
            threads.submit(
                client.post,
                f"/system/federation/{service}",
                json={"members": [member(cluster, f"{name}-v{number}")]},
            )
            for client, service, cluster, number in asked
        ]
        assert [one.result(60).status_code for one in doing] == [200] * len(asked)
    expected = {f"visby/{name}-v0", f"riga/{name}-v1", f"tallinn/{name}-v2", f"visby/{name}-v3"}
    assert set(members_at(alice, name)) == expected

    def everywhere() -> bool:
        return all(
            set(members_at(of_alice(hansa, cluster), service)) == {f"lubeck/{name}", *expected} - {key}
            for key in expected
            for cluster, service in [key.split("/")]
        )

    eventually(everywhere, what="the same list everywhere")


def test_only_the_owner_may_change_members(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("owned")
    deploy([member("visby", f"{name}-v")], name=name, visibility="public")
    bob = hansa.user("bob", "lubeck")
    for verb in ("POST", "PUT", "DELETE"):
        body = {"members": [member("riga", f"{name}-r")], "update": [member("riga", f"{name}-r")], "delete": True}
        assert bob.request(verb, f"/system/federation/{name}", json=body).status_code == 403
        assert hansa["lubeck"].anonymous.request(verb, f"/system/federation/{name}", json=body).status_code == 401
    assert members_at(alice, name) == [f"visby/{name}-v"]


def test_removal_spares_what_is_not_ours(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    """The coordinator's own service may have the same name as the member's, and the member may have been replaced."""
    name = fresh("spared")
    deploy([member("visby", name)], name=name)
    visby = of_alice(hansa, "visby")
    assert visby.delete(f"/system/services/{name}").status_code == 204
    stories.create(visby, {"name": name, "image": "debian", "script": "echo mine", "memory": "64Mi"})
    change(alice, "DELETE", name, {"members": [member("visby", name)], "delete": True})
    assert definition_of(visby, name)["script"] == "echo mine"
    assert definition_of(alice, name)["script"] == stories.WHERE
    assert visby.delete(f"/system/services/{name}").status_code == 204


def test_a_member_of_an_unknown_cluster_is_a_warning_or_strictly_an_error(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("unknown")
    deploy([member("visby", f"{name}-v")], name=name)
    body = {"members": [member("narva", f"{name}-n")]}
    answer = alice.post(f"/system/federation/{name}", json=body)
    assert answer.status_code == 200, answer.text
    assert [one["member"] for one in answer.json()["warnings"]] == [f"narva/{name}-n"]
    assert alice.post(f"/system/federation/{name}", params={"strict": "true"}, json=body).status_code == 502
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert absent(of_alice(hansa, "visby"), f"{name}-v")


def test_bad_requests_change_nothing(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("strict")
    deploy([member("visby", f"{name}-v")], name=name)
    for verb, body in (
        ("POST", b""),
        ("POST", b"[]"),
        ("POST", b'{"members":[{"type":"teapot"}]}'),
        ("POST", f'{{"members":[{{"type":"oscar","cluster_id":"lubeck","service_name":"{name}"}}]}}'.encode()),
        ("PUT", b'{"members":[{"type":"oscar","cluster_id":"riga","service_name":"nobody"}],"update":[]}'),
    ):
        answer = alice.request(verb, f"/system/federation/{name}", content=body)
        assert answer.status_code == 400, (verb, body, answer.text)
    assert members_at(alice, name) == [f"visby/{name}-v"]


def test_a_worker_that_could_not_be_removed_goes_later(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("late")
    deploy([member("visby", f"{name}-v"), member("riga", f"{name}-r")], name=name)
    hansa.gates["riga"].shut("refuse")
    gone = {"members": [member("riga", f"{name}-r")], "delete": True}
    answer = alice.request("DELETE", f"/system/federation/{name}", json=gone)
    assert answer.status_code == 200
    assert [one["member"] for one in answer.json()["warnings"]] == [f"riga/{name}-r"]
    assert members_at(alice, name) == [f"visby/{name}-v"]
    hansa.gates["riga"].open()
    riga = of_alice(hansa, "riga")
    eventually(lambda: absent(riga, f"{name}-r"), what="removed")


@pytest.mark.deep
def test_members_change_while_one_is_cut_off_and_it_hears_of_it_later(
    hansa: Federation, net: Network, deploy: Deploy
) -> None:
    """Every operation has a mesh of its own, and all share one cut: to find out that nobody answers takes seconds."""
    bob, token = hansa.user("bob", "lubeck"), hansa.refresh_token("bob")
    tallinn = hansa.user("bob", "tallinn")
    pairs = [member("visby", "v"), member("tallinn", "t")]
    added, changed, removed, left, deleted = names = [
        fresh(word) for word in ("added", "changed", "removed", "left", "deleted")
    ]
    for name in names:
        members = [{**one, "service_name": f"{name}-{one['service_name']}"} for one in pairs]
        deploy(members[:1] if name == added else members, client=bob, name=name, token=token, topology="mesh")
    net.cut("tallinn")
    asked = {
        added: ("POST", {"members": [member("tallinn", f"{added}-t")]}),
        changed: ("PUT", {"members": [member("visby", f"{changed}-v", 7)]}),
        removed: ("DELETE", {"members": [member("tallinn", f"{removed}-t")], "delete": True}),
        left: ("DELETE", {"members": [member("tallinn", f"{left}-t")]}),
    }

    def ask(name: str) -> httpx.Response:
        if name == deleted:
            return bob.delete(f"/system/services/{name}")
        verb, body = asked[name]
        return bob.request(verb, f"/system/federation/{name}", json=body)

    with concurrent.futures.ThreadPoolExecutor(len(names)) as threads:
        answers = dict(zip(names, threads.map(ask, names), strict=True))
    for name in (added, changed, removed):
        assert answers[name].status_code == 200, answers[name].text
        assert [one["member"] for one in answers[name].json()["warnings"]] == [f"tallinn/{name}-t"]
        assert all(one["reason"] for one in answers[name].json()["warnings"])
    assert "warnings" not in answers[left].json()  # of those who stay, none is cut off
    assert answers[deleted].status_code in (200, 204), answers[deleted].text

    visby = hansa.user("bob", "visby")
    assert members_at(visby, f"{added}-v") == [f"lubeck/{added}", f"tallinn/{added}-t"]
    assert [one["priority"] for one in bob.get(f"/system/federation/{changed}").json()["members"]] == [7, 0]
    for name in (removed, left):
        assert members_at(visby, f"{name}-v") == [f"lubeck/{name}"]
    assert absent(visby, f"{deleted}-v")
    assert absent(bob, deleted)
    assert absent(tallinn, f"{added}-t")
    for name in (changed, removed, left, deleted):
        assert not absent(tallinn, f"{name}-t")  # nobody could tell it
    told = state_of(bob, added)
    assert told == {f"visby/{added}-v": (True, True), f"tallinn/{added}-t": (False, False)}

    net.heal_all()
    for name in (added, changed):
        eventually(partial(in_sync, bob, name), what=f"{name} in sync")
    assert members_at(tallinn, f"{added}-t") == [f"lubeck/{added}", f"visby/{added}-v"]
    for name in (removed, deleted):
        eventually(partial(absent, tallinn, f"{name}-t"), what=f"{name} gone from tallinn")
    assert not absent(tallinn, f"{left}-t")  # nobody said that it should go
    assert tallinn.delete(f"/system/services/{left}-t").status_code == 204
