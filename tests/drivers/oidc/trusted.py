"""An issuer's settings for tests that are not about the audience."""

from typing import Any

from hansa.kernel.issuer import IssuerSettings


def trusted(url: str, **more: Any) -> IssuerSettings:
    return IssuerSettings(**{"url": url, "audience": ("*",), **more})
