"""How are figures of many clusters added up? As plain tuples of numbers, in the order of the fields of `Totals`."""

from collections.abc import Iterable, Sequence
from operator import add, sub

import msgspec

from hansa.messages.members import LARGEST, Totals

Figures = tuple[int, ...]
FIELDS: tuple[str, ...] = Totals.__struct_fields__
NOTHING: Figures = (0,) * len(FIELDS)


def figures(totals: Totals) -> Figures:
    return msgspec.structs.astuple(totals)


def totals(figures: Sequence[int]) -> Totals:
    return Totals(**dict(zip(FIELDS, bounded(figures), strict=True)))


def bounded(figures: Sequence[int]) -> Figures:
    """Each up to what a message can hold: those of one cluster are, but not the sums of many."""
    return tuple(min(one, LARGEST) for one in figures)


def total(many: Iterable[Figures]) -> Figures:
    columns = tuple(zip(*many, strict=True))
    return tuple(map(sum, columns)) if columns else NOTHING


def difference(new: Figures, old: Figures) -> Figures:
    return tuple(map(sub, new, old))


class RunningSum:
    """A sum that follows its parts instead of being added up anew: whole numbers do not drift."""

    __slots__ = ("count", "figures")

    def __init__(self) -> None:
        self.figures: Figures = NOTHING
        self.count = 0

    def add(self, part: Figures) -> None:
        self.change(part)
        self.count += 1

    def take(self, part: Figures) -> None:
        self.figures = difference(self.figures, part)
        self.count -= 1

    def change(self, by: Figures) -> None:
        """One of its parts is another by so much."""
        self.figures = tuple(map(add, self.figures, by))
