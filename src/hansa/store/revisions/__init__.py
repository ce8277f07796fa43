"""How the schema came to be; see `schema.py`."""
