"""Does one definition become the federation it describes, with each worker knowing no more than it must?"""

import concurrent.futures
import json
from functools import partial
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from journeys.federation.conftest import Deploy
from journeys.federation.stories import (
    absent,
    definition_of,
    ended,
    eventually,
    fresh,
    in_sync,
    member,
    members_at,
    outputs,
    state_of,
    submit,
)
from real.federation import Federation
from real.netns import Network

ALL = ("visby", "riga", "tallinn")


def of_alice(hansa: Federation, cluster: str) -> httpx.Client:
    return hansa.user("alice", cluster)


def test_a_star_has_workers_without_members_token_or_credentials(hansa: Federation, deploy: Deploy) -> None:
    token = hansa.refresh_token("alice")
    secrets = {"refresh_token": token, "word": "sesame-of-the-user"}
    name = fresh("star")
    deploy(
        [member(cluster, f"{name}-{cluster}") for cluster in ALL],
        name=name,
        environment={"variables": {"A": "1"}, "secrets": secrets},
        clusters=hansa.credentials("visby"),
        annotations={"mine": "yes"},
    )
    for cluster in ALL:
        worker = definition_of(of_alice(hansa, cluster), f"{name}-{cluster}")
        assert worker["cluster_id"] == cluster
        assert [worker["annotations"][mark] for mark in stories.MARKS] == ["lubeck", name, "true"]
        assert worker["annotations"]["mine"] == "yes"
        assert worker["federation"] == {"group_id": name, "topology": "star", "delegation": "static"}
        assert worker["input"][0]["path"] == f"{name}-{cluster}/in"
        assert worker["output"][0]["path"] == f"{name}/out"
        assert worker["storage_providers"]["minio"]["default"]["endpoint"] == _store_of(hansa, "lubeck")
        assert "refresh_token" not in worker["environment"]["secrets"]
        assert all(not one["auth_password"] and not one["auth_user"] for one in worker["clusters"].values())
        assert members_at(of_alice(hansa, cluster), worker["name"]) == []
    assert members_at(of_alice(hansa, "lubeck"), name) == [f"{cluster}/{name}-{cluster}" for cluster in ALL]
    _nothing_leaked(hansa, token, "sesame-of-the-user", hansa["visby"].password)


def _store_of(hansa: Federation, cluster: str) -> str:
    return str(of_alice(hansa, cluster).get("/system/config").json()["minio_provider"]["endpoint"])


def _nothing_leaked(hansa: Federation, *secrets: str) -> None:
    for cluster in hansa.clusters:
        shown = [hansa[cluster].log, of_alice(hansa, cluster).get("/system/services").text]
        shown.append(hansa[cluster].admin.get("/system/services").text)
        for text in shown:
            assert not [secret for secret in secrets if secret in text]


def test_a_tree_hangs_members_on_members(hansa: Federation, deploy: Deploy) -> None:
    name = fresh("tree")
    deploy(
        [
            member("visby", f"{name}-v"),
            member("riga", f"{name}-r", parent="visby"),
            member("tallinn", f"{name}-t", parent=f"visby/{name}-v"),
        ],
        name=name,
        topology="tree",
    )
    assert members_at(of_alice(hansa, "visby"), f"{name}-v") == [f"riga/{name}-r", f"tallinn/{name}-t"]
    for cluster in ("riga", "tallinn"):
        assert members_at(of_alice(hansa, cluster), f"{name}-{cluster[0]}") == []
    for cluster in ALL:
        worker = definition_of(of_alice(hansa, cluster), f"{name}-{cluster[0]}")
        assert worker["annotations"]["oscar.grycap/origin-service"] == name
        assert "refresh_token" not in worker["environment"]["secrets"]


def test_a_mesh_lists_everybody_else_everywhere(hansa: Federation, deploy: Deploy) -> None:
    name = fresh("mesh")
    deploy([member(cluster, f"{name}-{cluster}") for cluster in ALL], name=name, topology="mesh")
    for cluster in ALL:
        others = [f"{other}/{name}-{other}" for other in ALL if other != cluster]
        worker = definition_of(of_alice(hansa, cluster), f"{name}-{cluster}")
        assert members_at(of_alice(hansa, cluster), worker["name"]) == [f"lubeck/{name}", *others]
        assert worker["environment"]["secrets"] == {}  # the refresh token stays with the coordinator
        assert worker["federation"]["topology"] == "mesh"


def test_the_admin_deploys_with_the_clusters_own_credentials(hansa: Federation, deploy: Deploy) -> None:
    name = fresh("admins")
    deploy(
        [member("visby", name), member("riga", name)],
        client=hansa["lubeck"].admin,
        name=name,
        token="",
        clusters=hansa.credentials("visby", "riga"),
    )
    for cluster in ("visby", "riga"):
        worker = definition_of(hansa[cluster].admin, name)
        assert worker["owner"] == "cluster_admin"
        assert all(not one["auth_password"] for one in worker["clusters"].values())


def test_a_federation_without_token_and_credentials_is_refused(hansa: Federation, alice: httpx.Client) -> None:
    name = fresh("bare")
    answer = alice.post("/system/services", json=stories.federated(name, [member("visby", name)]))
    assert answer.status_code == 400
    assert "refresh_token" in answer.text
    assert absent(alice, name)
    assert absent(of_alice(hansa, "visby"), name)


@pytest.mark.parametrize(
    ("topology", "members"),
    [
        ("star", [member("visby", "twice"), member("visby", "twice")]),
        ("star", [member("visby", "one", parent="riga")]),
        ("tree", [member("visby", "one", parent="riga")]),
        ("tree", [member("visby", "one", parent="riga"), member("riga", "two", parent="visby")]),
        ("ring", [member("visby", "one")]),
    ],
)
def test_a_federation_that_makes_no_sense_is_refused(
    hansa: Federation, alice: httpx.Client, topology: str, members: list[dict[str, Any]]
) -> None:
    token = hansa.refresh_token("alice")
    before = len(hansa.gates["visby"].requests)
    answer = alice.post("/system/services", json=stories.federated("odd", members, topology=topology, token=token))
    assert answer.status_code == 400, answer.text
    assert len(hansa.gates["visby"].requests) == before  # nobody was asked anything


def test_two_services_of_one_cluster_may_be_members_of_each_other(hansa: Federation, deploy: Deploy) -> None:
    """A member may live in the very cluster that is asked, through its own public endpoint."""
    name = fresh("home")
    deploy([member("lubeck", f"{name}-too"), member("visby", f"{name}-v")], name=name)
    worker = definition_of(of_alice(hansa, "lubeck"), f"{name}-too")
    assert worker["annotations"]["oscar.grycap/federation-worker"] == "true"


def test_an_update_reaches_the_workers_and_a_delete_takes_them_along(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("life")
    deploy([member("visby", f"{name}-v"), member("riga", f"{name}-r")], name=name)
    now = definition_of(alice, name)
    now["script"] = "echo changed"
    answer = alice.put("/system/services", json=now)
    assert answer.status_code == 204, answer.text
    for cluster in ("visby", "riga"):
        assert definition_of(of_alice(hansa, cluster), f"{name}-{cluster[0]}")["script"] == "echo changed"
    assert alice.delete(f"/system/services/{name}").status_code == 204
    for cluster in ("visby", "riga"):
        assert absent(of_alice(hansa, cluster), f"{name}-{cluster[0]}")


def test_workers_may_be_kept(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("kept")
    deploy([member("visby", f"{name}-v")], name=name)
    assert alice.delete(f"/system/services/{name}", params={"workers": "keep"}).status_code == 204
    visby = of_alice(hansa, "visby")
    assert definition_of(visby, f"{name}-v")["annotations"]["oscar.grycap/origin-service"] == name
    assert visby.delete(f"/system/services/{name}-v").status_code == 204


def test_an_update_while_a_member_is_away_warns_and_is_repaired_later(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("drift")
    deploy([member("visby", f"{name}-v"), member("riga", f"{name}-r")], name=name)
    hansa.gates["riga"].shut("refuse")
    now = definition_of(alice, name)
    now["script"] = "echo later"
    answer = alice.put("/system/services", json=now)
    assert answer.status_code == 200
    assert f"riga/{name}-r" in answer.text
    assert definition_of(of_alice(hansa, "visby"), f"{name}-v")["script"] == "echo later"
    assert state_of(alice, name) == {f"visby/{name}-v": (True, True), f"riga/{name}-r": (False, False)}
    hansa.gates["riga"].open()
    riga = of_alice(hansa, "riga")
    eventually(lambda: definition_of(riga, f"{name}-r")["script"] == "echo later", what="repaired")


@pytest.mark.deep
def test_with_one_member_cut_off_the_others_go_on_and_it_catches_up(
    hansa: Federation, net: Network, deploy: Deploy
) -> None:
    """A star, a tree of two levels and a mesh share one cut: to find out that nobody answers takes seconds each time.
    In the tree riga is too small itself and passes the job on to visby, the sibling of the one that is cut off."""
    bob, token = hansa.user("bob", "lubeck"), hansa.refresh_token("bob")
    names = {topology: fresh(f"cut-{topology}") for topology in ("star", "tree", "mesh")}
    for topology, name in names.items():
        below = {"parent": "riga"} if topology == "tree" else {}
        members = [
            member("visby", f"{name}-visby", 1, **below),
            member("riga", f"{name}-riga", 2),
            member("tallinn", f"{name}-tallinn", 3, **below),
        ]
        deploy(members, client=bob, name=name, token=token, topology=topology, cpu="2")
    net.cut("tallinn")

    def go_on(topology: str) -> None:
        name = names[topology]
        job = submit(bob, name)
        more = {"members": [member("visby", f"{name}-more", 4)]}
        answer = bob.post(f"/system/federation/{name}", json=more)
        assert answer.status_code == 200, answer.text
        assert [one["member"] for one in answer.json()["warnings"]] == [f"tallinn/{name}-tallinn"]
        expected = {f"{cluster}/{name}-{cluster}": (cluster != "tallinn",) * 2 for cluster in ALL}
        assert state_of(bob, name) == {**expected, f"visby/{name}-more": (True, True)}
        told = ended(bob, job)
        assert told["status"] == "Succeeded", told
        assert told["delegation"]["cluster_id"] == ("riga" if topology == "tree" else "visby")
        assert outputs(hansa, bob, name) == {"out/where": f"by {name}-visby\n".encode()}

    tallinn, mesh = hansa.user("bob", "tallinn"), f"{names['mesh']}-tallinn"
    others = [f"lubeck/{names['mesh']}", *(f"{cluster}/{names['mesh']}-{cluster}" for cluster in ("visby", "riga"))]
    with concurrent.futures.ThreadPoolExecutor(len(names) + 1) as threads:
        alone = threads.submit(state_of, tallinn, mesh)
        for done in [threads.submit(go_on, topology) for topology in names]:
            done.result(120)
        assert alone.result(60) == dict.fromkeys(others, (False, False))  # to itself it is the others who are away

    net.heal_all()
    for name in names.values():
        eventually(partial(in_sync, bob, name), what=f"{name} in sync")
    assert members_at(tallinn, mesh) == [*others, f"visby/{names['mesh']}-more"]


def test_the_definition_shows_no_secret_to_its_own_user(alice: httpx.Client, hansa: Federation, deploy: Deploy) -> None:
    name = deploy([member("visby", fresh("v"))], clusters=hansa.credentials("visby"))
    shown = json.dumps(definition_of(alice, name))
    assert hansa["visby"].password not in shown
