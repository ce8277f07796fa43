"""What does a cluster tell about itself, and how does it behave on paths it does not know?"""

import json

import httpx
import pytest

from journeys.waiting import eventually
from real.manager import Manager

STATUS_CLUSTER = {
    "cpu": ["total_free_cores", "max_free_on_node_cores", "total_schedulable_cores", "total_schedulable_on_node_cores"],
    "memory": [
        "total_free_bytes",
        "max_free_on_node_bytes",
        "total_schedulable_bytes",
        "max_schedulable_on_node_bytes",
    ],
    "gpu": ["total_gpu"],
}


def test_health_needs_no_credentials(nobody: httpx.Client) -> None:
    answer = nobody.get("/health")
    assert (answer.status_code, answer.text) == (200, "Ok")
    assert answer.headers["content-type"].startswith("text/plain")


def test_ready_says_that_nothing_is_missing(nobody: httpx.Client) -> None:
    assert nobody.get("/ready").text == '{"ready":true,"missing":[]}'


def test_info_is_compact_and_in_order(admin: httpx.Client) -> None:
    answer = admin.get("/system/info")
    assert answer.status_code == 200
    assert list(answer.json()) == [
        "version",
        "git_commit",
        "architecture",
        "kubernetes_version",
        "serverless_backend",
    ]
    assert answer.text.startswith('{"version":"')


def test_config_holds_the_callers_own_keys(admin: httpx.Client, alice: httpx.Client) -> None:
    answer = admin.get("/system/config")
    config = answer.json()
    assert '"name":"oscar"' in answer.text
    assert list(config) == ["config", "minio_provider", "allowed_image_repositories"]
    assert list(config["minio_provider"]) == ["endpoint", "verify", "access_key", "secret_key", "region"]
    assert config["config"]["oidc_groups"] == ["vo-test"]
    own = alice.get("/system/config").json()["minio_provider"]
    assert own["access_key"] == "alice@test"
    assert own["secret_key"] != config["minio_provider"]["secret_key"]
    assert own["endpoint"] == config["minio_provider"]["endpoint"]


def test_the_same_user_gets_the_same_keys_again(alice: httpx.Client) -> None:
    assert alice.get("/system/config").content == alice.get("/system/config").content


@pytest.mark.parametrize("path", ["/system/config/", "/system/info/", "/system/services/", "/system/buckets/"])
def test_a_trailing_slash_makes_no_difference(admin: httpx.Client, path: str) -> None:
    answer = admin.get(path, follow_redirects=True)
    assert answer.status_code == 200


def test_a_post_with_a_trailing_slash_keeps_its_body(alice: httpx.Client) -> None:
    answer = alice.post("/system/services/", json={"name": "slash"}, follow_redirects=True)
    assert answer.status_code == 400  # it was read: the definition lacks an image
    assert "image" in answer.text


def test_status_has_oscars_keys_and_whole_numbers(admin: httpx.Client) -> None:
    answer = admin.get("/system/status")
    status = answer.json()
    assert list(status) == ["cluster", "oscar", "minio"]
    assert list(status["cluster"]) == ["nodes_count", "metrics", "nodes"]
    for part, keys in STATUS_CLUSTER.items():
        assert list(status["cluster"]["metrics"][part]) == keys
        assert all(type(value) is int for value in status["cluster"]["metrics"][part].values())
    [node] = status["cluster"]["nodes"]
    assert list(node) == ["name", "cpu", "memory", "gpu", "is_interlink", "status", "conditions"]
    assert (node["status"], node["conditions"]) == ("Ready", [{"type": "Ready", "status": True}])
    assert node["cpu"]["capacity_cores"] % 1000 == 0  # millicores, despite the name
    assert 0 not in node["cpu"].values()
    assert set(status["oscar"]["pods"]["states"]) == {"Pending", "Running", "Succeeded", "Failed", "Unknown"}
    assert status["oscar"]["oidc"]["enabled"] is True
    assert list(status["minio"]) == ["buckets_count", "total_objects"]


def test_status_shows_users_no_jobs_and_no_store(alice: httpx.Client) -> None:
    status = alice.get("/system/status").json()
    assert status["oscar"]["jobs_count"] == 0
    assert status["oscar"]["pods"] == {"total": 0, "states": {}}
    assert status["minio"] == {"buckets_count": 0, "total_objects": 0}
    assert status["cluster"]["nodes_count"] == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nothing/here"),
        ("GET", "/system/nothing"),
        ("PATCH", "/system/services"),
        ("DELETE", "/system/services"),
        ("POST", "/system/services/some-service"),
        ("GET", "/job/some-service"),
        ("PUT", "/run/some-service"),
        ("POST", "/system/info"),
        ("PUT", "/health"),
    ],
)
def test_unknown_paths_and_wrong_methods_are_404(admin: httpx.Client, method: str, path: str) -> None:
    answer = admin.request(method, path)
    assert (answer.status_code, answer.text) == (404, "404 page not found")


def test_the_admin_decides_which_images_are_allowed(admin: httpx.Client, alice: httpx.Client) -> None:
    definition = {"name": "picky", "image": "docker.io/other", "script": "true"}
    try:
        answer = admin.put("/system/config", json={"allowed_image_repositories": ["ghcr.io/grycap"]})
        assert (answer.status_code, answer.text) == (200, '["ghcr.io/grycap"]')
        assert admin.get("/system/config").json()["allowed_image_repositories"] == ["ghcr.io/grycap"]
        refused = alice.post("/system/services", json=definition)
        assert refused.status_code == 400
        assert "ghcr.io/grycap" in refused.text
    finally:
        assert admin.put("/system/config", json={"allowed_image_repositories": []}).text == "[]"


def test_errors_of_status_and_metrics_are_json(nobody: httpx.Client, admin: httpx.Client) -> None:
    for path in ("/system/status", "/system/metrics"):
        answer = nobody.get(path)
        assert answer.status_code == 401
        assert set(answer.json()) == {"error"}
    answer = admin.get("/system/metrics/breakdown")
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


def test_every_answer_names_its_request(admin: httpx.Client, manager: Manager) -> None:
    answer = admin.get("/system/info", headers={"X-Request-Id": "story-of-a-request"})
    assert answer.headers["x-request-id"] == "story-of-a-request"
    line = json.dumps({"request_id": "story-of-a-request"})[1:-1]
    eventually(lambda: line in manager.log, what="in the log")  # which is written after the answer


def test_too_large_a_body_is_413(alice: httpx.Client) -> None:
    answer = alice.post("/system/services", content=b"x" * (17 * 2**20))
    assert answer.status_code == 413
