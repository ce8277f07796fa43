"""How long a member has had a job of ours, by our own clock; and keys whose end is still owed to the store."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    with op.batch_alter_table("delegations") as table:
        table.add_column(sa.Column("given", sa.Float(), nullable=False, server_default="0"))
        table.add_column(sa.Column("running", sa.Float(), nullable=True))
    known = sa.table("delegations", sa.column("given", sa.Float()), sa.column("heard", sa.Float()))
    op.execute(known.update().values(given=known.c.heard))  # what is away already has all of its time from now on
    with op.batch_alter_table("delegations") as table:
        table.alter_column("given", server_default=None)
    op.create_table(
        "loan_ends",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_loan_ends")),
    )
