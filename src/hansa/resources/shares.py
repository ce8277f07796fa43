"""How much of the cluster does each owner hold, and may they have more? The one place that decides it.

Whatever runs for somebody is written down here under a name: a job, a call of `/run`, a warm worker, an instance of an
exposed service. Kept in memory and decided in one step, so that requests that come together do not pass a limit
together. Disk is the one exception to a strict ceiling: a first run always may, for every run has the disk that the
operator gives it, and a smaller share would hold it up for ever.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hansa.kernel import quantities
from hansa.resources.capacity import Needs

_NOTHING = Needs(0, 0)


@dataclass(frozen=True, slots=True)
class Share:
    """What all that runs for one owner may hold together; None for no limit."""

    cpu: int | None = None  # millicores
    memory: int | None = None  # bytes
    disk: int | None = None  # bytes


NO_SHARE = Share()


def beyond_share(needs: Needs, share: Share) -> str:
    """Why so much is more than the whole share, or ""."""
    if share.cpu is not None and needs.cpu > share.cpu:
        return f"it needs {needs.cpu}m cpu, your quota is {share.cpu}m"
    if share.memory is not None and needs.memory > share.memory:
        show = quantities.show_size
        return f"it needs {show(needs.memory)} of memory, your quota is {show(share.memory)}"
    return ""


def beyond_rest(needs: Needs, held: Needs, share: Share) -> str:
    """Why so much does not fit into what is left of the share, or ""."""
    show = quantities.show_size
    if share.cpu is not None and held.cpu + needs.cpu > share.cpu:
        return f"it needs {needs.cpu}m cpu, and of your quota of {share.cpu}m {max(0, share.cpu - held.cpu)}m are left"
    if share.memory is not None and held.memory + needs.memory > share.memory:
        left = show(max(0, share.memory - held.memory))
        return f"it needs {show(needs.memory)} of memory, and of your quota of {show(share.memory)} {left} are left"
    if share.disk is not None and held.disk and held.disk + needs.disk > share.disk:
        return (
            f"it needs {show(needs.disk)} of disk, and of the {show(share.disk)} that all runs of its owner may hold "
            f"{show(max(0, share.disk - held.disk))} are left"
        )
    return ""


def how_many(needs: Needs, held: Needs, share: Share, most: int) -> int:
    """So many of these fit into what is left of the share, at most `most`."""
    pairs = ((needs.cpu, held.cpu, share.cpu), (needs.memory, held.memory, share.memory))
    fit = [(limit - have) // each for each, have, limit in pairs if limit is not None and each]
    if share.disk is not None and needs.disk:
        fit.append(max((share.disk - held.disk) // needs.disk, 0 if held.disk else 1))
    return max(0, min([most, *fit]))


class Shares:
    """What each owner holds now, by name."""

    def __init__(self, share: Callable[[str], Share] = lambda owner: NO_SHARE) -> None:
        self.share_of = share
        self._named: dict[str, Needs] = {}
        self._of: dict[str, Needs] = {}

    def of(self, owner: str) -> Needs:
        """All that runs for this owner, together."""
        return self._of.get(owner, _NOTHING)

    def counts(self, name: str) -> bool:
        return name in self._named

    def never(self, needs: Needs) -> str:
        """Why its owner may never have so much, or ""."""
        return beyond_share(needs, self.share_of(needs.owner))

    def over(self, needs: Needs) -> str:
        """Why its owner may not have so much more now, or ""."""
        share = self.share_of(needs.owner)
        return beyond_share(needs, share) or beyond_rest(needs, self.of(needs.owner), share)

    def take(self, name: str, needs: Needs) -> bool:
        """True if it is within the share, and counts from now on (or did before)."""
        if name in self._named:
            return True
        if self.over(needs):
            return False
        self.note(name, needs)
        return True

    def note(self, name: str, needs: Needs) -> None:
        """It runs, whatever the share: it counts, and nothing more begins before there is room again."""
        self.give_back(name)
        self._named[name] = needs
        self._of[needs.owner] = replace(self.of(needs.owner).plus(needs), owner=needs.owner)

    def move(self, name: str, owner: str) -> bool:
        """What counts for one owner counts for another now; False if that one's share does not allow it."""
        held = self._named.get(name)
        if held is None or held.owner == owner:
            return held is not None
        if self.over(replace(held, owner=owner)):
            return False
        self.note(name, replace(held, owner=owner))
        return True

    def give_back(self, name: str) -> None:
        """May be repeated."""
        needs = self._named.pop(name, None)
        if needs is None:
            return
        left = self.of(needs.owner).minus(needs)
        if left == _NOTHING:
            self._of.pop(needs.owner, None)  # who holds only things that need nothing may be forgotten already
        else:
            self._of[needs.owner] = replace(left, owner=needs.owner)
