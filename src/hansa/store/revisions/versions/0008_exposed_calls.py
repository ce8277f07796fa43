"""A row may stand for many calls: all that came to one exposed service within a minute."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    # the default stays: without it SQLite would have to copy all rows
    op.add_column("invocations", sa.Column("calls", sa.BigInteger(), nullable=False, server_default="1"))
