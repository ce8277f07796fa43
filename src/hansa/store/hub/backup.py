"""How is a hub saved and brought back? One file: every row of one moment, and its key under a passphrase.

The file is gzipped JSON lines with a head and an end; one that was cut short is noticed before anything is written.
Who does which periodic work is not in it. A restored hub counts its versions on from far above those it had, so that
managers who heard more than the file knows still hear what is in force now.
"""

import base64
import gzip
import hashlib
import itertools
import json
import operator
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from hansa.kernel import errors
from hansa.store import schema
from hansa.store.hub import changing, tables
from hansa.store.tables import metadata

FORMAT = 1
_LEFT_OUT = frozenset({tables.leases.name, tables.turns.name})
_TABLES = tuple(
    table for table in metadata.sorted_tables if table.name.startswith("hub_") and table.name not in _LEFT_OUT
)
_FORWARD = 2**32
_ROWS_AT_ONCE = 500
SHORTEST = 8  # characters of a passphrase


class BadBackup(errors.Invalid):
    """The file is not a whole backup of a hub, or the passphrase is not its own."""

    code = "hub.bad-backup"


class NotEmpty(errors.Conflict):
    """A hub is restored into an empty place only."""

    code = "hub.not-empty"


def write(engine: sa.Engine, key: bytes, passphrase: str, out: BinaryIO) -> int:
    """Writes everything of one moment; returns how many rows."""
    rows = 0
    digest = hashlib.sha256()
    # one moment: SQLite reads from a snapshot anyway
    level = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    with engine.connect().execution_options(**level) as connection, connection.begin():
        head = {
            "hansa-hub-backup": FORMAT,
            "revision": schema.current(connection),
            "at": changing.now(connection),
            "key": _locked(key, passphrase),
        }
        with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed:

            def line(value: Any) -> None:
                text = json.dumps(value, separators=(",", ":")).encode() + b"\n"
                digest.update(text)
                packed.write(text)

            line(head)
            for table in _TABLES:
                for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(sa.select(table)).mappings():
                    line([table.name, {name: _plain(value) for name, value in row.items()}])
                    rows += 1
            packed.write(json.dumps({"rows": rows, "sha256": digest.hexdigest()}).encode() + b"\n")
    return rows


def read(engine: sa.Engine, source: BinaryIO, passphrase: str, key_file: Path) -> int:
    """Brings a hub back into an empty database and a key file that is not there yet; returns how many rows."""
    _whole(source)
    source.seek(0)
    lines = _lines(source)
    head = next(lines)
    key = _unlocked(head["key"], passphrase)
    if head["revision"] not in schema.known_revisions():
        raise BadBackup(
            f"the backup is of revision {head['revision']}, which this version does not know",
            hint="restore it with the version that wrote it, or a newer one",
        )
    if key_file.exists() and key_file.read_bytes() != key:
        raise NotEmpty(f"there is another hub's key at {key_file}", hint="restore into an empty folder")
    schema.upgrade(engine, head["revision"])
    rows = _fill(engine, lines)
    schema.upgrade(engine)
    key_file.parent.mkdir(parents=True, exist_ok=True)
    if not key_file.exists():
        with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
    return rows


def _fill(engine: sa.Engine, lines: Iterator[Any]) -> int:
    by_name = {table.name: table for table in _TABLES}
    rows = 0
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        if connection.execute(sa.select(sa.func.count()).select_from(tables.clusters)).scalar_one() or (
            connection.execute(sa.select(sa.func.count()).select_from(tables.authorities)).scalar_one()
        ):
            raise NotEmpty("there is a hub in this database already", hint="restore into an empty one")
        connection.execute(tables.versions.delete())
        told = itertools.takewhile(lambda line: not isinstance(line, dict), lines)  # then comes the end
        for name, of_one in itertools.groupby(told, key=operator.itemgetter(0)):
            table = by_name.get(name)
            if table is None:
                raise BadBackup(f"the backup has a table {name[:63]!r} that this version does not know")
            while some := [_row(values) for _, values in itertools.islice(of_one, _ROWS_AT_ONCE)]:
                connection.execute(table.insert(), some)
                rows += len(some)
        connection.execute(tables.versions.delete().where(tables.versions.c.id == changing.RESTORED))
        jump = tables.versions.update().values(version=tables.versions.c.version + _FORWARD)
        version = connection.execute(jump.returning(tables.versions.c.version)).scalar_one()
        connection.execute(tables.versions.insert().values(id=changing.RESTORED, version=version))
        _count_on(connection)
    return rows


def _count_on(connection: sa.Connection) -> None:
    """PostgreSQL's own counters do not notice rows that bring their numbers."""
    if connection.dialect.name == "sqlite":
        return
    for table in (tables.changes, tables.rollouts):
        newest = connection.execute(sa.select(sa.func.max(table.c.id))).scalar()
        if newest:
            sequence = sa.func.pg_get_serial_sequence(table.name, "id")
            connection.execute(sa.select(sa.func.setval(sequence, newest)))


def _whole(source: BinaryIO) -> None:
    digest, last, rows = hashlib.sha256(), b"", -1
    try:
        with gzip.GzipFile(fileobj=source, mode="rb") as packed:
            for text in packed:
                if last:
                    digest.update(last)
                    rows += 1
                last = text
        head_ok = rows >= 0
        end = json.loads(last or b"null")
    except (OSError, EOFError, ValueError):
        raise BadBackup("the file is no backup of a hub, or it was cut short") from None
    if not head_ok or not isinstance(end, dict) or end.get("sha256") != digest.hexdigest() or end.get("rows") != rows:
        raise BadBackup("the backup was cut short or changed", hint="take another one")


def _lines(source: BinaryIO) -> Iterator[Any]:
    with gzip.GzipFile(fileobj=source, mode="rb") as packed:
        first = json.loads(next(iter(packed)))
        if not isinstance(first, dict) or first.get("hansa-hub-backup") != FORMAT:
            raise BadBackup("the file is no backup of a hub of this format")
        yield first
        for text in packed:
            yield json.loads(text)


def _plain(value: Any) -> Any:
    return {"b64": base64.b64encode(bytes(value)).decode()} if isinstance(value, bytes | memoryview) else value


def _row(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _rich(value) for key, value in values.items()}


def _rich(value: Any) -> Any:
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value


def _derived(passphrase: str, salt: bytes) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(Scrypt(salt=salt, length=32, n=2**15, r=8, p=1).derive(passphrase.encode())))


def _locked(key: bytes, passphrase: str) -> dict[str, str]:
    if len(passphrase) < SHORTEST:
        raise errors.Invalid(f"the passphrase has fewer than {SHORTEST} characters", hint="it protects every secret")
    salt = os.urandom(16)
    return {"salt": salt.hex(), "sealed": _derived(passphrase, salt).encrypt(key).decode()}


def _unlocked(sealed: dict[str, str], passphrase: str) -> bytes:
    try:
        return _derived(passphrase, bytes.fromhex(sealed["salt"])).decrypt(sealed["sealed"].encode())
    except InvalidToken:
        raise BadBackup("the passphrase is not the one this backup was made with") from None
