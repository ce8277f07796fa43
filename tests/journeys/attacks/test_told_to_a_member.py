"""Everything that a member was told since its replica was made, tried while it has a job: only that job opens to it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.attacks.lent_keys import overhear, told
from journeys.attacks.test_hostile_member import secrets_in
from journeys.events import minio_event
from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider

PATIENT = {"federation.lost_after": 300, "federation.call_timeout": 60}  # to try everything takes a while
SETTINGS: dict[str, dict[str, Any]] = {"lubeck": {"jobs.cpu": "100m", **PATIENT}, "visby": PATIENT}


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider) -> Iterator[Federation]:
    with federation("lubeck", "visby", provider=sign_in_provider, settings=SETTINGS) as running:
        yield running


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    return hansa.user("alice", "lubeck")


def deployed(hansa: Federation, alice: httpx.Client, topology: str) -> str:
    name = fresh(topology)
    members = [member("visby", f"{name}-v")]
    token = hansa.refresh_token("alice")
    stories.create(alice, stories.federated(name, members, topology=topology, token=token, visibility="public"))
    return name


@pytest.mark.parametrize("topology", ["star", "mesh", "tree"])
def test_while_a_member_has_a_job_it_opens_that_job_and_nothing_else(
    hansa: Federation, alice: httpx.Client, topology: str
) -> None:
    overhear(hansa)
    name = deployed(hansa, alice, topology)
    at_creation = told(hansa)
    other = deployed(hansa, alice, topology)
    overhear(hansa)
    held = hansa.gates["lubeck"].hold("POST /v1/delegations/")  # the run has ended and asks whether it may publish
    hansa.store(alice).put_object(Bucket=name, Key="in/given", Body=b"for the member")
    held.reached()
    (job,) = alice.get(f"/system/logs/{name}").json()["jobs"]
    # a replica is made with an access token of its owner, which the page on threats says; nothing else is a person's
    known = {*secrets_in(told(hansa)), *(one for one in secrets_in(at_creation) if not one.startswith("eyJ"))}
    assert len(known) > 8
    doors = [
        *(("Bearer", "GET", path) for path in ("/system/config", "/system/services", "/system/buckets")),
        *(("Bearer", "GET", f"/system/{what}/{one}") for what in ("services", "logs") for one in (name, other)),
        *(("Bearer", "POST", f"/{door}/{other}") for door in ("run", "job")),
        ("Bearer", "POST", f"/run/{name}"),
        ("Bearer", "GET", f"/system/logs/{name}/{job}"),
        ("Bearer", "GET", f"/v1/jobs/{job}"),
        ("Bearer", "GET", f"/v1/replicas/{name}/jobs"),
        ("Bearer", "GET", f"/v1/replicas/{other}/jobs"),
        ("ReplicaKey", "GET", f"/v1/replicas/{name}"),
        ("ReplicaKey", "DELETE", f"/v1/replicas/{name}"),
        ("ReplicaKey", "GET", f"/v1/replicas/{other}"),
        ("ReplicaKey", "POST", f"/v1/services/{other}/adopted/x?member=visby/{other}-v"),
        ("GroupKey", "POST", f"/v1/services/{name}/access-token"),
        ("Permit", "GET", f"/v1/delegations/{job}/storage"),
        ("Permit", "GET", f"/v1/delegations/{job}/log"),
    ]
    opened = set()
    with httpx.Client(base_url=hansa["lubeck"].url, trust_env=False, timeout=30) as client:
        for secret in known:
            for scheme, method, path in doors:
                answer = client.request(method, path, headers={"Authorization": f"{scheme} {secret}"})
                assert answer.status_code < 500, (scheme, method, path, answer.text)
                if answer.status_code < 400:
                    opened.add((scheme, method, path))
    own_jobs = {("Bearer", "GET", f"/v1/replicas/{name}/jobs")} if topology == "mesh" else set()
    assert opened <= {("Permit", "GET", f"/v1/delegations/{job}/storage")} | own_jobs
    assert ("Permit", "GET", f"/v1/delegations/{job}/storage") in opened  # so the others were really tried
    held.release()
    eventually(lambda: stories.nothing_runs(alice, name), what="ended")
    for one in (name, other):
        assert alice.delete(f"/system/services/{one}").status_code == 204


@pytest.mark.parametrize("topology", ["star", "mesh"])
def test_whoever_an_event_names_a_member_gets_no_keys_of_theirs(
    hansa: Federation, alice: httpx.Client, topology: str
) -> None:
    bobs = [
        hansa.user("bob", cluster).get("/system/config").json()["minio_provider"]["secret_key"].encode()
        for cluster in ("lubeck", "visby")
    ]
    overhear(hansa)
    name = deployed(hansa, alice, topology)
    hansa.store(alice).put_object(Bucket=name, Key="kept/y", Body=b"hers")
    event = minio_event(name, "kept/y")
    event["Records"][0]["requestParameters"] = {"principalId": "bob@test"}
    event["Records"][0]["userIdentity"] = {"principalId": "bob@test"}
    token = stories.definition_of(alice, name)["token"]
    submitted = hansa["lubeck"].bearer(token).post(f"/job/{name}", json=event)
    assert submitted.status_code == 201, submitted.text
    assert ended(alice, submitted.headers["x-hansa-job"])["status"] == "Succeeded"
    said = told(hansa)
    assert b"/v1/delegations/" in said  # the member asked for the job's keys
    assert not any(secret in said for secret in bobs)
    assert alice.delete(f"/system/services/{name}").status_code == 204
