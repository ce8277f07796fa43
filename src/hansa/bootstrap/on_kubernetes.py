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
from hansa.drivers import egress, kubernetes
from hansa.kernel import quantities
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
            binding=asked.binding,
            queue=asked.queue,
            pull_secrets=asked.pull_secrets,
        )
        self._kept: kubernetes.KeptServices | None = None

    async def prepare(self, data: Path) -> None:
        private = self._given.kubernetes.namespace
        await _answered(lambda: self._homes.ensure(private))
        await _answered(self._homes.load)
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
            namespaces=self._homes.followed(),
            growing=self._homes.growing,
            storage_class=asked.storage_class,
            many_nodes=asked.volumes_for_many_nodes,
            gid=asked.user,
        )
        self._homes.on_new(claims.include)
        claims.start()
        self._parts.push_async_callback(claims.close)
        return claims

    async def load(self, people: storage.People, quotas: resources.Quotas) -> None:
        self._homes.told_by(people.owner_of, quotas.enforced)
        assert self._kept is not None, "services come first"
        await self._kept.load()

    def disk(self) -> int:
        return resources.NO_LIMIT  # Kubernetes places what requests ephemeral storage

    def disk_most(self) -> int:
        return resources.NO_LIMIT

    def disk_per_run(self) -> int:
        return quantities.size(self._given.jobs.disk_per_run, what="disk")

    def nodes_pull(self) -> services.NodesPull:
        asked = self._given.kubernetes
        return services.NodesPull(shared=bool(asked.namespaces), secrets=asked.pull_secrets)

    async def nodes(self, promised: Callable[[], Needs]) -> kubernetes.KubernetesNodes:
        given = self._given
        nodes = kubernetes.KubernetesNodes(self._api, given.cluster.id, given.jobs, listed=self._homes.listed)
        await _answered(nodes.refresh)
        if nodes.blind and not (given.jobs.cpu and given.jobs.memory):
            raise BadSetting(
                "the account may not look at nodes: jobs.cpu and jobs.memory are needed",
                hint='how much jobs may use together, for example jobs.cpu = "8" and jobs.memory = "16Gi"',
            )
        return nodes

    async def engines(self, ground: Ground, nodes: Nodes) -> Engines:
        assert isinstance(nodes, kubernetes.KubernetesNodes)
        assert self._kept is not None, "services come first"
        given, parts, store, api = self._given, self._parts, ground.open_store.store, self._api
        asked, cluster = given.kubernetes, given.cluster.id
        board = kubernetes.Board(api.client, cluster, self._homes.followed(), growing=self._homes.growing)
        self._homes.on_new(board.include)
        board.start()
        parts.push_async_callback(board.close)
        await _known(board)
        engine = self._engine(ground, board)
        loops = {"services in Kubernetes": self._kept.work}
        if engine.policies is not None:
            await engine.policies.cover(board.tenants())
            loops["network policies"] = engine.policies.work
        if self._homes.growing:
            loops["namespaces"] = self._homes.keep
        bucket = f"hansa-{cluster}-jobs"
        limits = given.jobs.log_limit, given.jobs.logs_per_owner
        logs = kubernetes.KubernetesLogs(api.client, board, store, bucket, *limits)
        routes = kubernetes.Routes(**asked.route.model_dump(), private_too=given.exposed.access == "open")
        exposed = kubernetes.KubernetesExposedHost(engine, routes)
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
            loops=loops,
            quota_changed=self._homes.quota_changed,
            drift=drift,
            version=await api.version(),
        )

    def _engine(self, ground: Ground, board: kubernetes.Board) -> kubernetes.Engine:
        async def store_of(order: services.RunOrder) -> Mapping[str, str]:
            return await ground.away_keys.lend(order.name, order)

        return kubernetes.Engine(
            api=self._api,
            board=board,
            shape=_shape(self._given),
            homes=self._homes,
            store_of=store_of,
            policies=self._policies(ground) if self._given.kubernetes.network.policies else None,
            end_keys=ground.away_keys.end,
            admission=ground.admission,
        )

    def _policies(self, ground: Ground) -> kubernetes.NetworkPolicies:
        asked = self._given.kubernetes
        sources = kubernetes.NetworkSources(
            cluster=self._given.cluster.id,
            network=asked.network,
            private=asked.namespace,
            outside=asked.kubeconfig is not None,
            allow=egress.Rule.of(self._given.egress.allow),
            store=ground.open_store.store.address.endpoint,
            store_port=self._given.storage.port if self._given.storage.kind == "embedded" else 0,
            resolve=egress.system_resolver,
        )
        policies = kubernetes.NetworkPolicies(
            self._api,
            self._given.cluster.id,
            lambda: kubernetes.network_rules(self._api, sources),
            namespaces=self._homes.followed(),
            growing=self._homes.growing,
        )
        self._homes.on_new(policies.include)
        return policies


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
        shared=bool(asked.namespaces),
        user=asked.user,
        queue=kubernetes.queue_name(given.cluster.id) if asked.queue else "",
        priority_class=asked.priority_class,
        node_selector=asked.node_selector,
        tolerations=tuple(one.model_dump(exclude_defaults=True) for one in asked.tolerations),
    )
