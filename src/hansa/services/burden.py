"""How much may be open at other clusters for one owner? What an operation may have to take back costs memory and disk
for as long as a member likes, so there is a most of it. Pure; `replicas/expansion.py` asks before anything is touched.
"""

from dataclasses import dataclass

from hansa.kernel import errors, quantities

MOST_KEPT = 32 * 2**20  # bytes of what was there before; some definitions with the longest scripts, or thousands
MOST_UNDOING = 100  # each asks its members again and again
_HINT = "wait until the members answer that earlier failures named as not rolled back yet"


class TooMuchToUndo(errors.Conflict):
    """Too much of what was begun at other clusters for one owner is still being taken back."""

    code = "federation.too-much-to-undo"


@dataclass(frozen=True, slots=True)
class Burden:
    """The open operations of one owner."""

    undoing: int  # creates that are being taken back
    kept: int  # bytes of what was there before


def check_begin(burden: Burden) -> None:
    """May another create be begun that may have to be taken back?"""
    if burden.undoing >= MOST_UNDOING:
        raise TooMuchToUndo(
            f"{burden.undoing} earlier changes of this owner are still being taken back at other clusters", hint=_HINT
        )


def check_keep(burden: Burden, size: int) -> None:
    """May that many bytes more be kept?"""
    if burden.kept + size <= MOST_KEPT:
        return
    asked, known, most = (quantities.show_size(one) for one in (size, burden.kept, MOST_KEPT))
    raise TooMuchToUndo(
        f"its service there ({asked}) cannot be kept beside what earlier changes keep ({known} of {most})",
        hint=f"{_HINT}, or delete the service there",
    )
