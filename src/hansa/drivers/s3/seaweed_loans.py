"""How does the embedded store lend keys to one run? A user of its own, whose policy opens what the run may touch.

The store itself keeps everything else shut, whoever has the keys and whatever is signed with them. With the user all of
it ends at once. Names and secrets are derived, so a manager that was restarted finds and ends what it lent before.
"""

import asyncio
import hashlib
import hmac

from hansa.drivers.s3 import policies
from hansa.drivers.s3.seaweed_rpc import MESSAGES
from hansa.drivers.s3.users import SeaweedUsers
from hansa.kernel.errors import Conflict
from hansa.storage import Keys, Reach

_PREFIX = "hansa-loan-"


class SeaweedLoans:
    """The `Loans` port for the embedded store."""

    def __init__(self, users: SeaweedUsers, root: Keys) -> None:
        self._users = users
        self._secret = root.secret_key.encode()

    async def lend(self, name: str, reach: Reach) -> Keys:
        keys = self._keys(name)
        user = keys.access_key
        # Together: a user without a policy may do nothing, and a policy without a user opens nothing.
        await asyncio.gather(self._make(user, keys), self._users.put_policy(user, policies.reach_document(reach)))
        return keys

    async def end(self, name: str) -> None:
        await self._end(self._keys(name).access_key)

    async def end_others(self, alive: frozenset[str]) -> int:
        spared = {self._keys(name).access_key for name in alive}
        users = await self._users.call("ListUsers", "Empty", "UserNames")
        policies = await self._users.call("ListPolicies", "Empty", "Policies")  # one may be all that a kill left
        named = {*users.usernames, *(policy.name for policy in policies.policies)}
        left = [user for user in named if user.startswith(_PREFIX) and user not in spared]
        for user in left:
            await self._end(user)
        return len(left)

    async def close(self) -> None:
        return  # the connection is the users'

    async def _make(self, user: str, keys: Keys) -> None:
        identity = _identity(user, keys)
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


def _identity(user: str, keys: Keys) -> object:
    credential = {"access_key": keys.access_key, "secret_key": keys.secret_key, "status": "Active"}
    return MESSAGES["Identity"](name=user, credentials=[credential], policy_names=[user])
