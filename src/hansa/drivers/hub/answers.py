"""What does an answer of the hub mean? A success of a known shape, or one of our own errors.

Errors of the hub that a manager acts on come back as the same class; others keep the hub's code as `problem`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
import msgspec

from hansa.drivers.hub.limits import Limits
from hansa.federation import errors
from hansa.kernel import bounded_json, plain_text
from hansa.kernel.errors import HansaError
from hansa.messages.members import Desired

T = TypeVar("T")
_LONGEST_WORDS = 500
_LARGE = 64 * 1024  # bytes that are read in a moment
_SAME: dict[str, type[HansaError]] = {
    kind.code: kind
    for kind in (
        errors.WasRemoved,
        errors.NotAMember,
        errors.CertificateExpired,
        errors.BadToken,
        errors.ClusterExists,
        errors.NotAdmitted,
        errors.BadFacts,
    )
}


class _Settings(msgspec.Struct):
    """The one part of an answer whose shape is open: anything can be in it."""

    settings: msgspec.Raw = msgspec.Raw(b"{}")


async def decoded(body: bytes, kind: type[T], url: str, parts: int = bounded_json.MOST_PARTS) -> T:
    """What it says, if it has no more than so many parts; of a large answer in a thread, so that others need not
    wait."""
    return await _aside(body, lambda: _decode(body, kind, url, parts))


async def desired(body: bytes, url: str, limits: Limits) -> Desired:
    def read() -> Desired:
        told = bytes(_decode(body, _Settings, url, limits.desired_parts).settings)
        if len(told) > limits.settings or not bounded_json.is_light(told, bounded_json.MOST_PARTS):
            raise errors.HubRefused(
                f"the hub at {url} tells more settings than we take",
                hint="see its configuration documents: hansa config ls",
                problem="",
            )
        return _read(body, Desired, url)

    return await _aside(body, read)


async def _aside(body: bytes, read: Callable[[], T]) -> T:
    return await asyncio.to_thread(read) if len(body) > _LARGE else read()


def _decode(body: bytes, kind: type[T], url: str, parts: int) -> T:
    if not bounded_json.is_light(body, parts):
        raise errors.HubRefused(
            f"the hub at {url} answered with more than {parts} values, which is more than we read",
            hint="check what answers at that address",
            problem="",
        )
    return _read(body, kind, url)


def _read(body: bytes, kind: type[T], url: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise errors.HubRefused(
            f"the hub at {url} answered something we do not understand",
            hint="check the address, and that hub and manager are at most one version apart",
            problem="",
        ) from None


def refusal(answer: httpx.Response, body: bytes, url: str) -> HansaError:
    status = answer.status_code
    said = _problem(answer, body)
    detail, hint = _words(said.get("detail")), _words(said.get("hint"))
    kind = said.get("type")
    code = kind.removeprefix("/problems/") if isinstance(kind, str) and kind.startswith("/problems/") else ""
    if code in _SAME:
        return _SAME[code](detail, hint=hint)
    if status >= 500 or status in (408, 429):
        return errors.HubUnreachable(
            f"the hub at {url} cannot answer now ({status})" + (f": {detail}" if detail else ""),
            hint=hint,
            retry_after=_seconds(answer.headers.get("retry-after", "")),
        )
    if 300 <= status < 400:
        return errors.HubRefused(
            f"{url} sends us elsewhere ({status}), and we do not follow",
            hint="give the address at which the hub itself answers its members",
            problem="",
        )
    return errors.HubRefused(
        f"the hub at {url} said no ({status})" + (f": {detail}" if detail else ""),
        hint=hint or "check that the address is the one for members",
        problem=code,
    )


def _problem(answer: httpx.Response, body: bytes) -> dict[str, Any]:
    if "problem+json" not in answer.headers.get("content-type", ""):
        return {}
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(value: object) -> str:
    return plain_text.one_line(value, _LONGEST_WORDS) if isinstance(value, str) else ""


def _seconds(text: str) -> float:
    return float(min(int(text), 300)) if text.isascii() and text.isdigit() and len(text) < 9 else 1.0
