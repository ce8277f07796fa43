"""Who hands a job over, or changes a replica from afar, gets nothing here that its owner did not give to that service.

lubeck is a cluster that visby trusts, and its operator turns hostile; or there is only a web server that may be sent
events; or somebody stole the key of one replica.
"""

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from journeys.events import minio_event
from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member, submit
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider
from real.listener import Listener, listener

SECRET = b"what nobody else may see 7731"
PERMIT = secrets.token_hex(32)


@pytest.fixture(scope="module")
def liar() -> Iterator[Listener]:
    with listener() as running:
        running.says["/v1/about"] = {"product": "hansa", "capabilities": ["delegation-permits", "replica-keys"]}
        yield running


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider, liar: Listener) -> Iterator[Federation]:
    settings: dict[str, dict[str, Any]] = {
        "lubeck": {"jobs.cpu": "100m"},
        "visby": {"jobs.cpu": "1", "federation.allowed_endpoints": [liar.url]},
    }
    with federation("lubeck", "visby", provider=sign_in_provider, settings=settings) as running:
        yield running


@pytest.fixture
def treasure(hansa: Federation) -> str:
    """A bucket of alice at visby that no service has to do with."""
    alice, bucket = hansa.user("alice", "visby"), fresh("treasure")
    assert alice.post("/system/buckets", json={"bucket_name": bucket}).status_code == 201
    hansa.store(alice).put_object(Bucket=bucket, Key="in/x", Body=SECRET)
    return bucket


def headers(job: str, origin: str) -> dict[str, str]:
    return {"X-Delegated-Job-ID": job, "X-Hansa-Permit": PERMIT, "X-Hansa-Origin": origin, "X-Hansa-Path": origin}


def its_store(client: httpx.Client, bucket: str) -> dict[str, Any]:
    """What a liar says: the data is in your own store, and this may be touched there."""
    reach = {"read": [[bucket, "in/x"]], "write": [[bucket, ""]], "share": [[bucket, ""]]}
    endpoint = client.get("/system/config").json()["minio_provider"]["endpoint"]
    return {"minio_provider": {"endpoint": endpoint, "access_key": "", "reach": json.dumps(reach)}}


def hand_over(hansa: Federation, bob: httpx.Client, name: str, event: bytes, job: str, origin: str) -> None:
    """By every way in; each is refused, and no job is left."""
    with_token = hansa["visby"].bearer(stories.definition_of(bob, name)["token"])
    for door in ("job", "run"):
        for client in (bob, with_token):
            answer = client.post(f"/{door}/{name}", content=event, headers=headers(job, origin))
            assert answer.status_code in (403, 409), (door, answer.status_code, answer.text)
            assert SECRET.decode() not in answer.text
    assert bob.get(f"/v1/jobs/{job}").status_code == 404


@contextmanager
def turned_hostile(hansa: Federation, liar: Listener) -> Iterator[None]:
    """Where lubeck was, the liar answers."""
    gate, former = hansa.gates["lubeck"], hansa.gates["lubeck"].target
    gate.target = ("127.0.0.1", int(liar.url.rsplit(":", 1)[1]))
    gate.shut()  # so that no connection to the honest one is left
    gate.open()
    try:
        yield
    finally:
        gate.target = former
        gate.shut()
        gate.open()


@pytest.mark.parametrize("marked", [False, True], ids=["its own service", "one that says it is a replica"])
def test_a_trusted_cluster_does_not_say_what_may_be_touched_in_our_store(
    hansa: Federation, liar: Listener, treasure: str, marked: bool
) -> None:
    bob, name, job = hansa.user("bob", "visby"), fresh("loot"), f"stolen-{secrets.token_hex(4)}"
    definition: dict[str, Any] = {"name": name, "cpu": "0.1", "memory": "64Mi", "image": "debian"}
    definition["script"] = 'cat "$INPUT_FILE_PATH"; echo overwritten > "$TMP_OUTPUT_DIR/x"'
    if marked:
        definition["annotations"] = {"oscar.grycap/origin-cluster": "lubeck", "oscar.grycap/federation-worker": "true"}
        definition["mount"] = {"storage_provider": "minio.default", "path": treasure}
        elsewhere = hansa.user("bob", "lubeck").get("/system/config").json()["minio_provider"]["endpoint"]
        definition["storage_providers"] = {"minio": {"default": {"endpoint": elsewhere}}}
    stories.create(bob, definition)
    liar.says[f"/v1/delegations/{job}/storage"] = its_store(bob, treasure)
    with turned_hostile(hansa, liar):
        hand_over(hansa, bob, name, json.dumps(minio_event(treasure, "in/x")).encode(), job, "lubeck")
    assert any(visit.path.endswith("/storage") for visit in liar.visits)  # it was asked, and not believed
    at_home = hansa.store(hansa.user("alice", "visby"))
    assert at_home.get_object(Bucket=treasure, Key="in/x")["Body"].read() == SECRET
    assert bob.delete(f"/system/services/{name}").status_code == 204


def test_what_a_trusted_cluster_tells_of_its_store_is_not_kept_whatever_its_size(
    hansa: Federation, liar: Listener
) -> None:
    bob, name, job = hansa.user("bob", "visby"), fresh("fat"), f"fat-{secrets.token_hex(4)}"
    output = [{"storage_provider": "minio.default", "path": f"{name}/out"}]
    definition: dict[str, Any] = {"name": name, "cpu": "0.1", "memory": "64Mi", "image": "debian", "script": "true"}
    stories.create(bob, {**definition, "output": output})
    told = {"endpoint": liar.url, "region": "x" * 250_000, "access_key": "a", "secret_key": "b"}
    liar.says[f"/v1/delegations/{job}/storage"] = {"minio_provider": told}
    with turned_hostile(hansa, liar):
        hand_over(hansa, bob, name, b"x", job, "lubeck")
    assert bob.delete(f"/system/services/{name}").status_code == 204


def test_whoever_may_be_sent_events_is_no_cluster(hansa: Federation, liar: Listener, treasure: str) -> None:
    bob, name, job = hansa.user("bob", "visby"), fresh("loot"), f"stolen-{secrets.token_hex(4)}"
    definition: dict[str, Any] = {"name": name, "cpu": "0.1", "memory": "64Mi", "image": "debian", "script": "true"}
    stories.create(bob, {**definition, "clusters": {"evil": {"endpoint": liar.url}}})
    liar.says[f"/v1/delegations/{job}/storage"] = its_store(bob, treasure)
    before = len(liar.visits)
    hand_over(hansa, bob, name, json.dumps(minio_event(treasure, "in/x")).encode(), job, "evil")
    assert liar.visits[before:] == []
    assert bob.delete(f"/system/services/{name}").status_code == 204


def test_a_replica_s_key_opens_no_other_data_of_its_owner(hansa: Federation, treasure: str) -> None:
    alice, name = hansa.user("alice", "lubeck"), fresh("gray")
    hansa.gates["visby"].overheard = bytearray()
    token = hansa.refresh_token("alice")
    stories.create(alice, stories.federated(name, [member("visby", f"{name}-v")], token=token))
    found = re.search(rb'"hansa\.replica-key":"([0-9a-f]{64})"', bytes(hansa.gates["visby"].overheard or b""))
    assert found is not None
    url, token = hansa["visby"].url, secrets.token_hex(32)
    hansa.gates["visby"].shut()  # lubeck repairs nothing
    key = {"Authorization": f"ReplicaKey {found.group(1).decode()}"}
    held = httpx.Client(base_url=url, headers=key, trust_env=False, timeout=30)
    with_token = hansa["visby"].bearer(token)
    try:
        definition = held.get(f"/v1/replicas/{name}-v").json()
        definition |= {"token": token, "cpu": "1", "input": [], "output": []}
        definition["script"] = "echo begun; sleep 3; find /mnt -type f -exec cat {} \\;"
        assert held.put(f"/v1/replicas/{name}-v", json=definition).status_code in (200, 204)
        jobs = [f"{name}-{number}" for number in range(2)]  # there is room for one at a time
        for job in jobs:
            assert with_token.post(f"/job/{name}-v", content=b"x", headers=headers(job, "lubeck")).status_code == 201
        definition["mount"] = {"storage_provider": "minio.default", "path": f"{treasure}/in"}
        assert held.put(f"/v1/replicas/{name}-v", json=definition).status_code in (200, 204)
        permit = {"Authorization": f"Permit {PERMIT}"}
        ask = hansa["visby"].anonymous

        def ended() -> dict[str, Any]:
            told: dict[str, Any] = ask.get(f"/v1/delegations/{jobs[1]}", headers=permit).json()
            log = ask.get(f"/v1/delegations/{jobs[1]}/log", headers=permit).text
            assert SECRET.decode() not in log
            return told if told["status"] in ("Succeeded", "Failed") else {}

        told = eventually(ended, what="ended")
        assert told["status"] == "Failed"
        assert "no keys" in told["reason"]
    finally:
        held.close()
        hansa.gates["visby"].open()
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_an_origin_that_says_nothing_keeps_nobodys_room(hansa: Federation) -> None:
    """Its job has ended and asks whether it may publish; what runs here for others goes on."""
    alice, bob, name = hansa.user("alice", "lubeck"), hansa.user("bob", "visby"), fresh("mute")
    own: dict[str, Any] = {"name": fresh("own"), "cpu": "0.8", "memory": "64Mi", "image": "debian", "script": "true"}
    stories.create(bob, own)
    token = hansa.refresh_token("alice")
    stories.create(alice, stories.federated(name, [member("visby", f"{name}-v")], token=token, cpu="0.8"))
    held = hansa.gates["lubeck"].hold("POST /v1/delegations/")
    job = submit(alice, name)
    held.reached()
    hansa.gates["lubeck"].shut()
    assert ended(bob, submit(bob, own["name"]))["status"] == "Succeeded"
    assert stories.story_of(hansa.user("alice", "visby"), job)["status"] == "Running"
    hansa.gates["lubeck"].open()
    assert ended(alice, job)["status"] == "Succeeded"
    assert stories.outputs(hansa, alice, name) == {"out/where": f"by {name}-v\n".encode()}
    for client, service in ((alice, name), (bob, own["name"])):
        assert client.delete(f"/system/services/{service}").status_code == 204
