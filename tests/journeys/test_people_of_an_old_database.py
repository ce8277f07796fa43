"""A manager that knew people by subject alone is brought up to date: whoever had something has it, and nobody else."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from hansa.identity import qualified
from hansa.store import make_engine, schema, sqlite_url
from journeys.waiting import ended_jobs
from real import parts
from real.identity_provider import AUDIENCE, IdentityProvider, identity_provider
from real.manager import Manager, StartManager

BEFORE = "0003"  # the revision


@pytest.fixture(scope="module")
def first() -> Iterator[IdentityProvider]:
    parts.require("node")
    parts.require("npm")
    with identity_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def second() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


def trusting(*providers: IdentityProvider) -> list[dict[str, str]]:
    return [{"url": one.issuer(), "audience": AUDIENCE} for one in providers]


def columns_of(engine: sa.Engine) -> dict[str, set[str]]:
    found = sa.inspect(engine)
    return {table: {column["name"] for column in found.get_columns(table)} for table in found.get_table_names()}


def columns_then() -> dict[str, set[str]]:
    """Before people were issuer and subject."""
    with tempfile.TemporaryDirectory() as folder:
        engine = make_engine(sqlite_url(Path(folder)))
        schema.upgrade(engine, BEFORE)
        found = columns_of(engine)
        engine.dispose()
    return found


def made_old(url: str, moved: dict[str, str]) -> None:
    """Takes back what later revisions brought; `moved` says who is on record with another issuer."""
    engine, then = make_engine(url), columns_then()
    now = columns_of(engine)
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        for index in ("ix_users_issuer_subject", "ix_delegations_named"):
            connection.execute(sa.text(f"drop index {index}"))
        connection.execute(sa.text("delete from facts where name = 'home_issuer'"))
        for table, columns in now.items():
            if table not in then:
                connection.execute(sa.text(f"drop table {table}"))
                continue
            for name in columns - then[table]:
                connection.execute(sa.text(f"alter table {table} drop column {name}"))
        connection.execute(sa.text(f"update alembic_version set version_num = '{BEFORE}'"))
        for uid, issuer in moved.items():
            connection.execute(sa.text("update users set issuer = :i where uid = :u"), {"i": issuer, "u": uid})
    engine.dispose()


def furnish(client: httpx.Client, name: str) -> dict[str, str]:
    """A service, a bucket, a volume and a job; the keys to the store."""
    definition = {"name": name, "image": "debian", "memory": "64Mi", "script": "echo mine"}
    assert client.post("/system/services", json=definition).status_code == 201
    assert client.post("/system/buckets", json={"bucket_name": f"{name}-own"}).status_code == 201
    assert client.post("/system/volumes", json={"name": name, "size": "1Gi"}).status_code == 201
    assert client.post(f"/job/{name}").status_code == 201
    ended_jobs(client, name, 1)
    return dict(client.get("/system/config").json()["minio_provider"])


def has(client: httpx.Client, name: str) -> bool:
    """All of it, or nothing."""
    paths = (f"services/{name}", f"buckets/{name}-own", f"volumes/{name}", f"logs/{name}")
    seen = {client.get(f"/system/{path}").status_code == 200 for path in paths}
    assert len(seen) == 1, [(path, client.get(f"/system/{path}").status_code) for path in paths]
    return seen.pop()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_everybody_has_what_they_had(
    start_manager: StartManager,
    first: IdentityProvider,
    second: IdentityProvider,
    kind: str,
    request: pytest.FixtureRequest,
) -> None:
    database = request.getfixturevalue("postgres_database").url if kind == "postgresql" else ""
    own: Manager = start_manager({"oidc.issuers": trusting(first)}, database=database)
    alices = furnish(own.bearer(first.token("alice")), "of-alice")
    furnish(own.bearer(first.token("carol")), "of-carol")
    bobs = furnish(own.bearer(first.token("bob")), "of-bob")
    assert own.admin.put("/system/quotas/user/bob@test", json={"cpu": "3"}).status_code == 200
    own.stop()
    made_old(database or sqlite_url(own.data), {"bob@test": second.issuer()})

    own.settings = {**own.settings, "oidc.issuers": trusting(second, first)}
    own.start()
    alice, bob = own.bearer(first.token("alice")), own.bearer(second.token("bob"))
    assert alice.get("/system/config").json()["minio_provider"] == alices
    assert bob.get("/system/config").json()["minio_provider"] == bobs
    assert has(alice, "of-alice")
    assert has(bob, "of-bob")
    assert bob.get("/system/services/of-bob").json()["owner"] == "bob@test"
    assert bob.get("/system/quotas/user").json()["resources"]["cpu"]["max"] == 3000

    namesakes = {
        "of-alice": (second, "alice"),
        "of-bob": (first, "bob"),
        "of-carol": (second, "carol"),
    }
    for things, (provider, login) in namesakes.items():
        namesake = own.bearer(provider.token(login))
        told = namesake.get("/system/config").json()["minio_provider"]
        assert told["access_key"] == qualified(provider.issuer(), f"{login}@test")
        assert not has(namesake, things)
        assert namesake.delete(f"/system/services/{things}").status_code == 403
        assert namesake.get("/system/quotas/user").json()["resources"]["cpu"]["max"] != 3000
    own.restart()
    assert has(own.bearer(second.token("bob")), "of-bob")
