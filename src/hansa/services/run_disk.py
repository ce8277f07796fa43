"""How much disk does one run of a service get? What every run has, or more if the service asks for it. Pure.

`ephemeral_storage_request` is a request in OSCAR, and so it is here: it can raise what a run may write, never lower it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hansa.kernel import quantities
from hansa.services.errors import BadService
from hansa.services.service import Service

_FIELD = "ephemeral_storage_request"


@dataclass(frozen=True, slots=True)
class RunDisk:
    usual: int = 0  # bytes; 0 is no limit
    share: Callable[[str], int | None] = lambda owner: None  # what all runs of an owner may hold together

    def of(self, service: Service) -> int:
        """Bytes; never more than its owner may have, unless that is less than what every run has."""
        asked, share = _asked(service), self.share(service.owner)
        return max(self.usual, asked if share is None else min(asked, share)) if self.usual else 0

    def check(self, service: Service) -> None:
        """Raises `BadService` for a service that asks for more than its owner may ever have."""
        asked, share = _asked(service), self.share(service.owner)
        if share is not None and asked > max(share, self.usual):
            shown = quantities.show_size(share)
            raise BadService(
                f"{_FIELD} {service.ephemeral_storage_request} is more than the {shown} of disk that all runs of its "
                "owner may hold",
                hint="ask for less, or ask the cluster's admin for a larger quota of ephemeral_storage",
            )


def _asked(service: Service) -> int:
    text = service.ephemeral_storage_request
    return quantities.size(text, what=_FIELD) if text else 0
