"""Does the doctor see what a start would trip over, and nothing else? Real ports, real databases, real stores."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from hansa import bootstrap
from hansa.bootstrap import Check
from hansa.drivers import s3
from hansa.identity import Vault
from hansa.settings import Settings
from hansa.store import make_engine, schema, sqlite_url, tables
from real.manager import StartManager


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield int(listening.getsockname()[1])


def found(data: Path, **given: Any) -> dict[str, Check]:
    settings = Settings(data=data, **{"http": {"port": 0}, "hub": {"port": 0, "members_port": 0}, **given})
    return {one.name: one for one in asyncio.run(bootstrap.doctor(settings))}


def kept(folder: Path, *, secret: bytes = b"", revision: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    engine = make_engine(sqlite_url(folder))
    schema.upgrade(engine)
    with engine.begin() as connection:
        person = {"uid": "u", "name": "u", "issuer": "i", "namespace": "n", "created": 0.0, "subject": "s"}
        connection.execute(sa.insert(tables.users).values(**person, store_secret=secret))
        if revision:
            connection.execute(sa.text(f"update alembic_version set version_num = '{revision}'"))
    engine.dispose()


def test_a_hub_is_asked_for_what_a_hub_needs(tmp_path: Path, taken: int) -> None:
    checks = found(tmp_path, role="hub", http={"port": taken}, hub={"port": 0, "members_port": taken})
    assert "port" not in checks
    assert checks["hub's port"].ok
    assert checks["members' port"].ok is False
    assert "hub.members_port" in checks["members' port"].hint
    assert not {"machine", "isolation", "disk limits", "object store", "podman"} & checks.keys()


def test_the_database_of_a_hub_is_its_own(tmp_path: Path) -> None:
    kept(tmp_path / "hub", revision="9999")
    assert found(tmp_path, role="hub")["database"].ok is False
    checks = found(tmp_path, role="both")
    assert (checks["database"].ok, checks["hub's database"].ok) == (True, False)


def test_a_port_that_somebody_else_has_is_a_failure(tmp_path: Path, taken: int) -> None:
    port = found(tmp_path, http={"port": taken})["port"]
    assert port.ok is False
    assert "http.port" in port.hint


def test_a_port_that_the_manager_of_this_folder_has_is_none(start_manager: StartManager) -> None:
    own = start_manager()
    port = found(own.data, http={"port": own.port})["port"]
    assert port.ok
    assert "the manager of this data folder runs there" in port.detail
    own.stop()
    assert "is free" in found(own.data, http={"port": own.port})["port"].detail


def test_a_newer_database_is_a_failure_in_the_words_of_the_start(tmp_path: Path) -> None:
    kept(tmp_path, revision="9999")
    database = found(tmp_path)["database"]
    assert database.ok is False
    engine = make_engine(sqlite_url(tmp_path))
    with pytest.raises(schema.SchemaTooNew) as refusal:
        schema.upgrade(engine)
    engine.dispose()
    assert (database.detail, database.hint) == (refusal.value.message, refusal.value.hint)


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_secrets_without_their_key_are_a_failure(tmp_path: Path, how: str) -> None:
    kept(tmp_path, secret=b"sealed")
    key = tmp_path / "vault.key"
    if how == "empty":
        key.touch(0o600)
    database = found(tmp_path)["database"]
    assert database.ok is False
    assert f"{key} is {how}" in database.detail
    assert "put back" in database.hint
    assert key.exists() == (how == "empty")
    key.unlink(missing_ok=True)
    Vault.at(key)
    assert found(tmp_path)["database"].ok


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    assert found(tmp_path / "data")["database"].ok
    assert not (tmp_path / "data").exists()


def test_keys_that_the_store_does_not_take_are_a_failure(tmp_path: Path, object_store: s3.OpenStore) -> None:
    right = object_store.keys
    for secret, ok in ((right.secret_key, True), ("of another store", False)):
        keys = {"access_key": right.access_key, "secret_key": secret}
        store = found(tmp_path, storage={"kind": "s3", "endpoint": object_store.store.reach_at, **keys})["object store"]
        assert store.ok is ok, store
    assert "key" in store.hint


@pytest.mark.parametrize("place", ["a file", "/proc"])
def test_a_data_folder_that_cannot_be_says_so(tmp_path: Path, place: str) -> None:
    (file := tmp_path / "file").touch()
    folder = found((file if place == "a file" else Path(place)) / "hansa")["data folder"]
    assert folder.ok is False
    assert "cannot be used" in folder.detail
    assert "free" not in folder.detail
