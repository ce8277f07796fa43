"""What is in a bucket, and is that as much as may be? Pure."""

from dataclasses import dataclass

MOST_COUNTED = 200_000  # objects; more are not counted
_FEW_OBJECTS = 10_000
_SMALLEST = 1024  # bytes that an object takes by itself, whatever is in it
_BEYOND = 2**63


@dataclass(frozen=True, slots=True)
class Contents:
    size: int  # bytes
    objects: int
    complete: bool  # False: there is more than we were ready to count
    unfinished: int | None = 0  # bytes of large uploads under way or given up, which take room too; None: unknown
    beside: int = 0  # bytes of names, folders and metadata, where the store tells

    def fills(self, limit: int) -> bool:
        """Whether a bucket with this limit takes nothing more. Objects without content take room too, and a bucket that
        cannot be counted cannot be held to its limit."""
        return self.held >= limit or self.objects >= most_objects(limit) or not self.complete

    @property
    def held(self) -> int:
        """What counts against a quota. Uploads that cannot be counted, which nobody needs, are more than any limit."""
        return _BEYOND if self.unfinished is None else self.size + self.unfinished + self.beside


UNCOUNTED = Contents(0, 0, complete=False)  # nobody knows


def most_objects(limit: int) -> int:
    """How many objects a bucket may hold that may hold `limit` bytes."""
    return min(MOST_COUNTED, max(_FEW_OBJECTS, limit // _SMALLEST))
