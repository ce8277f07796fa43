"""What does the stager of a pod know of its run? One file of the job's Secret; and where everything is in a pod."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hansa import services
from hansa.services import events

ORDER_FOLDER = "/hansa/order"
MOUNT = "/hansa/mount"
END = "/job/.hansa-end"  # the script's exit code
STAGED = "/job/.hansa-staged"  # how the outputs fared, so that a sidecar that is started again knows
MOUNTED = "/job/.hansa-mounted"


@dataclass(frozen=True, slots=True)
class Links:
    """Where a pod fetches, without keys of its own, what the manager keeps for it."""

    event: str = ""
    gate: str = ""


YES, NO = b"yes", b"no"


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """As much of an order as staging needs, with the keys of its stores."""

    name: str
    service: dict[str, Any]
    providers: dict[str, dict[str, str]]
    event: bytes = b""
    event_url: str = ""
    gate_url: str = ""  # where the word is that outputs may be stored, once it is given; "": they may
    patience: float = 300.0

    @classmethod
    def of(cls, order: services.RunOrder, links: "Links") -> "Paper":
        whole = msgspec.to_builtins(order.service)
        kept = ("name", "output", "mount", "file_stage_in", "bucket_list", "storage_providers", "log_level")
        given = isinstance(events.interpret(order.event), events.ObjectInput) and not links.event
        return cls(
            name=order.name,
            service={name: whole[name] for name in kept},
            providers={name: dict(config) for name, config in order.providers.items()},
            event=order.event if given else b"",
            event_url=links.event,
            gate_url=links.gate,
        )

    def order(self, event: bytes) -> services.RunOrder:
        service = msgspec.convert(self.service, services.Service)
        providers: Mapping[str, Mapping[str, str]] = self.providers
        return services.RunOrder(
            name=self.name,
            service=service,
            secrets={},
            providers=providers,
            event=event,
            cpu=0,
            memory=0,
            seconds=0.0,
        )


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stager's last word: the container's termination message."""

    stored: int = 0
    error: str = ""  # an input could not be fetched, or an output could not be stored
    thrown_away: bool = False
    left: bool = False  # a failed script left outputs, which are not stored
