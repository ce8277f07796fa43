"""Who may use the embedded store? `SeaweedUsers` keeps one SeaweedFS identity per person.

Speaks to the filer's own user administration by RPC: about 3 ms a call where `weed shell` takes 400,
effective when it returns, and, because names travel as message fields, nothing a token says can become a
command. SeaweedFS keeps identities and policies as files, so their names are derived (`policies.name_of`);
the access key is the user's own.

Every identity names three policies: its own, the one of the published buckets, and one that takes the right to add
anything. So `grant` writes one policy, and `publish` and `close_to_people` write one however many users there are. A
policy that does not exist allows nothing, and takes nothing."""

from typing import Any

import grpc
import grpc.aio

from hansa.drivers.s3 import policies
from hansa.drivers.s3.errors import StoreUnreachable
from hansa.drivers.s3.seaweed_rpc import MESSAGES, Filer, unary
from hansa.kernel.errors import Conflict, Forbidden, HansaError, NotFound
from hansa.storage import Keys

_SERVICE = "/iam_pb.SeaweedIdentityAccessManagement/"
_PATIENCE = 10.0


class SeaweedUsers:
    """The `StoreUsers` and `Closable` ports for the embedded store."""

    def __init__(self, filer: Filer, root: Keys) -> None:
        self._filer, self._root = filer, root
        self._channel: Any = None

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def ensure_user(self, keys: Keys) -> None:
        policies.require_user(keys, self._root.access_key)
        name = policies.name_of(keys.access_key)
        wanted = _identity(name, keys)
        present = await self._find(name)
        if present is None:
            # What a removal that was cut short left behind must not come back with the name.
            await self._drop_policy(name)
            await self.call("CreateUser", "IdentityBox", "Empty", identity=wanted)
        elif present != wanted:
            await self.call("UpdateUser", "IdentityUpdate", "Empty", username=name, identity=wanted)

    async def grant(self, user: str, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        name = policies.name_of(user)
        if await self._find(name) is None:
            raise NotFound(f"the object store has no user {user!r}", hint="call ensure_user first")
        await self._put_policy(name, buckets, full)

    async def publish(self, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        await self._put_policy(policies.PUBLISHED, buckets, full)

    async def close_to_people(self, closed: bool) -> None:
        if closed:
            await self.put_policy(policies.CLOSED, policies.closed())
        else:
            await self._drop_policy(policies.CLOSED)

    async def remove_user(self, user: str) -> None:
        name = policies.name_of(user)
        await self.forgiving("DeleteUser", "UserName", username=name)
        await self._drop_policy(name)

    async def _find(self, name: str) -> Any | None:
        try:
            box = await self.call("GetUser", "UserName", "IdentityBox", username=name)
        except NotFound:
            return None
        return box.identity

    async def _put_policy(self, name: str, buckets: frozenset[str], full: frozenset[str]) -> None:
        if buckets:
            await self.put_policy(name, policies.document(buckets, full))
        else:
            await self._drop_policy(name)

    async def put_policy(self, name: str, document: str) -> None:
        await self.call("PutPolicy", "Policy", "Empty", name=name, content=policies.listed_only(document))

    async def _drop_policy(self, name: str) -> None:
        await self.forgiving("DeletePolicy", "Policy", name=name)

    async def forgiving(self, method: str, request: str, **fields: Any) -> None:
        try:
            await self.call(method, request, "Empty", **fields)
        except NotFound:
            return

    async def call(self, method: str, request: str, answer: str, **fields: Any) -> Any:
        if self._channel is None:
            self._channel = self._filer.channel()
        ask = unary(self._channel, _SERVICE + method, request, answer)
        try:
            return await ask(MESSAGES[request](**fields), timeout=_PATIENCE, metadata=self._filer.proof())
        except grpc.aio.AioRpcError as error:
            raise _translated(error, method) from error


def _identity(name: str, keys: Keys) -> Any:
    credential = {"access_key": keys.access_key, "secret_key": keys.secret_key, "status": "Active"}
    return MESSAGES["Identity"](
        name=name, credentials=[credential], policy_names=[policies.PUBLISHED, policies.CLOSED, name]
    )


def _translated(error: grpc.aio.AioRpcError, method: str) -> HansaError:
    # The store's own text may hold the request, and with it a secret: only the code goes on.
    message = f"the object store's user administration refused {method}: {error.code().name}"
    match error.code():
        case grpc.StatusCode.NOT_FOUND:
            return NotFound(message)
        case grpc.StatusCode.ALREADY_EXISTS:
            return Conflict(message, hint="another manager made the same user; try again")
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return Forbidden(message, hint="the store was started with another filer signing key")
        case _:
            return StoreUnreachable(message, hint="check that the embedded object store runs")
