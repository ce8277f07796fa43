"""Buckets: made, shared, listed, removed. The row comes first, the store follows, `converge` repairs the rest.

A row in phase `creating` or `deleting` is work that a crash or an absent store left over; repeating the call
goes on with it, and so do `finish` and, at the next start, `converge`. Rights in the store follow from the rows
(`grants`). What has to be emptied before it goes may take long, and nobody waits for the end of it (`erasing`).
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hansa import identity, resources
from hansa.identity import ADMIN_UID, Caller
from hansa.kernel import names
from hansa.kernel.clock import Clock
from hansa.kernel.errors import Forbidden, HansaError, Invalid, NotFound, Temporary
from hansa.storage import fullness, links
from hansa.storage.accounting import Accounting
from hansa.storage.contents import UNCOUNTED, Contents
from hansa.storage.erasing import Erasing
from hansa.storage.errors import BadBucket, BucketBusy, BucketExists, BucketQuota, StoreCrowded
from hansa.storage.grants import Grants
from hansa.storage.links import Link, LinkRequest
from hansa.storage.listings import Listings
from hansa.storage.people import People
from hansa.storage.ports import ObjectPage, ObjectStore, RunKeys
from hansa.storage.records import PRIVATE, PUBLIC, RESTRICTED, Bucket
from hansa.storage.register import BucketRegister
from hansa.storage.turns import Turns

_LONGEST_UID = 255
_MOST_ALLOWED = 1000
_REPAIR_SECONDS = 30.0  # for one bucket that is half-made


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
        erasing: Erasing | None = None,
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
        self._erasing = erasing or Erasing()
        self._listings = Listings(store)
        self._turns = Turns()
        self._counting = asyncio.Lock()  # from counting a user's buckets to writing the new rows

    # Questions answered from memory.

    def exists(self, name: str) -> bool:
        return self._register.get(name) is not None

    def known(self, names: Iterable[str]) -> list[Bucket]:
        """Those of them that are there."""
        return [bucket for name in names if (bucket := self._register.get(name)) is not None]

    def owner_of(self, name: str) -> str:
        return self._register.owner_of(name)

    def may_use(self, uid: str, name: str) -> bool:
        return self._register.may_use(uid, name)

    def is_full(self, name: str) -> bool:
        return name in self._register.full

    def check_usable(self, caller: Caller, name: str) -> None:
        """Nothing against the caller's service using it, whether it is there or has to be made."""
        if self.exists(name) and not self.may_use(caller.uid, name):
            raise _not_yours(name)

    @property
    def unfinished(self) -> bool:
        """Whether a bucket is half-made or half-removed, or the store was not told a right."""
        return any(bucket.phase != "ready" for bucket in self._register) or not self._grants.settled

    def count(self, uid: str) -> int:
        return len(self._register.owned(uid))

    async def stored(self, uid: str) -> int:
        """Bytes in all buckets of a user, as they were counted last where counting takes long."""
        kept = [bucket.name for bucket in self._register.owned(uid) if bucket.phase != "deleting"]
        return (await self._accounting.together(kept)).size

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
            if known is None and name in self._erasing:
                raise _going(name)
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
        """With everything in it. Nobody sees it any more when this returns; one that takes long to empty goes a while
        later, and until then its name is taken."""
        async with self._turns.hold([names.bucket(name)]):
            if caller.is_admin and self._register.get(name) is None and await self._in_store(name):
                self._erasing.begin(name, "", lambda: self._store.delete_bucket(name))
            else:
                await self._erase(self._changeable(caller, name, deleting=True))
        await self._erasing.wait([name])

    async def get(self, caller: Caller, name: str, page: str = "") -> BucketView:
        bucket = await self._visible(caller, name)
        if len(page) > 4096 or any(ord(letter) < 32 for letter in page):
            raise Invalid("the page is not one we gave", hint="use next_page of the answer before")
        listed, counted = await asyncio.gather(
            self._listings.page(caller.uid, name, page=page), self._accounting.soon(name)
        )
        contents = counted or UNCOUNTED
        limit = self._limit(bucket)
        closed = self._register.crowded
        if limit is not None and name in self._register.full:
            closed = fullness.words(contents, limit)
        return BucketView(bucket, listed, contents, limit, closed)

    async def page(self, uid: str, name: str, prefix: str, page: str) -> ObjectPage:
        """Of what is in it, for this user, who may see it."""
        return await self._listings.page(uid, name, prefix, page)

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
            held = await self._accounting.soon(name)
            if held is None:
                raise BucketBusy(f"bucket {name} is being counted", hint="try again in a moment", retry_after=10)
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
        """Those of them that were made for this service of this owner go, with everything in them; no others. As in
        `delete`, some may go a while later."""
        going = []
        for name in sorted(set(wanted)):
            async with self._turns.hold([name]):
                bucket = self._register.get(name)
                if bucket is not None and service and (bucket.from_service, bucket.owner) == (service, owner):
                    await self._erase(bucket)
                    going.append(name)
        await self._erasing.wait(going)

    async def converge(self) -> list[str]:
        """The store as the rows say, after a start or when the store came back. Returns what it refused."""
        self._grants.forget()
        return await self.finish()

    async def finish(self) -> list[str]:
        """What was cut short is done: first rights that the store was not told, then buckets that are half-made or
        half-removed. One that makes trouble keeps no other waiting; only a store that is away ends it, with
        `Temporary`. Returns what the store refused."""
        refused: list[str] = []
        try:
            await self._grants.publish()
        except Temporary:
            raise
        except HansaError as error:
            refused.append(f"public buckets: {error.message}")
        refused += await self._people.admit_all()
        present = set(await self._store.buckets())
        for name in [bucket.name for bucket in self._register]:
            try:
                async with asyncio.timeout(_REPAIR_SECONDS), self._turns.hold([name]):
                    await self._repair(name, present)
            except TimeoutError:
                refused.append(f"bucket {name}: not done within {_REPAIR_SECONDS:g} s")
            except HansaError as error:
                if isinstance(error, Temporary):
                    await self._store.check()
                refused.append(f"bucket {name}: {error.message}")
        with contextlib.suppress(HansaError):  # each says for itself what it failed with
            await self._erasing.wait([bucket.name for bucket in self._register])
        return refused

    async def close(self) -> None:
        """What is being emptied goes on after the next start."""
        await self._erasing.close()

    # Steps; whoever calls them holds the bucket's turn.

    def _check_known(self, owner: str, bucket: Bucket) -> None:
        if bucket.phase == "deleting":
            raise _going(bucket.name)
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
                    hint="delete a bucket (it counts until it is empty), or ask the cluster's admin for a larger quota",
                )
            await self._register.add(fresh)

    async def _repair(self, name: str, present: set[str]) -> None:
        bucket = self._register.get(name)
        if bucket is not None and bucket.phase == "deleting":
            await self._erase(bucket)
        elif bucket is not None and (bucket.phase == "creating" or name not in present):
            await self._build(bucket)

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
        """Begins with it. From the row's phase on until the row is gone nobody else does anything with this name."""

        async def erase() -> None:
            await self._store.delete_bucket(bucket.name)
            await self._register.remove(bucket.name)
            self._accounting.forget(bucket.name)

        await self._erase_later(bucket)
        await self._tell(bucket, None)  # nobody may add to what is being emptied
        if self._runs is not None:
            await self._runs.shut(bucket.name)
        self._erasing.begin(bucket.name, bucket.owner, erase)

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


def _going(name: str) -> BucketBusy:
    return BucketBusy(f"bucket {name} is being removed", hint="try again in a moment")


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no bucket {name}", hint="check the name")


def _not_yours(name: str) -> Forbidden:
    return Forbidden(f"you may not use bucket {name}", hint="ask its owner to share it with you")
