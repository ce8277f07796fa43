"""What becomes of a connection whose handshake is given up? httpcore2 closes it when the handshake fails, but not when
whoever waits for it is cancelled, or out of time: then the socket would stay, and the API server's end of it, too."""

from typing import Any

import httpx2


def close_what_is_given_up(client: httpx2.AsyncClient) -> None:
    """To be told before the first call. There is no public way to it that would leave certificates and proxies to
    whoever made the client."""
    pool = client._transport._pool  # type: ignore[attr-defined]
    pool._network_backend = _Backend(pool._network_backend)


class _Backend:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def connect_tcp(self, *given: Any, **more: Any) -> "_Stream":
        return _Stream(await self._inner.connect_tcp(*given, **more))


class _Stream:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def start_tls(self, *given: Any, **more: Any) -> Any:
        try:
            return await self._inner.start_tls(*given, **more)
        except BaseException:
            await self._inner.aclose()
            raise
