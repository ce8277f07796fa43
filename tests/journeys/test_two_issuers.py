"""Two issuers that both know an alice@test: two people, and neither gets at anything of the other's."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hansa.identity import qualified
from hansa.storage import Keys
from journeys.waiting import ended_jobs
from real import parts
from real.identity_provider import AUDIENCE, USERS, IdentityProvider, identity_provider
from real.manager import ISSUER_GROUP, PEOPLE, WATCHER, Manager, StartManager, running_manager

MEMBER = {"password": "pw", "groups": [ISSUER_GROUP]}
ALICE = "alice@test"
LONG = "x" * 255
ODD = "https://orcid.test/ö é/0000"  # no signature of S3 can carry it


@dataclass(frozen=True)
class Crowd:
    """A manager that trusts two issuers; the first one's people have their plain subjects."""

    manager: Manager
    home: IdentityProvider
    away: IdentityProvider

    def at_home(self, login: str) -> httpx.Client:
        return self._signed_in(self.home, login)

    def from_away(self, login: str) -> httpx.Client:
        return self._signed_in(self.away, login)

    def _signed_in(self, provider: IdentityProvider, login: str) -> httpx.Client:
        client = self.manager.bearer(provider.token(login))
        assert client.get("/system/config").status_code == 200
        return client


def issuers(*providers: IdentityProvider, **more: Any) -> list[dict[str, Any]]:
    return [{"url": one.issuer(), "audience": AUDIENCE, **more} for one in providers]


@pytest.fixture(scope="module")
def away() -> Iterator[IdentityProvider]:
    parts.require("node")
    parts.require("npm")
    users = {
        **USERS,
        "watcher": {**MEMBER, "claims": {"sub": WATCHER}},
        "cluster_admin": {**MEMBER, "claims": {"sub": "cluster_admin"}},
        "long": {**MEMBER, "claims": {"sub": LONG}},
        "odd": {**MEMBER, "claims": {"sub": ODD}},
    }
    with identity_provider(users=users) as provider:
        yield provider


@pytest.fixture(scope="module")
def home(away: IdentityProvider) -> Iterator[IdentityProvider]:
    theirs = qualified(away.issuer(), ALICE)
    users = {
        **PEOPLE,
        "mimic": {**MEMBER, "claims": {"sub": theirs}},
        "shouting": {**MEMBER, "claims": {"sub": theirs.upper()}},
        "service": {**MEMBER, "claims": {"sub": "service-mine-of-alice"}},
        "long": {**MEMBER, "claims": {"sub": LONG}},
        "odd": {**MEMBER, "claims": {"sub": ODD}},
        "derived": {**MEMBER, "claims": {"sub": Keys.of_user(ODD, "").access_key}},
    }
    with identity_provider(users=users) as provider:
        yield provider


@pytest.fixture(scope="module")
def crowd(home: IdentityProvider, away: IdentityProvider) -> Iterator[Crowd]:
    settings = {"oidc.issuers": issuers(home, away), "oidc.users_admin": [WATCHER]}
    with running_manager(settings) as manager:
        yield Crowd(manager, home, away)


@dataclass(frozen=True)
class Things:
    service: str
    bucket: str
    volume: str
    job: str


@pytest.fixture(scope="module")
def things(crowd: Crowd) -> Things:
    """What the home issuer's alice has."""
    alice = crowd.at_home("alice")
    named = Things("mine-of-alice", "mine-of-alice-own", "mine-of-alice", "")
    definition = {"name": named.service, "image": "debian", "memory": "64Mi", "script": "echo secret of alice"}
    assert alice.post("/system/services", json=definition).status_code == 201
    assert alice.post("/system/buckets", json={"bucket_name": named.bucket}).status_code == 201
    assert alice.post("/system/volumes", json={"name": named.volume, "size": "1Gi"}).status_code == 201
    job = alice.post(f"/job/{named.service}").headers["x-hansa-job"]
    ended_jobs(alice, named.service, 1)
    return Things(named.service, named.bucket, named.volume, job)


def keys(client: httpx.Client) -> dict[str, str]:
    return dict(client.get("/system/config").json()["minio_provider"])


def store(client: httpx.Client) -> Any:
    given = keys(client)
    return boto3.client(
        "s3",
        endpoint_url=given["endpoint"],
        aws_access_key_id=given["access_key"],
        aws_secret_access_key=given["secret_key"],
        region_name=given["region"],
        config=Config(retries={"max_attempts": 1}),
    )


Someone = Callable[[Crowd], httpx.Client]
STRANGERS: dict[str, Someone] = {
    "the same subject elsewhere": lambda crowd: crowd.from_away("alice"),
    "a home subject that looks like the other's uid": lambda crowd: crowd.at_home("mimic"),
    "the same in capitals": lambda crowd: crowd.at_home("shouting"),
    "the admin's owner as a subject elsewhere": lambda crowd: crowd.from_away("cluster_admin"),
    "a store key of a service as a subject": lambda crowd: crowd.at_home("service"),
}


@pytest.fixture(params=STRANGERS)
def stranger(request: pytest.FixtureRequest, crowd: Crowd) -> httpx.Client:
    return STRANGERS[request.param](crowd)


def test_people_of_the_first_issuer_have_their_plain_subject(crowd: Crowd, things: Things) -> None:
    alice = crowd.at_home("alice")
    assert alice.get(f"/system/services/{things.service}").json()["owner"] == ALICE
    assert keys(alice)["access_key"] == ALICE


def test_people_of_the_second_have_another_uid(crowd: Crowd) -> None:
    other = crowd.from_away("alice")
    definition = {"name": "of-the-other", "image": "debian", "memory": "64Mi", "script": "echo hi"}
    assert other.post("/system/services", json=definition).status_code == 201
    uid = qualified(crowd.away.issuer(), ALICE)
    assert other.get("/system/services/of-the-other").json()["owner"] == uid
    assert keys(other)["access_key"] == uid
    assert crowd.at_home("alice").get("/system/services/of-the-other").status_code == 403
    assert crowd.at_home("mimic").get("/system/services/of-the-other").status_code == 403
    assert other.delete("/system/services/of-the-other").status_code == 204


def test_nothing_is_seen(things: Things, stranger: httpx.Client) -> None:
    assert things.service not in stranger.get("/system/services").text
    assert things.bucket not in stranger.get("/system/buckets").text
    assert things.volume not in stranger.get("/system/volumes").text
    for path in (
        f"/system/services/{things.service}",
        f"/system/services/{things.service}/auth",
        f"/system/buckets/{things.bucket}",
        f"/system/volumes/{things.volume}",
        f"/system/logs/{things.service}",
        f"/system/logs/{things.service}/{things.job}",
        f"/v1/jobs/{things.job}",
        f"/v1/services/{things.service}/credentials",
        f"/v1/services/{things.service}/audit",
    ):
        answer = stranger.get(path)
        assert answer.status_code in (401, 403, 404), f"{path}: {answer.status_code} {answer.text}"
        assert "secret of alice" not in answer.text


def test_nothing_is_changed_or_started(crowd: Crowd, things: Things, stranger: httpx.Client) -> None:
    definition = {"name": things.service, "image": "debian", "memory": "64Mi", "script": "echo mine now"}
    for method, path, body in (
        ("PUT", "/system/services", definition),
        ("POST", "/system/services", definition),
        ("DELETE", f"/system/services/{things.service}", None),
        ("PUT", "/system/buckets", {"bucket_name": things.bucket, "visibility": "public"}),
        ("DELETE", f"/system/buckets/{things.bucket}", None),
        ("DELETE", f"/system/volumes/{things.volume}", None),
        ("DELETE", f"/system/logs/{things.service}/{things.job}", None),
        ("DELETE", f"/system/logs/{things.service}?all=true", None),
        ("POST", f"/job/{things.service}", {}),
        ("POST", f"/run/{things.service}", {}),
    ):
        answer = stranger.request(method, path, json=body)
        assert answer.status_code in (401, 403, 404, 409), f"{method} {path}: {answer.status_code} {answer.text}"
    alice = crowd.at_home("alice")
    assert "secret of alice" in alice.get(f"/system/services/{things.service}").json()["script"]
    assert alice.get(f"/system/buckets/{things.bucket}").json()["visibility"] == "private"
    assert list(alice.get(f"/system/logs/{things.service}").json()["jobs"]) == [things.job]


def test_the_keys_to_the_store_are_others(crowd: Crowd, things: Things, stranger: httpx.Client) -> None:
    alice = crowd.at_home("alice")
    mine, theirs = keys(alice), keys(stranger)
    assert mine["access_key"] != theirs["access_key"]
    assert mine["secret_key"] != theirs["secret_key"]
    store(alice).put_object(Bucket=things.bucket, Key="note", Body=b"of alice")
    tried = store(stranger)
    for attempt, more in (
        (tried.get_object, {"Key": "note"}),
        (tried.put_object, {"Key": "note", "Body": b"mine"}),
        (tried.list_objects_v2, {}),
        (tried.delete_object, {"Key": "note"}),
    ):
        with pytest.raises(ClientError):
            attempt(Bucket=things.bucket, **more)
    assert store(alice).get_object(Bucket=things.bucket, Key="note")["Body"].read() == b"of alice"


def test_any_subject_has_a_key_and_a_place_of_its_own(crowd: Crowd) -> None:
    people = [crowd.at_home(login) for login in ("long", "odd", "derived", "service", "mimic", "alice")]
    people += [crowd.from_away(login) for login in ("long", "odd", "cluster_admin", "alice")]
    seen: list[tuple[str, str]] = []
    for number, client in enumerate(people):
        name = f"place-{number}"
        definition = {"name": name, "image": "debian", "memory": "64Mi", "script": "echo hi"}
        assert client.post("/system/services", json=definition).status_code == 201
        assert client.post("/system/buckets", json={"bucket_name": f"{name}-own"}).status_code == 201
        store(client).put_object(Bucket=f"{name}-own", Key="k", Body=b"x")
        seen.append((keys(client)["access_key"], client.get(f"/system/services/{name}").json()["namespace"]))
    for column in zip(*seen, strict=True):
        assert len(set(column)) == len(people)
    for number, client in enumerate(people):
        for bucket in (f"place-{other}-own" for other in range(len(people)) if other != number):
            with pytest.raises(ClientError):
                store(client).get_object(Bucket=bucket, Key="k")


def test_a_job_of_the_other_is_none_of_ours(crowd: Crowd) -> None:
    """In a public service both may start jobs; each sees their own only."""
    alice, other = crowd.at_home("alice"), crowd.from_away("alice")
    definition = {
        "name": "for-everybody",
        "image": "debian",
        "memory": "64Mi",
        "script": "cat $INPUT_FILE_PATH",
        "visibility": "public",
    }
    assert alice.post("/system/services", json=definition).status_code == 201
    ours = alice.post("/job/for-everybody", content=b"words of alice").headers["x-hansa-job"]
    ended_jobs(alice, "for-everybody", 1)
    theirs = other.post("/job/for-everybody", content=b"words of the other").headers["x-hansa-job"]
    ended_jobs(other, "for-everybody", 1)
    assert list(other.get("/system/logs/for-everybody").json()["jobs"]) == [theirs]
    assert list(alice.get("/system/logs/for-everybody").json()["jobs"]) == [ours]
    assert other.get(f"/system/logs/for-everybody/{ours}").status_code in (403, 404)
    assert alice.get(f"/v1/jobs/{theirs}").status_code == 404


def test_a_share_names_one_of_them(crowd: Crowd) -> None:
    owner = crowd.at_home("bob")
    shared = {
        "name": "shared-one",
        "image": "debian",
        "memory": "64Mi",
        "script": "echo hi",
        "visibility": "restricted",
    }
    other = qualified(crowd.away.issuer(), ALICE)
    for allowed, sees, sees_not in (
        (ALICE, crowd.at_home("alice"), crowd.from_away("alice")),
        (other, crowd.from_away("alice"), crowd.at_home("alice")),
        (other, crowd.from_away("alice"), crowd.at_home("mimic")),
        (other, crowd.from_away("alice"), crowd.at_home("shouting")),
    ):
        assert owner.post("/system/services", json={**shared, "allowed_users": [allowed]}).status_code == 201
        assert sees.get("/system/services/shared-one").status_code == 200
        assert sees_not.get("/system/services/shared-one").status_code == 403
        assert sees_not.post("/job/shared-one").status_code == 404
        assert owner.delete("/system/services/shared-one").status_code == 204
    bucket = {"bucket_name": "shared-bucket-one", "visibility": "restricted", "allowed_users": [ALICE]}
    assert owner.post("/system/buckets", json=bucket).status_code == 201
    store(crowd.at_home("alice")).put_object(Bucket="shared-bucket-one", Key="k", Body=b"x")
    with pytest.raises(ClientError):
        store(crowd.from_away("alice")).get_object(Bucket="shared-bucket-one", Key="k")


def test_a_quota_is_one_persons(crowd: Crowd) -> None:
    alice, other, admin = crowd.at_home("alice"), crowd.from_away("alice"), crowd.manager.admin
    assert admin.put(f"/system/quotas/user/{ALICE}", json={"cpu": "3"}).status_code < 300
    assert alice.get("/system/quotas/user").json()["resources"]["cpu"]["max"] == 3000
    assert other.get("/system/quotas/user").json()["resources"]["cpu"]["max"] != 3000


def test_the_admins_view_is_one_persons(crowd: Crowd) -> None:
    assert crowd.at_home("watcher").get("/system/logs").status_code == 200
    assert crowd.from_away("watcher").get("/system/logs").status_code == 403


def test_somebody_from_elsewhere_can_have_the_admins_view_by_their_uid(
    start_manager: StartManager, home: IdentityProvider, away: IdentityProvider
) -> None:
    own = start_manager({"oidc.issuers": issuers(home, away), "oidc.users_admin": [qualified(away.issuer(), ALICE)]})
    assert own.bearer(away.token("alice")).get("/system/logs").status_code == 200
    assert own.bearer(home.token("alice")).get("/system/logs").status_code == 403


def test_the_order_of_issuers_changes_nobody(
    start_manager: StartManager, home: IdentityProvider, away: IdentityProvider
) -> None:
    own = start_manager({"oidc.issuers": issuers(home)})
    assert keys(own.bearer(home.token("alice")))["access_key"] == ALICE
    own.settings = {**own.settings, "oidc.issuers": issuers(away, home)}
    own.restart()
    assert keys(own.bearer(home.token("alice")))["access_key"] == ALICE
    assert keys(own.bearer(home.token("bob")))["access_key"] == "bob@test"
    assert keys(own.bearer(away.token("alice")))["access_key"] == qualified(away.issuer(), ALICE)


def test_without_the_first_issuer_nobody_takes_its_place(
    start_manager: StartManager, home: IdentityProvider, away: IdentityProvider
) -> None:
    own = start_manager({"oidc.issuers": issuers(home)})
    before = keys(own.bearer(home.token("alice")))
    trusting_home = own.settings
    own.settings = {**trusting_home, "oidc.issuers": issuers(away)}
    with pytest.raises(RuntimeError, match="plain subjects"):
        own.restart()
    # the operator says that it is gone for good: nobody of the other issuer becomes somebody of it
    own.settings = {**own.settings, "oidc.home": home.issuer()}
    own.restart()
    assert keys(own.bearer(away.token("alice")))["access_key"] == qualified(away.issuer(), ALICE)
    assert own.bearer(home.token("alice")).get("/system/config").status_code == 401
    # another home than the recorded one is refused
    own.settings = {**trusting_home, "oidc.issuers": issuers(home, away), "oidc.home": away.issuer()}
    with pytest.raises(RuntimeError, match="plain subjects"):
        own.restart()
    own.settings = trusting_home
    own.restart()
    assert keys(own.bearer(home.token("alice"))) == before


def test_an_issuer_that_moved_keeps_its_people(start_manager: StartManager, home: IdentityProvider) -> None:
    with identity_provider(users=PEOPLE, realms={"test": {}, "new": {}}) as moving:
        own = start_manager({"oidc.issuers": issuers(home, moving)})
        at_home = keys(own.bearer(home.token("alice")))
        before = keys(own.bearer(moving.token("alice")))
        now = {"url": moving.issuer("new"), "audience": AUDIENCE, "formerly": [moving.issuer()]}
        own.settings = {**own.settings, "oidc.issuers": [*issuers(home), now]}
        own.restart()
        assert keys(own.bearer(moving.token("alice", realm="new"))) == before
        assert keys(own.bearer(home.token("alice"))) == at_home
        assert own.bearer(moving.token("alice")).get("/system/config").status_code == 401
