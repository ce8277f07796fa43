"""Who may do what, on every route, to private, restricted and public things. The table below is the rule.

The last test fails when a route exists that no row speaks of.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService, Person
from journeys.waiting import ended_jobs
from real.identity_provider import IdentityProvider
from real.manager import Manager

VISIBILITIES = ("private", "restricted", "public")
USERS = ("owner", "listed", "other")
WHO = (*USERS, "admin", "service token", "no credentials", "garbage token", "wrong service token", "wrong group")
UNKNOWN = ("no credentials", "garbage token", "wrong service token", "wrong group")


@dataclass(frozen=True, slots=True)
class Scene:
    """One service of alice with a job and a bucket of hers, all with the same visibility."""

    service: str
    job: str
    bucket: str
    visibility: str
    token: str
    definition: dict[str, Any]

    @property
    def sharing(self) -> dict[str, Any]:
        return {"visibility": self.visibility, "allowed_users": ["dora@test"]}

    def sees(self, who: str) -> bool:
        return (
            who in ("owner", "admin")
            or (self.visibility == "public" and who in USERS)
            or (self.visibility == "restricted" and who == "listed")
        )


MakeScene = Callable[[str], Scene]
Expected = Callable[[Scene, str], int]


@dataclass(frozen=True, slots=True)
class Row:
    method: str
    path: str
    expected: Expected
    body: Callable[[Scene], Any] = lambda scene: None
    spoils: bool = False  # whoever is let in changes the scene for the next


def seeing(scene: Scene, who: str) -> int:
    """Reading: whoever it is visible to."""
    if who in (*UNKNOWN, "service token"):
        return 401
    return 200 if scene.sees(who) else 403


def own_job(scene: Scene, who: str) -> int:
    """Jobs are their submitter's: others who see the service do not learn of them."""
    if who in (*UNKNOWN, "service token") or not scene.sees(who):
        return seeing(scene, who)
    return 200 if who in ("owner", "admin") else 404


def changing(status: int) -> Expected:
    """Changing: the owner and the admin."""

    def expected(scene: Scene, who: str) -> int:
        if who in (*UNKNOWN, "service token"):
            return 401
        return status if who in ("owner", "admin") else 403

    return expected


def own_jobs_gone(scene: Scene, who: str) -> int:
    answer = seeing(scene, who)
    return 204 if answer == 200 else answer


def own_job_gone(scene: Scene, who: str) -> int:
    answer = own_job(scene, who)
    return 204 if answer == 200 else answer


def invoking(status: int) -> Expected:
    """Starting: users who see it and its own token; others do not learn that it exists; never Basic."""

    def expected(scene: Scene, who: str) -> int:
        if who in (*UNKNOWN, "admin"):
            return 401
        return status if who == "service token" or scene.sees(who) else 404

    return expected


def visiting(scene: Scene, who: str) -> int:
    """`/auth` lets in the service's token and whoever sees the service."""
    return 200 if who == "service token" else seeing(scene, who)


def everybody(scene: Scene, who: str) -> int:
    return 401 if who in (*UNKNOWN, "service token") else 200


def admin_only(scene: Scene, who: str) -> int:
    answer = everybody(scene, who)
    return answer if answer == 401 or who == "admin" else 403


def users_only(scene: Scene, who: str) -> int:
    answer = everybody(scene, who)
    return 403 if who == "admin" else answer


def open_to_all(scene: Scene, who: str) -> int:
    return 200


def own_volumes(scene: Scene, who: str) -> int:
    """Nobody has a volume of that name."""
    answer = everybody(scene, who)
    return answer if answer == 401 else 404


MEMBER = {"type": "oscar", "cluster_id": "visby", "service_name": "there"}
LINK = {"object_key": "x", "operation": "download"}
SERVICE = "/system/services/{name}"
ROWS = (
    Row("GET", "/system/services", everybody),
    Row("POST", "/system/services", lambda scene, who: 401 if everybody(scene, who) == 401 else 409,
        body=lambda scene: scene.definition),
    Row("GET", SERVICE, seeing),
    Row("PUT", "/system/services", changing(204), body=lambda scene: scene.definition),
    Row("DELETE", SERVICE, changing(204), spoils=True),
    Row("GET", SERVICE + "/auth", visiting),
    Row("GET", SERVICE + "/deployment", seeing),
    Row("GET", SERVICE + "/deployment/logs", seeing),
    # a service of jobs cannot be started, but that is told only to whom it may be
    *(Row("POST", f"{SERVICE}/{verb}", changing(400)) for verb in ("start", "stop", "restart")),
    *(
        row
        for base in ("/system/federation/{service}", "/system/replicas/{service}")
        for row in (
            Row("GET", base, seeing),
            Row("POST", base, changing(200), body=lambda scene: {"members": [MEMBER]}),
            Row("PUT", base, changing(200), body=lambda scene: {"members": [MEMBER], "update": [MEMBER]}),
            Row("DELETE", base, changing(200), body=lambda scene: {"members": []}),
        )
    ),
    Row("POST", "/job/{service}", invoking(201)),
    Row("POST", "/run/{service}", invoking(200)),
    Row("GET", "/system/logs", admin_only),
    Row("GET", "/system/logs/{service}", seeing),
    Row("GET", "/system/logs/{service}/{job}", own_job),
    Row("DELETE", "/system/logs/{service}/{job}", own_job_gone, spoils=True),
    Row("DELETE", "/system/logs/{service}", own_jobs_gone, spoils=True),
    Row("GET", "/system/metrics", everybody),
    Row("GET", "/system/metrics/breakdown", lambda scene, who: 400 if everybody(scene, who) == 200 else 401),
    Row("GET", "/system/metrics/{service}", seeing),
    Row("GET", "/system/buckets", everybody),
    Row("POST", "/system/buckets", lambda scene, who: 401 if everybody(scene, who) == 401 else 400,
        body=lambda scene: {"bucket_name": "Not A Bucket"}),
    Row("GET", "/system/buckets/{bucket}", seeing),
    Row("POST", "/system/buckets/{bucket}/presign", seeing, body=lambda scene: LINK),
    Row("PUT", "/system/buckets", changing(204),
        body=lambda scene: {"bucket_name": scene.bucket, **scene.sharing}),
    Row("DELETE", "/system/buckets/{bucket}", changing(204), spoils=True),
    Row("GET", "/system/volumes", everybody),
    Row("POST", "/system/volumes", lambda scene, who: 401 if everybody(scene, who) == 401 else 400,
        body=lambda scene: {"name": "Not A Volume", "size": "1Gi"}),
    Row("GET", "/system/volumes/{volume}", own_volumes),
    Row("DELETE", "/system/volumes/{volume}", own_volumes),
    Row("GET", "/system/quotas/user", users_only),
    Row("GET", "/system/quotas/user/{user_id}", admin_only),
    Row("PUT", "/system/quotas/user/{user_id}", admin_only, body=lambda scene: {"memory": "64Gi"}),
    Row("GET", "/system/info", everybody),
    Row("GET", "/system/config", everybody),
    Row("PUT", "/system/config", admin_only, body=lambda scene: {"allowed_image_repositories": []}),
    Row("GET", "/system/status", everybody),
    Row("GET", "/health", open_to_all),
    Row("GET", "/ready", open_to_all),
    Row("GET", "/metrics", admin_only),
)  # fmt: skip
EXPOSED = "/system/services/{name}/exposed"  # who is let in there is told in test_exposed.py
# native routes; they have tables of their own where they are more than this
NATIVE = "/v1/"


@pytest.fixture
def make_scene(make_service: MakeService, alice: httpx.Client, fresh_name: FreshName) -> Iterator[MakeScene]:
    buckets: list[str] = []

    def make(visibility: str) -> Scene:
        sharing = {"visibility": visibility, "allowed_users": ["dora@test"]}
        bucket = fresh_name("scene")
        assert alice.post("/system/buckets", json={"bucket_name": bucket, **sharing}).status_code == 201
        buckets.append(bucket)
        name = make_service(alice, "true", **sharing)
        job = alice.post(f"/job/{name}").headers["x-hansa-job"]
        shown = alice.get(f"/system/services/{name}").json()
        definition = {"name": name, "image": "debian", "memory": "64Mi", "script": "true", **sharing}
        return Scene(name, job, bucket, visibility, shown["token"], definition)

    yield make
    for bucket in buckets:
        assert alice.delete(f"/system/buckets/{bucket}").status_code in (204, 404)


@pytest.fixture
def client_of(
    manager: Manager, person: Person, sign_in_provider: IdentityProvider
) -> Callable[[Scene, str], httpx.Client]:
    def of(scene: Scene, who: str) -> httpx.Client:
        match who:
            case "owner" | "listed" | "other":
                return person({"owner": "alice", "listed": "dora", "other": "bob"}[who])
            case "admin":
                return manager.admin
            case "service token":
                return manager.bearer(scene.token)
            case "wrong service token":
                return manager.bearer("5" * 64)
            case "wrong group":
                return manager.bearer(sign_in_provider.token("carol"))
            case "garbage token":
                return manager.bearer("garbage.garbage.garbage")
            case _:
                return manager.anonymous

    return of


@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_the_table_holds(
    make_scene: MakeScene, client_of: Callable[[Scene, str], httpx.Client], visibility: str
) -> None:
    scene = make_scene(visibility)
    ended_jobs(client_of(scene, "owner"), scene.service, 1)  # so that there is a log to read
    wrong: list[str] = []
    for row in ROWS:
        for who in WHO:
            expected = row.expected(scene, who)
            stage = make_scene(visibility) if row.spoils and expected < 300 else scene
            path = row.path.format(
                name=stage.service, service=stage.service, job=stage.job, bucket=stage.bucket, volume="nobodys",
                user_id="quinn@test",
            )  # fmt: skip
            body = row.body(stage)
            answer = client_of(stage, who).request(row.method, path, json=body)
            if answer.status_code != expected:
                wrong.append(f"{row.method} {row.path} by {who}: {answer.status_code} instead of {expected}")
            if answer.status_code >= 400 and stage.token in answer.text:
                wrong.append(f"{row.method} {row.path} tells {who} the token")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("visibility", ["restricted", "public"])
def test_viewers_see_no_secrets(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client, dora: httpx.Client, visibility: str
) -> None:
    name = make_service(
        alice,
        visibility=visibility,
        allowed_users=["dora@test"],
        environment={"secrets": {"KEY": "secret-of-the-script"}},
        storage_providers={"s3": {"far": {"access_key": "secret-access", "secret_key": "secret-key", "region": "x"}}},
        clusters={
            "visby": {"endpoint": "http://127.0.0.1:9", "auth_user": "secret-user", "auth_password": "secret-pw"}
        },
        federation={
            "members": [
                {
                    "type": "endpoint",
                    "url": "http://127.0.0.1:9/x",
                    "priority": 0,
                    "headers": {"Authorization": "secret-header"},
                }
            ]
        },
        refresh_token="secret-refresh",
    )
    token = alice.get(f"/system/services/{name}").json()["token"]
    viewers = [dora] if visibility == "restricted" else [dora, bob]
    for client in viewers:
        for path in (
            f"/system/services/{name}",
            "/system/services",
            f"/system/services/{name}/deployment",
            f"/system/federation/{name}",
            f"/system/replicas/{name}",
        ):
            text = client.get(path).text
            assert "secret-" not in text, path
            assert token not in text, path


def test_the_table_speaks_of_every_route(nobody: httpx.Client) -> None:
    routes = {
        (method.upper(), path)
        for path, methods in nobody.get("/openapi.json").json()["paths"].items()
        for method in methods
        if not path.startswith((NATIVE, EXPOSED))
    }
    spoken_of = {(row.method, row.path) for row in ROWS}
    assert routes - spoken_of == set()
    assert spoken_of - routes == set()


def test_native_routes_ask_for_credentials_too(nobody: httpx.Client) -> None:
    paths = nobody.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        if not path.startswith(NATIVE) or path in ("/v1/noop", "/v1/about"):  # peers ask the second before they know us
            continue
        for method in methods:
            answer = nobody.request(method, path.replace("{", "").replace("}", ""))
            assert answer.status_code == 401, f"{method} {path}"
            assert answer.headers["content-type"] == "application/problem+json"
