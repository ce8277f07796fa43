"""What of the cluster's own store may one run touch, and by whose right? Pure: who may use a bucket is told.

Its input: what the submitter may read. Its outputs and its mounted folder: what the owner of the service may use.
Nothing that a definition or an event says gives a right; both only say what is wanted.
"""

from collections.abc import Callable
from typing import Any

from hansa.kernel.errors import Conflict, Forbidden
from hansa.services import events
from hansa.services.ports import RunOrder
from hansa.services.secret_parts import has_keys
from hansa.services.service import Service, StorageIO, provider_of, split_path
from hansa.storage import Reach

OWN_STORE = ("minio", "default")
MayUse = Callable[[str, str], bool]
"""May this user use this bucket?"""
Known = Callable[[str], bool]
"""Is something so of this bucket?"""


class BucketFull(Conflict):
    """A run would write to a bucket that holds what it may, or more."""

    code = "job.bucket-full"


def provider_given(order: RunOrder, kind: str, ident: str) -> dict[str, Any] | None:
    """A store that came with the service, with its keys; None for the cluster's own, and for one nobody defined."""
    keys = order.providers.get(f"{kind}.{ident}")
    if (kind, ident) == OWN_STORE and not has_keys(keys):
        return None
    defined = order.service.storage_providers.get(kind, {}).get(ident)
    if keys is None and defined is None:
        return None
    return {**(defined or {}), **(keys or {})}


def output_place(service: Service, output: StorageIO, given: events.ObjectInput | events.BytesInput) -> tuple[str, str]:
    """Bucket and folder of an output. Every user of an isolated service has a bucket of their own, and results stay in
    it."""
    bucket, folder = split_path(output.path)
    if provider_of(output)[0] == "minio" and isinstance(given, events.ObjectInput):
        bucket = given.bucket if given.bucket in service.bucket_list else bucket
    return bucket, folder


def reach_of(
    order: RunOrder,
    submitter: str,
    may_use: MayUse,
    full: Known = lambda _: False,
    changed_hands: Known = lambda _: False,
) -> Reach:
    """Raises `Forbidden` if the run wants more than the people behind it may, or would write to a bucket that is not
    the one they meant; `BucketFull` if its outputs have no room: better now than after its work is done."""
    service, given = order.service, events.meant(events.interpret(order.event), order.service)
    rights: list[tuple[str, str, str]] = []  # who has to have one, to which bucket, and how we say that they have not
    read: set[tuple[str, str]] = set()
    write: set[tuple[str, str]] = set()
    share: set[tuple[str, str]] = set()
    if isinstance(given, events.ObjectInput) and not service.file_stage_in and _own(order, ("minio", given.provider)):
        rights.append((submitter, given.bucket, "whoever started this job may not read"))
        read.add((given.bucket, given.key))
    for output in service.output:
        if _own(order, provider_of(output)):
            bucket, folder = output_place(service, output, given)
            rights.append((service.owner, bucket, "the owner of this service may not write to"))
            write.add((bucket, Reach.folder(folder)))
    if service.mount.path and _own(order, provider_of(service.mount)):
        bucket, folder = split_path(service.mount.path)
        rights.append((service.owner, bucket, "the owner of this service may not use"))
        share.add((bucket, Reach.folder(folder)))

    def require_rights() -> None:  # not whether there is room: a full bucket says so by itself
        for uid, bucket, words in rights:
            _require(may_use, uid, bucket, words)
        for bucket in written:
            _require_meant(changed_hands, bucket)

    written = sorted({bucket for bucket, _ in write | share})
    require_rights()
    for bucket in written:
        _require_room(full, bucket)
    return Reach(frozenset(read), frozenset(write), frozenset(share), require_rights)


def _own(order: RunOrder, provider: tuple[str, str]) -> bool:
    return provider == OWN_STORE and provider_given(order, *provider) is None


def _require_meant(changed_hands: Known, bucket: str) -> None:
    if changed_hands(bucket):
        raise Forbidden(
            f"bucket {bucket[:63]} is somebody else's since this service was last written",
            hint="name another bucket; or update the service, if it should write to this one",
        )


def _require_room(full: Known, bucket: str) -> None:
    if full(bucket):
        raise BucketFull(f"bucket {bucket[:63]} is full", hint="delete objects, or ask the admin for a larger quota")


def _require(may_use: MayUse, uid: str, bucket: str, words: str) -> None:
    if not may_use(uid, bucket):
        raise Forbidden(f"{words} bucket {bucket[:63]}", hint="ask the bucket's owner to share it")
