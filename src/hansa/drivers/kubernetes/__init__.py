"""How do we run services in a Kubernetes cluster? Behind the three hosts of `hansa.services.ports`: jobs as `batch/v1`
Jobs (`job_host`), synchronous calls by warm pods (`sync_host`), long-lived services as Deployments (`exposed_host`).

Each is made by pure functions (`…_manifest`, on the ground of `pods`) and read by others (`job_verdict`,
`exposed_standing`, on that of `pod_status`); all see the cluster by one list and watch of each kind (`board`,
`following`). Files are moved by a program of ours beside the script (`stager`). How much there is tell the `nodes`.

What services are is kept in Kubernetes, too (`kept_services`, `service_maps`), in namespaces that belong to their users
(`namespaces`). What their pods reach, and who reaches them, is said by NetworkPolicies (`network_manifest`,
`network_rules`, `network_policies`).
"""

from hansa.drivers.kubernetes import vault_key
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.claims import Claims
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.exposed_beside import Routes
from hansa.drivers.kubernetes.exposed_host import KubernetesExposedHost
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.kubernetes.kept_services import KeptServices
from hansa.drivers.kubernetes.lease import WorkLease
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.network_policies import NetworkPolicies
from hansa.drivers.kubernetes.network_rules import Sources as NetworkSources
from hansa.drivers.kubernetes.network_rules import gathered as network_rules
from hansa.drivers.kubernetes.nodes import KubernetesNodes
from hansa.drivers.kubernetes.pods import Shape
from hansa.drivers.kubernetes.quota_manifest import name_of as queue_name
from hansa.drivers.kubernetes.service_drift import Drift
from hansa.drivers.kubernetes.service_maps import ServiceMaps
from hansa.drivers.kubernetes.sync_host import KubernetesSyncHost

__all__ = [
    "ApiRefused",
    "ApiUnreachable",
    "Board",
    "Claims",
    "Connection",
    "Drift",
    "Engine",
    "KeptServices",
    "KubernetesExposedHost",
    "KubernetesJobHost",
    "KubernetesLogs",
    "KubernetesNodes",
    "KubernetesSyncHost",
    "Namespaces",
    "NetworkPolicies",
    "NetworkSources",
    "Routes",
    "ServiceMaps",
    "Shape",
    "WorkLease",
    "network_rules",
    "queue_name",
    "vault_key",
]
