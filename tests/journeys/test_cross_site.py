"""Can a page of another site make a visitor's browser change something here, with the password it remembers?"""

import json
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName
from journeys.exposing import Expose, at
from real.manager import Manager

FOREIGN: list[dict[str, str]] = [
    {"Origin": "https://evil.example.org", "Content-Type": "text/plain"},
    {"Origin": "https://evil.example.org", "Content-Type": "application/json"},
    {"Origin": "https://evil.example.org", "Content-Type": "application/x-www-form-urlencoded"},
    {"Origin": "https://evil.example.org"},
    {"Origin": "null", "Content-Type": "text/plain"},  # a sandboxed page, such as a tenant's
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Content-Type": "application/json"},  # another port or host of this site
    {"sec-fetch-site": "CROSS-SITE", "Content-Type": "text/plain"},
]


def definition(name: str) -> dict[str, Any]:
    return {"name": name, "image": "debian", "memory": "64Mi", "script": "true"}


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_another_sites_page_changes_nothing(
    admin: httpx.Client, fresh_name: FreshName, headers: dict[str, str]
) -> None:
    name = fresh_name("crossing")
    body = json.dumps(definition(name))
    for method, path in (
        ("POST", "/system/services"),
        ("PUT", "/system/config"),
        ("POST", "/job/any"),
        ("POST", "/run/any"),
        ("DELETE", "/system/services/any"),
        ("POST", "/system/services/exposed/stop"),  # only looks like a page of a tenant's
        ("POST", "/v1/tokens/access"),
    ):
        answer = admin.request(method, path, content=body, headers=headers)
        assert answer.status_code == 403, (method, path, answer.text)
        assert "another site" in answer.text
    assert admin.get(f"/system/services/{name}").status_code == 404


def test_other_sites_may_not_read_either(admin: httpx.Client) -> None:
    answer = admin.get("/system/services", headers={"Origin": "https://evil.example.org"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]  # so browsers keep it from them
    asked = {"Origin": "https://evil.example.org", "Access-Control-Request-Method": "POST"}
    preflight = admin.options("/system/services", headers=asked)
    assert not [name for name in preflight.headers if name.startswith("access-control-")]


def test_programs_and_own_pages_work_as_before(admin: httpx.Client, manager: Manager, fresh_name: FreshName) -> None:
    for headers in (
        {},  # oscar-python 1.3 and oscar-cli say no type
        {"Content-Type": "text/json"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},  # curl -d
        {"Content-Type": "application/json", "Origin": manager.url, "Sec-Fetch-Site": "same-origin"},
        {"Content-Type": "application/json", "Sec-Fetch-Site": "none"},
    ):
        name = fresh_name("plain")
        answer = admin.post("/system/services", content=json.dumps(definition(name)), headers=headers)
        assert answer.status_code == 201, headers
        assert admin.delete(f"/system/services/{name}").status_code == 204
    form = {"Content-Type": "text/plain", "Origin": manager.url}
    assert admin.post("/system/services", content="{}", headers=form).status_code == 403


def test_tenants_decide_for_their_own_pages(expose: Expose, nobody: httpx.Client) -> None:
    name = expose()
    told = nobody.post(at(name, "/x"), content="x", headers=FOREIGN[0]).json()
    nobody.cookies.clear()
    assert told["headers"]["origin"] == "https://evil.example.org"


def test_what_users_print_is_never_taken_for_a_page(admin: httpx.Client) -> None:
    for path in ("/health", "/system/services", "/nothing", "/docs"):
        assert admin.get(path).headers["x-content-type-options"] == "nosniff"


def test_the_api_page_loads_nothing_from_anywhere(nobody: httpx.Client) -> None:
    page = nobody.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "cdn" not in page.text.lower()
    for word in ("<script", "<link", "<img", "<iframe", "src=", "http://", "@import", "url("):
        assert word not in page.text, word
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "/system/services/{name}" in page.text
    assert nobody.get("/redoc").status_code == 404
    assert nobody.get("/openapi.json").json()["info"]["title"] == "Hansa manager"
