"""How do pods find Services by name? By a CoreDNS on the node, where one was built; without one there are no names.

It is built from the Go module in `coredns`, as Kubernetes itself from `programs` (`build.py`), into the cache: CoreDNS
as it is published, with the few plugins that a test cluster needs. `preparation.py` calls `build`; a cluster looks with
`found` when it starts, and tests that need names ask `hindrance` of the cluster they are given.
"""

import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from real import cache, go_programs
from real.kubernetes.access import Access
from real.kubernetes.control_plane import DOMAIN, NAMES_ADDRESS, Plan

VERSION = "v1.14.1"  # made for the client libraries of the Kubernetes we build

MODULE = Path(__file__).with_name("coredns")
ACCOUNT = "coredns"
_SOURCES = ("main.go", "go.mod", "go.sum")
_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w")
_PROBE_SECONDS = 60.0
_READY_PORT = 8181
_SERVICE = "/api/v1/namespaces/kube-system/services"
_PODS = "/api/v1/namespaces/kube-system/pods"
# A name that is no Service's is nobody's: nothing outside is asked.
_COREFILE = """\
. {{
    bind {names}
    errors
    ready {address}:{ready}
    kubernetes {domain} in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
    cache 5
}}
"""


def found() -> Path | None:
    """The program, if it was built."""
    program = cache.root() / _name() / "coredns"
    return program if program.is_file() else None


def hindrance(access: Access) -> str:
    """Why that cluster knows no names; "" if it does."""
    with access.http() as door:
        if door.get(f"{_SERVICE}/kube-dns").status_code == 200:
            return ""
    if found() is not None:
        return "this cluster was started before CoreDNS was built"
    return go_programs.hindrance() or "CoreDNS is not built; HANSA_SETUP_KUBERNETES=yes make test builds it, once"


def build(say: cache.Say) -> Path:
    """The program, which is built if it was not."""

    def make(folder: Path) -> None:
        began = time.monotonic()
        say(f"building CoreDNS {VERSION} for the tests; once, some minutes on two cores")
        go_programs.compile_program(MODULE, _FLAGS, ".", folder / "coredns")
        told = subprocess.run(
            [folder / "coredns", "-version"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        ).stdout
        if not told.startswith(f"CoreDNS-{VERSION.removeprefix('v')}\n"):
            raise RuntimeError(f"coredns is not {VERSION}; it says {told.strip()!r}")
        say(f"CoreDNS {VERSION} is built, after {time.monotonic() - began:.0f} s")

    return cache.made(_name(), make, say) / "coredns"


def _name() -> str:
    return f"coredns-{VERSION}-{cache.key(*((MODULE / name).read_bytes() for name in _SOURCES), *_FLAGS)}"


def words(plan: Plan, names: str) -> list[str]:
    """Its command, on the node; `names` is the address at which it is asked."""
    assert plan.names is not None, "whoever starts it has looked whether it is here"
    config = plan.folder / "Corefile"
    account = plan.credentials.kubeconfig(ACCOUNT)
    given = {"address": plan.address, "names": names, "ready": _READY_PORT, "domain": DOMAIN, "kubeconfig": account}
    config.write_text(_COREFILE.format(**given))
    return [str(plan.names), "-conf", str(config)]


def is_ready(address: str) -> bool:
    """Has it heard of all Services?"""
    try:
        return httpx.get(f"http://{address}:{_READY_PORT}/ready", trust_env=False, timeout=2.0).status_code == 200
    except httpx.TransportError:
        return False


def introduce(door: httpx.Client, address: str) -> None:
    """Its rights, and the Service by which pods reach it. It is a program on the node; for policies it looks like the
    pod that it is elsewhere. No kubelet is told of that one, so its address and endpoint are entered by hand."""
    rights = "/apis/rbac.authorization.k8s.io/v1"
    _make(door, f"{rights}/clusterroles", _ROLE)
    _make(door, f"{rights}/clusterrolebindings", _BINDING)
    _make(door, _SERVICE, _SERVED)
    slices = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
    _make(door, slices, {**_SLICE, "endpoints": [{"addresses": [address], "conditions": {"ready": True}}]})
    _make(door, _PODS, _POD)
    seen = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
    told = door.patch(f"{_PODS}/coredns/status", json=seen, headers={"Content-Type": "application/merge-patch+json"})
    if told.status_code != 200:
        raise RuntimeError(f"{_PODS}: {told.text}")


def _make(door: httpx.Client, path: str, what: dict[str, Any]) -> None:
    answer = door.post(path, json=what)
    if answer.status_code not in (201, 409):
        raise RuntimeError(f"{path}: {answer.text}")


_NAMED = {"name": "system:coredns"}
_ROLE = {
    "metadata": _NAMED,
    "rules": [
        {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ],
}
_BINDING = {
    "metadata": _NAMED,
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **_NAMED},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": ACCOUNT}],
}
_POD = {
    "metadata": {"name": "coredns", "labels": {"k8s-app": "kube-dns"}},
    "spec": {"schedulerName": "nobody", "containers": [{"name": "coredns", "image": "none"}]},
}
_PORTS = [
    {"name": "dns", "protocol": "UDP", "port": 53},
    {"name": "dns-tcp", "protocol": "TCP", "port": 53},
]
_SERVED = {"metadata": {"name": "kube-dns"}, "spec": {"clusterIP": NAMES_ADDRESS, "ports": _PORTS}}
_SLICE = {
    "metadata": {"name": "kube-dns", "labels": {"kubernetes.io/service-name": "kube-dns"}},
    "addressType": "IPv4",
    "ports": _PORTS,
}
