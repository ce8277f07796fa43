"""Puts the Kubernetes driver together: the connection, what is watched, and the three hosts.

Nothing is started before the API server has answered and everything that is there is known: a manager that comes back
goes on with the jobs it finds.
"""

import asyncio
from collections.abc import Mapping, Sequence

from hansa import services
from hansa.bootstrap.engines import Engines, Ground, Nodes
from hansa.drivers import kubernetes
from hansa.settings import BadSetting, Settings

_START_SECONDS = 60.0
_ANY_ATTEMPTS = 10**9  # a job goes on while we are away: how often we came back says nothing of it


async def open_nodes(ground: Ground) -> kubernetes.KubernetesNodes:
    """Raises `ApiUnreachable` or `ApiRefused` if the cluster cannot be looked at."""
    given = ground.given
    if given.kubernetes.namespaces and not (given.jobs.cpu and given.jobs.memory):
        raise BadSetting(
            "with kubernetes.namespaces the nodes cannot be looked at: jobs.cpu and jobs.memory are needed",
            hint='how much jobs may use together, for example jobs.cpu = "8" and jobs.memory = "16Gi"',
        )
    api = kubernetes.Connection.open(given.kubernetes.kubeconfig, given.kubernetes.context)
    ground.parts.push_async_callback(api.close)
    nodes = kubernetes.KubernetesNodes(api, given.cluster.id, given.jobs, namespaces=given.kubernetes.namespaces)
    await nodes.refresh()
    return nodes


async def open_engines(ground: Ground, nodes: Nodes) -> Engines:
    assert isinstance(nodes, kubernetes.KubernetesNodes)
    given, parts, store = ground.given, ground.parts, ground.open_store.store
    asked, cluster = given.kubernetes, given.cluster.id
    api = kubernetes.Connection.open(asked.kubeconfig, asked.context)
    parts.push_async_callback(api.close)
    board = kubernetes.Board(api.client, cluster, asked.namespaces)
    board.start()
    parts.push_async_callback(board.close)

    async def store_of(order: services.RunOrder) -> Mapping[str, str]:
        return await ground.keys_of(order.service.name, order.service.owner)

    engine = kubernetes.Engine(
        api=api,
        board=board,
        shape=_shape(given),
        default_namespace=given.cluster.services_namespace,
        namespaces=asked.namespaces,
        store_of=store_of,
    )
    try:
        async with asyncio.timeout(_START_SECONDS):
            await board.synced()
    except TimeoutError:
        raise kubernetes.ApiUnreachable(
            f"the cluster did not tell what runs in it within {_START_SECONDS:.0f} s",
            hint="may the account list and watch jobs, pods and deployments? hansa doctor --driver kubernetes",
        ) from None
    bucket = f"hansa-{cluster}-jobs"
    logs = kubernetes.KubernetesLogs(api.client, board, store, bucket, given.jobs.log_limit)
    exposed = kubernetes.KubernetesExposedHost(engine)
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

    async def present() -> Sequence[str]:
        return [job.metadata.name for job in board.jobs()]

    return Engines(
        nodes=nodes,
        logs=logs,
        jobs=jobs,
        sync=sync,
        exposed=exposed,
        runtime="kubernetes",
        isolation={"name": "pods", "filesystem": "image", "limits": "kubernetes", "network": "pod", "uid": "shared"},
        how=_in_pods,
        present=present,
        attempts=_ANY_ATTEMPTS,
        check=api.check,
        watch=nodes.keep,
        version=await api.version(),
    )


def _in_pods(service: services.Service) -> str:
    return f"jobs run in Kubernetes, in the image {service.image}"


def _shape(given: Settings) -> kubernetes.Shape:
    asked = given.kubernetes
    return kubernetes.Shape(
        cluster=given.cluster.id,
        stager_image=asked.image,
        pull_policy=asked.pull_policy,
        user=asked.user,
        priority_class=asked.priority_class,
        node_selector=asked.node_selector,
        tolerations=tuple(one.model_dump(exclude_defaults=True) for one in asked.tolerations),
    )
