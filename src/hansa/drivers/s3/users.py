"""Who may use the embedded store? `SeaweedUsers` keeps one SeaweedFS identity per person.

Speaks to the filer's own user administration by RPC: about 3 ms a call where `weed shell` takes 400,
effective when it returns, and, because names travel as message fields, nothing a token says can become a
command. SeaweedFS keeps identities and policies as files, so their names are derived (`policies.name_of`);
the access key is the user's own.

SeaweedFS keeps all of them in memory, too. A change of a user replaces that memory by a copy, and forgets what another
change put there meanwhile: a user, or the policy that opens something to one. So users are changed one at a time, and
no policy meanwhile; policies are changed in place, and together.

Every identity names three policies: its own, the one of the published buckets, and one that takes the right to add
anything. So `grant` writes one policy, and `publish` and `close_to_people` write one however many users there are. A
policy that does not exist allows nothing, and takes nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
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
_HINT = "check that the embedded object store runs"
_CHANGES_OF_USERS = frozenset({"CreateUser", "UpdateUser", "DeleteUser"})
_CHANGES_OF_POLICIES = frozenset({"PutPolicy", "DeletePolicy"})


class _Changes:
    """Whose change is made now? A user's alone, policies' together; whoever came first goes first."""

    def __init__(self) -> None:
        self._entrance = asyncio.Lock()
        self._together = 0
        self._none_together = asyncio.Event()
        self._none_together.set()

    @contextlib.asynccontextmanager
    async def turn(self, method: str) -> AsyncIterator[None]:
        if method in _CHANGES_OF_USERS:
            async with self._entrance:
                await self._none_together.wait()
                yield
        elif method in _CHANGES_OF_POLICIES:
            async with self._entrance:
                self._together += 1
                self._none_together.clear()
            try:
                yield
            finally:
                self._together -= 1
                if not self._together:
                    self._none_together.set()
        else:
            yield


class SeaweedUsers:
    """The `StoreUsers` and `Closable` ports for the embedded store."""

    def __init__(self, filer: Filer, root: Keys) -> None:
        self._filer, self._root = filer, root
        self._channel: Any = None
        self._changes = _Changes()

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
        async with contextlib.AsyncExitStack() as turn:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await turn.enter_async_context(self._changes.turn(method))
                return await ask(MESSAGES[request](**fields), timeout=_PATIENCE, metadata=self._filer.proof())
            except TimeoutError as error:
                raise StoreUnreachable(
                    f"the object store's user administration is busy: {method}", hint=_HINT
                ) from error
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
            return StoreUnreachable(message, hint=_HINT)
