"""One set of connections to the hub, with one certificate and one set of roots. It is never changed, only followed.

When credentials change, new calls go through a new channel; the old one closes when its last call has ended.
"""

import asyncio
import ssl
from collections.abc import Iterator, Mapping

import httpx

from hansa.drivers.hub import answers
from hansa.drivers.hub.limits import Limits
from hansa.drivers.wire import Flood, WireTransport
from hansa.federation import errors
from hansa.identity import authority
from hansa.kernel.errors import HansaError


class Channel:
    def __init__(self, hub: str, context: ssl.SSLContext, trust_domain: str, limits: Limits) -> None:
        self._hub = hub
        self._limits = limits
        # The name the hub proves, whatever its address and whatever stands before it.
        self._extensions = {"sni_hostname": authority.hub_name(trust_domain)} if trust_domain else {}
        self._client = httpx.AsyncClient(
            transport=WireTransport(
                verify=context,
                limits=httpx.Limits(
                    max_connections=limits.connections,
                    max_keepalive_connections=limits.connections,
                    keepalive_expiry=limits.keep_idle,
                ),
            ),
            trust_env=False,
            follow_redirects=False,
            headers={"User-Agent": "hansa", "Accept-Encoding": "identity"},
        )
        self._calls = 0
        self._retired = False
        self.answered = False  # ever
        self.breaks = 0  # how often the hub hung up on us

    async def ask(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        within: float,
        most: int,
    ) -> bytes | None:
        """The body of a success, None for one without. Raises what the hub said, `HubUnreachable` or `WrongHub`."""
        self._calls += 1
        try:
            async with asyncio.timeout(within):
                return await self._exchange(method, path, content, params, within, most)
        except TimeoutError:
            raise errors.HubUnreachable(f"the hub at {self._hub} did not answer within {within:g} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeError):
            raise errors.HubRefused(f"{self._hub} is no address of a hub", hint="https://host:port") from None
        except httpx.HTTPError as error:
            self.breaks += not isinstance(error, httpx.ConnectError)
            raise _broken(self._hub, error) from None
        finally:
            self._calls -= 1
            if self._retired and not self._calls:
                await self._client.aclose()

    async def retire(self) -> None:
        """No new calls come; it closes when those under way have ended."""
        self._retired = True
        if not self._calls:
            await self._client.aclose()

    async def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        params: Mapping[str, str] | None,
        within: float,
        most: int,
    ) -> bytes | None:
        async with self._client.stream(
            method,
            self._hub + path,
            content=content,
            params=params,
            timeout=httpx.Timeout(within, connect=self._limits.connect),
            extensions=self._extensions,
            headers={"Content-Type": "application/json"} if content is not None else None,
        ) as answer:
            self.answered = True
            good = 200 <= answer.status_code < 300
            body = await _read(answer, most if good else self._limits.error_answer)
            if not good:
                raise answers.refusal(answer, body or b"", self._hub)
            if body is None or answer.headers.get("content-encoding", "identity") != "identity":
                raise errors.HubRefused(f"the hub at {self._hub} answered more than we take", problem="")
            return body if answer.status_code != 204 else None


async def _read(answer: httpx.Response, most: int) -> bytes | None:
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


def _broken(hub: str, error: Exception) -> HansaError:
    if isinstance(error, Flood):
        return errors.HubUnreachable(f"the hub at {hub} floods us: {error}", hint="check what answers at its address")
    words = " ".join(_causes(error)).lower()
    if "certificate_verify_failed" in words or "certificate verify failed" in words:
        return errors.WrongHub(
            f"whoever answers at {hub} cannot prove to be this federation's hub",
            hint="check the address; if the hub was set up anew, join it again with a new token",
        )
    return errors.HubUnreachable(
        f"the hub at {hub} cannot be reached ({type(error).__name__})", hint="check its address and that it runs"
    )


def _causes(error: BaseException | None) -> Iterator[str]:
    seen = 0
    while error is not None and seen < 8:
        yield str(error)
        error = error.__cause__ or error.__context__
        seen += 1
