"""Brings a database up to this version's schema, by Alembic revisions."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from hansa.kernel import errors
from hansa.store.database import down

HERE = Path(__file__).parent / "revisions"


class SchemaTooNew(errors.HansaError):
    """The database was written by a newer Hansa."""

    code, kind = "store.schema-too-new", errors.Kind.CONFLICT


def _config(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(HERE))
    config.attributes["connection"] = connection
    return config


def head() -> str:
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    assert newest is not None
    return newest


def known_revisions() -> frozenset[str]:
    """Those this version can start from."""
    return frozenset(script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def current(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def refuse_newer(connection: sa.Connection) -> None:
    present = current(connection)
    if present is not None and present not in known_revisions():
        raise SchemaTooNew(
            f"the database is at revision {present}, which this version does not know",
            hint="start the newer Hansa again, or restore a backup made with this version",
        )


def upgrade(engine: sa.Engine, target: str = "head") -> None:
    """Up to `target`; refuses a database that is ahead of this program."""
    try:
        _upgrade(engine, target)
    except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
        raise down(error, engine.url) from error


def _upgrade(engine: sa.Engine, target: str) -> None:
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        refuse_newer(connection)
        command.upgrade(_config(connection), target)
