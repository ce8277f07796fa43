"""How do long-lived services run in Kubernetes? As Deployments, which do the work; we say what should be and see how it
is. The `ExposedHost` port. Calls go straight to a ready pod, so the manager has to reach the pods' network.
"""

import asyncio
import contextlib
import itertools
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler
from lightkube.resources.core_v1 import Secret, Service
from lightkube.resources.networking_v1 import NetworkPolicy

from hansa import services
from hansa.drivers.kubernetes import exposed_beside, exposed_manifest, exposed_standing, labels, pod_status
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.instance_shares import InstanceShares
from hansa.drivers.kubernetes.log_tails import LogTails
from hansa.kernel import errors
from hansa.storage import Turns

_log = structlog.get_logger("hansa.kubernetes")
_CONNECT_WITHIN = 5.0
_SHARE_EVERY = 5.0
_SECRETS_KEPT = 2  # definitions: pods of the former one may still have to be started again


class NoReadyPod(errors.Temporary):
    """No pod of the exposed service is ready now."""

    code = "kubernetes.no-ready-pod"


@dataclass(slots=True)
class _Wanted:
    order: services.RunOrder
    namespace: str
    running: bool
    restarted: str = ""
    allowed: int = 0  # instances that its owner's share takes
    most: int = 0  # what it is scaled up to
    behind: bool = False  # Kubernetes was not told yet of what may be now
    shown: str = ""
    since: float | None = None


class KubernetesExposedHost:
    def __init__(self, engine: Engine, routes: exposed_beside.Routes | None = None) -> None:
        self._engine = engine
        self._routes = routes or exposed_beside.Routes()
        self._api = engine.api
        self._board = engine.board
        self._tails = LogTails(engine.api.client)
        self._wanted: dict[str, _Wanted] = {}
        self._left: dict[str, set[str]] | None = None  # where an earlier life of ours had something
        self._turns = itertools.count()
        self._writing = Turns()  # what is said of a service is said by one at a time, by its name
        self._instances = InstanceShares(engine.admission)
        self._room = asyncio.Event()  # somebody's share may allow more now
        self._stop_listening = engine.admission.on_release(self._room.set)
        self._sharing = asyncio.create_task(self._share(), name="share what exposed services may have")
        engine.board.on_exposed = self._looked_at

    async def close(self) -> None:
        self._stop_listening()
        self._sharing.cancel()
        await asyncio.wait({self._sharing})
        await self._tails.close()

    async def apply(self, order: services.RunOrder, *, running: bool) -> None:
        async with self._writing.hold([order.service.name]):
            await self._apply(order, running=running)

    async def _apply(self, order: services.RunOrder, *, running: bool) -> None:
        name = order.service.name
        namespace = self._engine.namespace_of(order)
        former = self._wanted.get(name)
        wanted = _Wanted(order, namespace, running, former.restarted if former else "")
        wanted.allowed = self._instances.settle(order, running=running)
        await self._engine.prepare(order)
        for secret in exposed_manifest.secrets(order, namespace, self._engine.shape):
            await self._api.create(secret)
        deployment = await self._put(wanted)
        service = await self._api.apply(exposed_manifest.service(order, namespace, self._engine.shape))
        self._wanted[name] = wanted
        await self._beside(wanted, deployment, service)
        await self._clear(name, namespace, keep=_SECRETS_KEPT)
        for pod in self._board.pods_of(name):
            self._tails.look(name, pod)

    async def restart(self, name: str) -> None:
        async with self._writing.hold([name]):
            wanted = self._wanted.get(name)
            if wanted is not None and wanted.running:
                wanted.restarted = f"{time.time():.3f}"
                await self._put(wanted)

    async def remove(self, name: str) -> None:
        async with self._writing.hold([name]):
            await self._remove(name)

    async def _remove(self, name: str) -> None:
        wanted = self._wanted.pop(name, None)
        self._instances.forget(name)
        if self._left is None:
            self._left = await self._engine.left(labels.EXPOSED)
        there = self._board.deployed_in(name) | self._left.get(name, set())
        for namespace in there | ({wanted.namespace} if wanted is not None else set()):
            await self._api.delete(Deployment, exposed_manifest.name_of(name), namespace)
            await self._api.delete(Service, f"{name}-svc", namespace)
            await self._clear(name, namespace, keep=0)
        self._left.pop(name, None)
        await self._tails.forget(name)

    def deployment(self, name: str) -> services.Deployment | None:
        wanted = self._wanted.get(name)
        if wanted is None:
            return None
        seen = self._board.deployment(wanted.namespace, exposed_manifest.name_of(name))
        found = self._board.pods_of(name)
        judged = exposed_standing.judged(wanted.running, exposed_manifest.count(wanted.order), seen, found)
        if wanted.running and wanted.allowed < exposed_manifest.count(wanted.order) and judged.state != "ready":
            judged = replace(judged, reason=self._instances.why(wanted.order) or judged.reason)
        if judged.state != wanted.shown:
            wanted.shown, wanted.since = judged.state, time.time()
        if judged.state == "ready" and not judged.reason and (host := exposed_beside.host(wanted.order, self._routes)):
            scheme = "https" if self._routes.tls else "http"
            judged = replace(judged, reason=f"callers reach it at {scheme}://{host}/")
        return replace(judged, since=wanted.since)

    def log(self, name: str, tail: int) -> Sequence[services.LogLine]:
        return self._tails.last(name, tail) if name in self._wanted else ()

    async def connect(self, name: str) -> socket.socket:
        wanted = self._wanted.get(name)
        ready = [pod for pod in self._board.pods_of(name) if pod_status.is_ready(pod)] if wanted else []
        if wanted is None or not wanted.running or not ready:
            raise NoReadyPod(f"no instance of service {name} is ready", hint="its status says why")
        turn = next(self._turns)
        for step in range(len(ready)):
            address = (ready[(turn + step) % len(ready)].status.podIP, wanted.order.service.expose.port)
            try:
                return await _connected(address)
            except OSError:
                continue  # it ended a moment ago
        raise NoReadyPod(
            f"the instances of service {name} are ready, and cannot be reached from here",
            hint="the manager has to reach the network of pods: run it in the cluster, or give it a route",
        )

    async def _put(self, wanted: _Wanted) -> Any:
        return await self._api.apply(
            exposed_manifest.deployment(
                wanted.order,
                wanted.namespace,
                self._engine.shape,
                replicas=self._replicas(wanted),
                restarted=wanted.restarted,
            )
        )

    def _replicas(self, wanted: _Wanted) -> int:
        """What is scaled keeps what it was scaled to, within its bounds."""
        if not wanted.running:
            return 0
        if not self._scales(wanted):
            return wanted.allowed
        seen = self._board.deployment(wanted.namespace, exposed_manifest.name_of(wanted.order.service.name))
        now = (seen.spec.replicas or 0) if seen is not None else 0
        return min(max(now, wanted.allowed), self._instances.most(wanted.order))

    def _scales(self, wanted: _Wanted) -> bool:
        """Only what has its minimum scale can have more."""
        least = exposed_manifest.count(wanted.order)
        return wanted.allowed == least and self._instances.most(wanted.order) > least

    async def _share(self) -> None:
        """For ever: whoever had to do with less gets more when it may, and the autoscaler's bounds follow."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SHARE_EVERY):
                    await self._room.wait()
            self._room.clear()
            for name in list(self._wanted):
                try:
                    async with self._writing.hold([name]):
                        await self._follow(name)
                except errors.HansaError as error:
                    _log.warning("an exposed service was not scaled", service=name, error=str(error))

    async def _follow(self, name: str) -> None:
        wanted = self._wanted.get(name)  # as it is now: it may have gone, or changed, while others were followed
        if wanted is None or not wanted.running:
            return
        grown = self._instances.grow(wanted.order, wanted.allowed)
        wanted.behind |= grown > wanted.allowed
        wanted.behind |= exposed_beside.scales(wanted.order) and self._instances.most(wanted.order) != wanted.most
        wanted.allowed = grown
        if wanted.behind:
            await self._scale(wanted, await self._put(wanted))
            wanted.behind = False

    async def _scale(self, wanted: _Wanted, deployment: Any) -> None:
        most = self._instances.most(wanted.order)
        if self._scales(wanted):
            await self._api.apply(exposed_beside.scaler(wanted.order, self._engine.shape, deployment, most))
        else:
            about = deployment.metadata
            await self._api.delete(HorizontalPodAutoscaler, about.name, about.namespace)
        wanted.most = most

    async def _beside(self, wanted: _Wanted, deployment: Any, service: Any) -> None:
        """Without these it runs all the same: who may not make them is told so, and no more."""
        order = wanted.order
        shape, routes = self._engine.shape, self._routes
        try:
            await self._scale(wanted, deployment)
            if exposed_beside.host(order, routes):
                await self._api.apply(exposed_beside.route(order, shape, routes, service))
                if self._engine.policies is not None:
                    await self._api.apply(exposed_beside.opening(order, shape, routes, service))
            elif routes.kind != "none":
                for kind in (routes.resource, NetworkPolicy):
                    await self._api.delete(kind, service.metadata.name, service.metadata.namespace)
        except (ApiRefused, ApiUnreachable) as error:  # a kind that is not known is not found, and so "away"
            _log.warning(
                "an exposed service lacks its route or its scaling",
                service=order.service.name,
                error=error.message,
                hint=error.hint,
            )

    async def _clear(self, name: str, namespace: str, *, keep: int) -> None:
        """Secrets of former definitions."""
        marked = {labels.EXPOSED: name, **labels.of_cluster(self._engine.shape.cluster)}
        found = await self._api.list(Secret, namespace, marked)
        by_digest: dict[str, list[str]] = {}
        for one in sorted(found, key=lambda one: one.metadata.creationTimestamp, reverse=True):
            by_digest.setdefault(one.metadata.name.rpartition("-")[2], []).append(one.metadata.name)
        current = exposed_manifest.digest(self._wanted[name].order, self._engine.shape) if name in self._wanted else ""
        others = [digest for digest in by_digest if digest != current]
        for digest in others[max(keep - 1, 0) :] if keep else by_digest:
            for old in by_digest[digest]:
                await self._api.delete(Secret, old, namespace)

    def _looked_at(self, name: str) -> None:
        if (wanted := self._wanted.get(name)) is not None:
            self._instances.saw(wanted.order, len(self._board.pods_of(name)))
            self.deployment(name)  # notes since when it is what it is
            for pod in self._board.pods_of(name):
                self._tails.look(name, pod)


async def _connected(address: tuple[str, int]) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    made.setblocking(False)
    try:
        async with asyncio.timeout(_CONNECT_WITHIN):
            await asyncio.get_running_loop().sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made
