"""One federation of a machine and two Kubernetes: does work flow between them, and do its outputs come home?

lubeck is this machine, visby and riga are two real Kubernetes. lubeck and visby give jobs room for one at a time, so
what is beyond goes to the other kind. tallinn shares visby's Kubernetes and asks for nodes that nobody has.
"""

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.federation import conftest as federations
from journeys.federation import stories
from journeys.federation.conftest import Deploy
from journeys.federation.stories import ended, eventually, fresh, member, outputs, story_of, submit
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes.access import Access
from real.kubernetes.cluster import KubernetesCluster

pytestmark = pytest.mark.deep
provider = federations.provider
deploy = federations.deploy


@pytest.fixture(scope="module")
def hansa(provider: IdentityProvider, kubernetes: Access, _own_kubernetes: KubernetesCluster) -> Iterator[Federation]:
    mark = secrets.token_hex(3)
    for access in (kubernetes, _own_kubernetes.access):
        managers.bring_images(access)
        managers.reach_pods(access)
    stores = [managers.near_end(access) for access in (kubernetes, _own_kubernetes.access)]
    one = {"cluster.services_namespace": f"svc-{mark}", "egress.allow": stores}  # equal on all members
    settings: dict[str, dict[str, Any]] = {
        "lubeck": {**one, "jobs.cpu": "300m", "storage.host": managers.near_end(kubernetes)},
        "visby": {**managers.settings_for(kubernetes), **one, "jobs.cpu": "300m"},
        "riga": {**managers.settings_for(_own_kubernetes.access), **one},
        "tallinn": {
            **managers.settings_for(kubernetes),
            **one,
            "kubernetes.node_selector": {"hansa/nowhere": "yes"},
            "kubernetes.pending_patience": 2,
        },
    }
    for name, given in settings.items():
        given["cluster.id"] = name
    try:
        with federation(*settings, provider=provider, settings=settings) as running:
            yield running
    finally:
        for name in ("visby", "tallinn"):
            asyncio.run(managers.clear(kubernetes, name))


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    return hansa.user("alice", "lubeck")


SCRIPT = 'name="$(cat "$INPUT_FILE_PATH")"; echo "$name at $RESOURCE_ID" > "$TMP_OUTPUT_DIR/$name"; sleep 5'


def went_to(client: httpx.Client, job: str) -> str:
    """Where it ran, once it has ended well."""
    told = ended(client, job, 120)
    assert told["status"] == "Succeeded", told
    return str((told.get("delegation") or {}).get("cluster_id") or "home")


def test_what_is_too_much_for_the_machine_runs_in_kubernetes(
    hansa: Federation, alice: httpx.Client, deploy: Deploy
) -> None:
    name = fresh("out")
    deploy([member("visby", f"{name}-v", 0), member("riga", f"{name}-r", 1)], name=name, script=SCRIPT)
    jobs = [submit(alice, name, f"parcel-{number}".encode()) for number in range(3)]
    places = sorted(went_to(alice, job) for job in jobs)
    assert places.count("home") == 1, places
    found = outputs(hansa, alice, name)
    assert sorted(found) == [f"out/parcel-{number}" for number in range(3)]
    assert sum(b"at kubernetes" in text for text in found.values()) == 2
    away = next(job for job in jobs if "delegation" in story_of(alice, job))
    assert "the script ended well" in alice.get(f"/system/logs/{name}/{away}").text


def test_and_back(hansa: Federation, deploy: Deploy) -> None:
    alice = hansa.user("alice", "visby")
    name = fresh("back")
    deploy([member("lubeck", f"{name}-l")], client=alice, name=name, script=SCRIPT, origin="visby")
    jobs = [submit(alice, name, f"parcel-{number}".encode()) for number in range(2)]
    assert sorted(went_to(alice, job) for job in jobs) == ["home", "lubeck"]
    found = outputs(hansa, alice, name)
    assert sorted(found) == ["out/parcel-0", "out/parcel-1"]
    assert sum(b"at kubernetes" in text for text in found.values()) == 1


def test_a_mesh_of_both_kinds(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("mesh")
    members = [member("visby", f"{name}-v", 0), member("riga", f"{name}-r", 1)]
    deploy(members, name=name, topology="mesh", script=SCRIPT)
    for cluster, service in (("visby", f"{name}-v"), ("riga", f"{name}-r")):
        known = stories.members_at(hansa.user("alice", cluster), service)
        assert len(known) == 2, known
    there = hansa.user("alice", "visby")
    jobs = [submit(there, f"{name}-v", f"parcel-{number}".encode()) for number in range(2)]
    places = {went_to(there, job) for job in jobs}
    assert len(places) == 2, places
    # all outputs of a mesh are at its origin
    assert sorted(outputs(hansa, alice, name)) == ["out/parcel-0", "out/parcel-1"]


def test_a_job_that_stays_pending_in_kubernetes_goes_elsewhere(hansa: Federation, deploy: Deploy) -> None:
    alice = hansa.user("alice", "tallinn")
    name = fresh("stuck")
    deploy([member("riga", f"{name}-r")], client=alice, name=name, script=SCRIPT, origin="tallinn")
    assert went_to(alice, submit(alice, name, b"parcel")) == "riga"
    assert sorted(outputs(hansa, alice, name)) == ["out/parcel"]


def test_nobody_takes_a_job_that_stays_pending(hansa: Federation, deploy: Deploy) -> None:
    """It goes on waiting where it is, and says why."""
    alice = hansa.user("alice", "tallinn")
    name = fresh("stays")
    deploy([member("riga", f"{name}-r")], client=alice, name=name, script=SCRIPT, origin="tallinn", cpu="64")
    job = submit(alice, name, b"parcel")
    eventually(lambda: "riga" in story_of(alice, job)["reason"], what="a reason that names riga")
