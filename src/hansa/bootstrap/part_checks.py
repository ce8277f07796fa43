"""Can a manager or a hub start with the ports, the database and the key it was told of? `doctor` asks; nothing is
changed by the answer."""

import asyncio
import fcntl
import os
import socket

import sqlalchemy as sa

from hansa.bootstrap.finding import Check
from hansa.bootstrap.parts_here import Part, Port
from hansa.identity import Vault
from hansa.kernel.errors import HansaError
from hansa.store import make_engine, schema


def port(part: Part, asked: Port) -> Check:
    at = f"{asked.host}:{asked.number}"
    with socket.socket(socket.AF_INET6 if ":" in asked.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((asked.host, asked.number))
        except OSError as error:
            if _runs(part):
                return Check(asked.name, True, f"{at}: the {part.name} of this data folder runs there")
            return Check(asked.name, False, f"{at}: {error.strerror or error}", asked.hint)
    return Check(asked.name, True, f"{at} is free")


def _runs(part: Part) -> bool:
    """Whether its lock is held. It is touched only where somebody has the port: to one that starts at this moment we
    would be in the way."""
    try:
        lock = os.open(part.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


async def database(part: Part, name: str) -> Check:
    """And the key that opens its secrets."""
    kept = part.kept_database
    if kept is not None and not kept.exists():
        return Check(name, True, "SQLite in the data folder")
    return await asyncio.to_thread(_database, part, name)


def _database(part: Part, name: str) -> Check:
    engine = make_engine(part.database, 1)
    try:
        with engine.connect() as connection:
            version = _version(connection)
            schema.refuse_newer(connection)
        needed = part.has_secrets(engine)
        if needed or part.key.exists():
            Vault.at(part.key, needed=needed)
    except sa.exc.SQLAlchemyError as error:
        first = str(getattr(error, "orig", error)).strip().splitlines()[0]
        return Check(name, False, first, "check database.url, and that the server lets us in")
    except HansaError as error:
        return Check(name, False, error.message, error.hint)
    finally:
        engine.dispose()
    return Check(name, True, version)


def _version(connection: sa.Connection) -> str:
    if connection.dialect.name == "sqlite":
        return "SQLite in the data folder"
    return str(connection.execute(sa.text("select version()")).scalar()).split(",")[0]
