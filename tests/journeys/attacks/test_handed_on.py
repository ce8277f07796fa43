"""A replica hands a job on. What the next cluster is lent is its own: it ends when the job goes elsewhere, and never is
it what a person has.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.attacks.lent_keys import denied, overhear, store, stores_in, told
from journeys.events import minio_event
from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member, story_of, submit
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider

_KEYS = re.compile(rb'"hansa\.replica-key":"([0-9a-f]{64})"')
_PERMITS = re.compile(rb"(?i)x-hansa-permit: ([0-9a-f]{64})")


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider) -> Iterator[Federation]:
    """Jobs of these tests fit riga alone."""
    settings = {"lubeck": {"jobs.cpu": "100m"}, "visby": {"jobs.cpu": "100m"}}
    with federation("lubeck", "visby", "riga", provider=sign_in_provider, settings=settings) as running:
        yield running


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    return hansa.user("alice", "lubeck")


def deployed(hansa: Federation, alice: httpx.Client, script: str, topology: str = "mesh") -> str:
    name = fresh("onward")
    members = [member("visby", f"{name}-v"), member("riga", f"{name}-r", 5)]
    often, token = {"rescheduler_threshold": 1}, hansa.refresh_token("alice")
    overhear(hansa)
    stories.create(
        alice, stories.federated(name, members, topology=topology, token=token, federation=often, script=script)
    )
    return name


@pytest.fixture
def mesh(hansa: Federation, alice: httpx.Client) -> Iterator[str]:
    name = deployed(hansa, alice, "sleep 600")
    yield name
    hansa.mend()
    assert alice.delete(f"/system/services/{name}").status_code == 204


@pytest.fixture
def star(hansa: Federation, alice: httpx.Client) -> Iterator[str]:
    name = deployed(hansa, alice, "sleep 600", "star")
    yield name
    hansa.mend()
    assert alice.delete(f"/system/services/{name}").status_code == 204


def writes(client: Any, bucket: str) -> bool:
    return not denied(client.put_object, Bucket=bucket, Key="out/probe", Body=b"by riga")


@pytest.mark.parametrize("by", ["her own token", "the service's token"])
def test_a_job_that_was_submitted_to_a_replica_leaves_no_keys_where_it_is_taken_back_from(
    hansa: Federation, alice: httpx.Client, mesh: str, by: str
) -> None:
    hers = alice.get("/system/config").json()["minio_provider"]
    at_visby, at_riga = hansa.user("alice", "visby"), hansa.user("alice", "riga")
    token = stories.definition_of(at_visby, f"{mesh}-v")["token"]
    hansa.store(alice).put_object(Bucket=mesh, Key="kept/x", Body=b"hers")
    event = json.dumps(minio_event(mesh, "kept/x")).encode()  # which the service does not name, but she may read
    if by == "her own token":
        job = submit(at_visby, f"{mesh}-v", event)
    else:
        job = submit(hansa["visby"].bearer(token), f"{mesh}-v")
    eventually(lambda: "Running" in at_riga.get(f"/system/logs/{mesh}-r").text, what="running at riga")
    said = told(hansa)
    assert hers["secret_key"].encode() not in said
    lent = stores_in(bytes(hansa.gates["visby"].overheard or b""))
    assert lent, "riga asked visby for keys"
    client = store(lent[-1])
    eventually(lambda: writes(client, mesh), what="known to the store")
    assert denied(client.list_buckets)
    assert denied(client.get_object, Bucket=mesh, Key="kept/x") is (by != "her own token")
    hansa.gates["riga"].shut("hang")  # visby hears nothing of it any more
    eventually(lambda: not writes(client, mesh), what="ended")
    assert story_of(at_visby, job)["status"] == "Pending"


@pytest.mark.parametrize("first", ["lubeck", "visby"])
def test_who_fetched_keys_and_does_not_take_the_job_keeps_none(
    hansa: Federation, alice: httpx.Client, mesh: str, first: str
) -> None:
    """riga asks for keys before it says yes; here it never does. visby got the job from lubeck, or lubeck kept it."""
    if first == "lubeck":
        hansa.gates["visby"].shut()
    held = hansa.gates["riga"].hold("POST /job/")
    job = submit(alice, mesh)
    held.reached()
    permit = _PERMITS.findall(bytes(hansa.gates["riga"].overheard or b""))[-1].decode()
    shown = {"Authorization": f"Permit {permit}"}
    answer = hansa[first].anonymous.get(f"/v1/delegations/{job}/storage", headers=shown)
    assert answer.status_code == 200, answer.text
    client = store(answer.json()["minio_provider"])
    eventually(lambda: writes(client, mesh), what="known to the store")
    held.release(lost=True)
    eventually(lambda: not writes(client, mesh), what="ended")
    assert story_of(alice, job)["status"] in ("Pending", "Running")
    assert hansa[first].anonymous.get(f"/v1/delegations/{job}/storage", headers=shown).status_code == 404


def test_a_replica_gets_nothing_more_by_what_it_says_of_a_job(
    hansa: Federation, alice: httpx.Client, mesh: str
) -> None:
    """visby has a job that alice submitted there with her token, and hands it on, and on."""
    key = _KEYS.findall(bytes(hansa.gates["visby"].overheard or b""))[-1].decode()
    treasure = fresh("treasure")
    assert alice.post("/system/buckets", json={"bucket_name": treasure}).status_code == 201
    hansa.store(alice).put_object(Bucket=mesh, Key="kept/x", Body=b"hers")
    named, hers = (json.dumps(minio_event(*one)).encode() for one in ((mesh, "kept/x"), (treasure, "in/x")))
    at_visby = hansa.user("alice", "visby")
    job = submit(at_visby, f"{mesh}-v", named)
    eventually(lambda: story_of(at_visby, job)["status"] == "Running", what="running at riga")
    assert hansa.provider is not None
    bob = f"Bearer {hansa.provider.token('bob', hansa.realm)}"
    hansa.gates["visby"].shut("hang")  # that it hands nothing on would be found out at once

    def adopt(event: bytes, of: str = "", caller: str = "") -> int:
        name = fresh("mine")
        shown = {"Authorization": f"ReplicaKey {key}", "X-Hansa-Permit": "ab" * 32, "X-Hansa-Caller": caller}
        sent = {name: value for name, value in shown.items() if value}
        where = f"/v1/services/{mesh}/adopted/{name}"
        asked = {"member": f"visby/{mesh}-v", "of": of}
        return hansa["lubeck"].anonymous.post(where, params=asked, headers=sent, content=event).status_code

    assert adopt(named, job) == 200
    assert adopt(named, "another") == 403
    assert adopt(hers, job) == 403
    assert adopt(hers, "another") == 403
    assert adopt(hers, caller=bob) in (403, 404)
    assert adopt(hers, caller="Bearer nobody") == 401


@pytest.mark.parametrize("by", ["its key", "its key and a token of bob's"])
@pytest.mark.parametrize("how", ["taken back", "ended"])
def test_keys_to_hand_a_job_on_with_end_with_it_whatever_the_replica_says(
    hansa: Federation, alice: httpx.Client, star: str, how: str, by: str
) -> None:
    """riga has a job from lubeck, and asks for keys for somebody it would hand the job on to. In a star it has no right
    to any keys but for what it has from lubeck, whoever's token it shows along."""
    key = _KEYS.findall(bytes(hansa.gates["riga"].overheard or b""))[-1].decode()
    job = submit(alice, star)
    eventually(lambda: story_of(alice, job).get("delegation", {}).get("phase") == "away", what="at riga")
    asked = {"member": f"riga/{star}-r", "of": job}
    shown = {"Authorization": f"ReplicaKey {key}", "X-Hansa-Permit": "ab" * 32}
    if "bob" in by:
        assert hansa.provider is not None
        shown["X-Hansa-Caller"] = f"Bearer {hansa.provider.token('bob', hansa.realm)}"
    where = f"/v1/services/{star}/adopted/{fresh('mine')}"
    hansa.gates["riga"].shut(
        "hang"
    )  # that it hands nothing on would be found out at once; and lubeck takes its job back
    answer = hansa["lubeck"].anonymous.post(where, params=asked, headers=shown)
    assert answer.status_code == 200, answer.text
    client = store(answer.json()["minio_provider"])
    eventually(lambda: writes(client, star), what="known to the store")
    if how == "ended":
        assert alice.delete(f"/system/logs/{star}/{job}").status_code == 204
    eventually(lambda: not writes(client, star), what="ended")
    if how == "ended":  # one that was taken back is offered to riga again
        assert hansa["lubeck"].anonymous.post(where, params=asked, headers=shown).status_code == 401


@pytest.mark.parametrize("by", ["her own token", "the service's token"])
def test_whoever_runs_it_keeps_its_keys_when_the_replica_starts_anew(
    hansa: Federation, alice: httpx.Client, by: str
) -> None:
    """lubeck is asked before riga, and leaves it to visby to hand on a job for which it lends the keys."""
    name = deployed(hansa, alice, f"sleep 5; {stories.WHERE}")
    at_visby, at_riga = hansa.user("alice", "visby"), hansa.user("alice", "riga")
    token = stories.definition_of(at_visby, f"{name}-v")["token"]
    job = submit(at_visby if by == "her own token" else hansa["visby"].bearer(token), f"{name}-v")
    eventually(lambda: "Running" in at_riga.get(f"/system/logs/{name}-r").text, what="running at riga")
    hansa["visby"].restart()
    told = ended(at_visby, job)
    assert (told["status"], told["delegation"]["cluster_id"]) == ("Succeeded", "riga"), told
    assert stories.outputs(hansa, alice, name) == {"out/where": f"by {name}-r\n".encode()}
    assert alice.delete(f"/system/services/{name}").status_code == 204
