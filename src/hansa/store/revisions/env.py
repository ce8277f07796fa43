"""Alembic's entry: runs the revisions on the connection that `schema.py` hands over."""

from alembic import context

from hansa.store import membership as _membership  # noqa: F401 - they enter themselves into `metadata`
from hansa.store.hub import tables as _hub_tables  # noqa: F401
from hansa.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
