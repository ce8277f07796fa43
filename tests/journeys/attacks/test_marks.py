"""Marks that only another cluster gives (who made a replica, where its data lives) open nothing when a tenant writes
them: neither somebody else's bucket, nor the manager's own rights to the store."""

import functools
import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.attacks.whose_manager import WHOSE_MANAGER, as_user
from journeys.conftest import signing_in
from journeys.events import minio_event
from journeys.objects import make_bucket
from journeys.waiting import all_jobs, eventually
from real.identity_provider import IdentityProvider
from real.listener import Listener, listener
from real.manager import Manager, running_manager, trusting

SECRET = "what-only-its-owner-may-read-8841"
WORKER, CLUSTER, SERVICE = (
    f"oscar.grycap/{name}" for name in ("federation-worker", "origin-cluster", "origin-service")
)
MARKS: list[dict[str, str]] = [
    {},
    {WORKER: "true"},
    {CLUSTER: "lubeck"},
    {CLUSTER: "visby"},
    {CLUSTER: "nowhere"},
    {CLUSTER: ""},
    {SERVICE: "VICTIM"},
    {WORKER: "true", CLUSTER: "lubeck", SERVICE: "VICTIM"},
    {WORKER: "true", CLUSTER: "visby", SERVICE: "VICTIM"},
    {WORKER: "TRUE", CLUSTER: "visby"},
]
# Where `minio.default` is said to be: nothing, ours, or elsewhere; with and without words in place of keys.
STORES: list[dict[str, Any]] = [
    {},
    {"endpoint": "http://elsewhere.example:9000"},
    {"endpoint": "http://elsewhere.example:9000", "access_key": "hidden", "secret_key": "hidden"},
    {"endpoint": "OURS", "access_key": "", "secret_key": ""},
]
OVER = {"Succeeded", "Failed"}
MEMBER = {"type": "endpoint", "url": "https://example.org/x"}


@pytest.fixture(scope="module")
def visby() -> Iterator[Listener]:
    """A cluster the operator trusts."""
    with listener() as listening:
        yield listening


@pytest.fixture(scope="module", params=WHOSE_MANAGER)
def lubeck(request: pytest.FixtureRequest, sign_in_provider: IdentityProvider, visby: Listener) -> Iterator[Manager]:
    own = {"cluster.id": "lubeck", "federation.clusters": {"visby": {"endpoint": visby.url}}}
    with running_manager({**trusting(sign_in_provider), **own}, user=as_user(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def people(lubeck: Manager, sign_in_provider: IdentityProvider) -> dict[str, httpx.Client]:
    signed_in = signing_in(lubeck, sign_in_provider)
    return {name: signed_in(name) for name in ("alice", "bob")}


@pytest.fixture(scope="module")
def victim(people: dict[str, httpx.Client]) -> str:
    bob = people["bob"]
    make_bucket(bob, "bobs-own", "in/x", SECRET.encode())
    return "bobs-own"


def definitions(victim: str, ours: str) -> Iterator[dict[str, Any]]:
    there = {"storage_provider": "minio.default", "path": f"{victim}/in"}
    places: list[dict[str, Any]] = [{}, {"input": [there]}, {"output": [there]}, {"mount": there}]
    federations: list[dict[str, Any]] = [{}, {"topology": "star", "members": [MEMBER]}]
    every = itertools.product(MARKS, STORES, places, federations)
    for number, (marks, store, place, federation) in enumerate(every):
        if marks and federation:
            continue
        default = json.loads(json.dumps(store).replace("OURS", ours))
        yield {
            "name": f"thief-{number}",
            "image": "debian",
            "memory": "64Mi",
            "script": f'cat "$INPUT_FILE_PATH" /mnt/{victim}/in/*; echo planted > "$TMP_OUTPUT_DIR/planted"',
            "annotations": {mark: text.replace("VICTIM", victim) for mark, text in marks.items()},
            **({"storage_providers": {"minio": {"default": default}}} if default else {}),
            **({"federation": federation} if federation else {}),
            **place,
        }


def all_over(client: httpx.Client, service: str) -> bool:
    return {job["status"] for job in all_jobs(client, service).values()} <= OVER


@pytest.mark.timeout(600)
def test_no_mark_opens_a_bucket_of_somebody_else(people: dict[str, httpx.Client], victim: str) -> None:
    alice, bob = people["alice"], people["bob"]
    ours = alice.get("/system/config").json()["minio_provider"]["endpoint"]
    event = json.dumps(minio_event(victim, "in/x"))
    made, refused = [], 0
    for definition in definitions(victim, ours):
        answer = alice.post("/system/services", json=definition)
        assert SECRET not in answer.text
        if answer.status_code != 201:
            assert answer.status_code in (400, 403), answer.text
            refused += 1
            continue
        made.append(definition["name"])
    assert refused > 0
    assert len(made) > 0
    jobs: dict[str, list[str]] = {name: [] for name in made}
    for name in made:
        for body in (b"", event.encode(), json.dumps({"storage_provider": "minio.default", "event": event}).encode()):
            submitted = alice.post(f"/job/{name}", content=body)
            assert submitted.status_code in (201, 400, 403, 409, 503), submitted.text
            if submitted.status_code == 201:
                jobs[name].append(submitted.headers["x-hansa-job"])
            ran = alice.post(f"/run/{name}", content=body)
            assert SECRET not in ran.text
            assert ran.status_code != 500
    for name, accepted in jobs.items():
        eventually(functools.partial(all_over, alice, name), 60)
        for job in accepted:
            assert SECRET not in alice.get(f"/system/logs/{name}/{job}").text
        assert alice.delete(f"/system/services/{name}").status_code == 204
    listed = bob.get(f"/system/buckets/{victim}").json()
    assert [one["object_name"] for one in listed["objects"]] == ["in/x"]
    link = bob.post(f"/system/buckets/{victim}/presign", json={"object_key": "in/x", "operation": "download"}).json()
    assert httpx.get(link["url"], trust_env=False).text == SECRET
