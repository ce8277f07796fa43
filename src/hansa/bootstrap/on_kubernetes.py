"""Puts the Kubernetes driver together: the connection, what is watched, what is kept there, and the three hosts.

Nothing is started before the API server has answered and everything that is there is known: a manager that comes back
goes on with the jobs it finds.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from hansa import resources, services, storage
from hansa.bootstrap.engines import Engines, Ground, Nodes
from hansa.drivers import kubernetes
from hansa.kernel.clock import Clock
from hansa.resources import Needs
from hansa.settings import BadSetting, Settings

_START_SECONDS = 60.0
_PAUSE = 1.0
_ANY_ATTEMPTS = 10**9  # a job goes on while we are away: how often we came back says nothing of it

_ISOLATION = {"name": "pods", "filesystem": "image", "limits": "kubernetes", "network": "pod", "uid": "shared"}


class OnKubernetes:
    def __init__(self, given: Settings, clock: Clock, parts: AsyncExitStack) -> None:
        asked = given.kubernetes
        if asked.namespaces and not (given.jobs.cpu and given.jobs.memory):
            raise BadSetting(
                "with kubernetes.namespaces the nodes cannot be looked at: jobs.cpu and jobs.memory are needed",
                hint='how much jobs may use together, for example jobs.cpu = "8" and jobs.memory = "16Gi"',
            )
        self._given = given
        self._clock = clock
        self._parts = parts
        self._api = kubernetes.Connection.open(asked.kubeconfig, asked.context)
        parts.push_async_callback(self._api.close)
        self._homes = kubernetes.Namespaces(
            self._api,
            given.cluster.id,
            default=given.cluster.services_namespace,
            private=asked.namespace,
            allowed=asked.namespaces,
            queue=asked.queue,
            pull_secrets=asked.pull_secrets,
        )
        self._kept: kubernetes.KeptServices | None = None

    async def prepare(self, data: Path) -> None:
        private = self._given.kubernetes.namespace
        await _answered(lambda: self._homes.ensure(private))
        await _answered(
            lambda: kubernetes.vault_key.settle(self._api, self._given.cluster.id, private, data / "vault.key")
        )

    @property
    def claim(self) -> storage.Claim:
        return self._homes.claim

    def records(self, inner: services.Services) -> services.Services:
        self._kept = kubernetes.KeptServices(inner, kubernetes.ServiceMaps(self._api, self._homes), self._clock)
        return self._kept

    def places(self) -> kubernetes.Claims:
        asked = self._given.kubernetes
        claims = kubernetes.Claims(
            self._api,
            self._given.cluster.id,
            ensure=self._homes.ensure,
            placed=self._homes.placed,
            namespaces=asked.namespaces,
            storage_class=asked.storage_class,
            many_nodes=asked.volumes_for_many_nodes,
            gid=asked.user,
        )
        claims.start()
        self._parts.push_async_callback(claims.close)
        return claims

    async def load(self, people: storage.People, quotas: resources.Quotas) -> None:
        self._homes.told_by(people.owner_of, quotas.enforced)
        assert self._kept is not None, "services come first"
        await self._kept.load()

    async def nodes(self, promised: Callable[[], Needs]) -> kubernetes.KubernetesNodes:
        given = self._given
        namespaces = given.kubernetes.namespaces
        nodes = kubernetes.KubernetesNodes(self._api, given.cluster.id, given.jobs, namespaces=namespaces)
        await _answered(nodes.refresh)
        return nodes

    async def engines(self, ground: Ground, nodes: Nodes) -> Engines:
        assert isinstance(nodes, kubernetes.KubernetesNodes)
        assert self._kept is not None, "services come first"
        given, parts, store, api = self._given, self._parts, ground.open_store.store, self._api
        asked, cluster = given.kubernetes, given.cluster.id
        board = kubernetes.Board(api.client, cluster, asked.namespaces)
        board.start()
        parts.push_async_callback(board.close)
        await _known(board)
        engine = self._engine(ground, board)
        bucket = f"hansa-{cluster}-jobs"
        logs = kubernetes.KubernetesLogs(api.client, board, store, bucket, given.jobs.log_limit)
        exposed = kubernetes.KubernetesExposedHost(engine, kubernetes.Routes(**asked.route.model_dump()))
        parts.push_async_callback(exposed.close)
        sync = kubernetes.KubernetesSyncHost(engine, idle=asked.idle)
        parts.push_async_callback(sync.close)
        jobs = kubernetes.KubernetesJobHost(
            engine,
            logs,
            store=store,
            bucket=bucket,
            pull_patience=asked.pull_patience,
            pending_patience=asked.pending_patience,
        )

        def drift() -> list[Mapping[str, Any]]:
            return [dataclasses.asdict(one) for one in kept.drift()]

        kept = self._kept
        return Engines(
            nodes=nodes,
            logs=logs,
            jobs=jobs,
            sync=sync,
            exposed=exposed,
            runtime="kubernetes",
            isolation=_ISOLATION,
            how=_in_pods,
            present=jobs.present,
            attempts=_ANY_ATTEMPTS,
            check=api.check,
            watch=nodes.keep,
            loops={"services in Kubernetes": kept.work},
            quota_changed=self._homes.quota_changed,
            drift=drift,
            version=await api.version(),
        )

    def _engine(self, ground: Ground, board: kubernetes.Board) -> kubernetes.Engine:
        async def store_of(order: services.RunOrder) -> Mapping[str, str]:
            return await ground.keys_of(order.service.name, order.service.owner)

        return kubernetes.Engine(
            api=self._api,
            board=board,
            shape=_shape(self._given),
            homes=self._homes,
            store_of=store_of,
        )


async def _answered(ask: Callable[[], Awaitable[None]]) -> None:
    """A manager may be started before its cluster answers, but not for long."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _START_SECONDS
    while True:
        try:
            await ask()
        except kubernetes.ApiUnreachable:
            if loop.time() > end:
                raise
            await asyncio.sleep(_PAUSE)
        else:
            return


async def _known(board: kubernetes.Board) -> None:
    try:
        async with asyncio.timeout(_START_SECONDS):
            await board.synced()
    except TimeoutError:
        raise kubernetes.ApiUnreachable(
            f"the cluster did not tell what runs in it within {_START_SECONDS:.0f} s",
            hint="may the account list and watch jobs, pods and deployments? hansa doctor --driver kubernetes",
        ) from None


def _in_pods(service: services.Service) -> str:
    return f"jobs run in Kubernetes, in the image {service.image}"


def _shape(given: Settings) -> kubernetes.Shape:
    asked = given.kubernetes
    return kubernetes.Shape(
        cluster=given.cluster.id,
        stager_image=asked.image,
        pull_policy=asked.pull_policy,
        pull_secrets=asked.pull_secrets,
        user=asked.user,
        queue=kubernetes.queue_name(given.cluster.id) if asked.queue else "",
        priority_class=asked.priority_class,
        node_selector=asked.node_selector,
        tolerations=tuple(one.model_dump(exclude_defaults=True) for one in asked.tolerations),
    )
