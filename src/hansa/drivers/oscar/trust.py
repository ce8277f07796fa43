"""Which clusters may be sent credentials? Those the settings or the hub name, at exactly the address they name.

`OscarPeers.find` asks here; nothing else makes an `Address`. Where both name a cluster the settings win; one that left
the federation is a stranger again. The hub's word is not enough for everything: only the manager's own settings let it
send credentials by plain http over a network, or to somebody whose certificate is not checked. The hub may say that a
cluster is a Hansa, for then it gets less; that it is an OSCAR, which is shown tokens of people, only the settings say.
An address that the hub alone tells is marked as such (`by_hub`), for whoever has to know (`services.replicas`).
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from hansa.kernel import endpoints
from hansa.kernel.egress import Pair, target_of
from hansa.kernel.federation import FederationSettings
from hansa.kernel.ip_addresses import literal
from hansa.services import peers
from hansa.settings import BadSetting

_MOST_NAMED = 20
Judged = tuple[dict[str, peers.Address], dict[str, str]]


class Trust:
    def __init__(self, given: FederationSettings, *, own_id: str = "", own_endpoint: str = "") -> None:
        """`own_endpoint` is how others reach this manager: a member may live in the cluster that is asked."""
        self._own_id = own_id
        self._known: dict[str, peers.Address] = {}
        self._told: dict[str, peers.Address] = {}  # by the hub
        self._odd: dict[str, str] = {}  # told by the hub, and why it is not believed
        self._plain_http = given.plain_http
        self._same_machine = endpoints.is_loopback(own_endpoint)
        for cluster_id, cluster in given.clusters.items():
            endpoint = _checked(cluster.endpoint, f"federation.clusters.{cluster_id}.endpoint")
            self._known[cluster_id] = peers.Address(
                cluster_id, endpoint, cluster.verify, cluster.kind, cluster.shares_store
            )
        self._endpoints = {_checked(url, "federation.allowed_endpoints") for url in given.allowed_endpoints}
        self._allowed = {_checked(url, "federation.allowed_clusters") for url in given.allowed_clusters}
        if own_endpoint:
            own = _checked(own_endpoint, "cluster.public_url")
            self._allowed.add(own)
            self._known.setdefault(own_id, peers.Address(own_id, own))

    def learn(self, told: Iterable[peers.Address]) -> dict[str, str]:
        """All other clusters of the federation, in place of those it had; returns the ids of those that cannot be
        trusted at the address they are said to have, and why. Certificates are checked whatever the hub says."""
        return self.believe(self.judge(told))

    def believe(self, judged: Judged) -> dict[str, str]:
        self._told, self._odd = judged
        return dict(self._odd)

    def judge(self, told: Iterable[peers.Address]) -> Judged:
        """Those that can be trusted, and why the others cannot. Changes nothing, so it may be done in a thread: twenty
        thousand take a second."""
        believed: dict[str, peers.Address] = {}
        odd: dict[str, str] = {}
        for one in told:
            why = endpoints.objection(one.endpoint, plain_http=self._plain_http, same_machine=self._same_machine)
            if one.cluster_id in self._known:
                continue
            if why or not one.cluster_id:
                odd[one.cluster_id] = why
            else:
                endpoint = endpoints.normal(one.endpoint)
                kind = one.kind if one.kind == "hansa" else ""
                by_hub = endpoint not in self._allowed
                believed[one.cluster_id] = peers.Address(one.cluster_id, endpoint, kind=kind, by_hub=by_hub)
        return believed, odd

    def _names(self) -> str:
        others = sorted({*self._known, *self._told} - {self._own_id})
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        return (", ".join(others[:_MOST_NAMED]) or "none") + more

    def _find(self, cluster_id: str) -> peers.Address | None:
        return self._known.get(cluster_id) or self._told.get(cluster_id)

    def address(self, cluster_id: str, endpoint: str = "") -> peers.Address:
        """Where the cluster is; `endpoint` is what a definition claims. Raises `UntrustedCluster`."""
        known = self._find(cluster_id)
        if not endpoint:
            if why := self._odd.get(cluster_id):
                raise peers.UntrustedCluster(
                    f"cluster {cluster_id[:80]!r} is not called at the address the hub tells of it: {why}",
                    hint="its administrator can give it an https address; this manager's can name one in "
                    "federation.clusters, or trust a network with federation.plain_http",
                )
            if known is None or not cluster_id:
                whom = self._own_id or "this manager"
                raise peers.UntrustedCluster(
                    f"no cluster {cluster_id[:80]!r} is known to {whom}; known: {self._names()}",
                    hint="it must join the federation (`hansa cluster join`), or an administrator adds it to the "
                    "setting federation.clusters",
                )
            return known
        claimed = endpoints.normal(endpoint)
        if known is not None and claimed == known.endpoint:
            return known
        if claimed and claimed in self._allowed:
            return peers.Address(cluster_id, claimed)
        raise _untrusted(cluster_id, claimed, known)

    def require_endpoint(self, url: str) -> None:
        """A member of type `endpoint` gets no credentials, but a definition must not send us to the services of this
        machine or its network either."""
        plain = url.partition("?")[0]
        below = any(plain == allowed or plain.startswith(f"{allowed}/") for allowed in self._endpoints)
        if not below or _steps_back(plain):
            raise peers.UntrustedCluster(
                "this manager may not call that endpoint",
                hint="its administrator can add the address to the setting federation.allowed_endpoints",
            )

    def literal_endpoints(self) -> list[Pair]:
        """Addresses the operator wrote out as such. A name is resolved, and where it leads is judged then."""
        targets = [target_of(url) for url in sorted(self._endpoints)]
        return [(host, port) for _, host, port in targets if literal(host) is not None]

    def endpoint_of(self, cluster_id: str) -> str:
        known = self._find(cluster_id)
        return known.endpoint if known is not None else ""


def _steps_back(url: str) -> bool:
    """Whether whoever calls it, or who is called, may take it for an address elsewhere."""
    return any(step in (".", "..") for step in re.split(r"[/\\]", unquote(url)))


def _checked(url: str, setting: str) -> str:
    endpoint = endpoints.normal(url)
    if not endpoint:
        raise BadSetting(
            f"setting {setting}: not a plain http(s) address",
            hint="for example https://lubeck.example.org/oscar, without user, query or fragment",
        )
    return endpoint


def _untrusted(cluster_id: str, claimed: str, known: peers.Address | None) -> peers.UntrustedCluster:
    # Only the normal form is shown: what is not plain may carry a password.
    where = claimed or "an address that is not a plain http(s) URL"
    if known is not None:
        return peers.UntrustedCluster(
            f"cluster {cluster_id[:80]!r} is registered at {known.endpoint}, the definition says {where}",
            hint="leave clusters out of the definition, or add its address to federation.allowed_clusters",
        )
    return peers.UntrustedCluster(
        f"cluster {cluster_id[:80]!r} at {where} is not trusted by this manager",
        hint="its administrator can add it to the setting federation.clusters or federation.allowed_clusters",
    )
