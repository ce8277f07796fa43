"""Every table Hansa keeps. Changes come as revisions in `revisions/`; a test holds the two together."""

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"},
)

services = sa.Table(
    "services",
    metadata,
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("phase", sa.String(16), nullable=False),  # creating | ready | deleting
    sa.Column("stopped", sa.Boolean, nullable=False),  # an exposed service its owner stopped
    sa.Column("definition", sa.Text, nullable=False),  # JSON, with every secret value blanked
    sa.Column("sealed", sa.LargeBinary, nullable=False),  # those secret values, encrypted
    sa.Column("made_buckets", sa.Text, nullable=False),  # JSON list: what its creation made, and its deletion removes
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("updated", sa.Float, nullable=False),
)

jobs = sa.Table(
    "jobs",
    metadata,
    # the order of acceptance; SQLite only counts up by itself on its own INTEGER type
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(63), nullable=False, unique=True),
    sa.Column("service", sa.String(63), nullable=False),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("viewer", sa.String(255), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("started", sa.Float),
    sa.Column("finished", sa.Float),
    sa.Column("cpu", sa.BigInteger, nullable=False),
    sa.Column("memory", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("phase", sa.String(16), nullable=False),  # here | offering | away: who has it
    sa.Column("exit_code", sa.Integer),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("cpu_seconds", sa.Float, nullable=False),
    sa.Column("event", sa.LargeBinary, nullable=False),
    sa.Index(None, "service", "seq"),
    sa.Index(None, "status", "seq"),
    sa.Index(None, "finished"),
    sqlite_autoincrement=True,  # a number is never given twice, so paging and order hold after deletions
)

uploads = sa.Table(
    "uploads",
    metadata,  # which object versions already became a job: the ledger that makes an event run once
    sa.Column("service", sa.String(63), primary_key=True),
    sa.Column("bucket", sa.String(63), primary_key=True),
    sa.Column("key", sa.String(1024), primary_key=True),
    sa.Column("etag", sa.String(128), primary_key=True),
    sa.Column("modified", sa.BigInteger, primary_key=True),
    sa.Column("seen", sa.Float, nullable=False),
)

cursors = sa.Table(
    "cursors",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("uid", sa.String(255), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("issuer", sa.String(1024), nullable=False),
    sa.Column("namespace", sa.String(63), nullable=False, unique=True),
    sa.Column("store_secret", sa.LargeBinary, nullable=False),  # encrypted
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("subject", sa.String(255), nullable=False),
    sa.Index(None, "issuer", "subject", unique=True),  # a person has one uid
)

buckets = sa.Table(
    "buckets",
    metadata,
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("owner_name", sa.String(255), nullable=False),
    sa.Column("visibility", sa.String(16), nullable=False),
    sa.Column("allowed_users", sa.Text, nullable=False),  # JSON list
    sa.Column("from_service", sa.String(63), nullable=False),
    sa.Column("phase", sa.String(16), nullable=False),  # creating | ready | deleting
    sa.Column("created", sa.Float, nullable=False),
    sa.Index(None, "owner"),
)

volumes = sa.Table(
    "volumes",
    metadata,
    sa.Column("namespace", sa.String(63), primary_key=True),
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("created_by", sa.String(63), nullable=False),  # the service that made it, "" for a person
    sa.Column("policy", sa.String(16), nullable=False),  # delete | retain
    sa.Column("created", sa.Float, nullable=False),
)

quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("uid", sa.String(255), primary_key=True),
    sa.Column("limits", sa.Text, nullable=False),  # JSON: what differs from the defaults
)

invocations = sa.Table(
    "invocations",
    metadata,  # for /system/logs and the metrics; which calls have a row of their own: `resources.call_notes`
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),  # async | sync | exposed
    sa.Column("service", sa.String(63), nullable=False),
    sa.Column("user", sa.String(255), nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("latency", sa.Float, nullable=False),  # seconds
    sa.Column("client_ip", sa.String(64), nullable=False),
    sa.Column("method", sa.String(16), nullable=False),
    sa.Column("path", sa.String(1024), nullable=False),
    sa.Column("calls", sa.BigInteger, nullable=False, server_default="1"),  # that it stands for
    sa.Index(None, "at"),
    sa.Index(None, "service", "at"),
)

facts = sa.Table(
    "facts",
    metadata,  # single values decided at run time, such as the allowed image repositories
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),  # JSON
)

operations = sa.Table(
    "operations",
    metadata,  # long work over several clusters, so that a crash in the middle can be finished or taken back
    sa.Column("id", sa.String(63), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("subject", sa.String(255), nullable=False),  # the service it is about
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # applying | committed | undoing | undone
    sa.Column("plan", sa.Text, nullable=False),  # JSON: the members that were touched, and what became of them
    sa.Column("sealed", sa.LargeBinary, nullable=False),  # credentials and former secrets, while it is open
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("updated", sa.Float, nullable=False),
    sa.Index(None, "state"),
    sa.Index(None, "subject"),
)

befores = sa.Table(
    "befores",
    metadata,  # what was at a member before an operation that is open touched it
    sa.Column("operation", sa.String(63), primary_key=True),
    sa.Column("member", sa.String(1100), primary_key=True),
    sa.Column("size", sa.Integer, nullable=False),  # of the definition, which is not read only to be weighed
    sa.Column("definition", sa.LargeBinary, nullable=False),  # JSON
)

delegations = sa.Table(
    "delegations",
    metadata,  # jobs of ours that were offered or given to a member, and jobs of members that were lent keys
    sa.Column("job", sa.String(63), primary_key=True),  # of the latter: no name that a job can have
    sa.Column("epoch", sa.Integer, nullable=False),  # one more whenever the job is taken from somebody
    sa.Column("phase", sa.String(16), nullable=False),  # offering | away | back | done
    sa.Column("cluster_id", sa.String(255), nullable=False),  # who was offered it, or has it
    sa.Column("service", sa.String(63), nullable=False),  # its name there
    sa.Column("endpoint", sa.String(1024), nullable=False),
    sa.Column("permit", sa.LargeBinary, nullable=False),  # encrypted
    sa.Column("publisher", sa.Integer, nullable=False),  # the epoch that may publish outputs; -1: nobody yet
    sa.Column("decision", sa.Text, nullable=False),  # JSON: scores and refusals of every member, last offer last
    sa.Column("heard", sa.Float, nullable=False),  # when the member last told of it
    sa.Column("given", sa.Float, nullable=False),  # when it was offered to this member
    sa.Column("running", sa.Float),  # when this member was first heard to run it
    sa.Column("named", sa.String(63), nullable=False, server_default=""),  # its name there, if it is another one
    sa.Index(None, "phase"),
    sa.Index(None, "named"),
)

loan_ends = sa.Table(
    "loan_ends",
    metadata,  # keys of runs that the store was to end, and was away
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("since", sa.Float, nullable=False),
)

receipts = sa.Table(
    "receipts",
    metadata,  # jobs we run for another cluster
    sa.Column("job", sa.String(63), primary_key=True),
    sa.Column("origin", sa.String(255), nullable=False),  # its cluster id
    sa.Column("endpoint", sa.String(1024), nullable=False),
    sa.Column("path", sa.Text, nullable=False),  # JSON list of clusters it came through
    sa.Column("sealed", sa.LargeBinary, nullable=False),  # permit and store keys, encrypted
    sa.Column("created", sa.Float, nullable=False),
)

lineages = sa.Table(
    "lineages",
    metadata,  # refresh tokens and their successors
    sa.Column("mark", sa.String(64), primary_key=True),  # a digest of the owner and the token that was given
    sa.Column("issuer", sa.String(1024), nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),  # the token to use now, encrypted; empty: revoked
    sa.Column("obtained", sa.Float, nullable=False),
    sa.Column("renewed", sa.Float, nullable=False),
    sa.Column("rotates", sa.Boolean),  # whether the issuer was seen to replace it
    sa.Column("state", sa.String(32), nullable=False),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("begun", sa.Float),  # an exchange whose outcome was never learned
)

audit = sa.Table(
    "audit",
    metadata,  # who touched a secret
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("actor", sa.String(255), nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("subject", sa.String(255), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index(None, "subject", "at"),
    sa.Index(None, "at"),
)

sightings = sa.Table(
    "sightings",
    metadata,  # how members show a definition of ours, where that is not how we would
    sa.Column("mark", sa.String(64), primary_key=True),  # a digest of both names: they are too long for an index
    sa.Column("service", sa.String(63), nullable=False),
    sa.Column("member", sa.Text, nullable=False),  # JSON: a cluster's id may hold what PostgreSQL keeps no text with
    sa.Column("definition", sa.String(64), nullable=False),  # the fingerprint of what they had been given
    sa.Column("parts", sa.Text, nullable=False),  # JSON: a digest of each part
)
