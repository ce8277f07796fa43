"""Who used what: sums, breakdowns and single services, scoped to what the caller can see."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from journeys.conftest import MakeService, Person
from journeys.waiting import eventually, run_job

PER_SERVICE = [
    "cpu-hours",
    "gpu-hours",
    "requests-sync-per-service",
    "requests-async-per-service",
    "requests-exposed-per-service",
    "users-per-service",
]


@pytest.fixture
def used_service(make_service: MakeService, alice: httpx.Client, bob: httpx.Client) -> str:
    """Two runs and one job of alice, one run of bob, all written down."""
    name = make_service(alice, "true", visibility="public")
    for client in (alice, alice, bob):
        assert client.post(f"/run/{name}").status_code == 200
    run_job(alice, name)
    eventually(lambda: counts(alice, name) == (3.0, 1.0), what="counted")
    return name


def counts(client: httpx.Client, name: str) -> tuple[float, float]:
    body = client.get(f"/system/metrics/{name}").json()
    values = {one["metric"]: one["value"] for one in body["metrics"]}
    return values["requests-sync-per-service"], values["requests-async-per-service"]


def test_one_services_figures(used_service: str, alice: httpx.Client) -> None:
    body = alice.get(f"/system/metrics/{used_service}").json()
    assert list(body) == ["service_name", "start", "end", "metrics"]
    assert [one["metric"] for one in body["metrics"]] == PER_SERVICE
    assert all(list(one)[:2] == ["metric", "value"] and "sources" in one for one in body["metrics"])
    single = alice.get(f"/system/metrics/{used_service}", params={"metric": "users-per-service"}).json()
    assert (single["service_id"], single["metric"], single["value"]) == (used_service, "users-per-service", 2)
    start, end = (datetime.fromisoformat(body[key]) for key in ("start", "end"))
    assert end - start == timedelta(days=1)


@pytest.mark.parametrize("metric", ["services-count", "requests-per-user", "countries-count", "countries-list", "odd"])
def test_metrics_that_no_single_service_has_are_400(used_service: str, alice: httpx.Client, metric: str) -> None:
    answer = alice.get(f"/system/metrics/{used_service}", params={"metric": metric})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


def test_the_summary_adds_up(used_service: str, alice: httpx.Client, admin: httpx.Client) -> None:
    body = alice.get("/system/metrics").json()
    assert list(body) == ["start", "end", "totals", "sources"]
    assert list(body["totals"]) == [
        "services_count_active", "services_count_total", "cpu_hours_total", "gpu_hours_total", "requests_count_total",
        "requests_count_sync", "requests_count_async", "requests_count_exposed", "countries_count", "countries",
        "users_count", "users",
    ]  # fmt: skip
    totals = body["totals"]
    assert totals["requests_count_total"] == sum(
        totals[f"requests_count_{kind}"] for kind in ("sync", "async", "exposed")
    )
    assert totals["requests_count_sync"] >= 3
    assert totals["users_count"] >= 2
    assert totals["users"] == ["alice@test"]  # others are counted, not named
    everything = admin.get("/system/metrics").json()["totals"]
    assert {"alice@test", "bob@test"} <= set(everything["users"])
    assert everything["requests_count_sync"] >= totals["requests_count_sync"]


def items(client: httpx.Client, **query: str) -> dict[str, dict[str, Any]]:
    answer = client.get("/system/metrics/breakdown", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.json()["group_by"] == query["group_by"]
    return {item["key"]: item for item in answer.json()["items"]}


def test_breakdowns_by_service_and_user(used_service: str, alice: httpx.Client, admin: httpx.Client) -> None:
    mine = items(alice, group_by="service", include_users="true")[used_service]
    assert (mine["requests_count_sync"], mine["requests_count_async"], mine["requests_count_total"]) == (3, 1, 4)
    assert (mine["users"], mine["unique_users_count"]) == (["alice@test"], 2)
    seen = items(admin, group_by="service", include_users="true")[used_service]
    assert sorted(seen["users"]) == ["alice@test", "bob@test"]
    assert "users" not in items(alice, group_by="service")[used_service]
    assert list(items(alice, group_by="user")) == ["alice@test"]
    assert items(admin, group_by="user")["bob@test"]["executions_count"] >= 1
    assert alice.get("/system/metrics/breakdown", params={"group_by": "country"}).status_code == 200


def test_a_breakdown_as_csv(used_service: str, alice: httpx.Client) -> None:
    answer = alice.get("/system/metrics/breakdown", params={"group_by": "service", "format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = {row["key"]: row for row in csv.DictReader(io.StringIO(answer.text))}
    assert rows[used_service]["requests_count_sync"] == "3"


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"group_by": "colour"},
        {"group_by": "service", "format": "xml"},
        {"group_by": "service", "format": "csv", "include_users": "true"},
        {"group_by": "service", "start": "yesterday"},
        {"group_by": "service", "start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"},
    ],
)
def test_questions_that_make_no_sense_are_400(alice: httpx.Client, query: dict[str, str]) -> None:
    answer = alice.get("/system/metrics/breakdown", params=query)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


def test_a_window_before_it_all_is_empty(used_service: str, alice: httpx.Client) -> None:
    end = datetime.now(UTC) - timedelta(days=365)
    window = {"start": (end - timedelta(hours=1)).isoformat(), "end": end.isoformat()}
    assert alice.get("/system/metrics", params=window).json()["totals"]["requests_count_total"] == 0


def test_nobody_learns_of_services_they_cannot_see(
    make_service: MakeService, alice: httpx.Client, person: Person, admin: httpx.Client
) -> None:
    name = make_service(alice, "true")
    assert alice.post(f"/run/{name}").status_code == 200
    eventually(lambda: counts(admin, name) == (1.0, 0.0))
    stranger = person("quinn")
    assert stranger.get(f"/system/metrics/{name}").status_code == 403
    assert stranger.get("/system/metrics/not-there").status_code == 404
    assert name not in items(stranger, group_by="service")
    assert name in items(admin, group_by="service")


def test_other_users_are_not_named_in_a_csv(used_service: str, bob: httpx.Client, person: Person) -> None:
    query = {"group_by": "user", "format": "csv"}
    assert "alice@test" not in bob.get("/system/metrics/breakdown", params=query).text
    assert (
        "alice@test" in person("watcher").get("/system/metrics/breakdown", params=query).text
    )  # who has the admin's view


def test_prometheus_reads_the_managers_own_figures(used_service: str, admin: httpx.Client) -> None:
    text = admin.get("/metrics").text
    assert 'hansa_http_answers_total{method="POST",route="/run/{service}",status="200"}' in text
    assert used_service not in text  # names of users' things are no labels
