"""Members of one mesh give each other jobs. What visby was told for that is good for nothing else, and not for ever."""

import json
import re
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.attacks.lent_keys import denied, store, stores_in
from journeys.events import minio_event
from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member, story_of, submit
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider

PERMIT = secrets.token_hex(32)
_TOKENS = re.compile(rb'"hansa\.member-tokens":("(?:[^"\\]|\\.)*")')


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider) -> Iterator[Federation]:
    settings = {"lubeck": {"jobs.cpu": "100m"}, "visby": {"jobs.cpu": "1"}}
    with federation("lubeck", "visby", "riga", provider=sign_in_provider, settings=settings) as running:
        yield running


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    return hansa.user("alice", "lubeck")


def deployed(hansa: Federation, alice: httpx.Client, **more: Any) -> tuple[str, dict[str, str]]:
    """A mesh; and the tokens that visby was told with its replica."""
    name = fresh("mesh")
    hansa.gates["visby"].overheard = bytearray()
    members = [member("riga", f"{name}-r"), member("visby", f"{name}-v", 5)]
    token = hansa.refresh_token("alice")
    stories.create(alice, stories.federated(name, members, topology="mesh", token=token, **more))
    told = _TOKENS.search(bytes(hansa.gates["visby"].overheard or b""))
    assert told is not None
    found: dict[str, str] = json.loads(json.loads(told.group(1)))
    assert found.keys() == {f"lubeck/{name}", f"riga/{name}-r"}
    return name, found


def parcel(job: str, origin: str) -> dict[str, str]:
    return {"X-Delegated-Job-ID": job, "X-Hansa-Permit": PERMIT, "X-Hansa-Origin": origin, "X-Hansa-Path": origin}


def test_its_token_hands_jobs_over_in_its_own_name_and_reads_no_bucket(hansa: Federation, alice: httpx.Client) -> None:
    name, tokens = deployed(hansa, alice)
    treasure = fresh("treasure")
    assert alice.post("/system/buckets", json={"bucket_name": treasure}).status_code == 201
    hansa.store(alice).put_object(Bucket=treasure, Key="in/x", Body=b"nothing of the mesh")
    event = json.dumps(minio_event(treasure, "in/x")).encode()
    for cluster, service in (("lubeck", name), ("riga", f"{name}-r")):
        client = hansa[cluster].bearer(tokens[f"{cluster}/{service}"])
        for door in ("job", "run"):
            ways: list[dict[str, str]] = [{}, {"X-Delegated-Job-ID": "mine"}, parcel("mine", "lubeck")]
            for way in ways:
                assert client.post(f"/{door}/{service}", content=event, headers=way).status_code == 403, (cluster, way)
    assert hansa["riga"].anonymous.get("/v1/delegations/mine", headers={"Authorization": f"Permit {PERMIT}"}).is_error
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_a_job_that_another_was_given_stays_with_it(hansa: Federation, alice: httpx.Client) -> None:
    name, tokens = deployed(hansa, alice, script="echo for riga only; sleep 3", input=[], output=[])
    at_riga = hansa["riga"].bearer(tokens[f"riga/{name}-r"])
    job = submit(alice, name)
    eventually(lambda: story_of(alice, job)["status"] == "Running", what="running")
    listed: dict[str, Any] = at_riga.get(f"/v1/replicas/{name}-r/jobs").json()
    assert job in json.dumps(listed)
    answer = at_riga.post(f"/job/{name}-r", content=b"x", headers=parcel(job, "visby"))
    assert answer.status_code == 409, answer.text
    shown = {"Authorization": f"Permit {PERMIT}"}
    assert hansa["riga"].anonymous.get(f"/v1/delegations/{job}/log", headers=shown).status_code == 404
    assert ended(alice, job)["status"] == "Succeeded"
    answer = at_riga.post(f"/job/{name}-r", content=b"x", headers=parcel(job, "visby"))
    assert answer.status_code == 409, answer.text
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_once_it_was_removed_its_tokens_open_nothing(hansa: Federation, alice: httpx.Client) -> None:
    name, tokens = deployed(hansa, alice)
    places = {"lubeck": name, "riga": f"{name}-r"}

    def opens(cluster: str) -> bool:
        client = hansa[cluster].bearer(tokens[f"{cluster}/{places[cluster]}"])
        return client.get(f"/v1/replicas/{places[cluster]}/jobs").status_code == 200

    assert all(map(opens, places))
    change = {"members": [member("visby", f"{name}-v")], "delete": True}
    answer = alice.request("DELETE", f"/system/federation/{name}", json=change)
    assert answer.status_code == 200, answer.text
    eventually(lambda: not any(map(opens, places)), what="refused")
    for cluster, service in places.items():
        client = hansa[cluster].bearer(tokens[f"{cluster}/{service}"])
        assert client.post(f"/job/{service}", content=b"x", headers=parcel("late", "visby")).status_code == 401
    assert ended(alice, submit(alice, name))["status"] == "Succeeded"  # riga is told its new tokens
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_a_job_does_not_stay_with_one_that_was_removed(hansa: Federation, alice: httpx.Client) -> None:
    """Its run goes on there, without keys and without a right to publish; the job runs elsewhere."""
    name = fresh("left")
    visby, riga = member("visby", f"{name}-v"), member("riga", f"{name}-r", 5)
    script = f'case "$OSCAR_SERVICE_NAME" in *-v) sleep 30;; esac; {stories.WHERE}'
    token = hansa.refresh_token("alice")
    hansa.gates["visby"].overheard = bytearray()
    often = {"rescheduler_threshold": 1}
    stories.create(alice, stories.federated(name, [visby, riga], token=token, script=script, federation=often))
    job = submit(alice, name)
    eventually(lambda: story_of(alice, job)["status"] == "Running", what="running")
    permits = re.findall(rb"(?i)x-hansa-permit: ([0-9a-f]{64})", bytes(hansa.gates["visby"].overheard or b""))
    shown = {"Authorization": f"Permit {permits[-1].decode()}"}
    store = f"/v1/delegations/{job}/storage"
    assert hansa["lubeck"].anonymous.get(store, headers=shown).status_code == 200
    answer = alice.request("DELETE", f"/system/federation/{name}", json={"members": [visby]})
    assert answer.status_code == 200, answer.text
    told = ended(alice, job)
    assert (told["status"], told["delegation"]["cluster_id"]) == ("Succeeded", "riga")
    assert hansa["lubeck"].anonymous.get(store, headers=shown).status_code == 404
    assert stories.outputs(hansa, alice, name) == {"out/where": f"by {name}-r\n".encode()}
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert hansa.user("alice", "visby").delete(f"/system/services/{name}-v").status_code == 204


def test_nor_do_keys_with_one_that_got_the_job_through_another(hansa: Federation, alice: httpx.Client) -> None:
    """lubeck gave it to visby, which is too small for it and handed it on to riga."""
    name = fresh("hops")
    visby, riga = member("visby", f"{name}-v"), member("riga", f"{name}-r", 5)
    token, often = hansa.refresh_token("alice"), {"rescheduler_threshold": 1}
    definition = stories.federated(name, [visby, riga], topology="mesh", token=token, federation=often, cpu="2")
    stories.create(alice, {**definition, "script": "sleep 600"})
    hansa.gates["visby"].overheard = bytearray()
    hansa.store(alice).put_object(Bucket=name, Key="in/given", Body=b"hers")
    at_riga = hansa.user("alice", "riga")
    eventually(lambda: "Running" in at_riga.get(f"/system/logs/{name}-r").text, what="running at riga")
    lent = stores_in(bytes(hansa.gates["visby"].overheard or b""))
    assert lent, "riga asked visby for keys"
    client = store(lent[-1])
    assert client.get_object(Bucket=name, Key="in/given")["Body"].read() == b"hers"
    answer = alice.request("DELETE", f"/system/federation/{name}", json={"members": [riga], "delete": True})
    assert answer.status_code == 200, answer.text
    eventually(lambda: denied(client.get_object, Bucket=name, Key="in/given"), what="ended")
    assert denied(client.put_object, Bucket=name, Key="out/forged", Body=b"by riga")
    assert stories.outputs(hansa, alice, name) == {}
    assert alice.delete(f"/system/services/{name}").status_code == 204


@pytest.mark.parametrize("squatter", [b"mine", b"mine, and slow"], ids=["that ended", "that runs"])
def test_a_job_under_its_name_does_not_keep_one_from_running_elsewhere(
    hansa: Federation, alice: httpx.Client, squatter: bytes
) -> None:
    script = (
        'case "$OSCAR_SERVICE_NAME" in *-v) sleep 600;; esac; cat "$INPUT_FILE_PATH"; '
        'if grep -q slow "$INPUT_FILE_PATH"; then sleep 600; fi'
    )
    name, tokens = deployed(hansa, alice, script=script, input=[], output=[], federation={"rescheduler_threshold": 1})
    visby, riga = hansa["visby"].admin, hansa["riga"].bearer(tokens[f"riga/{name}-r"])
    at_riga = hansa.user("alice", "riga")
    hansa.gates["riga"].shut()  # so that visby gets it
    job = submit(alice, name)
    eventually(lambda: story_of(alice, job)["status"] == "Running", what="running at visby")
    hansa.gates["riga"].open()
    assert visby.get(f"/v1/jobs/{job}").json()["received"]["from"] == "lubeck"
    assert riga.post(f"/job/{name}-r", content=squatter, headers=parcel(job, "visby")).status_code == 201
    wanted = "Running" if b"slow" in squatter else "Succeeded"
    eventually(lambda: story_of(at_riga, job)["status"] == wanted, what=wanted)
    change = {"members": [member("visby", f"{name}-v")], "delete": True}
    answer = alice.request("DELETE", f"/system/federation/{name}", json=change)
    assert answer.status_code == 200, answer.text
    story = ended(alice, job)
    assert (story["status"], story["delegation"]["cluster_id"]) == ("Succeeded", "riga")
    log = alice.get(f"/system/logs/{name}/{job}").text
    assert "a parcel" in log
    assert "mine" not in log
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_the_replicas_own_token_takes_over_no_job(hansa: Federation, alice: httpx.Client) -> None:
    """Scripts of the service know it; it names lubeck as the origin, which was not asked where there are no files."""
    name, _ = deployed(hansa, alice, script="echo for riga only; sleep 5", input=[], output=[])
    own = stories.definition_of(hansa.user("alice", "riga"), f"{name}-r")["token"]
    job = submit(alice, name)
    eventually(lambda: story_of(alice, job)["status"] == "Running", what="running")
    answer = hansa["riga"].bearer(own).post(f"/job/{name}-r", content=b"x", headers=parcel(job, "lubeck"))
    assert answer.status_code == 409, answer.text
    shown = {"Authorization": f"Permit {PERMIT}"}
    assert hansa["riga"].anonymous.get(f"/v1/delegations/{job}/log", headers=shown).status_code == 404
    story = ended(alice, job)
    assert (story["status"], story["delegation"]["epoch"]) == ("Succeeded", 1)
    assert alice.delete(f"/system/services/{name}").status_code == 204
