"""People are an issuer and a subject: who is on record keeps the uid, and most people's issuer is the home issuer."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("users", sa.Column("subject", sa.String(length=255), nullable=False, server_default=""))
    connection = op.get_bind()
    users = sa.table("users", sa.column("uid"), sa.column("issuer"), sa.column("subject"), sa.column("created"))
    connection.execute(users.update().values(subject=users.c.uid))  # until now a uid was a subject, whoever's
    op.create_index("ix_users_issuer_subject", "users", ["issuer", "subject"], unique=True)
    home = connection.scalar(
        sa.select(users.c.issuer)
        .group_by(users.c.issuer)
        .order_by(sa.func.count().desc(), sa.func.min(users.c.created), users.c.issuer)
        .limit(1)
    )
    if home:
        facts = sa.table("facts", sa.column("name"), sa.column("value"))
        connection.execute(facts.insert().values(name="home_issuer", value=json.dumps(home)))
