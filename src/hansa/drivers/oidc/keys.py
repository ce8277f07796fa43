"""Which keys does one issuer sign with? Read once for all who wait, renewed aside, kept while it is down.

What strangers send can make us ask the issuer at most once per `unknown_key_pause`.
"""

import asyncio
from collections.abc import Callable

import httpx

from hansa.drivers.oidc.discovery import IssuerDocuments, SigningKey, read_documents
from hansa.drivers.oidc.policy import Policy
from hansa.identity import errors
from hansa.kernel.issuer import IssuerSettings

_NEVER = float("-inf")


class IssuerKeys:
    def __init__(
        self, issuer: IssuerSettings, http: httpx.AsyncClient, policy: Policy, ticks: Callable[[], float]
    ) -> None:
        self.issuer = issuer
        self.withdrawals = 0  # how often a key went away: what was verified before may not hold any more
        self._http = http
        self._policy = policy
        self._ticks = ticks  # a clock that never jumps
        self._documents: IssuerDocuments | None = None
        self._failure: errors.IssuerUnavailable | None = None
        self._asked = _NEVER
        self._reloaded = _NEVER
        self._loading: asyncio.Task[None] | None = None

    async def documents(self) -> IssuerDocuments:
        """What we know of the issuer, at once if we know anything. Raises `IssuerUnavailable`."""
        if self._documents is not None:
            self.renew_if_old()
            return self._documents
        if self._loading is None and self._failure is not None and not self._passed(self._policy.retry_pause):
            raise _again(self._failure)
        await self._load()
        if self._documents is None:
            assert self._failure is not None
            raise _again(self._failure)
        return self._documents

    async def candidates(self, kid: str | None) -> list[SigningKey]:
        """The keys that may have signed a token naming this key id; without one, any key may have."""
        known = (await self.documents()).keys
        if kid is None:
            return list(known.values())
        if kid not in known and self._may_reload():
            await self._load()
            known = (await self.documents()).keys
        if kid not in known and self._failure is not None:
            raise _again(self._failure)  # the key may be a new one: we cannot tell
        return [known[kid]] if kid in known else []

    def renew_if_old(self) -> None:
        """Reads the documents again in the background; nobody waits, and a failure keeps the old ones."""
        pause = self._policy.keys_fresh if self._failure is None else self._policy.retry_pause
        if self._loading is None and self._passed(pause):
            self._start()

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])

    def _passed(self, pause: float) -> bool:
        return self._ticks() - self._asked >= pause

    def _may_reload(self) -> bool:
        """Joining a reload under way is free; causing one is not."""
        if self._loading is not None:
            return True
        if self._ticks() - self._reloaded < self._policy.unknown_key_pause:
            return False
        self._reloaded = self._ticks()
        return True

    async def _load(self) -> None:
        # Shielded: the first to ask may go away while the others still wait for the same answer.
        await asyncio.shield(self._loading or self._start())

    def _start(self) -> asyncio.Task[None]:
        self._asked = self._ticks()
        self._loading = asyncio.create_task(self._read(), name=f"keys of {self.issuer.label}")
        return self._loading

    async def _read(self) -> None:
        try:
            fresh = await read_documents(self._http, self.issuer, self._policy)
            if self._documents is not None and not self._documents.keys.keys() <= fresh.keys.keys():
                self.withdrawals += 1
            self._documents, self._failure = fresh, None
        except errors.IssuerUnavailable as failure:
            self._failure = failure
        finally:
            self._loading = None


def _again(failure: errors.IssuerUnavailable) -> errors.IssuerUnavailable:
    """Raised itself, a kept error would gather the frames, and so the tokens, of all who saw it."""
    return errors.IssuerUnavailable(
        failure.message, hint=failure.hint, retry_after=failure.retry_after, **failure.facts
    )
