"""Whom does this hub process vouch for, and with what? The roots of trust in memory, and who hears when they change.

`rotation` changes them in the database, every hub process learns of it with the other news, and the members' listener
takes the new ones up with the next handshake.
"""

import asyncio

from hansa.federation.errors import NoAuthority
from hansa.federation.ports import Authorities, Authority, Tokens
from hansa.identity import authority

_JOINS_AT_ONCE = 8  # anybody may try to join: the database has better things to do than to look up what was made up


class Trust:
    def __init__(self, domain: str, authorities: Authorities, tokens: Tokens) -> None:
        self.domain = domain
        self.authorities = authorities
        self.tokens = tokens
        self.turns = asyncio.Semaphore(_JOINS_AT_ONCE)
        self.looking = asyncio.Lock()  # who looks for news of an unknown certificate looks for all
        self.all: tuple[Authority, ...] = ()
        self.version = 0  # of the newest change
        self.roots = ""  # all that are trusted, PEM
        self._ids: frozenset[str] = frozenset()

    async def learn(self) -> bool:
        """What the database says now; whether it is news."""
        found = tuple(await self.authorities.all())
        version = max((one.version for one in found), default=0)
        if version <= self.version:
            return False
        self.all = found
        self.roots = "".join(one.root.certificate for one in self.trusted)
        self._ids = frozenset(one.root.id for one in self.trusted)
        self.version = version
        return True

    @property
    def trusted(self) -> tuple[Authority, ...]:
        """All that members may show certificates of, oldest first."""
        return tuple(one for one in self.all if one.state != "gone")

    @property
    def active(self) -> authority.Root:
        """The one that signs. Raises `NoAuthority`."""
        for one in self.all:
            if one.state == "active":
                return one.root
        raise NoAuthority("the hub has no root of trust yet", hint="it makes one when it starts; try again")

    def knows(self, serial: str) -> bool:
        """Whether the root that signed a certificate is trusted."""
        return authority.root_id(serial) in self._ids
