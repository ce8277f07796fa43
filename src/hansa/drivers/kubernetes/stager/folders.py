"""Where are a run's folders in a pod, and how do files move there? As on one machine, but the stager dials itself."""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from hansa.drivers.kubernetes.stager import paper
from hansa.drivers.runs.stager import beneath, web
from hansa.drivers.runs.stager.beneath import LeftFile
from hansa.drivers.runs.stager.errors import Refused, Trouble
from hansa.drivers.runs.stager.moving import INPUT, OUTPUT, Mover, Say, mover
from hansa.drivers.runs.stager.plan import Plan
from hansa.drivers.runs.stager.s3 import server_of

JOB = Path("/job")
_CONNECT_SECONDS = 10.0
_OK = 200


@contextlib.contextmanager
def moving(plan: Plan, say: Say) -> Iterator[Mover]:
    """A pod has a network of its own; what it may reach there is Kubernetes' to say."""

    def dial(store: int) -> socket.socket:
        server = server_of(plan.stores[store])
        return connected(server.host, server.port)

    with contextlib.ExitStack() as opened:
        job = opened.enter_context(beneath.handle(JOB))
        mount = opened.enter_context(beneath.handle(paper.MOUNT)) if plan.mount is not None else -1
        yield opened.enter_context(mover(plan, dial, say, _unsigned, job=job, mount=mount))


def connected(host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port), _CONNECT_SECONDS)
    except OSError as error:
        raise Trouble(f"it does not answer ({type(error).__name__})") from error


def _unsigned(
    store: int, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str
) -> Mapping[str, str]:
    raise Refused("no keys of this store came with the run")


def write_input(name: str, content: bytes) -> None:
    with beneath.handle(JOB) as top:
        beneath.write(top, f"{INPUT}/{name}", content)


def fetch_input(name: str, url: str) -> None:
    """What was sent, and is kept behind a link."""
    with beneath.handle(JOB) as top, beneath.fresh_file(top, f"{INPUT}/{name}") as file, _asked(url) as (asked, target):
        answer = asked.fetch(target, {}, file, lambda length: None)
    if answer.status != _OK:
        raise Trouble(f"what was sent cannot be fetched: the store answered {answer.status}")


def left(most: int) -> Iterator[LeftFile]:
    """What the script put into its output folder. Raises `TooMany` after `most` names."""
    with beneath.handle(JOB) as top:
        yield from beneath.left_files(top, OUTPUT, os.getuid(), most)


def has_output() -> bool:
    with beneath.handle(JOB) as top:
        return beneath.holds_files(top, OUTPUT, os.getuid())


def word(url: str) -> bytes | None:
    """What a link leads to; None if there is nothing yet."""
    with _asked(url) as (asked, target):
        answer = asked.ask("GET", target, {})
    return answer.body if answer.status == _OK else None


@contextlib.contextmanager
def _asked(url: str) -> Iterator[tuple[web.Web, str]]:
    base, _, query = url.partition("?")
    server = web.Server.at(base)
    made = web.Web(server, lambda: connected(server.host, server.port), verify=True)
    with contextlib.closing(made):
        yield made, f"{server.path}?{query}" if query else server.path
