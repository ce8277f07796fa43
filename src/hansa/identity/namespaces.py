"""Which namespace does a user's work live in? OSCAR's rule, and one that keeps all users apart.

The rule depends on prefix and owner only, so members with the same prefix agree on it without talking.
"""

import hashlib
import re
from collections.abc import Callable, Iterator

from hansa.identity.caller import ADMIN_UID
from hansa.identity.errors import NoNamespaceLeft

_LONGEST = 18
_TRIES = 1000
_UNFIT = re.compile(r"[^a-z0-9-]+")
_BEFORE_AT = re.compile(r"[a-z0-9]+(?=@)")


def user_namespace(prefix: str, owner: str) -> str:
    """The owner's namespace by OSCAR's rule. Owners who begin alike get the same: see `claim_namespace`."""
    if owner in {"", ADMIN_UID}:
        return prefix
    room = _room(prefix)
    readable = _cut(_UNFIT.sub("-", _lower(owner)).strip("-"), room)
    left = room - len(readable) - 1
    if not readable:
        return f"{prefix}-{owner_hash(owner)[:room]}"
    if left <= 0:
        return f"{prefix}-{readable}"
    return f"{prefix}-{readable}-{owner_hash(owner)[:left]}"


def claim_namespace(prefix: str, owner: str, owner_of: Callable[[str], str | None]) -> str:
    """OSCAR's namespace for the owner, or the first free one when that belongs to somebody else.

    `owner_of` tells who has a namespace (None: nobody). Remember the answer per owner and ask here only for
    new owners: after another owner left, a second call could choose differently.
    """
    for candidate in _candidates(prefix, owner):
        holder = owner_of(candidate)
        if holder is None or holder == owner:
            return candidate
    raise NoNamespaceLeft(
        f"no namespace under {prefix} is free for another user",
        hint="shorten cluster.services_namespace: names have at most 18 characters",
    )


def owner_hash(owner: str) -> str:
    """As in the label `oscar.grycap.upv.es/owner-hash`: a name, not a protection."""
    return hashlib.sha1(owner.encode(), usedforsecurity=False).hexdigest()


def format_uid(subject: str) -> str:
    """The short form OSCAR uses in names of secrets and labels: what precedes the `@` of `…abc1@host`."""
    found = _BEFORE_AT.search(subject)
    return subject[: found.end()] if found else subject


def _candidates(prefix: str, owner: str) -> Iterator[str]:
    yield user_namespace(prefix, owner)
    if owner in {"", ADMIN_UID}:
        return
    for attempt in range(_TRIES):
        digest = hashlib.sha256(f"{attempt}:{owner}".encode()).hexdigest()
        yield f"{prefix}-{digest[: _room(prefix)]}"


def _room(prefix: str) -> int:
    room = _LONGEST - len(prefix) - 1
    if room <= 0:  # the user would land in the admin's namespace
        raise NoNamespaceLeft(
            f"the prefix {prefix} leaves no room for users' namespaces",
            hint="shorten cluster.services_namespace to at most 16 characters, better 9",
        )
    return room


def _lower(text: str) -> str:
    """Letter by letter as Go does it; Python alone turns some letters into two."""
    return "".join(letter.lower()[:1] for letter in text)


def _cut(text: str, room: int) -> str:
    return text[:room].strip("-")
