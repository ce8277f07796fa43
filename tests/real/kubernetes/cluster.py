"""A running Kubernetes: how does it come up, how is it hurt and healed, and what is left of it? Nothing.

    with full_cluster() as cluster:      # with a node that runs containers, in a bottle; needs root
        cluster.kill(Component.API)      # as a crash would; `again` starts it, `restart` does both
        cluster.freeze(Component.ETCD)   # it hangs; `thaw`
        cluster.cut()                    # the link: silence, no refusal; `heal`
        cluster.restore()                # whatever was done to it before
    with api_cluster() as cluster:       # API, controllers and, if asked for, scheduler, on loopback; for every account

The API answers and a pod may be made when the cluster is given. Its data, logs and credentials are in a folder that is
gone at the end, so a failure to start carries the last words of the component that failed.
"""

import contextlib
import enum
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx

from real import cache
from real.kubernetes import (
    bottle,
    build,
    control_plane,
    coredns_server,
    credentials,
    debian,
    images,
    node,
    policy_enforcer,
    slots,
)
from real.kubernetes.access import Access
from real.kubernetes.control_plane import Plan
from real.kubernetes.processes import TIED, Processes

API_PORT = 6443
_TESTS = Path(__file__).parents[2]

_API_SECONDS = 120.0
_PART_SECONDS = 60.0


class Component(enum.StrEnum):
    ETCD = "etcd"
    API = "kube-apiserver"
    CONTROLLERS = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    CONTAINERD = "containerd"
    KUBELET = "kubelet"
    PROXY = "kube-proxy"
    POLICIES = "policies"  # what holds pods to NetworkPolicies
    NAMES = "coredns"  # where it was built


class KubernetesCluster:
    """One that belongs to whoever made it, and so may be hurt. `access` is how to talk to it."""

    def __init__(self, plan: Plan, processes: Processes, home: bottle.Bottle | None) -> None:
        self.access = Access(plan.server, plan.credentials.kubeconfig(), plan.node, home.first if home else None)
        self.folder = plan.folder
        self._plan = plan
        self._processes = processes
        self._home = home
        self._wanted: list[Component] = []
        self._frozen: set[Component] = set()

    def kill(self, component: Component) -> None:
        self._processes.kill(component, entered=self._home is not None)

    def again(self, component: Component) -> None:
        """Starts what was killed, and does not wait for it: `wait` does."""
        self._processes.again(component)

    def restart(self, component: Component) -> None:
        self.kill(component)
        self.again(component)
        self.wait()

    def freeze(self, component: Component) -> None:
        """It keeps its connections and says nothing; `thaw`."""
        self._frozen.add(component)
        self._processes.signal(component, signal.SIGSTOP)

    def thaw(self, component: Component) -> None:
        self._processes.signal(component, signal.SIGCONT)
        self._frozen.discard(component)

    def cut(self) -> None:
        """Open connections hear nothing any more; new ones find no way. Inside all goes on."""
        assert self._home is not None, "an API on loopback has no link to cut"
        self._home.cut()

    def heal(self) -> None:
        assert self._home is not None, "an API on loopback has no link to cut"
        self._home.heal()

    def restore(self) -> None:
        """Costs little where nothing was hurt."""
        if self._home is not None:
            self._home.heal()
        for component in self._wanted:
            if not self._processes.runs(component):
                self.again(component)
        for component in list(self._frozen):
            self.thaw(component)
        self.wait()

    def wait(self) -> None:
        """Until the API answers, controllers work and the node is ready (a dead kubelet is missed only after 50 s)."""
        with self.access.http() as door:
            self._await(door, "/readyz", _API_SECONDS, Component.ETCD, Component.API)
            # Without them a pod is refused, or cannot be started.
            for made in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                self._await(door, f"/api/v1/namespaces/default/{made}", _PART_SECONDS, Component.CONTROLLERS)
            if self._home is not None:
                self._processes.until(
                    lambda: _node_is_ready(door, self.access.node), _PART_SECONDS, "the node", Component.KUBELET
                )
            if Component.POLICIES in self._wanted:
                told = self.folder / policy_enforcer.READY
                self._processes.until(told.exists, _PART_SECONDS, "policies", Component.POLICIES)
            if Component.NAMES in self._wanted:
                self._processes.until(
                    lambda: coredns_server.is_ready(self._plan.address), _PART_SECONDS, "names", Component.NAMES
                )

    def _start(self, component: Component, words: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        whole = [*TIED, *words] if self._home is None else self._home.words(*words)
        self._processes.start(component, whole, environment)
        self._wanted.append(component)

    def _start_api(self) -> None:
        self._start(Component.ETCD, control_plane.etcd(self._plan))
        self._processes.until((self.folder / "etcd.sock").exists, _PART_SECONDS, "etcd", Component.ETCD)
        self._start(Component.API, control_plane.api_server(self._plan))

    def _start_runtime(self, slot: slots.Slot, archives: Sequence[Path]) -> None:
        self._start(Component.CONTAINERD, node.containerd(self._plan, slot))
        self._processes.until(self._runtime_answers, _PART_SECONDS, "containerd", Component.CONTAINERD)
        for archive in archives:
            self.access.import_image(archive)

    def _start_rest(self, slot: slots.Slot | None, scheduler: bool) -> None:
        with self.access.http() as door:
            self._await(door, "/readyz", _API_SECONDS, Component.ETCD, Component.API)
        self._start(Component.CONTROLLERS, control_plane.controllers(self._plan))
        if scheduler:
            self._start(Component.SCHEDULER, control_plane.scheduler(self._plan))
        if slot is not None:
            self._start(Component.KUBELET, node.kubelet(self._plan, slot))
            self._start(Component.PROXY, node.proxy(self._plan, slot))
            enforcing = policy_enforcer.words(self.folder, self._plan.credentials.kubeconfig(), slot.pods)
            self._start(Component.POLICIES, enforcing, {"PYTHONPATH": str(_TESTS)})
        if self._plan.names is not None and slot is not None:
            self._start_names(slot)
        self.wait()

    def _start_names(self, slot: slots.Slot) -> None:
        self.access.inside("ip", "address", "add", f"{slot.names}/32", "dev", "lo")
        with self.access.http() as door:
            account = "/api/v1/namespaces/kube-system/serviceaccounts/default"
            self._await(door, account, _PART_SECONDS, Component.API, Component.CONTROLLERS)
            coredns_server.introduce(door, slot.names)
        self._start(Component.NAMES, coredns_server.words(self._plan, slot.names))

    def _await(self, door: httpx.Client, path: str, seconds: float, *needed: Component) -> None:
        self._processes.until(lambda: _answers(door, path), seconds, path, *needed)

    def _runtime_answers(self) -> bool:
        try:
            self.access.inside("ctr", "version")
        except RuntimeError:
            return False
        return True


@contextlib.contextmanager
def full_cluster(archives: Sequence[Path] | None = None) -> Iterator[KubernetesCluster]:
    """With these images beside the one that holds pods; with busybox' if none are named."""
    wanted = [images.pause(), *([images.busybox()] if archives is None else archives)]
    with contextlib.ExitStack() as undo:
        slot = undo.enter_context(slots.taken())
        folder = undo.enter_context(slots.folder("full"))
        plan = _plan(folder, full=True, address=slot.address, port=API_PORT, name=f"node-{slot.number}")
        processes = Processes(folder)
        undo.callback(slot.groups.remove)  # waits for what ends with the bottle
        undo.callback(processes.close)
        home = bottle.start(slot, processes, folder, debian.fetch(cache.quiet) / "node", plan.node)
        cluster = KubernetesCluster(plan, processes, home)
        cluster._start_api()
        cluster._start_runtime(slot, wanted)  # while the API, the slowest of all, comes up
        cluster._start_rest(slot, scheduler=True)
        yield cluster


@contextlib.contextmanager
def api_cluster(*, scheduler: bool = False) -> Iterator[KubernetesCluster]:
    """Objects, rights, quotas, controllers: real. Pods stay pending, since no node runs them."""
    with contextlib.ExitStack() as undo:
        folder = undo.enter_context(slots.folder("api"))
        plan = _plan(folder, full=False, address="127.0.0.1", port=_free_port(), name="no-node")
        processes = Processes(folder)
        undo.callback(processes.close)
        cluster = KubernetesCluster(plan, processes, None)
        cluster._start_api()
        cluster._start_rest(None, scheduler)
        yield cluster


def _plan(folder: Path, *, full: bool, address: str, port: int, name: str) -> Plan:
    programs = build.found()
    assert programs is not None, "whoever starts a cluster has asked for hindrances"
    known = credentials.issue(folder / "credentials", server=f"https://{address}:{port}", address=address, node=name)
    names = coredns_server.found() if full else None
    return Plan(full, address, port, name, folder, programs, known, names)


def _answers(door: httpx.Client, path: str) -> bool:
    try:
        return door.get(path).status_code == 200
    except httpx.TransportError:
        return False


def _node_is_ready(door: httpx.Client, name: str) -> bool:
    try:
        told = door.get(f"/api/v1/nodes/{name}")
    except httpx.TransportError:
        return False
    conditions = told.json()["status"]["conditions"] if told.status_code == 200 else []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
