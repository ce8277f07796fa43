"""The life of a service: created, read, changed, listed and deleted, in the words OSCAR's clients use."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService
from real.manager import Manager

# every key a plain service answers with, in OSCAR's order
KEYS = [
    "name", "cluster_id", "memory", "cpu", "total_memory", "total_cpu", "ephemeral_storage_request", "enable_gpu",
    "enable_sgx", "image_prefetch", "synchronous", "log_level", "image", "alpine", "token", "file_stage_in", "input",
    "output", "script", "expose", "environment", "annotations", "vo", "labels", "storage_providers", "owner",
    "namespace", "interlink_node_name", "visibility", "allowed_users", "isolation_level", "bucket_list", "mount",
    "volume_status",
]  # fmt: skip


def read(client: httpx.Client, name: str) -> dict[str, Any]:
    answer = client.get(f"/system/services/{name}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def test_a_created_service_reads_back_in_oscars_form(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "echo hello\r\necho again\r")
    answer = alice.get(f"/system/services/{name}")
    shown = answer.json()
    assert list(shown) == KEYS
    assert answer.text == json.dumps(shown, separators=(",", ":"))
    assert f'{{"name":"{name}","cluster_id":"",' in answer.text
    assert re.fullmatch("[0-9a-f]{64}", shown["token"])
    assert (shown["owner"], shown["namespace"], shown["vo"]) == ("alice@test", "oscar-svc-alice-te", "vo-test")
    assert (shown["cpu"], shown["memory"], shown["visibility"], shown["log_level"]) == (
        "0.2",
        "64Mi",
        "private",
        "INFO",
    )
    assert shown["script"] == "echo hello\necho again\n"
    assert (
        shown["labels"]
        | {
            "oscar.grycap/user-service": "true",
            "oscar_service": name,
            "applicationId": name,
            "queue": f"root.oscar-queue.{name}",
            "owner_name": "Alice",
            "uid": "alice@test",
            "vo": "vo-test",
        }
        == shown["labels"]
    )
    default = shown["storage_providers"]["minio"]["default"]
    assert (default["access_key"], default["secret_key"]) == ("hidden", "hidden")
    assert default["endpoint"] == alice.get("/system/config").json()["minio_provider"]["endpoint"]
    assert shown["volume_status"] == {"enabled": False}
    assert "null" not in answer.text
    empty: dict[str, Any] = {"input": [], "output": [], "annotations": {}, "allowed_users": [], "bucket_list": []}
    assert {key: shown[key] for key in empty} == empty


def test_the_admins_services_belong_to_the_cluster(make_service: MakeService, admin: httpx.Client) -> None:
    shown = read(admin, make_service(admin))
    assert (shown["owner"], shown["namespace"]) == ("cluster_admin", "oscar-svc")


@pytest.mark.parametrize("content_type", [None, "text/json", "application/json", "application/x-www-form-urlencoded"])
def test_any_content_type_will_do(
    alice: httpx.Client, admin: httpx.Client, fresh_name: FreshName, content_type: str | None
) -> None:
    name = fresh_name("typed")
    body = json.dumps({"name": name, "image": "debian", "script": "true"})
    headers = {"Content-Type": content_type} if content_type else {}
    try:
        answer = alice.post("/system/services", content=body, headers=headers)
        assert (answer.status_code, answer.content) == (201, b"")
        answer = alice.put("/system/services", content=body.replace("true", "false"), headers=headers)
        assert (answer.status_code, answer.content) == (204, b"")
        assert read(alice, name)["script"] == "false"
    finally:
        assert admin.delete(f"/system/services/{name}").status_code == 204


def test_keys_match_in_any_case_and_unknown_ones_are_ignored(
    alice: httpx.Client, admin: httpx.Client, fresh_name: FreshName
) -> None:
    name = fresh_name("cased")
    definition = {
        "Name": name,
        "IMAGE": "debian",
        "Script": 'printf "%s" "$GREETING"',
        "environment": {"Variables": {"GREETING": "hej", "lower": "kept"}},
        "no_such_field": {"deep": [1, 2]},
    }
    assert alice.post("/system/services", json=definition).status_code == 201
    try:
        assert read(alice, name)["environment"]["variables"] == {"GREETING": "hej", "lower": "kept"}
        assert alice.post(f"/run/{name}").text == "hej"
    finally:
        admin.delete(f"/system/services/{name}")


def test_fields_of_older_clients_are_accepted(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(
        alice,
        "true",
        replicas=[],
        rescheduler_threshold="",
        delegation="static",
        expose={"api_port": 8080, "min_scale": 1},
        federation={"topology": "", "rescheduler_threshold": "15", "members": []},
    )
    shown = read(alice, name)
    assert shown["expose"]["api_port"] == [8080]
    assert shown["federation"] == {"group_id": name, "topology": "none", "rescheduler_threshold": 15}
    assert "replicas" not in shown


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cpu": 1}, "cpu"),
        ({"memory": 256}, "memory"),
        ({"memory": "lots"}, "memory"),
        ({"cpu": "0"}, "cpu"),
        ({"image": ""}, "image"),
        ({"script": " \n"}, "script"),
        ({"name": "Upper"}, "name"),
        ({"name": "a" * 40}, "name"),
        ({"name": "../etc"}, "name"),
        ({"visibility": "secret"}, "visibility"),
        ({"input": [{"storage_provider": "minio", "path": ""}]}, "path"),
        ({"input": [{"storage_provider": "minio", "path": "bucket/../x"}]}, "path"),
        ({"input": [{"storage_provider": "s3.there", "path": "bucket/in"}]}, "s3"),
        ({"output": [{"storage_provider": "minio.there", "path": "bucket/out"}]}, "minio.there"),
        ({"expose": {"api_port": "80"}}, "api_port"),
        ({"expose": {"api_port": [70000]}}, "api_port"),
        ({"environment": {"variables": {"A=B": "x"}}}, "variable"),
        ({"volume": {"size": "1Gi", "mount_path": "relative"}}, "mount_path"),
        ({"volume": {"size": "1Gi", "mount_path": "/oscar/config/x"}}, "mount_path"),
        ({"federation": {"members": [{"type": "oscar", "priority": -1, "cluster_id": "x"}]}}, "priority"),
    ],
)
def test_a_wrong_definition_is_400_and_names_the_field(alice: httpx.Client, change: dict[str, Any], named: str) -> None:
    answer = alice.post("/system/services", json={"name": "wrong", "image": "debian", "script": "true", **change})
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/plain")
    assert named in answer.text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"null", b"[" * 100_000])
def test_what_is_no_json_object_is_400(alice: httpx.Client, body: bytes) -> None:
    for method in ("POST", "PUT"):
        assert alice.request(method, "/system/services", content=body).status_code == 400


def test_a_name_is_taken_once_for_everybody(make_service: MakeService, alice: httpx.Client, bob: httpx.Client) -> None:
    name = make_service(alice)
    for client in (alice, bob):
        answer = client.post("/system/services", json={"name": name, "image": "debian", "script": "true"})
        assert answer.status_code == 409
    assert read(alice, name)["script"] == "cat $INPUT_FILE_PATH"


def test_of_many_creates_at_once_one_wins(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client, admin: httpx.Client, fresh_name: FreshName
) -> None:
    name = fresh_name("race")
    definition = {
        "name": name,
        "image": "debian",
        "script": "true",
        "input": [{"storage_provider": "minio", "path": "in"}],
    }
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(client.post, "/system/services", json=definition) for client in (alice, bob) * 4]
        answers = [one.result().status_code for one in sent]
    try:
        assert sorted(answers) == [201] + [409] * 7
        owner = read(admin, name)["owner"]
        assert admin.get(f"/system/buckets/{name}").json()["owner"] == owner  # the winner's, and still there
    finally:
        assert admin.delete(f"/system/services/{name}").status_code == 204


def test_who_owns_it_is_not_for_the_body_to_say(make_service: MakeService, alice: httpx.Client) -> None:
    forged = "ab" * 32
    fields = {"owner": "bob@test", "namespace": "oscar-svc-bob-te", "token": forged, "vo": "vo-one"}
    name = make_service(alice, labels={"uid": "bob", "mine": "kept"}, bucket_list=["somebodys"], **fields)
    shown = read(alice, name)
    assert (shown["owner"], shown["namespace"]) == ("alice@test", "oscar-svc-alice-te")
    assert shown["token"] != forged
    assert (shown["labels"]["uid"], shown["labels"]["mine"]) == ("alice@test", "kept")
    assert shown["bucket_list"] == []


def test_a_group_the_user_is_not_in_is_refused(bob: httpx.Client) -> None:
    answer = bob.post("/system/services", json={"name": "vo", "image": "debian", "script": "true", "vo": "vo-one"})
    assert answer.status_code == 400
    assert "vo-one" in answer.text


def test_an_update_keeps_token_owner_and_namespace(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, environment={"secrets": {"KEY": "first"}})
    before = read(alice, name)
    changed = {**before, "script": 'printf "%s" "$KEY"', "memory": "128Mi", "token": "cd" * 32, "owner": "bob@test"}
    answer = alice.put("/system/services", json=changed)
    assert (answer.status_code, answer.content) == (204, b"")
    after = read(alice, name)
    assert [after[key] for key in ("token", "owner", "namespace", "vo", "labels")] == [
        before[key] for key in ("token", "owner", "namespace", "vo", "labels")
    ]
    assert after["memory"] == "128Mi"
    # the answer showed "" in place of the secret, and sending that back means "as it was"
    assert alice.post(f"/run/{name}").text == "first"


def test_a_script_for_another_interpreter_is_warned_of(
    make_service: MakeService, alice: httpx.Client, fresh_name: FreshName
) -> None:
    name = make_service(alice)
    asked = {**read(alice, name), "script": "#!/usr/bin/env python3\nprint('hello')\n"}
    answers = [alice.put("/system/services", json=asked)]
    assert alice.delete(f"/system/services/{name}").status_code == 204
    answers.append(alice.post("/system/services", json=asked))
    assert [answer.status_code for answer in answers] == [204, 201]
    for answer in answers:
        assert answer.headers["x-hansa-warning"].startswith("the script begins with '#!/usr/bin/env python3', but")


def test_updates_of_what_is_not_there_or_not_yours(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client
) -> None:
    name = make_service(alice, visibility="public")
    definition = {"image": "debian", "script": "true"}
    assert alice.put("/system/services", json={"name": "not-there", **definition}).status_code == 404
    refused = bob.put("/system/services", json={"name": name, **definition})
    assert refused.status_code == 403
    assert "or choose another name" in refused.text
    assert alice.put("/system/services", json={"name": "", **definition}).status_code == 400


def test_a_volume_cannot_change(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, volume={"size": "1Gi", "mount_path": "/data"})
    changed = {**read(alice, name), "volume": {"size": "2Gi", "mount_path": "/data"}}
    answer = alice.put("/system/services", json=changed)
    assert answer.status_code == 400
    assert "volume" in answer.text


def test_a_deleted_service_is_gone_with_its_buckets(
    make_service: MakeService, alice: httpx.Client, fresh_name: FreshName
) -> None:
    kept, made = fresh_name("kept"), fresh_name("made")
    assert alice.post("/system/buckets", json={"bucket_name": kept}).status_code == 201
    name = make_service(
        alice,
        input=[{"storage_provider": "minio", "path": f"/{made}/in/"}],
        output=[{"storage_provider": "MinIO.default", "path": f"{kept}/out"}],
    )
    shown = read(alice, name)
    assert shown["input"] == [{"storage_provider": "minio.default", "path": f"{made}/in"}]
    assert shown["output"] == [{"storage_provider": "minio.default", "path": f"{kept}/out"}]
    assert {made, kept} <= {bucket["bucket_name"] for bucket in alice.get("/system/buckets").json()}
    answer = alice.delete(f"/system/services/{name}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert alice.get(f"/system/services/{name}").status_code == 404
    assert alice.delete(f"/system/services/{name}").status_code == 404
    left = {bucket["bucket_name"] for bucket in alice.get("/system/buckets").json()}
    assert kept in left
    assert made not in left
    assert alice.delete(f"/system/buckets/{kept}").status_code == 204


def test_a_path_without_a_bucket_means_the_services_own(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, input=[{"storage_provider": "minio", "path": "in"}])
    assert read(alice, name)["input"][0]["path"] == f"{name}/in"


def test_a_refused_create_leaves_nothing(alice: httpx.Client, bob: httpx.Client, fresh_name: FreshName) -> None:
    taken, new, name = fresh_name("taken"), fresh_name("new"), fresh_name("half")
    assert bob.post("/system/buckets", json={"bucket_name": taken}).status_code == 201
    definition = {
        "name": name,
        "image": "debian",
        "script": "true",
        "input": [{"storage_provider": "minio", "path": f"{new}/in"}],
        "output": [{"storage_provider": "minio", "path": f"{taken}/out"}],
    }
    assert alice.post("/system/services", json=definition).status_code == 403
    assert alice.get(f"/system/services/{name}").status_code == 404
    assert new not in alice.get("/system/buckets").text
    assert bob.delete(f"/system/buckets/{taken}").status_code == 204


def test_a_plain_service_has_no_deployment(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice)
    answer = alice.get(f"/system/services/{name}/deployment").json()
    assert list(answer) == [
        "service_name", "namespace", "state", "reason", "active_instances", "affected_instances", "resource_kind",
    ]  # fmt: skip
    assert (answer["state"], answer["resource_kind"]) == ("unavailable", "unavailable")
    logs = alice.get(f"/system/services/{name}/deployment/logs").json()
    assert list(logs) == ["service_name", "available", "message", "entries"]
    assert (logs["available"], logs["entries"]) == (False, [])
    for verb in ("start", "stop", "restart"):
        assert alice.post(f"/system/services/{name}/{verb}").status_code == 400


@pytest.mark.parametrize("include", ["deployment", "Deployment", "other, DEPLOYMENT"])
def test_deployments_come_with_services_on_request(
    make_service: MakeService, alice: httpx.Client, include: str
) -> None:
    name = make_service(alice)
    shown = alice.get(f"/system/services/{name}", params={"include": include}).json()
    assert list(shown) == [*KEYS, "deployment"]
    assert list(shown["deployment"]) == ["state", "reason", "active_instances", "affected_instances", "resource_kind"]
    listed = alice.get("/system/services", params={"include": include}).json()
    assert all("deployment" in one for one in listed)
    assert "deployment" not in read(alice, name)


def test_a_list_shows_what_the_caller_may_see(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client, dora: httpx.Client, admin: httpx.Client
) -> None:
    private = make_service(alice)
    restricted = make_service(alice, visibility="restricted", allowed_users=[" dora@test ", ""])
    public = make_service(alice, visibility="public")
    for client, seen in (
        (alice, {private, restricted, public}),
        (admin, {private, restricted, public}),
        (dora, {restricted, public}),
        (bob, {public}),
    ):
        answer = client.get("/system/services")
        assert answer.status_code == 200
        assert {one["name"] for one in answer.json()} & {private, restricted, public} == seen
    assert read(alice, restricted)["allowed_users"] == ["dora@test"]


def test_somebody_elses_service_is_403_an_unknown_one_404_a_bad_name_400(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client
) -> None:
    name = make_service(alice)
    for path in ("", "/deployment", "/deployment/logs"):
        assert bob.get(f"/system/services/{name}{path}").status_code == 403
        assert bob.get(f"/system/services/not-there{path}").status_code == 404
        assert bob.get(f"/system/services/Not_A_Name{path}").status_code == 400


def test_a_worker_keeps_its_coordinators_token(
    make_service: MakeService, alice: httpx.Client, manager: Manager
) -> None:
    token = "0123456789abcdef" * 4
    marks = {"oscar.grycap/origin-cluster": manager.settings.get("cluster.id", "hansa")}
    worker = make_service(alice, token=token, annotations={**marks, "oscar.grycap/federation-worker": "true"})
    assert read(alice, worker)["token"] == token
    almost = make_service(alice, token=token, annotations={**marks, "oscar.grycap/federation-worker": "yes"})
    assert read(alice, almost)["token"] != token


def test_federation_members_are_kept_and_changed(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, cluster_id="here")
    for path in (f"/system/federation/{name}", f"/system/replicas/{name}"):
        assert alice.get(path).text == '{"topology":"none","members":null}'
    member = {"type": "oscar", "cluster_id": "visby", "service_name": "there"}
    answer = alice.post(f"/system/federation/{name}", json={"members": [member]})
    bare = '"url":"","ssl_verify":false,"priority":0,"headers":null'
    kept = f'{{"type":"oscar","cluster_id":"visby","service_name":"there",{bare}}}'
    # the first member makes a star of it; this manager knows no cluster visby, which is a warning
    assert (answer.status_code, answer.text.startswith(f'{{"topology":"star","members":[{kept}]')) == (200, True)
    assert [one["member"] for one in answer.json()["warnings"]] == ["visby/there"]
    assert alice.post(f"/system/replicas/{name}", json={"members": [member]}).json()["members"] == [json.loads(kept)]
    later = {**member, "priority": 3}
    answer = alice.put(f"/system/federation/{name}", json={"members": [member], "update": [later]})
    assert [one["priority"] for one in answer.json()["members"]] == [3]
    answer = alice.request("DELETE", f"/system/federation/{name}", json={"members": [member], "delete": False})
    assert (answer.status_code, answer.text) == (200, '{"topology":"star","members":null}')


def test_a_member_at_a_cluster_nobody_knows_is_named(fresh_name: FreshName, alice: httpx.Client) -> None:
    name = fresh_name("lost")
    members = [{"type": "oscar", "cluster_id": "oslo", "service_name": "there"}]
    federation = {"topology": "star", "members": members}
    body = {"name": name, "image": "debian", "script": "true", "cluster_id": "here", "federation": federation}
    answer = alice.post("/system/services", json=body)
    assert answer.status_code == 403, answer.text
    assert "no cluster 'oslo' is known to " in answer.text
    assert "; known: " in answer.text
