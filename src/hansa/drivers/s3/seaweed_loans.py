"""How does the embedded store lend keys to one run? A user of its own, whose policy opens what the run may touch.

The store itself keeps everything else shut, whoever has the keys and whatever is signed with them. With the user all of
it ends at once. Names and secrets are derived, so a manager that was restarted finds and ends what it lent before.

Making a user takes as long as the policy, and must be alone. So some users are kept ready for runs that are about to
start. Without a policy they may do nothing, and none is used for two loans.
"""

import asyncio
import hashlib
import hmac
import secrets

import structlog

from hansa.drivers.s3 import policies
from hansa.drivers.s3.seaweed_rpc import MESSAGES
from hansa.drivers.s3.users import SeaweedUsers
from hansa.kernel.errors import Conflict, HansaError
from hansa.storage import Keys, Reach

_log = structlog.get_logger(__name__)
_PREFIX = "hansa-loan-"
_READY = 8  # users without a loan yet: as many runs that start together need not wait for one


class SeaweedLoans:
    """The `Loans` port for the embedded store."""

    def __init__(self, users: SeaweedUsers, root: Keys) -> None:
        self._users = users
        self._secret = root.secret_key.encode()
        self._ready: list[str] = []  # names of loans to come, whose users are there
        self._taken: set[str] = set()  # the same, but somebody has the name already, or it is being made
        self._making_ready: asyncio.Task[None] | None = None
        self._closed = False

    def new_name(self) -> str:
        if not self._ready:
            return secrets.token_hex(8)
        self._taken.add(name := self._ready.pop())
        return name

    async def lend(self, name: str, reach: Reach) -> Keys:
        keys = self._keys(name)
        opening = self._users.put_policy(keys.access_key, policies.reach_document(reach))
        if name in self._taken:
            self._taken.discard(name)  # whoever lends it again makes sure of its user
            await opening
        else:
            # Together: a user without a policy may do nothing, and a policy without a user opens nothing.
            await asyncio.gather(self._make(keys), opening)
        return keys

    async def end(self, name: str) -> None:
        self._taken.discard(name)
        await self._end(self._keys(name).access_key)
        self._restock()

    async def end_others(self, alive: frozenset[str]) -> int:
        users = await self._users.call("ListUsers", "Empty", "UserNames")
        policies = await self._users.call("ListPolicies", "Empty", "Policies")  # one may be all that a kill left
        spared = {self._keys(name).access_key for name in (*alive, *self._ready, *self._taken)}
        named = {*users.usernames, *(policy.name for policy in policies.policies)}
        left = [user for user in named if user.startswith(_PREFIX) and user not in spared]
        for user in left:
            await self._end(user)
        self._restock()
        return len(left)

    async def close(self) -> None:
        """The connection is the users'. What was made ready stays: the next life ends it with the rest."""
        self._closed = True
        if self._making_ready is not None:
            self._making_ready.cancel()
            await asyncio.gather(self._making_ready, return_exceptions=True)

    def _restock(self) -> None:
        """After the end of a loan: while one begins it would be in the way."""
        if self._closed or len(self._ready) >= _READY:
            return
        if self._making_ready is None or self._making_ready.done():
            self._making_ready = asyncio.create_task(self._make_ready(), name="make users of loans ready")

    async def _make_ready(self) -> None:
        while len(self._ready) < _READY:
            self._taken.add(name := secrets.token_hex(8))  # no sweep takes it away meanwhile
            try:
                await self._make(self._keys(name))
            except HansaError as error:  # then runs wait for users of their own
                _log.debug("no user could be made ready", error=error.message)
                return
            finally:
                self._taken.discard(name)
            self._ready.append(name)

    async def _make(self, keys: Keys) -> None:
        user, identity = keys.access_key, _identity(keys)
        try:
            await self._users.call("CreateUser", "IdentityBox", "Empty", identity=identity)
        except Conflict:  # an earlier life of ours lent it
            await self._users.call("UpdateUser", "IdentityUpdate", "Empty", username=user, identity=identity)

    async def _end(self, user: str) -> None:
        await self._users.forgiving("DeleteUser", "UserName", username=user)
        await self._users.forgiving("DeletePolicy", "Policy", name=user)

    def _keys(self, name: str) -> Keys:
        def derived(what: str) -> str:
            return hmac.new(self._secret, f"loan {what} {name}".encode(), hashlib.sha256).hexdigest()[:40]

        return Keys(_PREFIX + derived("user"), derived("secret"))


def _identity(keys: Keys) -> object:
    credential = {"access_key": keys.access_key, "secret_key": keys.secret_key, "status": "Active"}
    return MESSAGES["Identity"](name=keys.access_key, credentials=[credential], policy_names=[keys.access_key])
