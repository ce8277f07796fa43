"""Which secrets do a coordinator and one replica share? Some of their own, good at that replica and nowhere else. Pure.

A replica has a token, as every service has: with it the coordinator hands jobs over, and its scripts know it. Each
other member that may give it jobs has one of its own for that, so that it is known who does, and whoever left can no
more. It also has a key, known to its own manager and its coordinator's alone: with it the coordinator reads, changes
and removes the replica. All are derived, so nothing has to be kept or brought up to date: from a secret of this
manager, the coordinator's own token (another one if the service is made anew) and the names of the members.
"""

import hashlib
import hmac

from hansa.services.service import Service


class MemberKeys:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, coordinator: Service, member: str, giver: str = "") -> str:
        """With which jobs are handed to the replica at this member, or, where members give jobs back, to the
        coordinator itself: by `giver`, another member, or by the coordinator."""
        return self._derived("token", coordinator, f"{member}\0{giver}" if giver else member)

    def key(self, coordinator: Service, member: str) -> str:
        return self._derived("key", coordinator, member)

    def mark(self, coordinator: Service) -> str:
        """Changes when all of them do, and tells nothing of them."""
        return self._derived("mark", coordinator, "")

    def _derived(self, what: str, coordinator: Service, member: str) -> str:
        text = "\0".join((what, coordinator.name, coordinator.token, member))
        return hmac.new(self._secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def __repr__(self) -> str:
        return "MemberKeys(***)"
