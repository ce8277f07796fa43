"""What is left of a cluster that was removed? Its number of lives, and what was told of it; nothing else.

Called inside the transaction of the removal, which holds the hub's version: nobody else changes anything meanwhile.
"""

from typing import Any

import msgspec
import sqlalchemy as sa

from hansa.federation import RolloutRecord, reaching
from hansa.store.hub import rollouts, samples
from hansa.store.hub.tables import clusters, credentials, sections, sightings, tokens

_IN_A_BODY = {"sqlite": "instr(body, :name) > 0", "postgresql": "position(:name in body) > 0"}


def forget(connection: sa.Connection, cluster: str, version: int) -> None:
    for column in (sightings.c.cluster, sections.c.cluster, credentials.c.cluster, clusters.c.id):
        connection.execute(sa.delete(column.table).where(column == cluster))
    # Neither may the one it came with be shown again, nor one that was made for it open the door once more.
    connection.execute(tokens.delete().where(sa.or_(tokens.c.used_by == cluster, tokens.c.cluster == cluster)))
    _forget_links_to(connection, cluster)
    _forget_in_rollouts(connection, cluster, version)
    samples.forget(connection, cluster)


def _forget_links_to(connection: sa.Connection, cluster: str) -> None:
    """The others stop telling of it as soon as they hear that it is gone; those that are silent now would not."""
    named = sa.text(_IN_A_BODY[connection.dialect.name]).bindparams(name=cluster.encode())
    for row in connection.execute(sa.select(sections).where(sections.c.name == reaching.SECTION, named)).all():
        this = sa.and_(sections.c.cluster == row.cluster, sections.c.name == reaching.SECTION)
        connection.execute(sections.update().where(this).values(body=reaching.without(bytes(row.body), cluster)))


def _forget_in_rollouts(connection: sa.Connection, cluster: str, version: int) -> None:
    """They get the removal's version, so that no hub goes on with what it decided before."""
    for record in rollouts.naming(connection, cluster):
        rest: dict[str, Any] = {
            name: {key: value for key, value in getattr(record, name).items() if key != cluster}
            for name in ("given", "kept", "failed")
        }
        new: RolloutRecord = msgspec.structs.replace(record, **rest)
        if new != record:
            rollouts.write(connection, new, version)
