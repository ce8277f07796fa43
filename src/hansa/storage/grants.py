"""Does the store let each user into exactly their buckets? Derived from the register, never remembered elsewhere.

`People` brings new users in, `Buckets` has the affected ones settled after every change. A store that was
restarted or restored may have forgotten everything: after `forget` all of it is told again. It may also have forgotten
nothing, so a right that ends meanwhile is taken from everybody who may be its user, whatever we were told.
"""

from collections.abc import Iterable

from hansa.kernel.errors import NotFound
from hansa.storage.ports import Keys, StoreUsers
from hansa.storage.register import BucketRegister
from hansa.storage.turns import Turns

_EVERYBODY = ""  # no uid is empty, so its turn is free for the published buckets
Reach = tuple[frozenset[str], frozenset[str]]  # buckets, and those of them to which nothing may be added


class Grants:
    def __init__(self, users: StoreUsers | None, register: BucketRegister) -> None:
        self._users = users  # None: the store makes no users, everybody works through the manager
        self._register = register
        self._turns = Turns()
        self._sure: set[str] = set()  # users of the store, made sure of since the last `forget`
        self._given: dict[str, Reach | None] = {}  # to all who may be users of it; None: nobody knows what
        self._published: Reach | None = None

    @property
    def offered(self) -> bool:
        """Whether people have keys of their own in this store."""
        return self._users is not None

    @property
    def settled(self) -> bool:
        """Whether the store was told everything it has to know."""
        return self._users is None or (self._published is not None and None not in self._given.values())

    def expect(self, uids: Iterable[str]) -> None:
        """They may be users of the store since earlier."""
        for uid in uids:
            self._given.setdefault(uid, None)

    def forget(self) -> None:
        self._sure.clear()
        self._given = dict.fromkeys(self._given)
        self._published = None

    async def admit(self, uid: str, keys: Keys) -> None:
        """The user exists in the store with all rights due; costs nothing once it is so."""
        if self._users is None or (uid in self._sure and self._given[uid] is not None):
            return
        async with self._turns.hold([uid]):
            if uid not in self._sure:
                await self._users.ensure_user(keys)
                self.expect([uid])
                self._sure.add(uid)
        await self.settle([uid])

    async def settle(self, uids: Iterable[str]) -> None:
        """Those of them who are users of the store may use what the register says."""
        for uid in sorted(set(uids)):
            async with self._turns.hold([uid]):
                # Read inside the turn: of two changes at once the later call tells the newer state.
                wanted = self._reach(self._register.reach(uid))
                if self._users is None or uid not in self._given or self._given[uid] == wanted:
                    continue
                self._given[uid] = None  # until it is confirmed, nobody knows
                try:
                    await self._users.grant(Keys.of_user(uid, "").access_key, *wanted)
                except NotFound:  # whom the store does not know it lets in nowhere
                    if uid in self._sure:
                        self._sure.discard(uid)
                        raise
                else:
                    self._given[uid] = wanted

    async def publish(self) -> None:
        async with self._turns.hold([_EVERYBODY]):
            wanted = self._reach(self._register.public())
            if self._users is not None and self._published != wanted:
                self._published = None
                await self._users.publish(*wanted)
                self._published = wanted

    def _reach(self, buckets: frozenset[str]) -> Reach:
        return buckets, buckets & self._register.full
