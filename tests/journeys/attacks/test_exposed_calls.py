"""Strangers who call a public service again and again do not fill the database; the calls are counted all the same."""

import sqlite3
from contextlib import closing

import httpx

from journeys.conftest import MakeService
from journeys.exposing import at
from journeys.waiting import eventually
from real.manager import Manager

CALLS = 300
MINUTES = 10  # that the slowest machine takes for them


def counted(client: httpx.Client, name: str) -> float:
    asked = {"metric": "requests-exposed-per-service"}
    value: float = client.get(f"/system/metrics/{name}", params=asked).json()["value"]
    return value


def test_calls_of_strangers_are_counted_and_not_kept(
    manager: Manager, alice: httpx.Client, make_service: MakeService
) -> None:
    name = make_service(alice, "sleep 1000", visibility="public", expose={"api_port": [8080]})
    assert alice.post(f"/system/services/{name}/stop").status_code == 200
    for _ in range(CALLS):
        assert manager.anonymous.get(at(name, "/" + "z" * 1000)).status_code == 503
    eventually(lambda: counted(alice, name) == CALLS, what="counted")
    with closing(sqlite3.connect(f"file:{manager.data / 'hansa.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("select client_ip, path from invocations where service = ?", (name,)).fetchall()
    assert 0 < len(rows) <= MINUTES
    assert set(rows) == {("", "")}
