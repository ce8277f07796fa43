"""Who gets which worker, and what must never travel."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.services import BadService, Service
from hansa.services.replicas import MemberKeys, topology
from hansa.services.secret_parts import GIVER_TOKENS, MEMBER_TOKENS, REPLICA_KEY

KEYS = MemberKeys(b"secret of lubeck")
SECRETS = {
    "environment.secrets.PASSWORD": "users-own",
    "environment.secrets.refresh_token": "r3fresh",
    "environment.secrets.hansa.group-key": "gr0up",
    "clusters.visby.auth_password": "pa55",
}


def member(cluster: str, **more: Any) -> dict[str, Any]:
    return {"type": "oscar", "cluster_id": cluster, "service_name": f"gray-{cluster}", **more}


def origin(kind: str, members: list[dict[str, Any]], **more: Any) -> Service:
    base = {
        "name": "gray",
        "cluster_id": "lubeck",
        "image": "debian",
        "script": "true",
        "token": "a" * 64,
        "federation": {"group_id": "gray", "topology": kind, "delegation": "random", "members": members},
        "clusters": {"visby": {"endpoint": "https://v", "auth_user": "admin", "auth_password": ""}},
        "environment": {"variables": {"A": "1"}, "secrets": {"PASSWORD": "", "refresh_token": ""}},
        "input": [{"storage_provider": "minio.default", "path": "gray/in"}],
        "output": [{"storage_provider": "minio.default", "path": "gray/out"}],
        "storage_providers": {"minio": {"default": {"endpoint": "https://s3.lubeck", "access_key": "hidden"}}},
        "owner": "alice",
        "namespace": "oscar-svc-alice-52",
    }
    return msgspec.convert({**base, **more}, Service)


def workers(service: Service, keyless: tuple[str, ...] = ()) -> dict[str, Service]:
    made = topology.expand(
        service,
        SECRETS,
        keys=KEYS,
        keyless=keyless,
        operation="op1",
        fingerprint="f1",
        own_endpoint="https://lubeck",
    )
    return {worker.member.cluster_id: worker.definition for worker in made}


@pytest.mark.parametrize("kind", ["star", "tree"])
def test_a_star_worker_has_no_members_no_token_and_no_credentials(kind: str) -> None:
    made = workers(origin(kind, [member("visby"), member("riga")]))
    assert set(made) == {"visby", "riga"}
    worker = made["visby"]
    assert (worker.name, worker.cluster_id) == ("gray-visby", "visby")
    assert worker.federation is not None
    assert (worker.federation.members, worker.federation.topology, worker.federation.delegation) == ((), kind, "random")
    text = msgspec.json.encode(worker).decode()
    assert not any(word in text for word in ("r3fresh", "gr0up", "pa55", "admin"))
    assert worker.environment.secrets.keys() == {"PASSWORD", REPLICA_KEY, MEMBER_TOKENS, GIVER_TOKENS}
    assert worker.annotations["oscar.grycap/origin-cluster"] == "lubeck"
    assert worker.annotations["oscar.grycap/origin-service"] == "gray"
    assert worker.annotations["oscar.grycap/federation-worker"] == "true"
    assert worker.clusters["lubeck"].endpoint == "https://lubeck"
    assert worker.is_worker


def told_tokens(worker: Service) -> dict[str, str]:
    found: dict[str, str] = json.loads(worker.environment.secrets.get(MEMBER_TOKENS, "{}"))
    return found


@pytest.mark.parametrize("kind", ["star", "mesh"])
def test_no_two_replicas_have_a_token_or_key_in_common_nor_with_their_coordinator(kind: str) -> None:
    service = origin(kind, [member("visby"), member("riga"), member("tallinn")])
    made = workers(service)
    secrets = [one.token for one in made.values()] + [one.environment.secrets[REPLICA_KEY] for one in made.values()]
    secrets += [service.token, KEYS.token(service, topology.key_of(service))]
    assert len(set(secrets)) == len(secrets)
    assert all(len(one) == 64 for one in secrets)


def test_another_coordinator_or_another_life_of_it_has_other_keys() -> None:
    first = origin("star", [member("visby")])
    again = msgspec.structs.replace(first, token="b" * 64)
    elsewhere = MemberKeys(b"secret of bremen")
    found = {KEYS.key(first, "visby/g"), KEYS.key(again, "visby/g"), elsewhere.key(first, "visby/g")}
    assert len(found) == 3
    assert KEYS.mark(first) != KEYS.mark(again)


def given_tokens(worker: Service) -> dict[str, str]:
    found: dict[str, str] = json.loads(worker.environment.secrets.get(GIVER_TOKENS, "{}"))
    return found


def test_a_worker_is_told_the_tokens_of_those_it_gives_jobs_to_and_no_others() -> None:
    """Each is good between two: nobody can hand over in another's name."""
    star = workers(origin("star", [member("visby"), member("riga")]))
    assert all(not told_tokens(one) and not given_tokens(one) for one in star.values())
    mesh = workers(origin("mesh", [member("visby"), member("riga")]))
    assert told_tokens(mesh["visby"]).keys() == {"lubeck/gray", "riga/gray-riga"}
    assert told_tokens(mesh["visby"])["riga/gray-riga"] == given_tokens(mesh["riga"])["visby/gray-visby"]
    assert given_tokens(mesh["riga"]).keys() == {"visby/gray-visby"}
    every = [token for one in mesh.values() for token in (*told_tokens(one).values(), one.token)]
    assert len(set(every)) == len(every) == 6
    assert "a" * 64 not in told_tokens(mesh["visby"]).values()  # the coordinator's own token stays with it
    tree = workers(origin("tree", [member("visby"), member("riga", parent="visby"), member("tallinn")]))
    assert told_tokens(tree["visby"]) == {"riga/gray-riga": given_tokens(tree["riga"])["visby/gray-visby"]}
    assert not told_tokens(tree["tallinn"])
    assert not given_tokens(tree["tallinn"])


def test_inputs_stay_per_service_and_outputs_are_shared() -> None:
    worker = workers(origin("star", [member("visby")]))["visby"]
    assert (worker.input[0].path, worker.output[0].path) == ("in", "gray/out")
    assert worker.storage_providers["minio"]["default"]["endpoint"] == "https://s3.lubeck"


def test_in_a_mesh_everybody_lists_everybody_else() -> None:
    made = workers(origin("mesh", [member("visby"), member("riga")]))
    for cluster, others in {"visby": ["lubeck", "riga"], "riga": ["lubeck", "visby"]}.items():
        federation = made[cluster].federation
        assert federation is not None
        assert [m.cluster_id for m in federation.members] == others
        assert "r3fresh" not in msgspec.json.encode(made[cluster]).decode()


@pytest.mark.parametrize("kind", ["star", "tree", "mesh"])
def test_the_refresh_token_is_planned_for_nobody_but_who_takes_no_keys_in_a_mesh(kind: str) -> None:
    """And nothing of ours is, for such a one would hand it to its jobs."""
    made = workers(origin(kind, [member("visby"), member("goslar")]), keyless=("goslar/gray-goslar",))
    hansa, oscar = made["visby"].environment.secrets, made["goslar"].environment.secrets
    token = {"refresh_token": "r3fresh"} if kind == "mesh" else {}
    assert oscar == {"PASSWORD": "users-own", **token}
    assert "refresh_token" not in hansa
    assert "hansa.group-key" not in hansa
    assert made["goslar"].token not in (made["visby"].token, "a" * 64)


def test_a_blank_is_not_planned_for_who_would_write_it_over_its_secret() -> None:
    blank = {"environment.secrets.PASSWORD": ""}
    planned = {
        keyless: topology.expand(
            origin("star", [member("visby")]), blank, keys=KEYS, keyless=keyless, operation="o", fingerprint="f",
            own_endpoint="https://lubeck",
        )[0].definition.environment.secrets
        for keyless in ((), ("visby/gray-visby",))
    }  # fmt: skip
    assert planned["visby/gray-visby",] == {}
    assert planned[()]["PASSWORD"] == ""


def test_a_tree_of_two_levels() -> None:
    service = origin(
        "tree", [member("visby"), member("riga", parent="visby"), member("tallinn", parent="visby/gray-visby")]
    )
    made = workers(service, keyless=("riga/gray-riga",))
    inner = made["visby"].federation
    assert inner is not None
    assert [m.cluster_id for m in inner.members] == ["riga", "tallinn"]
    assert made["riga"].federation is not None
    assert made["riga"].federation.members == ()
    assert [m.cluster_id for m in topology.own_targets(service)] == ["visby"]
    assert [m.cluster_id for m in topology.own_targets(made["visby"])] == ["riga", "tallinn"]
    assert "refresh_token" not in made["visby"].environment.secrets
    # with it an access token of the owner can be had at a coordinator of an earlier release
    assert all("hansa.group-key" not in one.environment.secrets for one in made.values())


def test_in_a_tree_who_has_to_be_shown_a_token_gets_jobs_from_the_coordinator_or_from_nobody() -> None:
    service = origin("tree", [member("visby"), member("riga", parent="visby"), member("goslar")])
    near_and_far = ("riga/gray-riga", "goslar/gray-goslar")
    assert [one.cluster_id for one in topology.without_jobs(service, near_and_far)] == ["riga"]
    assert not topology.without_jobs(service, ())
    assert not topology.without_jobs(origin("mesh", [member("riga")]), near_and_far)


@pytest.mark.parametrize(
    ("members", "word"),
    [
        ([member("visby", parent="riga"), member("riga", parent="visby")], "ring"),
        ([member("visby", parent="nowhere")], "no member"),
        ([member("visby"), member("visby")], "twice"),
        ([{"type": "oscar", "cluster_id": "lubeck", "service_name": "gray"}], "own member"),
    ],
)
def test_impossible_trees_are_refused(members: list[dict[str, Any]], word: str) -> None:
    with pytest.raises(BadService, match=word):
        topology.check(origin("tree", members))


def test_a_federation_needs_a_cluster_id() -> None:
    with pytest.raises(BadService, match="cluster_id"):
        topology.check(origin("star", [member("visby")], cluster_id=""))


def test_endpoint_members_get_no_worker() -> None:
    made = workers(origin("star", [member("visby"), {"type": "endpoint", "url": "https://x/hook"}]))
    assert set(made) == {"visby"}


def test_topology_none_delegates_to_nobody() -> None:
    assert topology.own_targets(origin("none", [member("visby")])) == ()


@given(st.lists(st.integers(-1, 8), min_size=1, max_size=9))
def test_in_any_tree_every_member_is_the_child_of_exactly_one(parents: list[int]) -> None:
    members = [
        member(f"c{n}", **({"parent": f"c{p}"} if 0 <= p < n else {})) for n, p in enumerate(parents)
    ]  # parents come earlier, so there is no ring
    service = origin("tree", members)
    topology.check(service)
    assert service.federation is not None
    found = [m.key for m in topology.children(service.federation, None)]
    for one in service.federation.members:
        found += [m.key for m in topology.children(service.federation, one)]
    assert sorted(found) == sorted(m.key for m in service.federation.members)
