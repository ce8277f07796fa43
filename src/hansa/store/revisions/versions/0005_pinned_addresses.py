"""The address others are told of a cluster is what somebody approved; a cluster's own word is a wish."""

import json
import time

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_NEW = {"hub_clusters": ("endpoint", "verify", "refused"), "hub_sightings": ("run",), "hub_tokens": ("endpoint",)}


def upgrade() -> None:
    with op.batch_alter_table("hub_clusters") as table:
        table.add_column(sa.Column("endpoint", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("verify", sa.Boolean(), nullable=False, server_default=sa.true()))
        table.add_column(sa.Column("refused", sa.Text(), nullable=False, server_default=""))
    with op.batch_alter_table("hub_sightings") as table:
        table.add_column(sa.Column("run", sa.String(length=64), nullable=False, server_default=""))
    with op.batch_alter_table("hub_tokens") as table:
        table.add_column(sa.Column("endpoint", sa.Text(), nullable=False, server_default=""))
    _pin_what_others_know()
    _let_hubs_number()
    for name, columns in _NEW.items():
        with op.batch_alter_table(name) as table:
            for column in columns:
                table.alter_column(column, server_default=None)


def _pin_what_others_know() -> None:
    """Members are where others reach them now. None of them may have said that its certificate is not to be checked."""
    clusters = sa.table(
        "hub_clusters",
        *(sa.column(name) for name in ("id", "kind", "told", "endpoint")),
        sa.column("verify", sa.Boolean()),
    )
    for row in op.get_bind().execute(sa.select(clusters.c.id, clusters.c.kind, clusters.c.told)).all():
        told = json.loads(row.told)
        verify = row.kind != "oscar" or told.get("verify", True)
        pinned = {"endpoint": told.get("endpoint", ""), "verify": verify}
        op.execute(clusters.update().where(clusters.c.id == row.id).values(pinned))


def _let_hubs_number() -> None:
    """Sections had numbers that the clusters chose, some far in the future."""
    sections = sa.table("hub_sections", sa.column("number", sa.BigInteger()))
    now = int(time.time() * 1000)
    op.execute(sections.update().where(sections.c.number > now).values(number=now))
