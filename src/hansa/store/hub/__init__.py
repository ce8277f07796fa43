"""How does a hub remember? Its tables and repositories, for one process on SQLite or several on PostgreSQL."""
