"""A hub saved and brought back: everything, into an empty place only, and never by halves."""

import io
from pathlib import Path

import pytest
import sqlalchemy as sa

from hansa.federation import ClusterRecord, Note, Sighting
from hansa.identity import Vault
from hansa.messages.clusters import Facts
from hansa.store import Database, make_engine, schema, sqlite_url
from hansa.store.hub import ClusterStore, CredentialStore, backup

PASSPHRASE = "seven small boats"


@pytest.fixture
async def saved(database: Database) -> tuple[bytes, str]:
    """A backup of a hub with something in every corner, and the key of its secrets."""
    key = Vault.new_key()
    store = ClusterStore(database, "hub-a")
    sealed = CredentialStore(database, Vault([key])).sealed("visby", {"user": "a", "password": "b"})
    visby = ClusterRecord("visby", "hansa", "ready", 1.0, "", 1, 1.0, Facts(region="eu"))
    await store.put(visby, credentials=sealed)
    await store.sighted([Sighting("visby", 1, 5.0, 1, {"totals": (1, b'{"cpu":4000}')})])
    await store.note(Note("visby", "joined", "hello"), Note("visby", "state", "ready"))
    out = io.BytesIO()
    assert backup.write(database.engine, key.encode(), PASSPHRASE, out) == 7
    assert key.encode() not in out.getvalue()
    return out.getvalue(), key


async def _open(url: str) -> Database:
    engine = make_engine(url)
    opened = Database(engine)
    opened.start()
    return opened


async def test_into_an_empty_place(saved: tuple[bytes, str], tmp_path: Path) -> None:
    content, key = saved
    place = tmp_path / "new"
    place.mkdir()
    database = await _open(sqlite_url(place))
    try:
        rows = backup.read(database.engine, io.BytesIO(content), PASSPHRASE, place / "hub.key")
        assert rows == 7
        assert (place / "hub.key").read_text() == key
        store = ClusterStore(database, "hub-b")
        news = await store.news(0)
        assert [one.told.region for one in news.clusters] == ["eu"]
        assert news.sightings[0].sections["totals"][1] == b'{"cpu":4000}'
        assert [one.detail for one in await store.changes()] == ["ready", "hello"]
        assert news.version > 2**32  # managers may have heard more than the file knows
        await store.note(Note("visby", "state", "goes on"))
        assert (await store.changes())[0].detail == "goes on"
        found = await CredentialStore(database, Vault.at(place / "hub.key")).get("visby")
        assert found == {"user": "a", "password": "b"}
        with pytest.raises(backup.NotEmpty):
            backup.read(database.engine, io.BytesIO(content), PASSPHRASE, place / "hub.key")
    finally:
        await database.close()


async def test_more_rows_than_are_written_at_once(database: Database, tmp_path: Path) -> None:
    key = Vault.new_key()
    await ClusterStore(database, "hub-a").note(*(Note("visby", "state", str(number)) for number in range(1234)))
    out = io.BytesIO()
    written = backup.write(database.engine, key.encode(), PASSPHRASE, out)
    out.seek(0)
    folder = tmp_path / "new"
    folder.mkdir()
    place = await _open(sqlite_url(folder))
    try:
        assert backup.read(place.engine, out, PASSPHRASE, folder / "hub.key") == written == 1235
        found = await ClusterStore(place, "hub-b").changes(most=2000)
        assert [one.detail for one in found] == [str(number) for number in range(1233, -1, -1)]
    finally:
        await place.close()


async def test_what_is_not_whole_changes_nothing(saved: tuple[bytes, str], tmp_path: Path) -> None:
    content, _ = saved
    place = tmp_path / "new"
    place.mkdir()
    engine = make_engine(sqlite_url(place))
    schema.upgrade(engine)
    for spoiled in (b"", b"no backup", content[:-12], content[: len(content) // 2]):
        with pytest.raises(backup.BadBackup):
            backup.read(engine, io.BytesIO(spoiled), PASSPHRASE, place / "hub.key")
    with pytest.raises(backup.BadBackup, match="passphrase"):
        backup.read(engine, io.BytesIO(content), "another one altogether", place / "hub.key")
    with engine.connect() as connection:
        assert connection.execute(sa.text("select count(*) from hub_clusters")).scalar() == 0
    engine.dispose()
    assert not (place / "hub.key").exists()
