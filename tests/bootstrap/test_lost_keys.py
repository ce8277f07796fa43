"""What does a start say whose vault key is lost or empty, or whose store lost its own? Which file, and no new key."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.store import make_engine, schema, sqlite_url, tables
from hansa.store.hub import tables as hub_tables


def started(data: Path, role: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HANSA_")}
    environment |= {"HANSA_DATA": str(data), "HANSA_ROLE": role, "HANSA_HTTP__PORT": "0"}
    environment |= {"HANSA_HUB__PORT": "0", "HANSA_HUB__MEMBERS_PORT": "0"}
    command = [sys.executable, "-m", "hansa", "server"]
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=False)


def kept(data: Path, role: str) -> Path:
    """A database with a secret in it; where its key belongs."""
    folder = data if role == "manager" else data / "hub"
    folder.mkdir(parents=True)
    engine = make_engine(sqlite_url(folder))
    schema.upgrade(engine)
    with engine.begin() as connection:
        if role == "manager":
            person = {"uid": "u", "name": "u", "issuer": "i", "namespace": "n", "created": 0.0, "subject": "s"}
            connection.execute(sa.insert(tables.users).values(**person, store_secret=b"sealed"))
        else:
            connection.execute(sa.insert(hub_tables.credentials).values(cluster="visby", sealed=b"sealed"))
    engine.dispose()
    return folder / ("vault.key" if role == "manager" else "hub.key")


@pytest.mark.parametrize("role", ["manager", "hub"])
@pytest.mark.parametrize("how", ["missing", "empty"])
def test_secrets_without_their_key_stop_the_start(tmp_path: Path, role: str, how: str) -> None:
    key = kept(tmp_path / "data", role)
    if how == "empty":
        key.touch(0o600)
    ended = started(tmp_path / "data", role)
    assert ended.returncode != 0
    assert f"{key} is {how}" in ended.stderr, ended.stderr
    assert f"put back the {key.name}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert key.exists() == (how == "empty")


def test_a_database_without_secrets_gets_a_key(tmp_path: Path) -> None:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    engine.dispose()
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "keys.json").touch(0o600)
    ended = started(tmp_path, "manager")
    assert f"{tmp_path / 'objects' / 'keys.json'}" in ended.stderr  # it came as far as the store
    assert "put back" in ended.stderr
    assert "Traceback" not in ended.stderr
    Vault.at(tmp_path / "vault.key", needed=True)
