"""Which changes are forgotten when there are too many? The oldest of those who told most, before those of others. Pure.

A cluster can tell without end. What was decided about it does not count as its own, so it cannot push that out either.
"""

from collections.abc import Iterable

# Kinds of what somebody decided; no cluster can report under these names.
DECIDED = frozenset({"approved", "cordon", "drain", "leave", "left", "removed"})
_AT_LEAST = 10  # a cluster may have one part in so many, even if others have less for it


def share(counts: Iterable[int], keep: int) -> int:
    """How many of each may be kept, where `keep` of all may be: whoever has fewer leaves the rest to others."""
    left, waiting = keep, sorted(counts)
    for number, count in enumerate(waiting):
        equal = left // (len(waiting) - number)
        if count > equal:
            return max(equal, keep // _AT_LEAST)
        left -= count
    return keep
