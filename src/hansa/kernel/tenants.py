"""What may tenants show to the world, and what may they have us call? The settings `exposed` and `egress`.

They live in the kernel because the settings tree holds them and doors and drivers read them; neither may import the
other.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from hansa.kernel import egress


class ExposedSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field("", pattern=r"^(https?://(\{service\}\.)?[A-Za-z0-9.\[\]:-]+)?$")
    """Another origin for tenants' pages, e.g. https://{service}.pages.example.org. With `{service}` each has one of its
    own, and only then may its pages use cookies and storage as usual; else they run in the browser's sandbox."""
    port: int | None = Field(None, ge=0, le=65535)
    """A port beside `http.port` that answers for tenants' pages only; empty is none."""
    sandbox: bool = True
    """Pages that share an origin with the manager or with other tenants' are sandboxed by the browser; false trusts
    every tenant with every visitor."""
    socket_idle: float = Field(600.0, gt=0)
    """Seconds after which a WebSocket is closed on which nothing was said; programs send pings to keep theirs."""
    access: Literal["visibility", "open"] = "visibility"
    """Who may visit a service without `set_auth`: who may see it, or everybody whatever its visibility, as in OSCAR."""


class EgressSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: tuple[str, ...] = ()
    """What services may have this manager call beyond public addresses: networks (`10.0.0.0/8`), addresses with or
    without a port (`10.0.0.7:9000`), names with one (`minio.internal:9000`). Everything listed is open to all users."""

    @field_validator("allow")
    @classmethod
    def _understood(cls, allow: tuple[str, ...]) -> tuple[str, ...]:
        egress.Rule.of(allow)
        return allow
