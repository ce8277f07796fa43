"""`/system/metrics` in OSCAR's words, and nobody sees what is not theirs to see."""

import httpx
import pytest
import sqlalchemy as sa

from entrypoints.http.oscar.keeping import Keeping, as_user
from hansa.store.tables import invocations

pytest_plugins = ("real.object_store",)

ALICE, BOB = as_user("alice"), as_user("bob")


@pytest.fixture(autouse=True)
async def calls(keeping: Keeping) -> None:
    await keeping.add_service("gray", "alice")
    await keeping.add_service("open", "bob", "public")
    now = keeping.clock.now() - 5
    rows = [
        {
            "at": now, "kind": kind, "service": service, "user": user, "status": 201, "latency": 0.1,
            "client_ip": "", "method": "POST", "path": "/",
        }
        for service, user, kind in (
            ("gray", "alice", "async"), ("gray", "bob", "sync"), ("gray", "", "exposed"), ("open", "bob", "async"),
        )
    ]  # fmt: skip
    await keeping.database.write(lambda link: link.execute(sa.insert(invocations), rows))


async def test_the_summary_is_scoped(client: httpx.AsyncClient) -> None:
    everything = (await client.get("/system/metrics")).json()
    assert list(everything) == ["start", "end", "totals", "sources"]
    assert everything["totals"] == {
        "services_count_active": 2,
        "services_count_total": 2,
        "cpu_hours_total": 0.0,
        "gpu_hours_total": 0.0,
        "requests_count_total": 3,
        "requests_count_sync": 1,
        "requests_count_async": 2,
        "requests_count_exposed": 1,
        "countries_count": 0,
        "countries": [],
        "users_count": 2,
        "users": ["alice", "bob"],
    }
    assert (await client.get("/system/metrics", headers=ALICE)).json()["totals"]["requests_count_total"] == 3
    assert (await client.get("/system/metrics", headers=BOB)).json()["totals"]["requests_count_total"] == 1


async def test_breakdowns(client: httpx.AsyncClient) -> None:
    by_service = (await client.get("/system/metrics/breakdown?group_by=service&include_users=true")).json()
    assert list(by_service) == ["start", "end", "group_by", "items"]
    assert by_service["items"][0] == {
        "key": "gray",
        "requests_count_total": 2,
        "requests_count_sync": 1,
        "requests_count_async": 1,
        "requests_count_exposed": 1,
        "unique_users_count": 2,
        "users": ["alice", "bob"],
        "countries": [],
    }
    assert "users" not in (await client.get("/system/metrics/breakdown?group_by=service")).json()["items"][0]
    table = await client.get("/system/metrics/breakdown?group_by=user&format=csv")
    assert table.headers["content-type"].startswith("text/csv")
    assert table.text == "key,membership,executions_count,countries\nalice,,1,\nbob,,2,\n"
    countries = await client.get("/system/metrics/breakdown?group_by=country&format=csv")
    assert countries.text.splitlines()[1] == "unknown,,3,2,unknown:3"


async def test_one_service(client: httpx.AsyncClient) -> None:
    found = (await client.get("/system/metrics/gray", headers=ALICE)).json()
    assert list(found) == ["service_name", "start", "end", "metrics"]
    assert [one["metric"] for one in found["metrics"]][:2] == ["cpu-hours", "gpu-hours"]
    window = "start=2020-01-01T00:00:00Z&end=2100-01-01T00:00:00Z"
    one = await client.get(f"/system/metrics/gray?metric=requests-async-per-service&{window}")
    assert one.json() == {
        "service_id": "gray",
        "metric": "requests-async-per-service",
        "start": "2020-01-01T00:00:00Z",
        "end": "2100-01-01T00:00:00Z",
        "value": 1.0,
        "sources": [{"name": "request-logs", "status": "ok"}],
    }
    assert list(one.json())[:5] == ["service_id", "metric", "start", "end", "value"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/system/metrics?start=yesterday", 400),
        ("/system/metrics?start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z", 400),
        ("/system/metrics/breakdown", 400),
        ("/system/metrics/breakdown?group_by=moon", 400),
        ("/system/metrics/breakdown?group_by=user&format=xml", 400),
        ("/system/metrics/breakdown?group_by=service&format=csv&include_users=true", 400),
        ("/system/metrics/gray", 403),
        ("/system/metrics/nothing", 404),
        ("/system/metrics/NO", 400),
        ("/system/metrics/open?metric=services-count", 400),
        ("/system/metrics/open?metric=odd", 400),
    ],
)
async def test_refusals_are_small_json(client: httpx.AsyncClient, path: str, status: int) -> None:
    answer = await client.get(path, headers=BOB)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
