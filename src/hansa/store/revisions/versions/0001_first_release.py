"""The first release: services, jobs, uploads, people, buckets, volumes, quotas, federation, audit."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_at", "audit", ["at"], unique=False)
    op.create_index("ix_audit_subject_at", "audit", ["subject", "at"], unique=False)
    op.create_table(
        "buckets",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("owner_name", sa.String(length=255), nullable=False),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("allowed_users", sa.Text(), nullable=False),
        sa.Column("from_service", sa.String(length=63), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_buckets"),
    )
    op.create_index("ix_buckets_owner", "buckets", ["owner"], unique=False)
    op.create_table(
        "cursors",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_cursors"),
    )
    op.create_table(
        "delegations",
        sa.Column("job", sa.String(length=63), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("cluster_id", sa.String(length=255), nullable=False),
        sa.Column("service", sa.String(length=63), nullable=False),
        sa.Column("endpoint", sa.String(length=1024), nullable=False),
        sa.Column("permit", sa.LargeBinary(), nullable=False),
        sa.Column("publisher", sa.Integer(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("heard", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("job", name="pk_delegations"),
    )
    op.create_index("ix_delegations_phase", "delegations", ["phase"], unique=False)
    op.create_table(
        "facts",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_facts"),
    )
    op.create_table(
        "invocations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("service", sa.String(length=63), nullable=False),
        sa.Column("user", sa.String(length=255), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("latency", sa.Float(), nullable=False),
        sa.Column("client_ip", sa.String(length=64), nullable=False),
        sa.Column("method", sa.String(length=16), nullable=False),
        sa.Column("path", sa.String(length=1024), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_invocations"),
    )
    op.create_index("ix_invocations_at", "invocations", ["at"], unique=False)
    op.create_index("ix_invocations_service_at", "invocations", ["service", "at"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("service", sa.String(length=63), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("started", sa.Float(), nullable=True),
        sa.Column("finished", sa.Float(), nullable=True),
        sa.Column("cpu", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("cpu_seconds", sa.Float(), nullable=False),
        sa.Column("event", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_jobs"),
        sa.UniqueConstraint("name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_finished", "jobs", ["finished"], unique=False)
    op.create_index("ix_jobs_service_seq", "jobs", ["service", "seq"], unique=False)
    op.create_index("ix_jobs_status_seq", "jobs", ["status", "seq"], unique=False)
    op.create_table(
        "lineages",
        sa.Column("mark", sa.String(length=64), nullable=False),
        sa.Column("issuer", sa.String(length=1024), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("obtained", sa.Float(), nullable=False),
        sa.Column("renewed", sa.Float(), nullable=False),
        sa.Column("rotates", sa.Boolean(), nullable=True),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("begun", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("mark", name="pk_lineages"),
    )
    op.create_table(
        "operations",
        sa.Column("id", sa.String(length=63), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("updated", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
    )
    op.create_index("ix_operations_state", "operations", ["state"], unique=False)
    op.create_index("ix_operations_subject", "operations", ["subject"], unique=False)
    op.create_table(
        "quotas",
        sa.Column("uid", sa.String(length=255), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name="pk_quotas"),
    )
    op.create_table(
        "receipts",
        sa.Column("job", sa.String(length=63), nullable=False),
        sa.Column("origin", sa.String(length=255), nullable=False),
        sa.Column("endpoint", sa.String(length=1024), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("job", name="pk_receipts"),
    )
    op.create_table(
        "services",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("made_buckets", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("updated", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_services"),
    )
    op.create_table(
        "sightings",
        sa.Column("mark", sa.String(length=64), nullable=False),
        sa.Column("service", sa.String(length=63), nullable=False),
        sa.Column("member", sa.Text(), nullable=False),
        sa.Column("definition", sa.String(length=64), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("mark", name="pk_sightings"),
    )
    op.create_table(
        "uploads",
        sa.Column("service", sa.String(length=63), nullable=False),
        sa.Column("bucket", sa.String(length=63), nullable=False),
        sa.Column("key", sa.String(length=1024), nullable=False),
        sa.Column("etag", sa.String(length=128), nullable=False),
        sa.Column("modified", sa.BigInteger(), nullable=False),
        sa.Column("seen", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("service", "bucket", "key", "etag", "modified", name="pk_uploads"),
    )
    op.create_table(
        "users",
        sa.Column("uid", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("issuer", sa.String(length=1024), nullable=False),
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("store_secret", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name="pk_users"),
        sa.UniqueConstraint("namespace"),
    )
    op.create_table(
        "volumes",
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(length=63), nullable=False),
        sa.Column("policy", sa.String(length=16), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name", name="pk_volumes"),
    )
