"""Whose tokens do we accept? One OpenID Connect issuer as the settings name it.

Lives in the kernel because the settings tree holds it and the identity driver reads it; neither may import
the other. `hansa.drivers.oidc` acts on it.
"""

from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
ANY = "*"
_WHICH_AUDIENCE = (
    'say for whom tokens are made: audience = "hansa", or whatever "aud" names in the access tokens meant for this '
    'cluster; audience = "*" takes those made for any client of the issuer'
)


class IssuerSettings(BaseModel):
    """One trusted issuer. It names its own people and nobody else's (`identity.uids`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(min_length=1, max_length=1024, examples=["https://login.example.org"])
    """The issuer exactly as in its tokens' `iss`; a trailing slash makes no difference."""
    formerly: tuple[str, ...] = ()
    """Addresses this issuer had before; the people known from there are its own, and no token from there is taken."""
    name: str = ""
    """What people read in messages; empty means the address."""
    audience: tuple[str, ...] = Field((), validate_default=True, examples=["hansa"])
    """Must be given: what `aud` has to name, a text or a list of several; `"*"` takes tokens made for any client."""
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

    @field_validator("formerly")
    @classmethod
    def _addresses(cls, formerly: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(address.rstrip("/") for address in formerly)

    @field_validator("audience", mode="before")
    @classmethod
    def _one_or_several(cls, audience: Any) -> Any:
        return (audience,) if isinstance(audience, str) else tuple(audience) if isinstance(audience, list) else audience

    @field_validator("audience")
    @classmethod
    def _somebody(cls, audience: tuple[str, ...]) -> tuple[str, ...]:
        if not audience or not all(one.strip() for one in audience):
            raise ValueError(_WHICH_AUDIENCE)
        if ANY in audience and len(audience) > 1:
            raise ValueError('"*" accepts every audience, so name no other beside it')
        return audience

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
    def any_audience(self) -> bool:
        return ANY in self.audience

    @property
    def label(self) -> str:
        return self.name or self.url
