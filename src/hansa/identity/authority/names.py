"""What are members and the hub called in certificates? SPIFFE ids, and one DNS name that no address has to match."""

import re

_CLUSTER = re.compile(r"spiffe://([a-z0-9.-]{1,63})/cluster/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)")


def cluster_uri(trust_domain: str, cluster: str) -> str:
    return f"spiffe://{trust_domain}/cluster/{cluster}"


def hub_uri(trust_domain: str) -> str:
    return f"spiffe://{trust_domain}/hub"


def hub_name(trust_domain: str) -> str:
    """The name every hub of the federation shows, wherever it is and whatever stands before it."""
    return f"hub.{trust_domain}"


def read_cluster_uri(uri: str) -> tuple[str, str] | None:
    """Trust domain and cluster id, if it names a cluster."""
    found = _CLUSTER.fullmatch(uri)
    return (found[1], found[2]) if found else None
