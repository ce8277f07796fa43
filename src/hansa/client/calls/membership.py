"""Which clusters belong, and what becomes of them: the operations under `/v1/clusters`."""

from hansa.client.operations import Call, operation
from hansa.messages.clusters import Address, AskedAddress, Cluster, FactsChange, NewOscarCluster, StatusChange
from hansa.messages.inventory import Clusters, ClusterStatus


@operation("GET", "/v1/clusters")
def clusters(*, selector: str = "") -> Call[Clusters]:
    """All clusters of the federation, or those a selector finds, such as `region=eu gpu>0 status=ready`."""
    return Call(query={"selector": selector})


@operation("GET", "/v1/clusters/{cluster}")
def cluster(cluster: str) -> Call[Cluster]:
    """One cluster: its state, why it is in it, and what it says of itself."""
    return Call({"cluster": cluster})


@operation("GET", "/v1/clusters/{cluster}/status")
def cluster_status(cluster: str) -> Call[ClusterStatus]:
    """How a cluster is, what is wanted of it, and everything it reported, section by section."""
    return Call({"cluster": cluster})


@operation("PUT", "/v1/clusters/{cluster}/status")
def change_cluster_status(cluster: str, change: StatusChange) -> Call[ClusterStatus]:
    """Says what is wanted of a cluster, all of it at once: to be a member, to drain, to leave; to take nothing new."""
    return Call({"cluster": cluster}, body=change)


@operation("POST", "/v1/clusters")
def register_oscar(new: NewOscarCluster) -> Call[Cluster]:
    """Registers an OSCAR cluster without a manager of ours; the hub probes it from now on."""
    return Call(body=new)


@operation("PATCH", "/v1/clusters/{cluster}")
def change_facts(cluster: str, change: FactsChange) -> Call[Cluster]:
    """Says something of a cluster that wins over what it says itself."""
    return Call({"cluster": cluster}, body=change)


@operation("PUT", "/v1/clusters/{cluster}/address")
def change_address(cluster: str, said: Address) -> Call[Cluster]:
    """Says where a cluster is; all others are told."""
    return Call({"cluster": cluster}, body=said)


@operation("POST", "/v1/clusters/{cluster}/address/approve")
def approve_address(cluster: str, asked: AskedAddress) -> Call[Cluster]:
    """Grants a cluster the address it asks for (`asks_for`), if it still is this one."""
    return Call({"cluster": cluster}, body=asked)


@operation("POST", "/v1/clusters/{cluster}/address/refuse")
def refuse_address(cluster: str, asked: AskedAddress) -> Call[Cluster]:
    """A cluster stays where it is; that it asks for this address is not told again."""
    return Call({"cluster": cluster}, body=asked)


@operation("DELETE", "/v1/clusters/{cluster}")
def remove_cluster(cluster: str, *, force: bool = False) -> Call[None]:
    """Removes a cluster that has left; with `force` any, such as one that is dead for good."""
    return Call({"cluster": cluster}, {"force": force})


@operation("POST", "/v1/clusters/{cluster}/approve")
def approve(cluster: str) -> Call[Cluster]:
    """Makes a pending cluster a member."""
    return Call({"cluster": cluster})


@operation("POST", "/v1/clusters/{cluster}/cordon")
def cordon(cluster: str) -> Call[Cluster]:
    """Nothing new is placed there from now on; what runs goes on."""
    return Call({"cluster": cluster})


@operation("POST", "/v1/clusters/{cluster}/uncordon")
def uncordon(cluster: str) -> Call[Cluster]:
    """Takes a cordon back, and a drain too."""
    return Call({"cluster": cluster})


@operation("POST", "/v1/clusters/{cluster}/drain")
def drain(cluster: str) -> Call[Cluster]:
    """A cluster moves or finishes its work and takes no new."""
    return Call({"cluster": cluster})


@operation("POST", "/v1/clusters/{cluster}/leave")
def leave(cluster: str) -> Call[Cluster]:
    """A cluster drains, says goodbye, and has left."""
    return Call({"cluster": cluster})
