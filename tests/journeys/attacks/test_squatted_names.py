"""Somebody who heard the name of a job uses it where the job goes next, before it comes. That gets them nothing."""

import re
import secrets
from collections.abc import Iterator

import httpx
import pytest

from journeys.attacks.lent_keys import overhear
from journeys.federation import stories
from journeys.federation.stories import ended, eventually, fresh, member, story_of
from real.federation import Federation, federation
from real.identity_provider import IdentityProvider

PERMIT = secrets.token_hex(32)
SHOWN = {"Authorization": f"Permit {PERMIT}"}
_KEYS = re.compile(rb'"hansa\.replica-key":"([0-9a-f]{64})"')


@pytest.fixture(scope="module")
def hansa(sign_in_provider: IdentityProvider) -> Iterator[Federation]:
    settings = {"lubeck": {"jobs.cpu": "100m"}}
    with federation("lubeck", "visby", "riga", provider=sign_in_provider, settings=settings) as running:
        yield running


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    return hansa.user("alice", "lubeck")


@pytest.fixture
def hers(hansa: Federation, alice: httpx.Client) -> Iterator[str]:
    """Her jobs run at riga."""
    name, token = fresh("hers"), hansa.refresh_token("alice")
    script = f"sleep 2; {stories.WHERE}"
    stories.create(alice, stories.federated(name, [member("riga", f"{name}-r")], token=token, script=script))
    yield name
    hansa.mend()
    assert alice.delete(f"/system/services/{name}").status_code == 204


@pytest.fixture
def bob(hansa: Federation) -> httpx.Client:
    return hansa.user("bob", "riga")


@pytest.fixture
def mine(hansa: Federation, bob: httpx.Client) -> Iterator[tuple[str, str]]:
    """A mesh of bob's, whose coordinator is riga; and the key of its replica at visby."""
    name, token = fresh("mine"), hansa.refresh_token("bob")
    overhear(hansa)
    members = [member("visby", f"{name}-v")]
    stories.create(bob, stories.federated(name, members, topology="mesh", token=token, origin="riga"))
    yield name, _KEYS.findall(bytes(hansa.gates["visby"].overheard or b""))[-1].decode()
    hansa.mend()
    assert bob.delete(f"/system/services/{name}").status_code == 204


def adopt(hansa: Federation, mine: tuple[str, str], job: str) -> int:
    name, key = mine
    return httpx.post(
        f"{hansa['riga'].url}/v1/services/{name}/adopted/{job}",
        params={"member": f"visby/{name}-v"},
        headers={"Authorization": f"ReplicaKey {key}", "X-Hansa-Permit": PERMIT},
        content=b"x",
        trust_env=False,
    ).status_code


def submit_as(client: httpx.Client, service: str, job: str) -> None:
    answer = client.post(f"/job/{service}", content=b"a parcel", headers={"X-Delegated-Job-ID": job})
    assert answer.status_code == 201, answer.text


def arrives(hansa: Federation, alice: httpx.Client, name: str, job: str) -> None:
    story = ended(alice, job)
    assert (story["status"], story["delegation"]["cluster_id"]) == ("Succeeded", "riga"), story
    assert story["delegation"]["epoch"] <= 2, story
    assert stories.outputs(hansa, alice, name) == {"out/where": f"by {name}-r\n".encode()}


def test_a_replica_of_another_federation_gets_no_keys_of_a_job_by_its_name(
    hansa: Federation, alice: httpx.Client, hers: str, mine: tuple[str, str]
) -> None:
    job = f"{hers}-overheard"
    hansa.gates["visby"].shut()  # it tells nothing of what it asked keys for
    assert adopt(hansa, mine, job) == 200
    submit_as(alice, hers, job)
    at_riga = hansa.user("alice", "riga")
    eventually(lambda: f'"{job}"' in at_riga.get(f"/system/logs/{hers}-r").text, what="at riga")
    riga = hansa["riga"].anonymous
    assert riga.get(f"/v1/delegations/{job}/storage", headers=SHOWN).status_code == 404
    assert adopt(hansa, mine, job) == 200  # what it may have is its own mesh's
    arrives(hansa, alice, hers, job)


def test_nor_does_it_keep_the_job_from_running_there(
    hansa: Federation, alice: httpx.Client, hers: str, mine: tuple[str, str]
) -> None:
    job, riga = f"{hers}-overheard", hansa["riga"].anonymous
    assert adopt(hansa, mine, job) == 200
    publish = f"/v1/delegations/{job}/publish"
    eventually(lambda: riga.post(publish, headers=SHOWN).status_code == 409, what="over: visby does not know the job")
    submit_as(alice, hers, job)
    arrives(hansa, alice, hers, job)
    assert story_of(hansa.user("alice", "riga"), job)["attempt"] == 1


def test_a_job_runs_where_its_name_is_taken(
    hansa: Federation, alice: httpx.Client, hers: str, bob: httpx.Client
) -> None:
    own, job = fresh("own"), f"{hers}-overheard"
    stories.create(bob, {"name": own, "cpu": "0.1", "memory": "64Mi", "image": "debian", "script": "true"})
    submit_as(bob, own, job)
    submit_as(alice, hers, job)
    arrives(hansa, alice, hers, job)
    there = story_of(alice, job)["delegation"]["job"]
    assert there != job
    assert story_of(hansa.user("alice", "riga"), there)["service"] == f"{hers}-r"
    assert f"by {hers}-r" not in bob.get(f"/system/logs/{own}/{job}").text
    log = alice.get(f"/system/logs/{hers}/{job}").text
    assert "a parcel" in log, log
    assert bob.delete(f"/system/services/{own}").status_code == 204
