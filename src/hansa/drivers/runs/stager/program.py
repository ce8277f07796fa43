"""The stager as a child of the launcher: takes one order, moves the files, and tells how it went.

`launcher/stage.py` has built the walls around it by then. It has no network and no name service: the channel is asked
for a connection to a store of the plan.
"""

import os
import socket
from collections.abc import Mapping
from typing import Any, Protocol

from . import web
from .errors import ODD_LETTERS, Refused, TooLarge, Trouble, Unheard
from .moving import mover
from .plan import Plan


class Channel(Protocol):
    """The way to the manager."""

    def say(self, level: str, text: str) -> None: ...
    def dial(self, store: int) -> tuple[socket.socket | None, str, bool]:
        """A connection; or why there is none, and whether there may be one later."""
        ...

    def sign(
        self, store: int, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str
    ) -> dict[str, str] | None:
        """The headers of a request; None if this run may not make it."""
        ...


def prepare(*, verify: bool) -> None:
    """What TLS needs is read from files, which are out of sight behind the walls."""
    web.tls(verify=verify)


def run(way: str, plan: bytes, channel: Channel, job: int, mount: int) -> dict[str, Any]:
    """`way` is bring or carry; what the manager is told at the end."""

    def dial(store: int) -> socket.socket:
        connected, why, may_pass = channel.dial(store)
        if connected is None:
            raise Trouble(why) if may_pass else Refused(why)
        return connected

    def sign(
        store: int, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str
    ) -> Mapping[str, str]:
        headers = channel.sign(store, method, bucket, key, query, payload)
        if headers is None:
            raise Refused("this run may not touch it")
        return headers

    try:
        with mover(Plan.from_json(plan), dial, channel.say, sign, job=job, mount=mount) as made:
            if way == "bring":
                return {"mounted": made.bring()}
            return {"stored": made.carry()}
    except TooLarge as error:
        return {"failed": str(error), "needed": error.needed}
    except (Refused, Trouble) as error:
        return {"failed": str(error), "temporary": isinstance(error, Trouble), "unheard": isinstance(error, Unheard)}
    except ValueError:
        return {"failed": ODD_LETTERS}
    except OSError as error:
        return {"failed": f"{os.strerror(error.errno) if error.errno else error}", "disk": error.errno or 0}
