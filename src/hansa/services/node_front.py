"""Which nodes of a peer are worth remembering? Those that no other one exceeds in both what is free of cpu and memory.

A job fits some node exactly if it fits one of these, and the largest of each kind is among them, so what is decided
stays the same (`delegation/policies`). The driver that reads a peer's status reduces its nodes, where nobody waits.
"""

from collections.abc import Iterable

from hansa.services.peers import NodeRoom

MOST = 256  # real clusters have a few dozen of them at most


def of(rooms: Iterable[NodeRoom]) -> tuple[NodeRoom, ...]:
    """The one with the most cpu first; of too many the first, the last and some between them."""
    front: list[NodeRoom] = []
    for room in sorted(rooms, key=lambda room: (room.cpu, room.memory), reverse=True):
        if not front or room.memory > front[-1].memory:
            front.append(room)
    if len(front) <= MOST:
        return tuple(front)
    return tuple(front[at * (len(front) - 1) // (MOST - 1)] for at in range(MOST))
