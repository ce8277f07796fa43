"""What does "may use these buckets" mean to a store? One policy document, the same for SeaweedFS and MinIO.

Names come from tokens and requests, so both are checked here: a bucket called `*` must not open every bucket.
"""

import hashlib
import json
import re

from hansa.kernel.errors import Invalid
from hansa.storage import Keys, Reach

# Everything a user does with objects, nothing that changes the bucket itself: with `s3:*` an owner could
# make it public by a bucket policy of their own, behind the manager's back.
BUCKET_ACTIONS = ("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
OBJECT_ACTIONS = (
    "s3:GetObject", "s3:PutObject", "s3:DeleteObject",
    "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
    "s3:GetObjectTagging", "s3:PutObjectTagging",
)  # fmt: skip
WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
ADDING = frozenset({"s3:PutObject", "s3:PutObjectTagging"})  # parts of large uploads are put as well
PUBLISHED = "hansa-published"
CLOSED = "hansa-closed"  # named by every user; it exists while nobody may add anything

# Where SeaweedFS keeps parts of uploads and versions of objects. It does not list what people put there.
_UNLISTED = ("*/.uploads/*", "*/*.versions/*")

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def document(buckets: frozenset[str], full: frozenset[str] = frozenset()) -> str:
    """The policy that opens exactly these buckets; to those of them that are `full` nothing can be added. Stores
    disagree on a policy without statements (SeaweedFS goes on with the previous one), so there is none: take the
    policy away instead."""
    if not buckets:
        raise ValueError("a policy opens at least one bucket")
    taking = tuple(action for action in OBJECT_ACTIONS if action not in ADDING)
    statements = [_allow(BUCKET_ACTIONS, [f"arn:aws:s3:::{name}" for name in sorted(map(_bucket, buckets))])]
    for actions, names in ((OBJECT_ACTIONS, buckets - full), (taking, buckets & full)):
        if names:
            statements.append(_allow(actions, [f"arn:aws:s3:::{name}/*" for name in sorted(names)]))
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def closed() -> str:
    """Takes from whoever names it the right to add anything, whatever else they are granted."""
    return json.dumps({"Version": "2012-10-17", "Statement": [_deny_adding("*")]})


def listed_only(document: str) -> str:
    """The same policy, but in SeaweedFS nobody adds what no listing shows: it could not be counted, nor be found."""
    policy = json.loads(document)
    return json.dumps(policy | {"Statement": [*policy["Statement"], _deny_adding(*_UNLISTED)]})


def objects_only(document: str) -> str:
    """The same policy, but in MinIO nobody makes service accounts: their names are free to choose, and could be those
    of people who come later."""
    policy = json.loads(document)
    nothing = {"Effect": "Deny", "Action": ["admin:*"], "Resource": ["arn:aws:s3:::*"]}
    return json.dumps(policy | {"Statement": [*policy["Statement"], nothing]})


def reach_document(reach: Reach) -> str:
    """The policy of a loan: what one run may touch."""
    write = sorted(reach.write | reach.share)
    statements = [
        _allow(("s3:GetObject",), [_object(*one) for one in sorted(reach.read)]),
        _allow(("s3:GetObject",), [_below(*one) for one in sorted(reach.share)]),
        _allow(WRITE_ACTIONS, [_below(*one) for one in write]),
        *(
            _allow(("s3:ListBucket",), [f"arn:aws:s3:::{_bucket(bucket)}"])
            | {"Condition": {"StringLike": {"s3:prefix": [f"{_literal(start)}*"]}}}
            for bucket, start in sorted(reach.share)
        ),
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": [one for one in statements if one["Resource"]]})


def every_object() -> str:
    """For a technical user from which sessions are derived, each with a policy that takes away nearly all of it."""
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [_allow(("s3:ListBucket", "s3:GetObject", *WRITE_ACTIONS), ["arn:aws:s3:::*"])],
        }
    )


def _object(bucket: str, key: str) -> str:
    return f"arn:aws:s3:::{_bucket(bucket)}/{_literal(key)}"


def _below(bucket: str, start: str) -> str:
    return f"arn:aws:s3:::{_bucket(bucket)}/{_literal(start)}*"


def _bucket(name: str) -> str:
    if not _BUCKET.fullmatch(name):
        raise Invalid(f"{name[:80]!r} is not a bucket name", hint="3 to 63 of a-z, 0-9, '-' and '.'")
    return name


def _literal(text: str) -> str:
    """No policy can spell `*`, `?` or `$` as themselves; `?`, which stands for any one character, comes nearest."""
    return re.sub(r"[*?$]", "?", text)


def _allow(actions: tuple[str, ...], resources: list[str]) -> dict[str, object]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resources}


def _deny_adding(*where: str) -> dict[str, object]:
    return {"Effect": "Deny", "Action": sorted(ADDING), "Resource": [f"arn:aws:s3:::{one}" for one in where]}


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
