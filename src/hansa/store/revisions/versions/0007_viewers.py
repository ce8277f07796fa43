"""A job that an upload started belongs to the service's owner; whoever uploaded may see it, too."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    with op.batch_alter_table("jobs") as table:
        table.add_column(sa.Column("viewer", sa.String(length=255), nullable=False, server_default=""))
    with op.batch_alter_table("jobs") as table:
        table.alter_column("viewer", server_default=None)
