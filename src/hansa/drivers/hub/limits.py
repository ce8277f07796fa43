"""How long do we wait for a hub, and how much do we take from it? Each number with its trade-off."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    connect: float = 5.0
    """Seconds until a connection stands, its handshake included."""
    call: float = 10.0
    """Seconds one call may take altogether."""
    join: float = 30.0
    """Seconds for a join or a renewal: the hub writes it down before it answers."""
    keep_idle: float = 50.0
    """Seconds an idle connection is kept; less than the hub keeps it, so that it does not close under a request."""
    connections: int = 8
    """At once: the watch, a heartbeat, a renewal, and some that end late."""
    small_answer: int = 256 * 1024
    """Bytes of certificates, roots and answers to heartbeats."""
    desired_answer: int = 16 * 2**20
    """Bytes of what a cluster should know: some ten thousand neighbours."""
    desired_parts: int = 300_000
    """Strings, lists, objects and commas of that answer: a neighbour has fifteen."""
    settings: int = 256 * 1024
    """Bytes of the settings in it."""
    error_answer: int = 64 * 1024
    """Bytes read of an answer that says no."""
