"""How is a service written for another manager, so that OSCAR's Go manager and Hansa both take it? And how is its
answer read?

Everything is sent, secrets included: who may get which secret was decided when the replica was planned.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from hansa.drivers.oscar.calls import Answer
from hansa.kernel import quantities
from hansa.services import Service, secret_parts

# Keys that OSCAR leaves out when they are empty, by where they stand.
_OMIT_EMPTY = ("federation", "script", "image_pull_secrets", "storage_providers", "clusters", "namespace", "volume")
_OMIT_EMPTY_IO = ("suffix", "prefix", "options")
_OMIT_EMPTY_EXPOSE = ("api_port", "nodePort", "auth_type", "probe_mode")
_OMIT_EMPTY_FEDERATION = ("delegation", "rescheduler_threshold", "members")
_OMIT_EMPTY_VOLUME = ("name", "size", "lifecycle_policy")
_ANSWERS_ONLY = frozenset({"deployment", "uploads_status", "volume_status"})


def for_sending(service: Service) -> dict[str, Any]:
    """The definition in OSCAR's keys and order."""
    written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(service))
    written["cpu"] = plain_cpu(service.cpu)
    for io in (*written["input"], *written["output"], written["mount"]):
        _omit(io, _OMIT_EMPTY_IO)
    _omit(written["expose"], _OMIT_EMPTY_EXPOSE)
    if written["federation"]:
        _omit(written["federation"], _OMIT_EMPTY_FEDERATION)
    if written["volume"]:
        _omit(written["volume"], _OMIT_EMPTY_VOLUME)
    _omit(written, _OMIT_EMPTY)
    return written


def read(answer: Answer) -> dict[str, Any]:
    """A definition as the peer has it, with all that we do not know; the marks by which we find our own are texts.
    Raises `PeerRefused`."""
    document = answer.document()
    marks = document.get("annotations")
    if marks is not None and not (isinstance(marks, dict) and all(isinstance(mark, str) for mark in marks.values())):
        raise answer.nonsense("a definition whose annotations are no texts")
    return document


def for_putting_back(definition: Mapping[str, Any]) -> dict[str, Any]:
    """An answer made into a request: without what only answers have."""
    return {key: value for key, value in definition.items() if key not in _ANSWERS_ONLY}


def without_blank_secrets(definition: dict[str, Any]) -> dict[str, Any]:
    """For OSCAR's own manager, which writes blanks over the secrets it keeps; those not named it leaves alone."""
    environment = definition.get("environment")
    secrets = environment.get("secrets") if isinstance(environment, dict) else None
    if not isinstance(environment, dict) or not isinstance(secrets, dict):
        return definition
    given = {key: value for key, value in secrets.items() if value}
    return {**definition, "environment": {**environment, "secrets": given}}


def plain_cpu(text: str) -> str:
    """ "500m" as "0.5": OSCAR's delegation understands nothing but decimals."""
    try:
        value = quantities.parse(text, what="cpu")
    except quantities.BadQuantity:
        return text  # the peer has the last word on it
    if value == 0:
        return "0"
    exact = value.quantize(Decimal(1)) if value == value.to_integral_value() else value.normalize()
    return format(exact, "f")


def secrets_of(service: Service) -> Iterator[str]:
    """What must not be repeated from a peer's answer to this definition."""
    yield service.token
    yield from secret_parts.take_out(service)[1].values()
    federation = service.federation
    for member in federation.members if federation is not None else ():
        yield from (member.headers or {}).values()


def secrets_in(document: Any) -> Iterator[str]:
    """The same for a definition as a peer gave it, whose form we do not know: every value under a telling key."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if isinstance(value, str) and any(word in key.lower() for word in ("token", "password", "key", "secret")):
                yield value
            elif isinstance(value, Mapping) and key.lower() in ("secrets", "headers"):
                yield from (inner for inner in value.values() if isinstance(inner, str))
            else:
                yield from secrets_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from secrets_in(value)


def _omit(part: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if not part.get(name):
            part.pop(name, None)
