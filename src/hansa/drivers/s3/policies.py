"""What does "may use these buckets" mean to a store? One policy document, the same for SeaweedFS and MinIO.

Names come from tokens and requests, so both are checked here: a bucket called `*` must not open every bucket.
"""

import hashlib
import json
import re

from hansa.kernel.errors import Invalid
from hansa.storage import Keys

# Everything a user does with objects, nothing that changes the bucket itself: with `s3:*` an owner could
# make it public by a bucket policy of their own, behind the manager's back.
BUCKET_ACTIONS = ("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
OBJECT_ACTIONS = (
    "s3:GetObject", "s3:PutObject", "s3:DeleteObject",
    "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
    "s3:GetObjectTagging", "s3:PutObjectTagging",
)  # fmt: skip
PUBLISHED = "hansa-published"

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def document(buckets: frozenset[str]) -> str:
    """The policy that opens exactly these buckets. Stores disagree on a policy without statements
    (SeaweedFS goes on with the previous one), so there is none: take the policy away instead."""
    for bucket in buckets:
        if not _BUCKET.fullmatch(bucket):
            raise Invalid(f"{bucket[:80]!r} is not a bucket name", hint="3 to 63 of a-z, 0-9, '-' and '.'")
    if not buckets:
        raise ValueError("a policy opens at least one bucket")
    names = sorted(buckets)
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                _allow(BUCKET_ACTIONS, [f"arn:aws:s3:::{name}" for name in names]),
                _allow(OBJECT_ACTIONS, [f"arn:aws:s3:::{name}/*" for name in names]),
            ],
        }
    )


def _allow(actions: tuple[str, ...], resources: list[str]) -> dict[str, object]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resources}


def name_of(user: str) -> str:
    """A name for the user's own policy: stores keep policies as files, and a user id may hold any
    character."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", user)[:24].strip("-")
    return f"hansa-{readable}-{hashlib.sha256(user.encode()).hexdigest()[:24]}"


def require_user(keys: Keys, root: str) -> None:
    """Refuses keys that a signature cannot carry, and a token that calls its owner by the manager's own
    key."""
    if not keys.well_formed or keys.access_key == root:
        raise Invalid(
            f"{keys.access_key[:80]!r} cannot be a user of the object store",
            hint="make the keys with Keys.of_user and a secret of at least 8 characters",
        )
