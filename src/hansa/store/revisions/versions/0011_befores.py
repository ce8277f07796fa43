"""What was at members before an operation is kept beside its plan, and only while the operation is open.

Earlier releases kept it for ever, and of any size. Of operations that ended nothing is needed any more. What is larger
than a definition may be is no definition that a member would take back, so nobody waits for that.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_LARGEST = 8 * 2**20
_OPERATIONS = sa.table("operations", sa.column("id"), sa.column("state"), sa.column("plan"))
_BEFORES = sa.table("befores", *(sa.column(name) for name in ("operation", "member", "size", "definition")))


def upgrade() -> None:
    op.create_table(
        "befores",
        sa.Column("operation", sa.String(length=63), nullable=False),
        sa.Column("member", sa.String(length=1100), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("definition", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("operation", "member", name="pk_befores"),
    )
    connection, row = op.get_bind(), _OPERATIONS.c
    connection.execute(_OPERATIONS.delete().where(row.state.in_(("committed", "undone"))))
    for ident in connection.execute(sa.select(row.id)).scalars().all():
        plan = connection.execute(sa.select(row.plan).where(row.id == ident)).scalar_one()  # one at a time
        members = [_moved(connection, ident, one) for one in json.loads(plan)]
        connection.execute(_OPERATIONS.update().where(row.id == ident).values(plan=json.dumps(members)))


def _moved(connection: sa.Connection, ident: str, member: dict[str, object]) -> dict[str, object]:
    before = member.pop("before", None)
    member["existed"] = before is not None
    if before is None:
        return member
    definition = json.dumps(before, ensure_ascii=False).encode("utf-8", "replace")
    if len(definition) > _LARGEST:
        return {**member, "undone": True, "error": "what it had before was too large to be kept"}
    key = f"{member['cluster_id']}/{member['service_name']}"
    values = {"operation": ident, "member": key, "size": len(definition), "definition": definition}
    connection.execute(_BEFORES.insert().values(values))
    return member
