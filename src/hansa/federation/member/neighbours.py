"""Which clusters does a manager remember as its neighbours? As many as one answer of a hub can name, and no more.

An answer may name only those that changed, and is merged with what was known. Each answer is bounded by the line it
comes over, but not how many there are: so their sum has a bound here.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from hansa.kernel import names
from hansa.messages.members import Desired, Neighbour

MOST = 20_000
_LONGEST_ENDPOINT, _LONGEST_WORD = 1024, 63
_LARGE = 500  # more than these are dealt with aside


async def merged(former: Desired | None, fresh: Desired) -> Desired | None:
    """With all neighbours. None if they would be too many, as no honest hub has told: all are to be asked for anew."""
    many = len(fresh.neighbours) + len(fresh.gone) > _LARGE
    return await asyncio.to_thread(_merged, former, fresh) if many else _merged(former, fresh)


def _merged(former: Desired | None, fresh: Desired) -> Desired | None:
    known = {one.id: one for one in former.neighbours} if former is not None and not fresh.whole else {}
    known |= {one.id: one for one in _fitting(fresh.neighbours)}
    for gone in fresh.gone:
        known.pop(gone, None)
    if len(known) > MOST:
        return None
    return msgspec.structs.replace(fresh, neighbours=tuple(known.values()), gone=(), whole=True)


def _fitting(told: Iterable[Neighbour]) -> Iterable[Neighbour]:
    """Without those that no hub takes in. What a newer one says of their kind and state is kept, if it is short."""
    return (one for one in told if _fits(one))


def _fits(one: Neighbour) -> bool:
    if len(one.endpoint) > _LONGEST_ENDPOINT or max(len(one.kind), len(one.state)) > _LONGEST_WORD:
        return False
    try:
        names.cluster(one.id)
    except names.BadName:
        return False
    return True
