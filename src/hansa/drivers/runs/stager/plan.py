"""What is a stager told? Which stores there are, what to bring from them before the script, and what to carry after it.

The manager makes the plan (`runs.plans`), so nothing is decided here that a tenant's words could turn.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Store:
    """Where objects are, with the keys to reach them. `kind` is s3 or webdav."""

    kind: str
    endpoint: str  # http(s)://host[:port][/path]
    region: str = ""
    verify: bool = True
    access_key: str = field(default="", repr=False)  # the login of a WebDAV server
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    vouched: bool = False  # its address is no tenant's word
    lent: bool = False  # its keys were made for this run: whatever the plan names, they open
    asks: bool = False  # there are no keys: the manager is asked to sign each request


@dataclass(frozen=True, slots=True)
class Fetch:
    """One object that becomes the input file `name`."""

    store: int  # which of the plan's stores
    bucket: str
    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of a bucket that is copied for the script, and back."""

    store: int
    bucket: str
    folder: str


@dataclass(frozen=True, slots=True)
class Output:
    """Where files go whose names begin and end like this; empty lists let everything through."""

    store: int
    bucket: str
    folder: str
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()

    def takes(self, name: str) -> bool:
        return name.startswith(self.prefix or ("",)) and name.endswith(self.suffix or ("",))


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it, for one run."""

    stores: tuple[Store, ...] = ()
    input: Fetch | None = None
    mount: Mount | None = None
    outputs: tuple[Output, ...] = ()
    mounted: dict[str, list[int]] = field(default_factory=dict)
    """Size and time of every file of the mounted folder as it came, once it has come."""
    patience: float = 300.0
    """Seconds for which a store that does not answer is asked again."""
    disk: int = 0
    """Bytes that all that is brought may come to; 0 is no limit."""

    @property
    def brings(self) -> bool:
        return self.input is not None or self.mount is not None

    @property
    def carries(self) -> bool:
        return bool(self.outputs) or self.mount is not None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Plan":
        told: dict[str, Any] = json.loads(text)
        return cls(
            stores=tuple(Store(**one) for one in told["stores"]),
            input=Fetch(**told["input"]) if told["input"] else None,
            mount=Mount(**told["mount"]) if told["mount"] else None,
            outputs=tuple(_output(one) for one in told["outputs"]),
            mounted=told["mounted"],
            patience=told["patience"],
            disk=told.get("disk", 0),
        )


def _output(told: dict[str, Any]) -> Output:
    return Output(**told | {"prefix": tuple(told["prefix"]), "suffix": tuple(told["suffix"])})
