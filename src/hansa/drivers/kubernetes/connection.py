"""How do we talk to the API server? One client for all, every call with a limit, every refusal in our words.

What is gone already, or there already, is no error here: whoever asks twice means the same.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import yaml
from lightkube import AsyncClient, KubeConfig
from lightkube.core.exceptions import ApiError, ConfigError, LoadResourceError
from lightkube.types import CascadeType, PatchType

from hansa.drivers.kubernetes import sockets
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.kernel.errors import NotFound

T = TypeVar("T")
FIELD_MANAGER = "hansa"
_CALL = 10.0  # seconds
_PAGE = 500
_TOO_NEW = "error looking up service account"  # of a namespace that was made a moment ago
# What reading a file that is no kubeconfig, or one with keys that are none, ends with.
_UNUSABLE = (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError)
_BUSY = frozenset({408, 429, 500, 502, 503, 504})


class Connection:
    """Calls of short life; watches are `following`'s."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self.client.config.cluster.server)

    @classmethod
    def open(cls, kubeconfig: Path | None, context: str = "") -> "Connection":
        """`None` means the pod's own service account. Raises `ApiRefused` for a file that cannot be used."""
        try:
            given = KubeConfig.from_file(str(kubeconfig)) if kubeconfig else KubeConfig.from_service_account()
            chosen = given.get(context_name=context or None)
            limits = httpx2.Timeout(_CALL, pool=_CALL)
            client = AsyncClient(config=chosen, timeout=limits, field_manager=FIELD_MANAGER, trust_env=False)
        except _UNUSABLE as error:
            raise ApiRefused(
                f"the kubeconfig cannot be used: {_trouble(error)}",
                hint="check the file, and the context it is used with",
            ) from None
        sockets.close_what_is_given_up(client._client._client)
        return cls(client)

    async def close(self) -> None:
        await self.client.close()

    async def check(self) -> None:
        """Raises `ApiUnreachable` or `ApiRefused` unless the API server answers us."""
        await self.version()

    async def version(self) -> str:
        """Of the cluster, as v1.34.4."""
        return str((await self.ask("/version")).get("gitVersion", ""))

    async def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """What is no object that lightkube knows, by its path; a body is posted."""
        return await self._call(f"ask for {path}", self._ask(path, body))

    async def whoami(self) -> str:
        """The name of our account. Raises `NotFound` where the server does not say."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        who = await self.ask("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        return str(who["status"]["userInfo"].get("username", ""))

    async def may(self, attributes: Mapping[str, str]) -> bool:
        """Whether the account has this right, by its `resourceAttributes`."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": dict(attributes)},
        }
        answer = await self.ask("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    async def _ask(self, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        inner = self.client._client
        request = inner._client.build_request("GET" if body is None else "POST", path, json=body)
        answer = await inner._client.send(request)
        try:
            inner.raise_for_status(answer)  # type: ignore[no-untyped-call]
            return dict(answer.json())
        except (ValueError, TypeError, KeyError):
            raise ApiRefused(
                f"{path} is not answered as a Kubernetes does", hint="is this the address of an API server?"
            ) from None

    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any | None:
        """None if there is none."""
        try:
            return await self._call(f"read {_named(kind, name)}", self.client.get(kind, name, namespace=namespace))
        except NotFound:
            return None

    async def list(
        self,
        kind: Any,
        namespace: str | None = None,
        labels: dict[str, Any] | None = None,
        fields: dict[str, Any] | None = None,
    ) -> list[Any]:
        """Of all namespaces with "*"."""

        async def all_of() -> list[Any]:
            found = self.client.list(kind, namespace=namespace, labels=labels, fields=fields, chunk_size=_PAGE)
            return [one async for one in found]

        return await self._call(f"list {kind.__name__}s", all_of())

    async def create(self, obj: Any) -> Any | None:
        """None if there is one of that name already."""
        named = _named(type(obj), obj.metadata.name)
        try:
            return await self._call(f"create {named}", self.client.create(obj))
        except _There:
            return None

    async def apply(self, obj: Any) -> Any:
        """Server-side apply of what is ours in it."""
        named = _named(type(obj), obj.metadata.name)
        return await self._call(f"apply {named}", self.client.apply(obj, force=True))

    async def replace(self, obj: Any) -> bool:
        """False if somebody else changed it since it was read, or took it away."""
        named = _named(type(obj), obj.metadata.name)
        try:
            await self._call(f"write {named}", self.client.replace(obj))
        except NotFound:
            return False
        except ApiRefused as error:
            if error.facts.get("status") != 409:
                raise
            return False
        return True

    async def merge(self, kind: Any, name: str, namespace: str | None, change: dict[str, Any]) -> bool:
        """False if it is gone."""
        asked = self.client.patch(kind, name, change, namespace=namespace, patch_type=PatchType.MERGE)
        try:
            await self._call(f"change {_named(kind, name)}", asked)
        except NotFound:
            return False
        return True

    async def delete(self, kind: Any, name: str, namespace: str | None = None, *, grace: int | None = None) -> None:
        """With what belongs to it, in the background."""
        asked = self.client.delete(kind, name, namespace=namespace, grace_period=grace, cascade=CascadeType.BACKGROUND)
        try:
            await self._call(f"delete {_named(kind, name)}", asked)
        except NotFound:
            return

    async def _call(self, what: str, asked: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(_CALL):
                return await asked
        except ApiError as error:
            raise _told(what, error) from None
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise ApiUnreachable(
                f"could not {what}: the API server does not answer ({type(error).__name__})",
                hint="is it there, and is there a way to it? kubectl get --raw /readyz",
            ) from None
        except (LoadResourceError, ConfigError) as error:
            raise ApiRefused(f"could not {what}: {error}") from None


def _trouble(error: Exception) -> str:
    """With a kubeconfig."""
    if isinstance(error, (TypeError, AttributeError)):
        return "there is none in the file"
    if isinstance(error, KeyError):
        return f"it says nothing of {error}"
    return " ".join(str(error).split())


class _There(ApiRefused):
    """One of that name exists."""


def _told(what: str, error: ApiError) -> Exception:
    code, said = error.status.code or 500, error.status.message or "no reason given"
    if code == 404:
        return NotFound(f"could not {what}: {said}")
    if code == 403 and _TOO_NEW in said:
        return ApiUnreachable(f"could not {what}: {said}")
    if code in _BUSY and "exceeded quota" not in said:
        return ApiUnreachable(f"could not {what}: {said}")
    if code == 409 and error.status.reason == "AlreadyExists":
        return _There(f"could not {what}: {said}")
    hint = "the account lacks a right: kubectl auth can-i --list" if code in (401, 403) else ""
    if "exceeded quota" in said:
        hint = "the namespace's quota is used up; wait, or ask for more"
    return ApiRefused(f"could not {what}: {said}", hint=hint, status=code)


def _named(kind: Any, name: str | None) -> str:
    return f"{kind.__name__} {name}"
