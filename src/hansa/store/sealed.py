"""Does the database hold secrets? Then the key that sealed them is needed, and a new one does not do."""

import sqlalchemy as sa

from hansa.store import tables
from hansa.store.database import down
from hansa.store.hub import tables as hub_tables

COLUMNS = (
    tables.services.c.sealed,
    tables.users.c.store_secret,
    tables.operations.c.sealed,
    tables.delegations.c.permit,
    tables.receipts.c.sealed,
    tables.lineages.c.sealed,
    hub_tables.credentials.c.sealed,
    hub_tables.authorities.c.sealed,
)
_OF_HUBS = "hub_"  # a manager and a hub may share a database; each has a key of its own


def any_of_manager(engine: sa.Engine) -> bool:
    return _any(engine, [column for column in COLUMNS if not column.table.name.startswith(_OF_HUBS)])


def any_of_hub(engine: sa.Engine) -> bool:
    return _any(engine, [column for column in COLUMNS if column.table.name.startswith(_OF_HUBS)])


def _any(engine: sa.Engine, columns: list[sa.Column[bytes]]) -> bool:
    try:
        with engine.connect() as connection:
            there = set(sa.inspect(connection).get_table_names())  # an older database has fewer
            return any(_filled(connection, column) for column in columns if column.table.name in there)
    except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
        raise down(error, engine.url) from error


def _filled(connection: sa.Connection, column: sa.Column[bytes]) -> bool:
    return connection.execute(sa.select(sa.literal(1)).where(column != b"").limit(1)).first() is not None
