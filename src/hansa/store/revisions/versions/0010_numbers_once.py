"""The number of a job is given once on SQLite, also in databases that had copied their jobs for a new column."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    made = connection.execute(sa.text("select sql from sqlite_master where type = 'table' and name = 'jobs'")).scalar()
    if "AUTOINCREMENT" in str(made).upper():
        return
    with op.batch_alter_table("jobs", recreate="always", table_kwargs={"sqlite_autoincrement": True}):
        pass  # as it is
