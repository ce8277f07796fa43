"""Runs a call on either client, so that one test holds for both."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hansa.client import AsyncHubClient, HubClient

Ask = Callable[..., Any]


def waiting(url: str, method: str, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    with HubClient(url, **(options or {})) as hub:
        return getattr(hub, method)(*args, **kwargs)


def awaited(url: str, method: str, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    async def ask() -> Any:
        async with AsyncHubClient(url, **(options or {})) as hub:
            return await getattr(hub, method)(*args, **kwargs)

    return asyncio.run(ask())


on_both = pytest.mark.parametrize("ask", [waiting, awaited])
