"""Who keeps the walls around users' pods? Makes NetworkPolicies before the first pod runs behind them, makes them again
when somebody deletes or changes one, and writes them anew when addresses are others.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import structlog
from lightkube.resources.networking_v1 import NetworkPolicy

from hansa.drivers.kubernetes import labels, network_manifest
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.following import Follow, Key
from hansa.drivers.kubernetes.network_manifest import Rules
from hansa.kernel import errors

_log = structlog.get_logger("hansa.kubernetes")
_LOOK_EVERY = 60.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
_CALM = 60.0  # seconds after which a repair is the first again


class PoliciesRefused(ApiUnreachable):
    """NetworkPolicies cannot be made where users' pods should run; what would run there waits."""

    code = "kubernetes.policies-refused"


class NetworkPolicies:
    """`ensure` before something runs; `work` for as long as the manager runs."""

    def __init__(
        self,
        api: Connection,
        cluster: str,
        gather: Callable[[], Awaitable[Rules]],
        *,
        namespaces: Sequence[str] = (),
        growing: bool = False,
    ) -> None:
        """`gather` tells what is allowed now; `namespaces` and `growing` are as in `Follow`."""
        self._api = api
        self._cluster = cluster
        self._gather = gather
        self._rules: Rules | None = None
        self._wanted: dict[Key, NetworkPolicy] = {}
        self._suspects: set[Key] = set()
        self._news = asyncio.Event()
        self._repaired: dict[Key, tuple[float, float]] = {}  # when it was repaired last, and the pause after that
        marks = labels.of_cluster(cluster)
        self._follow = Follow(api.client, NetworkPolicy, marks, self._changed, namespaces=namespaces, growing=growing)

    def include(self, namespace: str) -> None:
        self._follow.include(namespace)

    async def ensure(self, namespace: str, owner: str = "") -> None:
        """Pods of this owner, as their label says it, may run there. Raises `PoliciesRefused`."""
        mine = (namespace, network_manifest.name_of(self._cluster, owner))
        if mine in self._wanted:
            return
        rules = self._rules or await self._look()
        try:
            await self._put(network_manifest.walls(namespace, rules))
            if owner:
                await self._put(network_manifest.among_own(namespace, self._cluster, owner))
        except ApiRefused as error:
            raise PoliciesRefused(
                f"users' pods do not run in namespace {namespace} without walls around them: {error.message}",
                hint="give the manager's account its rights on networkpolicies (docs/reference/kubernetes-rights.md), "
                "or keep such policies yourself and set kubernetes.network.policies to false",
                retry_after=5.0,
            ) from None

    async def cover(self, running: Iterable[tuple[str, str]]) -> None:
        """What runs already, by namespace and owner."""
        for namespace, owner in sorted(set(running)):
            try:
                await self.ensure(namespace, owner)
            except (errors.Temporary, errors.NotFound) as error:
                _log.warning("pods run without walls around them", namespace=namespace, error=error.message)

    async def work(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow.run(), name="follow network policies")
            tasks.create_task(self._repair(), name="repair network policies")
            tasks.create_task(self._renew(), name="renew network policies")

    async def _look(self) -> Rules:
        self._rules = await self._gather()
        return self._rules

    async def _put(self, policy: NetworkPolicy) -> None:
        key = _key(policy)
        former = self._wanted.get(key)
        if former is not None and network_manifest.same(former, policy):
            return
        made = await self._api.apply(policy)
        if not network_manifest.same(made, policy):
            await self._replace(policy, made)
        self._wanted[key] = policy

    def _changed(self, key: Key) -> None:
        wanted, shown = self._wanted.get(key), self._follow.get(key)
        if wanted is not None and (shown is None or not network_manifest.same(shown, wanted)):
            self._suspects.add(key)
            self._news.set()

    async def _repair(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            suspects, self._suspects = self._suspects, set()
            pauses = [await self._put_right(key) for key in sorted(suspects)]
            if self._suspects and (longest := max(pauses, default=0.0)):
                await asyncio.sleep(longest)  # two writers who both insist do not go on at full speed

    async def _put_right(self, key: Key) -> float:
        """The pause before the next repair of this one."""
        wanted = self._wanted.get(key)
        if wanted is None:
            return 0.0
        try:
            there = await self._api.get(NetworkPolicy, key[1], key[0])
            if there is not None and network_manifest.same(there, wanted):
                return 0.0
            await self._replace(wanted, there)
        except (ApiRefused, errors.NotFound):  # the namespace is gone, or on its way
            self._forget(key[0])
            return 0.0
        except ApiUnreachable:
            self._suspects.add(key)
            self._news.set()
            return _FIRST_PAUSE
        _log.warning("a network policy was changed or deleted by others; it is made again", policy="/".join(key))
        last, pause = self._repaired.get(key, (0.0, 0.0))
        now = time.monotonic()
        pause = _FIRST_PAUSE if now - last > _CALM else min(pause * 2, _LONGEST_PAUSE)
        self._repaired[key] = (now, pause)
        return pause

    async def _replace(self, wanted: NetworkPolicy, there: NetworkPolicy | None) -> None:
        """An apply leaves alone what others added to it: that would be a hole. So it is written as a whole."""
        if there is None or there.metadata is None:
            await self._api.apply(wanted)
            return
        assert wanted.metadata is not None
        about = {**wanted.metadata.to_dict(), "resourceVersion": there.metadata.resourceVersion}
        whole = NetworkPolicy.from_dict({**wanted.to_dict(), "metadata": about})
        if not await self._api.replace(whole):
            raise ApiUnreachable("it was changed again at this moment")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                rules = await self._look()
                for namespace in sorted({key[0] for key in self._wanted}):
                    await self._renewed(namespace, rules)
            except errors.HansaError as error:
                _log.warning("network policies could not be looked after", error=error.message)

    async def _renewed(self, namespace: str, rules: Rules) -> None:
        try:
            await self._put(network_manifest.walls(namespace, rules))
        except (ApiRefused, errors.NotFound):
            self._forget(namespace)

    def _forget(self, namespace: str) -> None:
        """It is made again with the next thing that runs there."""
        self._wanted = {key: one for key, one in self._wanted.items() if key[0] != namespace}


def _key(policy: NetworkPolicy) -> Key:
    assert policy.metadata is not None
    return str(policy.metadata.namespace), str(policy.metadata.name)
