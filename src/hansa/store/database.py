"""One database, SQLite or PostgreSQL, behind two verbs: `read` and `write`.

Each takes a plain function of a connection and runs it in a thread, so one hop serves a whole transaction. All
writes go through one writer that commits whatever has queued up together (group commit): a burst of accepted jobs
costs one flush to disk instead of one each, and SQLite never sees two writers.
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc

from hansa.kernel import disk_room, errors, quantities

T = TypeVar("T")
Operation = Callable[[sa.Connection], T]
_SERVER_FULL = "53100"  # as PostgreSQL says it
_READERS = 4
_LONG_READERS = 2  # for questions that may take long; they take no reader from the others
_STEPS = 10_000  # of SQLite's machine between two looks at the clock
_LARGEST_BATCH = 256
_PATIENCE = 8.0  # seconds until a caller hears that a server which took the call does not answer it


class DatabaseDown(errors.Temporary):
    """The database does not answer."""

    code = "store.unavailable"


class DatabaseFull(DatabaseDown):
    """The disk of the database has no room."""

    code = "store.full"


def down(error: exc.SQLAlchemyError, url: sa.URL) -> DatabaseDown:
    """What the driver said, in one line; or that it had no room, which a driver says in many ways."""
    inner = error.orig if isinstance(error, exc.DBAPIError) else error
    if url.get_backend_name() == "sqlite" and _is_out_of_room(inner, url.database):
        folder = Path(url.database or ".").absolute().parent
        free = quantities.show_size(disk_room.free(folder))
        return DatabaseFull(
            f"the disk is full: the database in {folder} cannot be written ({free} are free)",
            hint=f"free some room on the disk of {folder}; `du -xh {folder} | sort -h | tail` shows what takes most",
        )
    said = str(inner).strip().splitlines()
    line = said[0] if said else str(error)
    if getattr(inner, "sqlstate", None) == _SERVER_FULL:
        return DatabaseFull(f"the disk of the database server is full: {line}", hint="free some room on that disk")
    return DatabaseDown(f"the database does not answer: {line}", hint="check database.url")


def _is_out_of_room(error: BaseException | None, path: str | None) -> bool:
    """Without room for the files beside it SQLite speaks of input and output, or of a file it cannot open."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return True
    return code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and disk_room.is_full(Path(path or "."))


@dataclass(slots=True)
class _Waiting:
    operation: Operation[Any]
    done: asyncio.Future[Any]
    withdrawn: bool = field(default=False)  # nobody waits for it any more, and it was not begun


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'hansa.db'}"


def make_engine(url: str, pool: int = 10) -> sa.Engine:
    """An engine with the settings we rely on: WAL and full flush, or bounded statements on PostgreSQL."""
    if url.startswith("sqlite"):
        _keep_private(sa.make_url(url).database)
        engine = sa.create_engine(
            url, pool_size=_READERS + _LONG_READERS + 1, max_overflow=2, connect_args={"timeout": 30}
        )
        event.listen(engine, "connect", _tune_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            url = "postgresql+psycopg://" + url.removeprefix(scheme)
    return sa.create_engine(
        url,
        pool_size=pool,
        max_overflow=0,
        pool_timeout=10,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": 5,
            "options": "-c statement_timeout=30000",
            "tcp_user_timeout": 15_000,  # a server that vanished from the network is noticed
        },
    )


def _keep_private(path: str | None) -> None:
    """SQLite makes its file for everybody to read, and the two beside it with the rights of the first."""
    if path and path != ":memory:":
        made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with contextlib.suppress(PermissionError):  # somebody else's, who lets us in
                os.fchmod(made, 0o600)
        finally:
            os.close(made)


def _tune_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=wal", "synchronous=full", "busy_timeout=30000", "foreign_keys=on"):
        cursor.execute(f"pragma {pragma}")
    cursor.close()
    connection.isolation_level = None  # we say BEGIN ourselves, see below


def _begin_sqlite(connection: sa.Connection) -> None:
    # A writer takes the lock first: upgrading from read to write inside a transaction can fail at once with "locked".
    writing = connection.get_execution_options().get("writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _until(end: float, connection: sa.Connection, operation: Operation[T]) -> T:
    """Ended by the database itself at `end`, by `time.monotonic`."""
    if connection.dialect.name != "sqlite":
        left = max(1, round((end - time.monotonic()) * 1000))
        connection.exec_driver_sql(f"set local statement_timeout = {left}")
        return operation(connection)
    raw: Any = connection.connection.driver_connection
    raw.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        return operation(connection)
    finally:
        raw.set_progress_handler(None, 0)


class Database:
    def __init__(self, engine: sa.Engine, patience: float = _PATIENCE) -> None:
        self.engine = engine
        self._patience = patience
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="hansa-read")
        self._long_readers = ThreadPoolExecutor(_LONG_READERS, thread_name_prefix="hansa-long-read")
        self._writer_thread = ThreadPoolExecutor(1, thread_name_prefix="hansa-write")
        self._queue: asyncio.Queue[_Waiting | None] = asyncio.Queue()
        self._writer: asyncio.Task[None] | None = None

    @property
    def kind(self) -> str:
        return self.engine.dialect.name

    def start(self) -> None:
        self._writer = asyncio.create_task(self._write_batches(), name="store writer")

    async def close(self) -> None:
        if self._writer is not None:
            await self._queue.put(None)
            await self._writer
            self._writer = None
        self._readers.shutdown(wait=True)
        self._long_readers.shutdown(wait=True)
        self._writer_thread.shutdown(wait=True)
        self.engine.dispose()

    async def read(self, operation: Operation[T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._patience):
                return await loop.run_in_executor(self._readers, self._run, operation, False)
        except TimeoutError:
            raise self._silent() from None

    async def read_long(self, operation: Operation[T]) -> T:
        """The same, for what looks at any number of rows: few such questions are asked at a time, and one that nobody
        waits for any more is ended."""
        loop = asyncio.get_running_loop()
        end = time.monotonic() + self._patience
        try:
            async with asyncio.timeout(self._patience):
                return await loop.run_in_executor(
                    self._long_readers, self._run, lambda connection: _until(end, connection, operation), False
                )
        except TimeoutError:
            raise self._silent() from None

    async def write(self, operation: Operation[T]) -> T:
        """Runs `operation` in a transaction and returns once it is committed. It may be run more than once if the
        batch it was first put in fails, so it must only touch the connection. After `DatabaseDown` it may have been
        committed all the same (the answer got lost), so whoever tries again must be prepared for that."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._writer is None or self._writer.done():
            raise DatabaseDown("the store is closed", hint="the manager is stopping")
        waiting = _Waiting(operation, done)
        await self._queue.put(waiting)
        try:
            async with asyncio.timeout(self._patience):
                return await done
        except TimeoutError:
            waiting.withdrawn = True
            raise self._silent() from None

    def _silent(self) -> DatabaseDown:
        return DatabaseDown(
            f"the database gave no answer within {self._patience:g} s", hint="see whether it runs, and how busy it is"
        )

    def _run(self, operation: Operation[T], writing: bool) -> T:
        try:
            with self.engine.connect().execution_options(writing=writing) as connection, connection.begin():
                return operation(connection)
        except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError) as error:
            raise down(error, self.engine.url) from error

    async def _write_batches(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._queue.get()]
            with contextlib.suppress(asyncio.QueueEmpty):
                while len(batch) < _LARGEST_BATCH:
                    batch.append(self._queue.get_nowait())
            waiting = [one for one in batch if one is not None and not one.withdrawn]
            if waiting:
                outcomes = await loop.run_in_executor(self._writer_thread, self._commit_together, waiting)
                for one, (value, error) in zip(waiting, outcomes, strict=True):
                    if one.done.cancelled():
                        continue
                    if error is None:
                        one.done.set_result(value)
                    else:
                        one.done.set_exception(error)
            if None in batch:
                return

    def _commit_together(self, batch: list[_Waiting]) -> list[tuple[Any, BaseException | None]]:
        if len(batch) > 1:
            try:
                together = self._run(lambda connection: [one.operation(connection) for one in batch], True)
                return [(value, None) for value in together]
            except DatabaseDown as error:
                return [(None, error)] * len(batch)  # one by one, each would wait for a server that is away
            except Exception:  # noqa: S110 - one spoiled the batch: each gets its own transaction and its own error
                pass
        outcomes: list[tuple[Any, BaseException | None]] = []
        for one in batch:
            try:
                outcomes.append((self._run(one.operation, True), None))
            except Exception as error:
                outcomes.append((None, error))
        return outcomes
