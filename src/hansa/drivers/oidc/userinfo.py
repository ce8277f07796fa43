"""What does the issuer say of a user beyond the token? One question at a time for each token."""

import asyncio
from typing import Any

import httpx

from hansa.drivers.oidc.fetching import Refused, fetch_json
from hansa.drivers.oidc.policy import Policy
from hansa.identity import errors
from hansa.kernel.issuer import IssuerSettings

_UNAUTHORIZED = 401


class Userinfo:
    """Asked only with tokens that were verified, so a stranger cannot cause questions."""

    def __init__(self, http: httpx.AsyncClient, policy: Policy) -> None:
        self._http = http
        self._policy = policy
        self._asking: dict[bytes, asyncio.Task[dict[str, Any]]] = {}

    async def ask(self, token: str, digest: bytes, url: str, issuer: IssuerSettings, subject: str) -> dict[str, Any]:
        """The user's claims; empty when the issuer answers that it has none for this token.

        Raises `IssuerUnavailable`, or `TokenRefused` when the issuer no longer knows the token.
        """
        task = self._asking.get(digest)
        if task is None:
            question = self._ask(token, url, issuer, subject)
            task = asyncio.create_task(question, name=f"userinfo of {issuer.label}")
            task.add_done_callback(lambda done: self._settle(digest, done))
            self._asking[digest] = task
        return await asyncio.shield(task)

    async def close(self) -> None:
        waiting = list(self._asking.values())
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)

    def _settle(self, digest: bytes, task: asyncio.Task[dict[str, Any]]) -> None:
        self._asking.pop(digest, None)
        if not task.cancelled():
            task.exception()  # seen, even if everybody who waited has gone

    async def _ask(self, token: str, url: str, issuer: IssuerSettings, subject: str) -> dict[str, Any]:
        try:
            answer = await fetch_json(self._http, url, self._policy, {"authorization": f"Bearer {token}"})
        except Refused as refusal:
            if refusal.status == _UNAUTHORIZED:
                raise _refused(issuer, "no longer accepts the token") from None
            if refusal.status >= 500:
                raise errors.IssuerUnavailable(
                    f"userinfo of {issuer.label} answered {refusal.status}",
                    hint="try again; if it stays so, ask the issuer's operator",
                    issuer=issuer.url,
                ) from None
            return {}  # 403: the token has not the scope to ask; what it says itself must do
        if answer.get("sub") != subject:
            # Demanded by OpenID Connect Core 5.3.2: another user's groups must not be taken for this one's.
            raise _refused(issuer, "answers for another subject")
        return answer


def _refused(issuer: IssuerSettings, what: str) -> errors.TokenRefused:
    return errors.TokenRefused(
        f"the issuer {issuer.label} {what}", hint="get a new access token from the issuer", issuer=issuer.url
    )
