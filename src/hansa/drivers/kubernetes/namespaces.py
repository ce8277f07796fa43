"""Where does a user's work live in Kubernetes, whose is it, and how much may be used there?

A namespace is marked with its owner as OSCAR marks it, so that it is known whose it is after everything else was lost.
`storage.People` claims one for a new user, and remembers its name: another user's is refused, and so is that of another
manager that shares this Kubernetes. `ensure` makes it again if it is gone when something is to run there.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import structlog
from lightkube.resources.core_v1 import LimitRange, Namespace, ResourceQuota, Secret

from hansa import identity, resources
from hansa.drivers.kubernetes import labels, quota_manifest
from hansa.drivers.kubernetes.binding import Binding
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.kernel import errors
from hansa.settings import BadSetting

OWNER_HASH, OWNER = "oscar.grycap.upv.es/owner-hash", "oscar.grycap.upv.es/owner"
_SECURITY = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}
_PULLED_AGAIN = 600.0  # seconds
_LOOK_EVERY = 60.0
_log = structlog.get_logger("hansa.kubernetes")


class NamespaceTaken(errors.Conflict):
    """A namespace in Kubernetes belongs to another user."""

    code = "kubernetes.namespace-taken"


class PullSecretMissing(ApiUnreachable):
    """A Secret with which nodes should pull Hansa's own image is not there; what needs it waits."""

    code = "kubernetes.pull-secret-missing"


def _nobody(_namespace: str) -> str:
    return ""


def _unlimited(_owner: str) -> resources.Limits | None:
    return None


class Namespaces:
    """`default` is the admin's, `private` the manager's own. With `allowed` nothing is made, and no other is used."""

    def __init__(
        self,
        api: Connection,
        cluster: str,
        *,
        default: str,
        private: str = "",
        allowed: Sequence[str] = (),
        binding: str = "",
        queue: str = "",
        pull_secrets: Sequence[str] = (),
        owner_of: Callable[[str], str] = _nobody,
        limits_of: Callable[[str], resources.Limits | None] = _unlimited,
    ) -> None:
        """`binding` is the ClusterRole by which we come to our rights in a namespace that we made. `queue` is the
        ClusterQueue of Kueue for users' jobs, `pull_secrets` are of the manager's own namespace, for the registry of
        the image that helps in every pod. `owner_of` tells whose namespace it is ("": nobody's),
        `limits_of` what a user is held to (None: nothing).
        Raises `BadSetting` if users' pods would run in the manager's own namespace."""
        if private and private in (default, *allowed):
            raise BadSetting(
                f"kubernetes.namespace {private} is one in which services run",
                hint="keep what is secret in a namespace of its own, in which no user's pod can mount it",
            )
        self._api = api
        self.cluster = cluster
        self.private = private
        self.allowed = tuple(allowed)
        self._binding = Binding(api, cluster, binding) if binding else None
        self._known: list[str] = []  # those in which we have our rights, with `binding`
        self._tell: list[Callable[[str], None]] = []
        self._queue = queue
        self._pull_secrets = tuple(pull_secrets)
        self._default = default
        self._owner_of = owner_of
        self._limits_of = limits_of
        self._made: dict[str, str] = {}  # by name, with the owner
        self._pulled: dict[str, float] = {}  # by name, when pull secrets were last brought there

    def told_by(self, owner_of: Callable[[str], str], limits_of: Callable[[str], resources.Limits | None]) -> None:
        """Whom to ask from now on: people and quotas are there later than we."""
        self._owner_of, self._limits_of = owner_of, limits_of

    @property
    def growing(self) -> bool:
        """Whether we have rights in some namespaces, and in more with every user."""
        return self._binding is not None

    @property
    def everywhere(self) -> bool:
        return not self.allowed and not self.growing

    def followed(self) -> tuple[str, ...]:
        """Those to look at; none stands for all, unless they are `growing`."""
        return self.allowed or tuple(self._known)

    def listed(self) -> tuple[str, ...]:
        """The same in the words of a list."""
        return ("*",) if self.everywhere else self.followed()

    def on_new(self, tell: Callable[[str], None]) -> None:
        """Hears of every namespace in which we have come to our rights, from now on."""
        self._tell.append(tell)

    async def load(self) -> None:
        """Those that an earlier life of ours made are known, and our rights in them there."""
        if self._binding is None:
            return
        for one in await self._api.list(Namespace, labels={labels.CLUSTER: labels.value(self.cluster)}):
            if one.metadata.name != self.private and one.metadata.deletionTimestamp is None:
                await self._bind(one.metadata.name)

    async def keep(self) -> None:
        """For ever: a binding that somebody deleted is made again."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await self.load()
            except errors.HansaError as error:
                _log.warning("namespaces could not be looked after", error=error.message, hint=error.hint)

    async def _bind(self, name: str) -> None:
        if self._binding is None or name == self.private:
            return
        await self._binding.bind(name)
        if name not in self._known:
            self._known.append(name)
        for tell in self._tell:
            tell(name)

    def placed(self, asked: str) -> str:
        """Where something runs that belongs to this namespace."""
        if self.allowed:
            return asked if asked in self.allowed else self.allowed[0]
        return asked or self._default

    async def ensure(self, name: str, owner: str = "") -> None:
        """It is there, closed to pods that want more than ours do. One that somebody made before stays as it is.
        Raises `NamespaceTaken` if it is another user's."""
        if self.allowed:
            return
        owner = self._user(name, owner)
        if name in self._made and owner in ("", self._made[name]):
            await self._bring_pull_secrets(name)
            return
        owner = owner or self._user(name, self._owner_of(name))
        found = await self._there(name, owner)
        if self.growing and name != self.private:
            if not self._is_ours(found):
                raise NamespaceTaken(
                    f"the namespace {name} was not made by this manager, which has no rights in it",
                    hint=f"to give it: kubectl label namespace {name} {labels.CLUSTER}={labels.value(self.cluster)}",
                )
            await self._bind(name)
        if owner:
            self._check_owner(found, owner)
            await self._mark(found, owner)
            await self._limit(name, owner)
            if self._queue:
                await self._api.apply(quota_manifest.local_queue(name, self.cluster, self._queue))
        await self._bring_pull_secrets(name)
        self._made[name] = owner

    def forget(self, name: str = "") -> None:
        """Looks again when something is to run there: it is gone, or (for all of them) quotas are others."""
        for one in [name] if name else list(self._made):
            self._made.pop(one, None)
            self._pulled.pop(one, None)

    async def claim(self, name: str, owner: str) -> bool:
        """Takes it for a user. False if it is another's: another user's, or that of another manager's user, for the
        names of services and volumes are unique in one cluster alone."""
        if self.allowed:
            return True
        if name == self.private:
            return False
        found = await self._there(name, owner)
        whose = (found.metadata.labels or {}).get(labels.CLUSTER)
        ours = (labels.value(self.cluster),) if self.growing else (None, labels.value(self.cluster))
        return _owner_mark(found) in ("", identity.owner_hash(owner)) and whose in ours

    async def apply_quota(self, namespace: str, limits: resources.Limits | None) -> None:
        """What the pods and volumes of a user's namespace may request together; None lifts it."""
        if self.allowed or namespace in ("", self._default, self.private):
            return
        if limits is None:
            for kind in (ResourceQuota, LimitRange):
                await self._api.delete(kind, quota_manifest.name_of(self.cluster), namespace)
            return
        await self._api.apply(quota_manifest.resource_quota(namespace, self.cluster, limits, disk=not self._queue))
        await self._api.apply(quota_manifest.limit_range(namespace, self.cluster, limits, disk=not self._queue))

    async def quota_changed(self, owner: str = "") -> None:
        """Tells Kubernetes what this user is held to now; "" stands for everybody."""
        for name, whose in list(self._made.items()):
            if whose and owner in ("", whose):
                try:
                    await self._limit(name, whose)
                except errors.Temporary as error:
                    self.forget(name)  # when something is to run there next, it is told
                    _log.warning("a quota is told to Kubernetes later", namespace=name, error=error.message)

    def _user(self, name: str, owner: str) -> str:
        """Neither the admin's nor the manager's own namespace is a user's."""
        return "" if owner == identity.ADMIN_UID or name in (self._default, self.private) else owner

    async def _limit(self, name: str, owner: str) -> None:
        try:
            await self.apply_quota(name, self._limits_of(owner))
        except ApiRefused as error:  # the manager itself holds jobs to the quota, so this is no reason to run nothing
            _log.warning("the quota is not known to Kubernetes", namespace=name, error=error.message, hint=error.hint)
        except errors.NotFound:  # it went away this moment
            self.forget(name)

    async def _there(self, name: str, owner: str) -> Any:
        """The namespace, which is made if there is none."""
        found = await self._api.get(Namespace, name)
        if found is None:
            found = await self._api.create(self._namespace(name, owner)) or await self._api.get(Namespace, name)
        if found is None or found.metadata.deletionTimestamp is not None:
            raise ApiUnreachable(
                f"the namespace {name} is being deleted", hint="it is made again when it is gone", retry_after=5.0
            )
        return found

    async def _bring_pull_secrets(self, namespace: str) -> None:
        """They are looked at again now and then: some registries give out a new one every few hours."""
        now = time.monotonic()
        if namespace == self.private or now - self._pulled.get(namespace, -_PULLED_AGAIN) < _PULLED_AGAIN:
            return
        for name in self._pull_secrets:
            await self._bring_pull_secret(name, namespace)
        self._pulled[namespace] = now

    async def _bring_pull_secret(self, name: str, namespace: str) -> None:
        source = await self._api.get(Secret, name, self.private)
        there = await self._api.get(Secret, name, namespace)
        if there is not None and labels.FOR_PULLING not in (there.metadata.labels or {}):
            _log.warning("a Secret of that name is there; it is left as it is", namespace=namespace, secret=name)
            return
        if source is None and there is None:
            raise PullSecretMissing(
                f"there is no Secret {name} in namespace {self.private}, which kubernetes.pull_secrets names",
                hint=f"kubectl -n {self.private} create secret docker-registry {name} --docker-server=…",
                retry_after=5.0,
            )
        if source is None:
            _log.warning("a pull secret is gone; users' copies are used", namespace=self.private, secret=name)
            return
        about = {
            "name": name,
            "namespace": namespace,
            "labels": {**labels.of_cluster(self.cluster), labels.FOR_PULLING: ""},
        }
        copy = {"metadata": about, "type": source.type, "data": source.data or {}}
        await self._api.apply(cast(Secret, Secret.from_dict(copy)))

    async def _mark(self, found: Any, owner: str) -> None:
        """One of ours that has no owner yet."""
        if self._is_ours(found) and not _owner_mark(found):
            await self._api.merge(Namespace, found.metadata.name, None, {"metadata": _marks(owner)})

    def _is_ours(self, found: Any) -> bool:
        return bool((found.metadata.labels or {}).get(labels.CLUSTER) == labels.value(self.cluster))

    def _check_owner(self, found: Any, owner: str) -> None:
        if _owner_mark(found) not in ("", identity.owner_hash(owner)):
            raise NamespaceTaken(
                f"the namespace {found.metadata.name} belongs to another user",
                hint=f"kubectl get namespace {found.metadata.name} -o yaml shows whose it is; "
                "another cluster.services_namespace gives all users names of their own",
            )

    def _namespace(self, name: str, owner: str) -> Namespace:
        marks = {**labels.of_cluster(self.cluster), **_SECURITY}
        about: dict[str, Any] = {"name": name, "labels": marks}
        if owner:
            about |= {"annotations": _marks(owner)["annotations"], "labels": marks | _marks(owner)["labels"]}
        return cast(Namespace, Namespace.from_dict({"metadata": about}))


def _marks(owner: str) -> dict[str, dict[str, str]]:
    """As OSCAR's own tools look for them."""
    return {
        "labels": {labels.MANAGED_BY: "oscar", OWNER_HASH: identity.owner_hash(owner)},
        "annotations": {OWNER: owner},
    }


def _owner_mark(found: Any) -> str:
    """The hash of its owner; "" if it has none."""
    said = (found.metadata.annotations or {}).get(OWNER, "")
    mark = (found.metadata.labels or {}).get(OWNER_HASH, "")
    return mark or (identity.owner_hash(said) if said else "")
