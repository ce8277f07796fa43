"""What are the components told that make up a node: containerd, kubelet, kube-proxy?

The node is the cluster's bottle itself. Its limits are the bottle's; where a real node would set things for the whole
machine, or throw out pods when a disk fills up, this one leaves them alone.
"""

import json
from pathlib import Path

from real.kubernetes import images
from real.kubernetes.control_plane import DOMAIN, NAMES_ADDRESS, Plan
from real.kubernetes.slots import Slot

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"

_CONTAINERD = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Making a process harder to kill than its parent is forbidden without CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{network}"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def containerd(plan: Plan, slot: Slot) -> list[str]:
    network = plan.folder / "network"
    network.mkdir(exist_ok=True)
    _write(network / "10-pods.conflist", _pod_network(slot))
    config = plan.folder / "containerd.toml"
    config.write_text(_CONTAINERD.format(socket=CONTAINERD_SOCKET, pause=images.PAUSE, network=network))
    return ["/usr/bin/containerd", "--config", str(config)]


def kubelet(plan: Plan, slot: Slot) -> list[str]:
    known = plan.credentials
    config = _write(
        plan.folder / "kubelet.json",
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "0.0.0.0",
            "tlsCertFile": str(known.certificate("kubelet")),
            "tlsPrivateKeyFile": str(known.key("kubelet")),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(known.authority)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "serializeImagePulls": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{slot.groups.name}",  # so that the cluster's limits hold for its pods
            "failCgroupV1": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,  # a lower one is refused without CAP_SYS_RESOURCE
            # Images were brought by hand and could not be pulled again; and a full disk is not ours to empty.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "nodeStatusUpdateFrequency": "5s",
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
            "eventRecordQPS": 100,
            "maxPods": 110,
            # Without, pods are told to ask whom this machine asks.
            **({"clusterDNS": [NAMES_ADDRESS], "clusterDomain": DOMAIN} if plan.names else {}),
        },
    )
    return [
        str(plan.programs / "kubelet"),
        f"--config={config}",
        f"--kubeconfig={known.kubeconfig('kubelet')}",
        "--root-dir=/var/lib/kubelet",
        f"--hostname-override={plan.node}",
        f"--node-ip={plan.address}",
    ]


def proxy(plan: Plan, slot: Slot) -> list[str]:
    config = _write(
        plan.folder / "kube-proxy.json",
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(plan.credentials.kubeconfig("kube-proxy"))},
            "mode": "nftables",
            "clusterCIDR": slot.pods,
            "hostnameOverride": plan.node,
            "oomScoreAdj": 0,
            # Nothing here: these settings are the machine's.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        },
    )
    return [str(plan.programs / "kube-proxy"), f"--config={config}"]


def _pod_network(slot: Slot) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": slot.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}


def _write(path: Path, document: dict[str, object]) -> Path:
    path.write_text(json.dumps(document))
    return path
