"""Which tokens were found good before? By digest, until they expire, at most so many.

A hit costs a hash and a lookup instead of a signature check. The price: a token that its issuer revokes
before its `exp` goes on working here, as stateless tokens do; keep lifetimes at the issuer short.
A signing key that goes away makes all remembered tokens of its issuer be checked anew.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from hansa.drivers.oidc.keys import IssuerKeys
from hansa.identity import Identity


def digest(token: str) -> bytes:
    """What stands for a token in memory; the token itself is not kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class _Entry:
    identity: Identity
    until: float
    keys: IssuerKeys
    withdrawals: int


class VerifiedTokens:
    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()

    def get(self, token: bytes, now: float) -> Identity | None:
        entry = self._entries.get(token)
        if entry is None:
            return None
        entry.keys.renew_if_old()  # a token that is always in the cache must not keep a withdrawn key alive
        if now >= entry.until or entry.withdrawals != entry.keys.withdrawals:
            del self._entries[token]
            return None
        self._entries.move_to_end(token)
        return entry.identity

    def put(self, token: bytes, identity: Identity, until: float, keys: IssuerKeys, withdrawals: int) -> None:
        """`withdrawals` as it was before the keys were chosen: one during the check makes the entry void."""
        self._entries[token] = _Entry(identity, until, keys, withdrawals)
        self._entries.move_to_end(token)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
