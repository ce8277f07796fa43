"""Who has been here, where does their work live, and which keys open the store for them?

`ensure` needs only our own database, so a user can sign in and see their services while the store is down.
`keys` also makes sure that the store knows the user, and raises `Temporary` when it cannot.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hansa import identity
from hansa.identity import ADMIN_UID, Caller, Vault
from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError, NotFound, Temporary
from hansa.storage.grants import Grants
from hansa.storage.ports import Keys
from hansa.storage.records import OwnerOf, PeopleRecords, PersonRecord
from hansa.storage.turns import Turns

_SECRET_BYTES = 10  # as OSCAR makes them: 14 characters
_LONGEST_NAME = 255
_STRANGER = "\0"  # nobody's uid

Claim = Callable[[str, str], Awaitable[bool]]


async def granted(_namespace: str, _uid: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Person:
    uid: str
    name: str
    namespace: str
    keys: Keys = field(repr=False)  # empty where the store makes no users


class People:
    def __init__(
        self,
        records: PeopleRecords,
        grants: Grants,
        vault: Vault,
        namespace_prefix: str,
        clock: Clock,
        admin_keys: Keys | None = None,
        claim: Claim = granted,
    ) -> None:
        """`claim` takes a namespace for a user where the work runs; False if it is another's, whatever we know."""
        self._claim = claim
        self._records = records
        self._grants = grants
        self._vault = vault
        self._prefix = namespace_prefix
        self._clock = clock
        self._admin = Person(ADMIN_UID, ADMIN_UID, namespace_prefix, admin_keys or Keys("", ""))
        self._kept: dict[str, PersonRecord] = {}
        self._people: dict[str, Person] = {ADMIN_UID: self._admin}
        self._turns = Turns()

    async def load(self) -> None:
        self._kept = {record.uid: record for record in await self._records.all()}
        self._people = {ADMIN_UID: self._admin}
        self._grants.expect(self._kept)

    async def ensure(self, caller: Caller) -> Person:
        """The caller's durable record, made at the first contact; for a service token its owner's."""
        known = self.find(caller.uid)
        if known is not None:
            return known
        if caller.kind != "user":
            raise _stranger(caller.uid)
        async with self._turns.hold([caller.uid]):
            known = self.find(caller.uid)
            if known is None:
                self._kept[caller.uid] = await self._first_contact(caller)
                known = self._person(self._kept[caller.uid])
        return known

    async def keys(self, caller: Caller) -> Keys:
        """The caller's own keys, which work when this returns; empty where the store makes no users."""
        person = await self.ensure(caller)
        if caller.uid != ADMIN_UID:
            await self._grants.admit(person.uid, person.keys)
        return person.keys

    async def admit_all(self) -> list[str]:
        """Everybody we know is a user of the store; returns who was refused and why, goes on to the others."""
        refused: list[str] = []
        for uid in list(self._kept):
            try:
                person = self.find(uid)
                if person is not None:
                    await self._grants.admit(uid, person.keys)
            except Temporary:
                raise  # the store is away: the others would only wait for the same answer
            except HansaError as error:
                refused.append(f"user {uid}: {error.message}")
        return refused

    def find(self, uid: str) -> Person | None:
        person = self._people.get(uid)
        if person is None and uid in self._kept:
            person = self._person(self._kept[uid])
        return person

    def knows(self, uid: str) -> bool:
        return uid == ADMIN_UID or uid in self._kept

    def issuer_of(self, uid: str) -> str:
        """With whom this user signed in; "" for the admin and for somebody who never came."""
        record = self._kept.get(uid)
        return record.issuer if record is not None else ""

    def by_key(self, access_key: str) -> Person | None:
        """Whose key signed a request to the store; the store's events tell no more than the key."""
        if access_key in self._kept and Keys.of_user(access_key, "").access_key == access_key:
            return self.find(access_key)
        return next((self.find(uid) for uid in self._kept if Keys.of_user(uid, "").access_key == access_key), None)

    def namespace_of(self, uid: str) -> str:
        """Where this user's work lives; raises `NotFound` for somebody who never came."""
        if uid == ADMIN_UID:
            return self._prefix
        record = self._kept.get(uid)
        if record is None:
            raise _stranger(uid)
        return record.namespace

    def owner_of(self, namespace: str) -> str:
        """Whose work lives there; "" if it is nobody's whom we know."""
        return next((uid for uid, record in self._kept.items() if record.namespace == namespace), "")

    async def _first_contact(self, caller: Caller) -> PersonRecord:
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        fresh = PersonRecord(
            uid=caller.uid,
            name=caller.name[:_LONGEST_NAME],
            issuer=caller.issuer,
            subject=caller.subject,
            namespace="",
            sealed=self._vault.seal({"secret_key": secret}, purpose=_purpose(caller.uid)),
            created=self._clock.now(),
        )
        refused = await self._refused(caller.uid)

        def choose(owner_of: OwnerOf) -> str:
            return identity.claim_namespace(
                self._prefix, caller.uid, lambda name: _STRANGER if name in refused else owner_of(name)
            )

        return await self._records.add(fresh, choose)

    async def _refused(self, uid: str) -> set[str]:
        """The namespaces that this user would be given, and that are somebody else's where the work runs. What is
        given is remembered, so it is asked once; a new user whom nobody can answer has to come again."""
        refused: set[str] = set()

        def owner_of(name: str) -> str | None:
            return _STRANGER if name in refused else self.owner_of(name) or None

        while not await self._claim(name := identity.claim_namespace(self._prefix, uid, owner_of), uid):
            refused.add(name)
        return refused

    def _person(self, record: PersonRecord) -> Person:
        keys = Keys("", "")
        if self._grants.offered:
            secret = self._vault.open(record.sealed, purpose=_purpose(record.uid))["secret_key"]
            keys = Keys.of_user(record.uid, secret)
        person = Person(record.uid, record.name, record.namespace, keys)
        self._people[record.uid] = person
        return person


def _purpose(uid: str) -> str:
    return f"store user {uid}"


def _stranger(uid: str) -> NotFound:
    return NotFound(f"user {uid[:60]!r} has never been here", hint="the user appears with their first request")
