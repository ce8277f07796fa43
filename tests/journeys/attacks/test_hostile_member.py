"""A cluster that runs jobs for another gets what these jobs need, and nothing it could use for anything else.

visby is a real member whose operator is hostile: everything that was said to it, and every answer it got, is tried
against lubeck and its store, while a job is there and after it.
"""

import base64
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.attacks.lent_keys import denied, overhear, store, stores_in, told
from journeys.events import minio_event
from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member, submit
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider
from real.listener import Listener, listener
from real.oscar_like import oscar_like

SECRET = b"what the member must not see 5523"
_LIKELY = re.compile(rb"[A-Za-z0-9_\-.~+/]{20,}={0,2}")  # tokens, keys, permits
_REPAIR = 0.3


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider) -> Iterator[Federation]:
    settings = {"lubeck": {"jobs.cpu": "100m", "federation.repair_every": _REPAIR, "federation.probe_ttl": 0.2}}
    with federation("lubeck", "visby", provider=sign_in_provider, settings=settings) as running:
        yield running


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    return hansa.user("alice", "lubeck")


@pytest.fixture
def treasure(hansa: Federation, alice: httpx.Client) -> str:
    """A bucket of alice that has nothing to do with her services."""
    bucket = fresh("treasure")
    assert alice.post("/system/buckets", json={"bucket_name": bucket}).status_code == 201
    hansa.store(alice).put_object(Bucket=bucket, Key="in/x", Body=SECRET)
    return bucket


def deployed(hansa: Federation, alice: httpx.Client, topology: str) -> str:
    name = fresh(topology)
    definition = stories.federated(
        name,
        [member("visby", f"{name}-v")],
        topology=topology,
        delegation="random",  # so that the member's status is asked for, too
        token=hansa.refresh_token("alice"),
    )
    stories.create(alice, definition)
    return name


def refused_everywhere(hansa: Federation, name: str, secret: str, *, jobs: list[str]) -> None:
    """As whatever this may be, it opens nothing at lubeck."""
    lubeck = hansa["lubeck"].url
    asked = [
        ("Bearer", "GET", "/system/config"),
        ("Bearer", "GET", "/system/services"),
        ("Bearer", "GET", f"/system/services/{name}"),
        ("Bearer", "GET", "/system/buckets"),
        ("Bearer", "POST", f"/run/{name}"),
        ("Bearer", "GET", f"/v1/replicas/{name}/jobs"),
        ("ReplicaKey", "GET", f"/v1/replicas/{name}"),
        ("ReplicaKey", "DELETE", f"/v1/replicas/{name}"),
        ("GroupKey", "POST", f"/v1/services/{name}/access-token"),
        *(("Permit", "GET", f"/v1/delegations/{job}/storage") for job in jobs),
        *(("Permit", "POST", f"/v1/delegations/{job}/publish") for job in jobs),
    ]
    with httpx.Client(base_url=lubeck, trust_env=False, timeout=30) as client:
        for scheme, method, path in asked:
            answer = client.request(method, path, headers={"Authorization": f"{scheme} {secret}"})
            assert answer.status_code in (400, 401, 403, 404, 409), (scheme, method, path, answer.status_code)
        basic = {"Authorization": f"Bearer {secret}", "X-Delegated-Job-ID": f"{name}-stolen"}
        assert client.post(f"/job/{name}", headers=basic, content=b"mine").status_code in (400, 401, 403, 404)


def opens_only_its_grant(client: Any, name: str, treasure: str, *, given: str) -> None:
    assert client.get_object(Bucket=name, Key=given)["Body"].read() == b"for the member"
    assert denied(client.get_object, Bucket=name, Key="kept/another")
    assert denied(client.put_object, Bucket=name, Key=given, Body=b"changed")
    assert denied(client.put_object, Bucket=name, Key="elsewhere/x", Body=b"planted")
    assert denied(client.delete_object, Bucket=name, Key="kept/another")
    assert denied(client.list_objects_v2, Bucket=name)
    opens_nothing_of_hers(client, treasure)


def opens_nothing_of_hers(client: Any, treasure: str) -> None:
    assert denied(client.get_object, Bucket=treasure, Key="in/x")
    assert denied(client.put_object, Bucket=treasure, Key="in/x", Body=b"planted")
    assert denied(client.list_objects_v2, Bucket=treasure)
    assert denied(client.list_buckets)


def secrets_in(said: bytes) -> list[str]:
    found = {one.decode() for one in _LIKELY.findall(said)}
    for text in list(found):
        if len(text) % 4 == 0 and not text.startswith("eyJ"):
            try:
                found.add(base64.b64decode(text, validate=True).decode("ascii"))
            except ValueError:
                continue
    return sorted(one for one in found if one.isprintable())


@pytest.mark.parametrize("topology", ["star", "mesh"])
def test_a_member_sees_nothing_but_its_grant(
    hansa: Federation, alice: httpx.Client, treasure: str, topology: str
) -> None:
    name = deployed(hansa, alice, topology)
    origin = hansa.store(alice)
    origin.put_object(Bucket=name, Key="kept/another", Body=SECRET)
    overhear(hansa)
    held = hansa.gates["lubeck"].hold("POST /v1/delegations/")  # the run has ended and asks whether it may publish
    origin.put_object(Bucket=name, Key="in/given", Body=b"for the member")
    held.reached()
    during = stores_in(told(hansa))
    assert during, "the member was lent keys"
    for provider in during:
        opens_only_its_grant(store(provider), name, treasure, given="in/given")
    held.release()
    eventually(lambda: stories.nothing_runs(alice, name), what="ended")
    assert {one.rsplit("/", 1)[-1] for one in stories.outputs(hansa, alice, name)} == {"where"}
    time.sleep(3 * _REPAIR)  # the coordinator looks after its replica several times meanwhile
    said = told(hansa)
    assert b"eyJ" not in said, "a token of a person was shown to the member"
    jobs = list(alice.get(f"/system/logs/{name}").json()["jobs"])
    own = stories.definition_of(alice, name)["token"]
    found = secrets_in(said)
    assert own not in found
    assert len(found) > 3  # there was something to try
    for secret in found:
        refused_everywhere(hansa, name, secret, jobs=jobs)
    for provider in during:
        client = store(provider)
        assert denied(client.get_object, Bucket=name, Key="in/given")  # it was good for that job, and that is over
        assert denied(client.put_object, Bucket=name, Key="out/where", Body=b"forged")
        opens_nothing_of_hers(client, treasure)
    assert origin.get_object(Bucket=treasure, Key="in/x")["Body"].read() == SECRET
    assert stories.in_sync(alice, name)
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_with_its_own_key_a_member_of_a_mesh_gets_data_of_its_service_only(
    hansa: Federation, alice: httpx.Client, treasure: str
) -> None:
    overhear(hansa)
    name = deployed(hansa, alice, "mesh")
    other = deployed(hansa, alice, "mesh")
    plain = deployed(hansa, alice, "star")
    keys = re.findall(rb'"hansa\.replica-key":"([0-9a-f]{64})"', told(hansa))
    assert len(keys) >= 3
    key, _, of_star = (one.decode() for one in dict.fromkeys(keys))
    hansa.store(alice).put_object(Bucket=name, Key="in/mine", Body=b"for the member")
    lubeck = hansa["lubeck"].url

    def adopt(service: str, key: str, event: bytes, job: str, at: str = "") -> httpx.Response:
        return httpx.post(
            f"{lubeck}/v1/services/{service}/adopted/{job}",
            params={"member": at or f"visby/{service}-v"},
            headers={"Authorization": f"ReplicaKey {key}", "X-Hansa-Permit": "ab" * 32},
            content=event,
            trust_env=False,
        )

    mine = json.dumps(minio_event(name, "in/mine")).encode()
    hers = json.dumps(minio_event(treasure, "in/x")).encode()
    assert adopt(other, key, mine, "foreign").status_code == 401
    assert adopt(plain, of_star, mine, "of-a-star").status_code == 401  # whoever is only given jobs may not ask
    assert adopt(name, key, hers, "hers").status_code == 403
    assert adopt(name, key, mine, "mine", at="riga/x").status_code == 401
    hansa.gates["visby"].shut("hang")  # that there is no such job would be found out at once
    lent = adopt(name, key, mine, "mine")
    assert lent.status_code == 200, lent.text
    client = store(lent.json()["minio_provider"])
    # SeaweedFS may hear of new keys some milliseconds late
    eventually(lambda: not denied(client.get_object, Bucket=name, Key="in/mine"), what="known to the store")
    opens_only_its_grant(client, name, treasure, given="in/mine")
    hansa.gates["visby"].open()
    eventually(lambda: denied(client.get_object, Bucket=name, Key="in/mine"), what="ended")
    for one in (name, other, plain):
        assert alice.delete(f"/system/services/{one}").status_code == 204


def test_a_member_that_poses_as_an_oscar_is_shown_no_token(hansa: Federation, alice: httpx.Client) -> None:
    """OSCAR's own manager has to be shown a person's token, so it would be worth something to be taken for one."""
    name = deployed(hansa, alice, "star")
    assert ended(alice, submit(alice, name))["status"] == "Succeeded"
    gate = hansa.gates["visby"]
    former = gate.target
    with oscar_like() as poser:
        hansa["lubeck"].kill()
        gate.target = ("127.0.0.1", int(poser.url.rsplit(":", 1)[1]))
        overhear(hansa)
        try:
            hansa["lubeck"].start()  # it has to remember on its own
            job = submit(alice, name)
            eventually(lambda: "does not answer as one" in stories.story_of(alice, job)["reason"], what="noticed")
            state = alice.get(f"/system/federation/{name}", params={"state": "true"}).json()["state"]
            assert "does not answer as one" in state[0]["trouble"]
            said = bytes(gate.overheard or b"").lower()  # permits of former jobs there are its own
            assert b"bearer" not in said
            assert b"eyj" not in said
        finally:
            gate.target = former
    gate.shut()  # connections to the poser end
    gate.open()
    eventually(lambda: stories.in_sync(alice, name), what="believed again")
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_a_member_that_poses_as_half_a_hansa_is_shown_no_token(hansa: Federation, alice: httpx.Client) -> None:
    """One that takes keys and knows no permits would have to be asked about its jobs with a person's token."""
    name = deployed(hansa, alice, "mesh")
    gate = hansa.gates["visby"]
    former = gate.target
    with listener() as poser:
        poser.says["/v1/about"] = {"product": "hansa", "version": "1", "capabilities": ["mesh-tokens", "replica-keys"]}
        poser.statuses[f"/job/{name}-v"] = 201
        hansa["lubeck"].kill()
        gate.target = ("127.0.0.1", int(poser.url.rsplit(":", 1)[1]))
        try:
            hansa["lubeck"].start()
            job = submit(alice, name)
            eventually(lambda: shown(poser) or "does not answer as one" in stories.story_of(alice, job)["reason"])
            seen = len(poser.visits)
            eventually(lambda: len(poser.visits) >= seen + 3)  # it is looked after again and again
            assert shown(poser) == set()
            state = alice.get(f"/system/federation/{name}", params={"state": "true"}).json()["state"]
            assert "does not answer as one" in state[0]["trouble"]
            assert shown(poser) == set()
        finally:
            gate.target = former
            gate.shut()
            gate.open()
    eventually(lambda: stories.in_sync(alice, name), what="believed again")
    assert ended(alice, job)["status"] == "Succeeded"
    assert alice.delete(f"/system/services/{name}").status_code == 204


def shown(poser: Listener) -> set[str]:
    """Whatever somebody proved who they are with; permits of former jobs there are its own."""
    given = {visit.headers.get("authorization", "").split(" ")[0] for visit in poser.visits}
    return given - {"", "Permit"}


def test_keys_that_a_replica_borrowed_end_with_the_service(
    hansa: Federation, alice: httpx.Client, treasure: str
) -> None:
    """The bucket stays, for it is hers; the member says nothing more."""
    overhear(hansa)
    name = fresh("mesh")
    places: dict[str, Any] = {
        way: [{"storage_provider": "minio.default", "path": f"{treasure}/{way.removesuffix('put')}"}]
        for way in ("input", "output")
    }
    members, token = [member("visby", f"{name}-v")], hansa.refresh_token("alice")
    stories.create(alice, stories.federated(name, members, topology="mesh", token=token, **places))
    key = re.findall(rb'"hansa\.replica-key":"([0-9a-f]{64})"', told(hansa))[-1].decode()
    hansa.gates["visby"].shut("hang")
    lent = httpx.post(
        f"{hansa['lubeck'].url}/v1/services/{name}/adopted/{name}-own",
        params={"member": f"visby/{name}-v"},
        headers={"Authorization": f"ReplicaKey {key}", "X-Hansa-Permit": "ab" * 32},
        content=json.dumps(minio_event(treasure, "in/x")).encode(),
        trust_env=False,
    )
    assert lent.status_code == 200, lent.text
    client = store(lent.json()["minio_provider"])
    eventually(lambda: not denied(client.get_object, Bucket=treasure, Key="in/x"), what="known to the store")
    assert alice.delete(f"/system/services/{name}").status_code == 204
    eventually(lambda: denied(client.get_object, Bucket=treasure, Key="in/x"), what="ended")
    assert denied(client.put_object, Bucket=treasure, Key="out/x", Body=b"forged")
    hansa.gates["visby"].open()
    eventually(lambda: stories.absent(hansa.user("alice", "visby"), f"{name}-v"), what="tidied up")


def test_a_member_of_a_mesh_with_an_oscar_is_told_nothing_that_buys_a_token(sign_in_provider: IdentityProvider) -> None:
    """Only the coordinator hands jobs to the OSCAR, so nobody else needs a token of the owner for it."""
    with oscar_like() as goslar:
        trusted = {"federation.allowed_clusters": [goslar.url]}
        settings: dict[str, dict[str, Any]] = {"lubeck": trusted, "visby": {**trusted, "jobs.cpu": "100m"}}
        with federation("lubeck", "visby", provider=sign_in_provider, settings=settings) as hansa:
            alice, name = hansa.user("alice", "lubeck"), fresh("mesh")
            overhear(hansa)
            members = [member("visby", f"{name}-v"), member("goslar", f"{name}-g")]
            token, clusters = hansa.refresh_token("alice"), {"goslar": {"endpoint": goslar.url}}
            stories.create(alice, stories.federated(name, members, topology="mesh", token=token, clusters=clusters))
            definition = bytes(hansa.gates["visby"].overheard or b"")
            assert b"hansa.replica-key" in definition
            assert b"group-key" not in definition
            assert token.encode() not in definition
            asked = f"{hansa['lubeck'].url}/v1/services/{name}/access-token"
            for secret in secrets_in(definition):
                header = {"Authorization": f"GroupKey {secret}"}
                assert httpx.post(asked, headers=header, trust_env=False).status_code == 401
            at_visby = hansa.user("alice", "visby")
            story = ended(at_visby, submit(at_visby, f"{name}-v"))
            assert (story["status"], story["delegation"]["decision"]["chosen"]) == ("Succeeded", f"lubeck/{name}")
            assert alice.delete(f"/system/services/{name}").status_code == 204


def test_whoever_puts_an_oscar_below_another_member_is_told_that_it_gets_no_jobs(
    sign_in_provider: IdentityProvider,
) -> None:
    with oscar_like() as goslar:
        trusted = {"federation.allowed_clusters": [goslar.url]}
        settings: dict[str, dict[str, Any]] = {"lubeck": trusted, "visby": trusted}
        with federation("lubeck", "visby", provider=sign_in_provider, settings=settings) as hansa:
            alice, name = hansa.user("alice", "lubeck"), fresh("tree")
            members = [member("visby", f"{name}-v"), member("goslar", f"{name}-g", parent="visby")]
            token, clusters = hansa.refresh_token("alice"), {"goslar": {"endpoint": goslar.url}}
            wanted = stories.federated(name, members, topology="tree", token=token, clusters=clusters)
            answer = alice.post("/system/services", json=wanted)
            assert answer.status_code == 201, answer.text
            assert "cluster goslar gets no jobs" in answer.headers["x-hansa-warning"]
            assert alice.delete(f"/system/services/{name}").status_code == 204
