"""The hub's tables. They are in every database: a hub and a manager may share one."""

import sqlalchemy as sa

from hansa.store.tables import metadata

_COUNT = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite only counts up by itself on its own INTEGER type

versions = sa.Table(
    "hub_versions",
    metadata,  # one row: who writes takes the next number and its lock until the commit, so numbers are in its order
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)

clusters = sa.Table(
    "hub_clusters",
    metadata,
    sa.Column("id", sa.String(63), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("joined", sa.Float, nullable=False),
    sa.Column("told", sa.Text, nullable=False),  # JSON: what it says of itself
    sa.Column("overrides", sa.Text, nullable=False),  # JSON: what an admin says of it
    sa.Column("cordoned", sa.Boolean, nullable=False),
    sa.Column("wanted", sa.String(16), nullable=False),  # member | drain | leave
    sa.Column("serials", sa.Text, nullable=False),  # JSON list
    sa.Column("certificate_until", sa.Float),
    sa.Column("endpoint", sa.Text, nullable=False),  # where others reach it, as somebody approved it
    sa.Column("verify", sa.Boolean, nullable=False),
    sa.Column("refused", sa.Text, nullable=False),  # the endpoint it asked for in vain
    sa.Column("desired", sa.BigInteger, nullable=False),
    sa.Index(None, "version"),
)

removed = sa.Table(
    "hub_removed",
    metadata,  # ids whose cluster is gone: how often there was one, so that a former one is not taken for a later
    sa.Column("id", sa.String(63), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Index(None, "version"),
)

credentials = sa.Table(
    "hub_credentials",
    metadata,  # of clusters without a manager of ours, encrypted
    sa.Column("cluster", sa.String(63), primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)

sightings = sa.Table(
    "hub_sightings",
    metadata,
    sa.Column("cluster", sa.String(63), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("number", sa.BigInteger, nullable=False),  # the cluster's own
    sa.Column("run", sa.String(64), nullable=False),  # of the program that sent it
    sa.Column("received", sa.BigInteger, nullable=False),
    sa.Column("writer", sa.String(63), nullable=False),  # the hub process: what it wrote itself it knows
    sa.Index(None, "version"),
)

sections = sa.Table(
    "hub_sections",
    metadata,
    sa.Column("cluster", sa.String(63), primary_key=True),
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("number", sa.BigInteger, nullable=False),  # in the order in which hubs heard them
    sa.Column("body", sa.LargeBinary, nullable=False),  # JSON
    sa.Column("writer", sa.String(63), nullable=False),  # the hub process: what it wrote itself it knows
    sa.Index(None, "version"),
)

changes = sa.Table(
    "hub_changes",
    metadata,  # what happened, for people and for live views
    sa.Column("id", _COUNT, primary_key=True, autoincrement=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("cluster", sa.String(63), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index(None, "version"),
    sa.Index(None, "cluster", "id"),
    sqlite_autoincrement=True,
)

tokens = sa.Table(
    "hub_tokens",
    metadata,  # to join with
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("cluster", sa.String(63), nullable=False),  # "" is any
    sa.Column("approve", sa.Boolean, nullable=False),
    sa.Column("author", sa.String(255), nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("expires", sa.Float, nullable=False),
    sa.Column("used_by", sa.String(63), nullable=False),
    sa.Column("used", sa.Float),
    sa.Column("used_key", sa.String(64), nullable=False),  # digest of the key that was signed
    sa.Column("life", sa.BigInteger, nullable=False),  # the incarnation of the cluster that began with it
    sa.Column("endpoint", sa.Text, nullable=False),  # where it will be; "" is where it says
)

authorities = sa.Table(
    "hub_authorities",
    metadata,  # the roots of trust
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # next | active | retiring | gone
    sa.Column("certificate", sa.Text, nullable=False),  # PEM; behind it, what former roots signed for its key
    sa.Column("sealed", sa.LargeBinary, nullable=False),  # the key, encrypted
    sa.Column("since", sa.Float, nullable=False),
)

documents = sa.Table(
    "hub_documents",
    metadata,  # configuration and policies: every version stays
    sa.Column("sort", sa.String(16), primary_key=True),  # config | policy
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),  # of this document
    sa.Column("seq", sa.BigInteger, nullable=False),  # of the hub
    sa.Column("body", sa.Text, nullable=False),  # JSON
    sa.Column("author", sa.String(255), nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("removed", sa.Boolean, nullable=False),
)

rollouts = sa.Table(
    "hub_rollouts",
    metadata,
    sa.Column("id", _COUNT, primary_key=True, autoincrement=True),
    sa.Column("seq", sa.BigInteger, nullable=False),  # of the hub
    sa.Column("document", sa.String(63), nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("former", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("stage", sa.Integer, nullable=False),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("body", sa.Text, nullable=False),  # JSON: the stages, who is in which, why it stands
    sa.Index(None, "document", "id"),
    sqlite_autoincrement=True,
)

leases = sa.Table(
    "hub_leases",
    metadata,  # which hub process does which periodic work
    sa.Column("work", sa.String(63), primary_key=True),
    sa.Column("holder", sa.String(63), nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.Float, nullable=False),  # by the database's clock
)

turns = sa.Table(
    "hub_turns",
    metadata,  # turns of periodic work that were taken: each once
    sa.Column("work", sa.String(63), primary_key=True),
    sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.String(63), nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

samples = sa.Table(
    "hub_samples",
    metadata,  # history for charts: a slot of a level holds many clusters together, so that rows stay few
    sa.Column("level", sa.Integer, primary_key=True, autoincrement=False),  # seconds one sample stands for
    sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),  # -1 holds the totals
    sa.Column("body", sa.LargeBinary, nullable=False),
)
