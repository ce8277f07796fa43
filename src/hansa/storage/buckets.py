"""Buckets: made, shared, listed, removed. The row comes first, the store follows, `converge` repairs the rest.

A row in phase `creating` or `deleting` is work that a crash or an absent store left over; repeating the call
goes on with it, and so does `converge` at the next start. Rights in the store follow from the rows (`grants`).
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hansa import identity, resources
from hansa.identity import ADMIN_UID, Caller
from hansa.kernel import names
from hansa.kernel.clock import Clock
from hansa.kernel.errors import Forbidden, HansaError, Invalid, NotFound, Temporary
from hansa.storage import fullness, links
from hansa.storage.accounting import Accounting
from hansa.storage.contents import Contents
from hansa.storage.errors import BadBucket, BucketBusy, BucketExists, BucketQuota, StoreCrowded
from hansa.storage.grants import Grants
from hansa.storage.links import Link, LinkRequest
from hansa.storage.people import People
from hansa.storage.ports import ObjectPage, ObjectStore, RunKeys
from hansa.storage.records import PRIVATE, PUBLIC, RESTRICTED, Bucket
from hansa.storage.register import BucketRegister
from hansa.storage.turns import Turns

_LONGEST_UID = 255
_MOST_ALLOWED = 1000


@dataclass(frozen=True, slots=True)
class BucketView:
    """One bucket with a page of its objects."""

    bucket: Bucket
    page: ObjectPage
    contents: Contents
    limit: int | None  # bytes it may hold; None: no limit
    closed: str = ""  # why nothing can be added to it, in words


class Buckets:
    def __init__(
        self,
        register: BucketRegister,
        store: ObjectStore,
        grants: Grants,
        people: People,
        quotas: resources.Quotas,
        accounting: Accounting,
        clock: Clock,
        longest_link: int = links.LONGEST_SECONDS,
        runs: RunKeys | None = None,
    ) -> None:
        self._runs = runs  # None: the store lends no keys to them
        self._longest_link = longest_link
        self._register = register
        self._store = store
        self._grants = grants
        self._people = people
        self._quotas = quotas
        self._accounting = accounting
        self._clock = clock
        self._turns = Turns()
        self._counting = asyncio.Lock()  # from counting a user's buckets to writing the new rows

    # Questions answered from memory.

    def exists(self, name: str) -> bool:
        return self._register.get(name) is not None

    def known(self, names: Iterable[str]) -> list[Bucket]:
        """Those of them that are there."""
        return [bucket for name in names if (bucket := self._register.get(name)) is not None]

    def owner_of(self, name: str) -> str:
        """A uid, "cluster_admin", or "" for a bucket that is not ours."""
        bucket = self._register.get(name)
        return bucket.owner if bucket else ""

    def may_use(self, uid: str, name: str) -> bool:
        return self._register.may_use(uid, name)

    def is_full(self, name: str) -> bool:
        return name in self._register.full

    def check_usable(self, caller: Caller, name: str) -> None:
        """Nothing against the caller's service using it, whether it is there or has to be made."""
        if self.exists(name) and not self.may_use(caller.uid, name):
            raise _not_yours(name)

    def count(self, uid: str) -> int:
        return len(self._register.owned(uid))

    async def stored(self, uid: str) -> int:
        """Bytes in all buckets of a user."""
        return await self._accounting.total([bucket.name for bucket in self._register.owned(uid)])

    # What users do.

    async def create(
        self, caller: Caller, name: str, visibility: str | None = None, allowed_users: Sequence[str] = ()
    ) -> None:
        """Without a visibility it is private; the admin's then has no policy at all."""
        names.bucket(name)
        shown, allowed = _sharing(visibility, allowed_users)
        if caller.is_admin and not (visibility or "").strip():
            shown = ""
        await self._people.ensure(caller)
        wanted = Bucket(name, caller.uid, caller.name[:_LONGEST_UID], shown, allowed, "", "creating", self._clock.now())
        async with self._turns.hold([name]):
            known = self._register.get(name)
            if known is None:
                if await self._in_store(name) and not caller.is_admin:
                    raise _taken(name)
                await self._record([wanted])
            elif (known.phase, known.owner, known.from_service) == ("creating", caller.uid, ""):
                await self._register.replace(wanted)  # the store was away at the first try
            else:
                raise _taken(name)
            await self._build(wanted)

    async def update(
        self, caller: Caller, name: str, visibility: str | None = None, allowed_users: Sequence[str] = ()
    ) -> None:
        shown, allowed = _sharing(visibility, allowed_users)
        async with self._turns.hold([names.bucket(name)]):
            before = self._changeable(caller, name)
            if before.from_service:
                raise Forbidden(
                    f"bucket {name} belongs to service {before.from_service} and cannot be modified",
                    hint="change the visibility of the service instead",
                )
            await self._share(before, replace(before, visibility=shown, allowed_users=allowed))

    async def delete(self, caller: Caller, name: str) -> None:
        """With everything in it."""
        async with self._turns.hold([names.bucket(name)]):
            if caller.is_admin and self._register.get(name) is None and await self._in_store(name):
                await self._store.delete_bucket(name)
                return
            await self._erase(self._changeable(caller, name, deleting=True))

    async def get(self, caller: Caller, name: str, page: str = "") -> BucketView:
        bucket = await self._visible(caller, name)
        if len(page) > 4096 or any(ord(letter) < 32 for letter in page):
            raise Invalid("the page is not one we gave", hint="use next_page of the answer before")
        listed, contents = await asyncio.gather(self._store.list(name, page=page), self._accounting.of(name))
        limit = self._limit(bucket)
        closed = self._register.crowded
        if limit is not None and name in self._register.full:
            closed = fullness.words(contents, limit)
        return BucketView(bucket, listed, contents, limit, closed)

    async def listing(self, caller: Caller) -> list[Bucket]:
        """What the caller may use; the admin also sees what was in the store before us."""
        ours = [bucket for bucket in self._register if bucket.phase != "deleting"]
        if not caller.is_admin:
            return [bucket for bucket in ours if bucket.open_to(caller.uid)]
        foreign = [_foreign(name) for name in await self._store.buckets() if self._register.get(name) is None]
        return sorted([*ours, *foreign], key=lambda bucket: bucket.name)

    async def link(self, caller: Caller, name: str, request: LinkRequest) -> Link:
        """A link that works without keys, for as long as the caller may use the bucket; an upload only while the
        bucket's quota lasts. Where the store makes no users it is signed with the manager's own keys, and short."""
        bucket = await self._visible(caller, name)
        limit = self._limit(bucket)
        if request.operation == "upload" and self._register.crowded:
            raise StoreCrowded(
                self._register.crowded, hint="try again later, or ask the cluster's admin for room", retry_after=60
            )
        if request.operation == "upload" and limit is not None:
            held = await self._accounting.of(name)
            if held.fills(limit):
                raise BucketQuota(
                    f"the storage quota of bucket {name} is used up: {fullness.words(held, limit)}",
                    hint="delete objects, or ask the cluster's admin for a larger quota",
                )
        keys = await self._people.keys(caller)
        own = keys if keys.access_key else None
        seconds = links.within(request.seconds, self._longest_link, revocable=own is not None)
        now = self._clock.now()
        url = await self._store.presign(name, request.key, request.operation, seconds, request.content_type, own)
        return Link(request, url, now + seconds)

    # What services do.

    async def make(
        self,
        wanted: Iterable[str],
        *,
        owner: str,
        owner_name: str,
        service: str,
        visibility: str = PRIVATE,
        allowed_users: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """These buckets exist and the owner may use them; returns those made now, none of which stays if it fails."""
        wanted = [names.bucket(name) for name in sorted(set(wanted))]
        async with self._turns.hold(wanted):
            known = self.known(wanted)
            for bucket in known:
                self._check_known(owner, bucket)
            unknown = {name for name in wanted if not self.exists(name)}
            foreign = unknown & set(await self._store.buckets()) if unknown else set()
            if foreign and owner != ADMIN_UID:
                raise _not_yours(min(foreign))
            shape = Bucket(
                "", owner, owner_name[:_LONGEST_UID], visibility, tuple(allowed_users), service, "creating",
                self._clock.now(),
            )  # fmt: skip
            fresh = [replace(shape, name=name) for name in sorted(unknown - foreign)]
            await self._record(fresh)
            unfinished = [*fresh, *(bucket for bucket in known if bucket.phase == "creating")]
            try:
                for bucket in unfinished:
                    await self._build(bucket)
            except BaseException:
                for bucket in fresh:
                    await self._erase_later(bucket)
                raise
        return tuple(one.name for one in unfinished if (one.from_service, one.owner) == (service, owner))

    async def share_made(
        self, wanted: Iterable[str], service: str, owner: str, visibility: str, allowed_users: Sequence[str]
    ) -> None:
        """Those of them that were made for this service of this owner are as visible as it is. The name alone is not
        enough: a bucket may outlive its service, and the name be taken by somebody else."""
        for name in sorted(set(wanted)):
            async with self._turns.hold([name]):
                before = self._register.get(name)
                if before is None or before.phase != "ready" or (before.from_service, before.owner) != (service, owner):
                    continue
                allowed = tuple(allowed_users) if visibility == RESTRICTED else ()
                after = replace(before, visibility=visibility, allowed_users=allowed)
                if after != before:
                    await self._share(before, after)

    async def remove_made(self, wanted: Iterable[str], service: str, owner: str) -> None:
        """Those of them that were made for this service of this owner go, with everything in them; no others."""
        for name in sorted(set(wanted)):
            async with self._turns.hold([name]):
                bucket = self._register.get(name)
                if bucket is not None and service and (bucket.from_service, bucket.owner) == (service, owner):
                    await self._erase(bucket)

    async def converge(self) -> list[str]:
        """The store as the rows say, after a start or when the store came back. Returns what it refused."""
        self._grants.forget()
        present = set(await self._store.buckets())
        refused: list[str] = []
        for name in [bucket.name for bucket in self._register]:
            async with self._turns.hold([name]):
                bucket = self._register.get(name)
                try:
                    if bucket is None:
                        continue
                    if bucket.phase == "deleting":
                        await self._erase(bucket)
                    elif bucket.phase == "creating" or name not in present:
                        await self._build(bucket)
                except Temporary:
                    raise
                except HansaError as error:
                    refused.append(f"bucket {name}: {error.message}")
        await self._grants.publish()
        return refused + await self._people.admit_all()

    # Steps; whoever calls them holds the bucket's turn.

    def _check_known(self, owner: str, bucket: Bucket) -> None:
        if bucket.phase == "deleting":
            raise BucketBusy(f"bucket {bucket.name} is being removed", hint="try again in a moment")
        if not self.may_use(owner, bucket.name):
            raise _not_yours(bucket.name)

    async def _record(self, fresh: list[Bucket]) -> None:
        if not fresh:
            return
        owner = fresh[0].owner
        async with self._counting:
            limits = self._quotas.enforced(owner)
            if limits is not None and self.count(owner) + len(fresh) > limits.buckets:
                raise BucketQuota(
                    f"the quota of {limits.buckets} buckets does not allow {len(fresh)} more",
                    hint="delete a bucket, or ask the cluster's admin for a larger quota",
                )
            await self._register.add(fresh)

    async def _build(self, bucket: Bucket) -> None:
        await self._store.create_bucket(bucket.name)
        await self._tell(None, bucket)
        if bucket.phase != "ready":
            await self._register.replace(replace(bucket, phase="ready"))

    async def _share(self, before: Bucket, after: Bucket) -> None:
        await self._register.replace(after)
        if self._runs is not None:
            await self._runs.shut_out(after.name)  # before the store is told, which may be away
        await self._tell(before, after)

    async def _erase(self, bucket: Bucket) -> None:
        await self._erase_later(bucket)
        await self._tell(bucket, None)  # nobody may add to what is being emptied
        if self._runs is not None:
            await self._runs.shut(bucket.name)
        await self._store.delete_bucket(bucket.name)
        await self._register.remove(bucket.name)
        self._accounting.forget(bucket.name)

    async def _erase_later(self, bucket: Bucket) -> None:
        if bucket.phase != "deleting":
            await self._register.replace(replace(bucket, phase="deleting"))

    async def _tell(self, before: Bucket | None, after: Bucket | None) -> None:
        """The store lets in whom this change lets in, and nobody whom it shuts out."""
        both = [bucket for bucket in (before, after) if bucket is not None]
        if any(bucket.visibility == PUBLIC for bucket in both):
            await self._grants.publish()
        await self._grants.settle(uid for bucket in both for uid in (bucket.owner, *bucket.allowed_users))

    async def _in_store(self, name: str) -> bool:
        return name in await self._store.buckets()

    async def _visible(self, caller: Caller, name: str) -> Bucket:
        bucket = self._register.get(names.bucket(name))
        if bucket is None and caller.is_admin and await self._in_store(name):
            return _foreign(name)
        if bucket is None or bucket.phase == "deleting":
            raise _unknown(name)
        if not self.may_use(caller.uid, name):
            raise _not_yours(name)
        return bucket

    def _changeable(self, caller: Caller, name: str, *, deleting: bool = False) -> Bucket:
        bucket = self._register.get(name)
        if bucket is None or (bucket.phase == "deleting" and not deleting):
            raise _unknown(name)
        if not identity.access.may_change(caller, bucket.owner):
            raise Forbidden(f"only the owner of bucket {name} may change it", hint="ask its owner or the admin")
        return bucket

    def _limit(self, bucket: Bucket) -> int | None:
        return fullness.limit_of(self._quotas, bucket)


def _sharing(visibility: str | None, allowed_users: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    shown = (visibility or "").strip() or PRIVATE
    if shown not in (PRIVATE, RESTRICTED, PUBLIC):
        raise BadBucket(
            f"visibility {shown[:40]!r} is not known", hint="use private, restricted (with allowed_users) or public"
        )
    allowed = tuple(dict.fromkeys(user.strip() for user in allowed_users if user.strip()))
    if len(allowed) > _MOST_ALLOWED or any(len(user) > _LONGEST_UID for user in allowed):
        raise BadBucket(
            "the list of allowed users is not valid",
            hint=f"give at most {_MOST_ALLOWED} subjects of at most {_LONGEST_UID} characters",
        )
    return shown, allowed


def _foreign(name: str) -> Bucket:
    """One that was in the store before us: the admin's to see, nobody's by record."""
    return Bucket(name, "", "", "", (), "", "ready", 0.0)


def _taken(name: str) -> BucketExists:
    return BucketExists(f"the bucket {name} already exists", hint="choose another name")


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no bucket {name}", hint="check the name")


def _not_yours(name: str) -> Forbidden:
    return Forbidden(f"you may not use bucket {name}", hint="ask its owner to share it with you")
