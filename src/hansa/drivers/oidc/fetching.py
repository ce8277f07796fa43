"""One bounded question to an issuer: JSON in a limited time and size, never through a redirect."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

from hansa.drivers.oidc.policy import Policy
from hansa.identity import errors


class Refused(Exception):
    """The issuer answered, but not with 200. Stays inside this driver."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


async def fetch_json(
    http: httpx.AsyncClient, url: str, policy: Policy, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON object at `url`. Raises `Refused`, or `IssuerUnavailable` when there is no usable answer."""
    try:
        async with asyncio.timeout(policy.time_limit):
            body = await _body(http, url, policy, headers or {})
        answer = json.loads(body)
    except (TimeoutError, httpx.TimeoutException):
        raise _unavailable(url, f"did not answer within {policy.time_limit:g} s", policy) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Only the kind of error: its text can contain what was sent.
        raise _unavailable(url, f"cannot be reached ({type(error).__name__})", policy) from None
    except (ValueError, RecursionError):
        raise _unavailable(url, "answered something that is not JSON", policy) from None
    if not isinstance(answer, dict):
        raise _unavailable(url, "answered JSON that is not an object", policy)
    return answer


async def _body(http: httpx.AsyncClient, url: str, policy: Policy, headers: Mapping[str, str]) -> bytes:
    accept = {"accept": "application/json", **headers}
    async with http.stream("GET", url, headers=accept, follow_redirects=False) as answer:
        if answer.status_code != 200:
            raise Refused(answer.status_code)
        body = bytearray()
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > policy.answer_limit:
                raise _unavailable(url, f"answered more than {policy.answer_limit} bytes", policy)
    return bytes(body)


def _unavailable(url: str, what: str, policy: Policy) -> errors.IssuerUnavailable:
    return errors.IssuerUnavailable(
        f"{url} {what}",
        hint="check that the issuer runs and can be reached from this cluster",
        retry_after=policy.retry_pause,
    )
