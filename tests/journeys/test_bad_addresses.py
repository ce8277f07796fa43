"""Are names, parameters and headers that make no sense refused precisely, on every route, changing nothing?"""

import base64
from collections.abc import Iterator

import httpx
import pytest

from journeys.bad_input import Caller, Victim, nothing_changes, operations, precise
from real.manager import Manager

NAMES = {
    "dots": "..",
    "dots in code": "%2e%2e",
    "dots in capitals": "%2E%2E",
    "one dot": ".",
    "NUL": "%00",
    "NUL inside": "a%00b",
    "5,000 characters": "a" * 5000,
    "another script": "%D1%81%D0%BB%D1%83%D0%B6%D0%B1%D0%B0",
    "umlaut": "%C3%BC",
    "a space": "%20",
    "a space inside": "a%20b",
    "a line end": "a%0A",
    "a line end inside": "a%0D%0AX-Injected:%20b",
    "a slash": "%2F",
    "a way out": "..%2f..%2fetc%2fpasswd",
    "another way out": "..%5c..%5cetc",
    "twice in code": "%252e%252e",
    "not UTF-8": "%FF%FE",
    "half a surrogate pair": "%ED%A0%80",
    "capitals": "SERVICE",
    "a hyphen first": "-a",
    "a wildcard": "*",
    "SQL": "a'%20OR%20'1'='1",
    "a template": "%7B%7B7*7%7D%7D",
    "a broken code": "%zz",
}


@pytest.fixture(scope="module")
def caller(manager: Manager) -> Iterator[Caller]:
    given = base64.b64encode(f"admin:{manager.password}".encode()).decode()
    made = Caller(manager, f"Basic {given}")
    yield made
    made.close()


@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_a_name_that_cannot_be(name: str, manager: Manager, caller: Caller, victim: Victim) -> None:
    document = manager.anonymous.get("/openapi.json").json()
    tried = 0
    with nothing_changes(manager, victim):
        for method, path, operation in operations(document):
            for parameter in operation.get("parameters", []):
                if parameter["in"] != "path" or parameter["name"] in ("path", "user_id"):
                    continue
                target = path.format_map(victim.values(**{parameter["name"]: name}))
                answer = caller.ask(method, target, b"{}" if "requestBody" in operation else b"")
                precise(answer, 400, 401, 404)
                assert "X-Injected" not in answer.headers
                tried += 1
    assert tried > 30


def test_a_name_that_is_missing(manager: Manager, caller: Caller, victim: Victim) -> None:
    """The path without it is another one: the listing, or nothing."""
    document = manager.anonymous.get("/openapi.json").json()
    with nothing_changes(manager, victim):
        for method, path, operation in operations(document):
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] != "path":
                    target = path.format_map(victim.values(**{parameter["name"]: ""}))
                    answer = caller.ask(method, target, b"{}" if "requestBody" in operation else b"")
                    assert answer.status in ((200, 400, 403, 404) if method == "GET" else (400, 401, 404)), target


@pytest.mark.parametrize("user", ["%00", "a%0Ab", "x" * 5000, "%2F", "%FF"])
def test_a_user_that_cannot_be(user: str, manager: Manager, caller: Caller, victim: Victim) -> None:
    with nothing_changes(manager, victim):
        for method in ("GET", "PUT"):
            answer = caller.ask(method, f"/system/quotas/user/{user}", b'{"cpu": "1"}')
            assert answer.status in (400, 404) or (user == "%FF" and answer.status == 200)


QUERIES = [
    "/system/logs/{service}?page=abc",
    "/system/logs/{service}?page=-1",
    "/system/logs/{service}?page=1.5",
    "/system/logs/{service}?page=" + "9" * 5000,
    "/system/logs/{service}?page=%00",
    "/system/logs/{service}/{job}?timestamps=maybe",
    "/system/logs?timestamps=maybe",
    "/system/logs?previous=2",
    "/system/services/{service}/deployment/logs?tailLines=abc",
    "/system/services/{service}/deployment/logs?tailLines=1e3",
    "/system/services/{service}/deployment/logs?tailLines=" + "9" * 5000,
    "/system/services/{service}/deployment/logs?timestamps=%00",
    "/system/buckets/{bucket}?page=" + "x" * 5000,
    "/system/metrics?start=yesterday",
    "/system/metrics?end=12",
    "/system/metrics?start=2026-13-45T99:99:99Z",
    "/system/metrics?start=2026-02-02T00:00:00Z&end=2026-01-01T00:00:00Z",
    "/system/metrics?start=%00",
    "/system/metrics?start=" + "9" * 5000,
    "/system/metrics/breakdown",
    "/system/metrics/breakdown?group_by=colour",
    "/system/metrics/breakdown?group_by=user&format=xml",
    "/system/metrics/breakdown?group_by=user&include_users=maybe",
    "/system/metrics/breakdown?group_by=user&include_users=true&format=csv",
    "/system/metrics/{service}?metric=unknown",
    "/system/metrics/{service}?start=nonsense",
]


@pytest.mark.parametrize("query", QUERIES, ids=[query[:60] for query in QUERIES])
def test_a_query_that_means_nothing(query: str, manager: Manager, caller: Caller, victim: Victim) -> None:
    answer = caller.ask("GET", query.format_map(victim.values()))
    precise(answer, 400)
    if query.startswith("/system/metrics"):
        assert answer.text.startswith('{"error":"')


def test_deleting_jobs_needs_a_clear_word(manager: Manager, caller: Caller, victim: Victim) -> None:
    with nothing_changes(manager, victim):
        precise(caller.ask("DELETE", f"/system/logs/{victim.service}?all=perhaps"), 400)


@pytest.mark.parametrize(("lines", "most"), [("-5", 1), ("0", 1), ("", 200), ("99999", 1000)])
def test_a_number_of_lines_is_brought_into_its_range(caller: Caller, victim: Victim, lines: str, most: int) -> None:
    answer = caller.ask("GET", f"/system/services/{victim.service}/deployment/logs?tailLines={lines}")
    assert answer.status == 200
    assert answer.text.count('"message"') <= most


@pytest.mark.parametrize("page", ["nonsense", "%00", "../..", "%FF", "%20"])
def test_a_page_no_store_gave(caller: Caller, victim: Victim, page: str) -> None:
    assert caller.ask("GET", f"/system/buckets/{victim.bucket}?page={page}").status in (200, 400)


@pytest.mark.parametrize(
    "job", ["..", "A", "a b", "a/b", "x" * 64, "x" * 5000, "ä".encode().decode("latin-1"), "-", "a\tb"]
)
def test_a_delegated_job_needs_a_jobs_name(
    manager: Manager, victim: Victim, alice: httpx.Client, job: str, admin: httpx.Client
) -> None:
    token = admin.get(f"/system/services/{victim.service}").json()["token"]
    sender = Caller(manager, f"Bearer {token}")
    with nothing_changes(manager, victim):
        precise(sender.ask("POST", f"/job/{victim.service}", X_Delegated_Job_ID=job.encode("latin-1")), 400)
    sender.close()


@pytest.mark.parametrize("given", ["a b", "x" * 65, "", "ä".encode().decode("latin-1"), "a;b", "<script>"])
def test_a_strange_request_id_is_replaced(caller: Caller, given: str) -> None:
    answer = caller.ask("GET", "/health", X_Request_Id=given.encode("latin-1"))
    assert answer.status == 200
    assert answer.headers["x-request-id"] != given
    assert answer.headers["x-request-id"].isalnum()
