"""Whose tokens do we accept? One OpenID Connect issuer as the settings name it.

Lives in the kernel because the settings tree holds it and the identity driver reads it; neither may import
the other. `hansa.drivers.oidc` acts on it.
"""

from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class IssuerSettings(BaseModel):
    """One trusted issuer.

    Users are known by their subject alone, as in OSCAR, so every issuer listed is trusted to name every user:
    list only issuers that keep their subjects apart.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(min_length=1, max_length=2048)
    """The issuer exactly as in its tokens' `iss`; a trailing slash makes no difference."""
    name: str = ""
    """What people read in messages; empty means the address."""
    audience: str | None = None
    """What `aud` must contain; unset leaves it unchecked as OSCAR does, for any client of the issuer."""
    groups: tuple[str, ...] = ()
    """The user must be in one of these; empty lets every user of the issuer in."""
    groups_claim: str | None = None
    """Where the groups are, a dot going inwards (`realm_access.roles`); unset is OSCAR's rule by address."""
    client_id: str = Field("", max_length=255)
    """The client whose refresh tokens services bring; needed where they are opaque, for a JWT names its client."""
    client_secret: SecretStr = SecretStr("")
    """That client's secret; empty for a public client."""
    allow_http: bool = False
    """Whether keys may come without TLS from another machine; who controls that network can be anyone."""

    @field_validator("url")
    @classmethod
    def _an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("an issuer is an http(s) address such as https://host/realms/name")
        if parts.username or parts.query or parts.fragment:
            raise ValueError("an issuer's address has no user, query or fragment")
        return url.rstrip("/")

    @field_validator("groups")
    @classmethod
    def _no_blanks(cls, groups: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(group.strip() for group in groups if group.strip())

    @model_validator(mode="after")
    def _over_tls(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not self.allow_http:
            raise ValueError("an issuer on another machine needs https, or allow_http where the network is trusted")
        return self

    @property
    def label(self) -> str:
        return self.name or self.url
