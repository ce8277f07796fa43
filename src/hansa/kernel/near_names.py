"""Which known name was perhaps meant? For hints beside names that nobody knows."""

import difflib
from collections.abc import Iterable

_LONGEST = 100  # characters that are compared: one of fifteen million stopped a manager for seconds


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known name most like it, or "". A larger `cutoff` wants more likeness."""
    close = difflib.get_close_matches(name[:_LONGEST], [*known], n=1, cutoff=cutoff)
    return close[0] if close else ""
