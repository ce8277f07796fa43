"""Does the PyPI client oscar-python work in full against a running manager, in each of its ways to sign in?

Every story runs once for each way: Basic, an access token, a refresh token. The last test fails when the package
has a public method that no story calls. The desktop agent (`shortname`) is left out: it is no server's business.
"""

import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from journeys.conftest import FreshName
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import ADMIN, ISSUER_GROUP, Manager

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its dependencies warn of at import is not ours to fix
    from oscar_python.client import Client
    from oscar_python.client_anon import AnonymousClient
    from oscar_python.storage import Storage

CLUSTER = "lubeck"
WAYS = ("basic", "access token", "refresh token")
called: set[tuple[str, str]] = set()  # (class, method), by the whole session
MakeClient = Callable[[str], Any]


class Noting:
    """The client itself; what is called on it is written down."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if callable(found):
            called.add((type(self.inner).__name__, name))
        if name == "create_storage_client":
            return lambda *args, **kwargs: Noting(found(*args, **kwargs))
        return found


@pytest.fixture
def make_client(manager: Manager, sign_in_provider: IdentityProvider) -> MakeClient:
    base = {"cluster_id": CLUSTER, "endpoint": manager.url, "ssl": False}

    def make(way: str) -> Any:
        options: dict[str, Any]
        match way:
            case "basic":
                options = {"user": ADMIN, "password": manager.password}
            case "access token":
                options = {"oidc_token": sign_in_provider.token("alice")}
            case _:
                scope = "openid profile groups offline_access"
                options = {
                    "refresh_token": sign_in_provider.tokens("alice", scope=scope)["refresh_token"],
                    "token_endpoint": f"{sign_in_provider.issuer()}/protocol/openid-connect/token",
                    "client_id": "hansa-tests",
                    "scopes": scope.split(),
                }
        return Noting(Client(options={**base, **options}))

    return make


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(make_client: MakeClient, way: str) -> Any:
    return make_client(way)


@pytest.fixture
def service(client: Any, fresh_name: FreshName) -> Iterator[str]:
    name = fresh_name("python")
    assert client.create_service(definition(name)).status_code == 201
    yield name
    client.remove_service(name)


def definition(name: str, **fields: Any) -> dict[str, Any]:
    script = "cat $INPUT_FILE_PATH | tee $TMP_OUTPUT_DIR/out.txt"
    paths = {kind: [{"storage_provider": "minio.default", "path": f"{name}/{kind}"}] for kind in ("input", "output")}
    return {"name": name, "image": "debian", "cpu": "0.2", "memory": "64Mi", "script": script, **paths, **fields}


def test_the_cluster_introduces_itself(client: Any) -> None:
    assert client.health_check().text == "Ok"
    assert client.get_cluster_info().json()["version"]
    assert client.get_cluster_config().json()["config"]["name"] == "oscar"
    assert client.get_cluster_status().json()["cluster"]["nodes_count"] == 1


def test_services_by_definition(client: Any, service: str) -> None:
    assert service in [one["name"] for one in client.list_services().json()]
    assert client.get_service(service).json()["name"] == service
    with pytest.raises(ValueError, match="already present"):
        client.create_service(definition(service))
    assert client.update_service(service, definition(service, memory="128Mi")).status_code == 204
    assert client.get_service(service).json()["memory"] == "128Mi"
    with pytest.raises(ValueError, match="not present"):
        client.update_service("not-there", definition("not-there"))
    assert client.get_deployment_status(service).json()["service_name"] == service
    assert client.get_deployment_logs(service).json()["entries"] == []


def test_services_by_fdl_file(client: Any, fresh_name: FreshName, tmp_path: Path) -> None:
    name = fresh_name("fdl")
    (tmp_path / "script.sh").write_text("echo from the file")
    entry = {**definition(name), "cpu": 0.5, "script": "script.sh"}
    fdl = tmp_path / "service.yaml"
    fdl.write_text(json.dumps({"functions": {"oscar": [{CLUSTER: entry}]}}))  # JSON is YAML
    assert client.create_service(str(fdl)).status_code == 201
    try:
        shown = client.get_service(name).json()
        assert (shown["cpu"], shown["script"]) == ("0.5", "echo from the file")
        (tmp_path / "script.sh").write_text("echo another")
        assert client.update_service(name, str(fdl)).status_code == 204
        assert client.get_service(name).json()["script"] == "echo another"
    finally:
        assert client.remove_service(name).status_code == 204
    with pytest.raises(requests.HTTPError, match="404"):
        client.get_service(name)


def test_runs_and_jobs(client: Any, service: str, tmp_path: Path) -> None:
    output = tmp_path / "answer.txt"
    assert client.run_service(service, input="a text", output=str(output)).status_code == 200
    assert output.read_text() == "a text"
    given = tmp_path / "given.txt"
    given.write_text("a file")
    assert client.run_service(service, input=str(given), output=str(output)).status_code == 200
    assert output.read_text() == "a file"
    assert client.run_service(service, input={"key": "value"}).status_code == 200
    assert client.run_service(service, async_call=True, input="a job").status_code == 201

    def jobs() -> dict[str, Any]:
        listed: dict[str, Any] = client.list_jobs(service).json()["jobs"]
        return listed if any(job["status"] == "Succeeded" for job in listed.values()) else {}

    # the admin's client submits with the service token, as the owner: cluster_admin
    [job] = eventually(jobs)
    assert "a job" in client.get_job_logs(service, job).text
    assert client.remove_job(service, job).status_code == 204
    assert client.remove_all_jobs(service).status_code == 204
    assert client.list_jobs(service, page="").json() == {"jobs": {}}


def test_anybody_with_the_token_runs_the_service(client: Any, service: str, manager: Manager) -> None:
    anonymous = Noting(AnonymousClient({"cluster_id": CLUSTER, "endpoint": manager.url, "ssl": False}))
    token = client.get_service(service).json()["token"]
    assert anonymous.run_service(service, token=token, input="hello").status_code == 200
    with pytest.raises(requests.HTTPError, match="401"):
        anonymous.run_service(service, token="0" * 64, input="hello")


def test_files_through_the_storage_client(client: Any, service: str, tmp_path: Path) -> None:
    storage = client.create_storage_client(service)
    sent = tmp_path / "sent.txt"
    sent.write_text("by way of the store")
    storage.upload_file("minio.default", str(sent), f"{service}/input")

    def outputs() -> list[str]:
        found: list[str] = storage.list_files_from_path("minio.default", f"{service}/output")
        return [one for one in names(found) if one.endswith("out.txt")]

    assert eventually(outputs) == ["output/out.txt"]
    storage.download_file("minio.default", str(tmp_path), f"{service}/output/out.txt")
    assert (tmp_path / "out.txt").read_text() == "by way of the store"
    plain = client.create_storage_client()
    assert "output/out.txt" in names(plain.list_files_from_path("minio.default", f"{service}/output"))


def names(listed: Any) -> list[str]:
    """The client hands on what boto3 gave it."""
    contents = listed.get("Contents", []) if isinstance(listed, dict) else listed or []
    return [one["Key"] if isinstance(one, dict) else str(one) for one in contents]


def test_buckets(client: Any, fresh_name: FreshName) -> None:
    name = fresh_name("py-bucket")
    assert client.create_bucket(name).status_code == 201
    try:
        assert name in [one["bucket_name"] for one in client.list_buckets().json()]
        assert client.get_bucket(name).json()["visibility"] == "private"
        assert client.update_bucket(name, "restricted", ["bob@test"]).status_code == 204
        assert client.get_bucket(name).json()["allowed_users"] == ["bob@test"]
        up = client.presign_bucket(name, "a.txt", operation="upload", content_type="text/plain").json()
        assert requests.put(up["url"], data=b"x", headers={"Content-Type": "text/plain"}, timeout=20).status_code == 200
        down = client.presign_bucket(name, "a.txt", expires=60).json()
        assert requests.get(down["url"], timeout=20).content == b"x"
    finally:
        assert client.delete_bucket(name).status_code == 204


def test_volumes(client: Any, fresh_name: FreshName) -> None:
    name = fresh_name("py-volume")
    assert client.create_volume(name, "1Gi").status_code == 201
    assert name in [one["name"] for one in client.list_volumes().json()]
    assert client.get_volume(name).json()["name"] == name
    assert client.delete_volume(name).status_code == 204


def test_metrics(client: Any, service: str) -> None:
    assert "totals" in client.get_metrics_summary().json()
    assert client.get_metrics_breakdown().json()["group_by"] == "service"
    assert client.get_metrics_breakdown(group_by="user").status_code == 200
    assert client.get_service_metrics(service).json()["service_name"] == service


def test_what_users_ask_for_themselves(make_client: MakeClient) -> None:
    for way in WAYS[1:]:
        client = make_client(way)
        assert client.get_own_quota().json()["user_id"] == "alice@test"
        with pytest.raises(requests.HTTPError, match="403"):
            client.get_system_logs()


def test_what_only_the_admin_asks_for(make_client: MakeClient) -> None:
    client = make_client("basic")
    assert "logs" in client.get_system_logs(timestamps=True, previous=True).json()
    assert client.get_user_quota("quinn@test").json()["user_id"] == "quinn@test"
    shown = client.update_user_quota("quinn@test", cpu="64", memory="64Gi").json()
    assert shown["resources"]["cpu"]["max"] == 64_000


def test_federation_members(client: Any, service: str) -> None:
    member = {"type": "oscar", "cluster_id": "visby", "service_name": "there", "priority": 1}
    assert client.get_federation(service).json() == {"topology": "none", "members": None}
    clusters = {"visby": {"endpoint": "http://127.0.0.1:9", "auth_user": "", "auth_password": "", "ssl_verify": False}}
    added = client.add_federation_members(service, [member], clusters=clusters)
    assert [one["cluster_id"] for one in added.json()["members"]] == ["visby"]
    updated = client.update_federation_members(service, [member], [{**member, "priority": 5}])
    assert [one["priority"] for one in updated.json()["members"]] == [5]
    assert client.remove_federation_members(service, [member]).json()["members"] is None


def test_ways_to_sign_in(make_client: MakeClient) -> None:
    for way, kind in zip(WAYS, ("basicauth", "oidc", "oidc"), strict=True):
        assert kind == make_client(way).inner._AUTH_TYPE
    assert make_client("refresh token").get_access_token().count(".") == 2
    assert ISSUER_GROUP in make_client("access token").get_cluster_config().text


def test_every_public_method_was_called(request: pytest.FixtureRequest) -> None:
    chosen = {item.name.partition("[")[0] for item in request.session.items if item.path == request.path}
    here = {name for name in dir(request.module) if name.startswith("test_")}
    if chosen != here:
        pytest.skip("only a part of this file was asked for")
    # how a client signs in is chosen by its constructor, which calls these itself
    by_constructor = {"basic_auth_client", "oidc_client", "set_auth_type", "oidc_agent_client"}
    for kind in (Client, AnonymousClient, Storage):
        public = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
        assert public - by_constructor - {name for owner, name in called if owner == kind.__name__} == set()
