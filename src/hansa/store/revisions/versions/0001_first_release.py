"""The first release: services, jobs, uploads, people, buckets, volumes, quotas, federation, audit."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
