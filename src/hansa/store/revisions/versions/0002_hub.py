"""The hub: clusters, what they report, trust, configuration, leases, history."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "hub_authorities",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("certificate", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_authorities"),
    )
    op.create_table(
        "hub_changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("cluster", sa.String(length=63), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_hub_changes_cluster_id", "hub_changes", ["cluster", "id"], unique=False)
    op.create_index("ix_hub_changes_version", "hub_changes", ["version"], unique=False)
    op.create_table(
        "hub_clusters",
        sa.Column("id", sa.String(length=63), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("joined", sa.Float(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("overrides", sa.Text(), nullable=False),
        sa.Column("cordoned", sa.Boolean(), nullable=False),
        sa.Column("wanted", sa.String(length=16), nullable=False),
        sa.Column("serials", sa.Text(), nullable=False),
        sa.Column("certificate_until", sa.Float(), nullable=True),
        sa.Column("desired", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_clusters"),
    )
    op.create_index("ix_hub_clusters_version", "hub_clusters", ["version"], unique=False)
    op.create_table(
        "hub_credentials",
        sa.Column("cluster", sa.String(length=63), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", name="pk_hub_credentials"),
    )
    op.create_table(
        "hub_documents",
        sa.Column("sort", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("author", sa.String(length=255), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("removed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("sort", "name", "version", name="pk_hub_documents"),
    )
    op.create_table(
        "hub_leases",
        sa.Column("work", sa.String(length=63), nullable=False),
        sa.Column("holder", sa.String(length=63), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("work", name="pk_hub_leases"),
    )
    op.create_table(
        "hub_removed",
        sa.Column("id", sa.String(length=63), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_removed"),
    )
    op.create_index("ix_hub_removed_version", "hub_removed", ["version"], unique=False)
    op.create_table(
        "hub_rollouts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.String(length=63), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("former", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("stage", sa.Integer(), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_rollouts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_hub_rollouts_document_id", "hub_rollouts", ["document", "id"], unique=False)
    op.create_table(
        "hub_samples",
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("slot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("level", "slot", "shard", name="pk_hub_samples"),
    )
    op.create_table(
        "hub_sections",
        sa.Column("cluster", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("writer", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "name", name="pk_hub_sections"),
    )
    op.create_index("ix_hub_sections_version", "hub_sections", ["version"], unique=False)
    op.create_table(
        "hub_sightings",
        sa.Column("cluster", sa.String(length=63), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("seen", sa.Float(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("writer", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("cluster", name="pk_hub_sightings"),
    )
    op.create_index("ix_hub_sightings_version", "hub_sightings", ["version"], unique=False)
    op.create_table(
        "hub_tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("cluster", sa.String(length=63), nullable=False),
        sa.Column("approve", sa.Boolean(), nullable=False),
        sa.Column("author", sa.String(length=255), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("used_by", sa.String(length=63), nullable=False),
        sa.Column("used", sa.Float(), nullable=True),
        sa.Column("used_key", sa.String(length=64), nullable=False),
        sa.Column("life", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_tokens"),
    )
    op.create_table(
        "hub_turns",
        sa.Column("work", sa.String(length=63), nullable=False),
        sa.Column("slot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.String(length=63), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("work", "slot", name="pk_hub_turns"),
    )
    op.create_table(
        "hub_versions",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_versions"),
    )
    op.execute(sa.text("insert into hub_versions (id, version) values (1, 0)"))
