"""What are the components told that make up a cluster's API: etcd, API server, controllers, scheduler?

Each function gives the words of one command. Data is thrown away with the cluster, so nothing waits for a disk; who may
do what is as strict as in earnest: nobody is anonymous, nodes and controllers have only the rights of their role.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from real.kubernetes.credentials import Credentials

SERVICES = "10.96.0.0/24"  # the same in every cluster; `credentials.SERVICE_ADDRESS` is its first
NAMES_ADDRESS = "10.96.0.10"  # where pods ask for names, where there are any
DOMAIN = "cluster.local"
_NOBODYS_ADDRESS = "192.0.2.2"  # for documentation, says RFC 5737


@dataclass(frozen=True, slots=True)
class Plan:
    """One cluster's places. `full`: it has a network of its own, whose ports need no choosing. `names`: CoreDNS, if it
    is to have one."""

    full: bool
    address: str
    port: int
    node: str
    folder: Path
    programs: Path
    credentials: Credentials
    names: Path | None = None

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def store(self) -> str:
        """etcd's, in a folder nobody else enters: it needs no certificates there."""
        return f"unix://{self.folder / 'etcd.sock'}"


def etcd(plan: Plan) -> list[str]:
    return _words(
        plan.programs / "etcd",
        {
            "data-dir": plan.folder / "etcd",
            "listen-client-urls": plan.store,
            "advertise-client-urls": "http://127.0.0.111:0",  # it insists on one beside a socket; nobody uses it
            "listen-peer-urls": "http://127.0.0.1:0",
            "unsafe-no-fsync": "true",
            "log-level": "warn",
            "auto-compaction-mode": "revision",
            "auto-compaction-retention": 5000,
        },
    )


def api_server(plan: Plan) -> list[str]:
    known = plan.credentials
    listening = (
        {"bind-address": "0.0.0.0", "advertise-address": plan.address}
        if plan.full
        # Loopback may not be advertised, and no pod will ask: so nothing is entered into the `kubernetes` Service.
        else {
            "bind-address": "127.0.0.1",
            "advertise-address": _NOBODYS_ADDRESS,
            "endpoint-reconciler-type": "none",
        }
    )
    return _words(
        plan.programs / "kube-apiserver",
        {
            "etcd-servers": plan.store,
            "secure-port": plan.port,
            **listening,
            "tls-cert-file": known.certificate("kube-apiserver"),
            "tls-private-key-file": known.key("kube-apiserver"),
            "client-ca-file": known.authority,
            "token-auth-file": known.tokens,
            "anonymous-auth": "false",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
            "service-cluster-ip-range": SERVICES,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": known.certificate("service-accounts"),
            "service-account-signing-key-file": known.key("service-accounts"),
            "kubelet-certificate-authority": known.authority,
            "kubelet-client-certificate": known.certificate("apiserver-to-kubelet"),
            "kubelet-client-key": known.key("apiserver-to-kubelet"),
            "kubelet-preferred-address-types": "InternalIP",
            # Other APIs may be put behind this one; without these lines controllers complain of their absence.
            "requestheader-client-ca-file": known.authority,
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": known.certificate("front-proxy"),
            "proxy-client-key-file": known.key("front-proxy"),
            "profiling": "false",
            "event-ttl": "1h",
        },
    )


def controllers(plan: Plan) -> list[str]:
    known = plan.credentials
    return _words(
        plan.programs / "kube-controller-manager",
        {
            **_caller(plan, "kube-controller-manager"),
            "use-service-account-credentials": "true",  # each controller with the role that is made for it
            "service-account-private-key-file": known.key("service-accounts"),
            "root-ca-file": known.authority,
            "cluster-signing-cert-file": known.authority,
            "cluster-signing-key-file": known.key("authority"),
            "kube-api-qps": 100,
            "kube-api-burst": 200,
        },
    )


def scheduler(plan: Plan) -> list[str]:
    return _words(plan.programs / "kube-scheduler", _caller(plan, "kube-scheduler"))


def _caller(plan: Plan, name: str) -> dict[str, object]:
    config = plan.credentials.kubeconfig(name)
    return {
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "leader-elect": "false",
        "secure-port": 0,  # nobody asks it for its health, and a port less is to be found
        "profiling": "false",
    }


def _words(program: Path, flags: Mapping[str, object]) -> list[str]:
    return [str(program), *(f"--{name}={value}" for name, value in flags.items())]
