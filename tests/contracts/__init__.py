"""One suite per port; every driver that offers the port must pass it."""
