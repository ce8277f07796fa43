"""A job may have another name at its member; and those of members, which were lent keys, have names of their own here.

What was lent goes on. Of what is over nothing is kept: nobody asks for it.
"""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_COLUMNS = ("job", "phase", "cluster_id", "service", "decision", "named")
_DELEGATIONS = sa.table("delegations", *(sa.column(name) for name in _COLUMNS))


def upgrade() -> None:
    # the default stays: without it SQLite would have to copy all rows
    op.add_column("delegations", sa.Column("named", sa.String(length=63), nullable=False, server_default=""))
    op.create_index("ix_delegations_named", "delegations", ["named"])
    connection, row = op.get_bind(), _DELEGATIONS.c
    for one in connection.execute(sa.select(_DELEGATIONS)).all():
        decision = json.loads(one.decision)
        if not decision.get("adopted"):
            continue
        this = row.job == one.job
        if one.phase != "away":
            connection.execute(_DELEGATIONS.delete().where(this))
            continue
        kept = json.dumps({**decision, "was": one.job})  # its permit is sealed, and its keys are lent, under that name
        whose = (str(decision.get("service", "")), one.cluster_id, one.service, one.job)
        values = {"job": _key(*whose), "named": one.job, "decision": kept}
        connection.execute(_DELEGATIONS.update().where(this).values(values))


def _key(*whose: str) -> str:
    return f"adopted/{hashlib.sha256(json.dumps(whose).encode()).hexdigest()[:48]}"
