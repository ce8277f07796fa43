"""One bounded question to an issuer: JSON in a limited time and size, never through a redirect."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from hansa.drivers.oidc.policy import Policy
from hansa.identity import errors


class Refused(Exception):
    """The issuer answered, but not with 200. Stays inside this driver."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class NotReached(errors.IssuerUnavailable):
    """The issuer could not even be connected to, so it has seen nothing of the question."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an issuer said to a form; its body may hold tokens."""

    status: int
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        """The JSON object in it, {} if there is none."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


async def fetch_json(
    http: httpx.AsyncClient, url: str, policy: Policy, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON object at `url`. Raises `Refused`, or `IssuerUnavailable` when there is no usable answer."""
    request = http.build_request("GET", url, headers={"accept": "application/json", **(headers or {})})
    reply = await _ask(http, request, policy)
    if reply.status != 200:
        raise Refused(reply.status)
    try:
        answer = json.loads(reply.body)
    except (ValueError, RecursionError):
        raise _unavailable(url, "answered something that is not JSON", policy) from None
    if not isinstance(answer, dict):
        raise _unavailable(url, "answered JSON that is not an object", policy)
    return answer


async def post_form(
    http: httpx.AsyncClient,
    url: str,
    policy: Policy,
    form: Mapping[str, str],
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """What `url` says to a form, whatever the status. Raises `IssuerUnavailable` when there is no answer."""
    shown = {"accept": "application/json", **(headers or {})}
    return await _ask(http, http.build_request("POST", url, data=dict(form), headers=shown), policy)


async def _ask(http: httpx.AsyncClient, request: httpx.Request, policy: Policy) -> Reply:
    url = str(request.url)
    try:
        async with asyncio.timeout(policy.time_limit):
            return await _reply(http, request, policy)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise _unavailable(url, f"cannot be reached ({type(error).__name__})", policy, NotReached) from None
    except (TimeoutError, httpx.TimeoutException):
        raise _unavailable(url, f"did not answer within {policy.time_limit:g} s", policy) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Only the kind of error: its text can contain what was sent.
        raise _unavailable(url, f"cannot be reached ({type(error).__name__})", policy) from None


async def _reply(http: httpx.AsyncClient, request: httpx.Request, policy: Policy) -> Reply:
    answer = await http.send(request, stream=True, follow_redirects=False)
    try:
        body = bytearray()
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > policy.answer_limit:
                raise _unavailable(str(request.url), f"answered more than {policy.answer_limit} bytes", policy)
    finally:
        await answer.aclose()
    return Reply(answer.status_code, bytes(body))


def _unavailable(
    url: str, what: str, policy: Policy, kind: type[errors.IssuerUnavailable] = errors.IssuerUnavailable
) -> errors.IssuerUnavailable:
    return kind(
        f"{url} {what}",
        hint="check that the issuer runs and can be reached from this cluster",
        retry_after=policy.retry_pause,
    )
