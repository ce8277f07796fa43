"""A job that an upload started belongs to the service's owner; whoever uploaded may see it, too."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    # the default stays: without it SQLite would have to copy all rows, and forget which numbers were given
    op.add_column("jobs", sa.Column("viewer", sa.String(length=255), nullable=False, server_default=""))
