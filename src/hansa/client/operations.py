"""What is an operation of the hub? Method, path, what goes in and what comes out, said once, without any IO.

The files of `calls/` describe every operation as one function that builds a `Call`; `@operation` adds the route. Both
clients are made of these (`faces.py`), and a test holds them against the OpenAPI document of a hub.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, Generic, ParamSpec, TypeVar, get_args, get_type_hints
from urllib.parse import quote, urlencode

import msgspec

from hansa.client import errors
from hansa.client.events import Event

P = ParamSpec("P")
T = TypeVar("T")
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One use of an operation; `T` is what its answer is read as."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Value] = field(default_factory=dict)  # empty texts, None and False are left out
    body: msgspec.Struct | None = None


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """What goes over the wire, and as what the answer is read."""

    method: str
    target: str  # path and query
    content: bytes | None
    answer: Any  # a type msgspec can decode; NoneType is an answer without content, bytes a file
    events: Mapping[str, Any] = field(default_factory=dict)

    @property
    def safe(self) -> bool:
        """Whether it may be sent twice: it changes nothing."""
        return self.method == "GET"

    def read(self, status: int, headers: Mapping[str, str], body: bytes, hub: str) -> T:
        """The answer's content; raises what a refusal stands for."""
        if not 200 <= status < 300:
            raise errors.refusal(status, headers, body, hub)
        return _decoded(body, self.answer, hub)  # type: ignore[no-any-return]

    def tells(self, event: Event) -> bool:
        """Whether it is a kind of event we know; a newer hub may tell others."""
        return event.kind in self.events

    def heard(self, event: Event, hub: str) -> T:
        return _decoded(event.data, self.events[event.kind], hub)  # type: ignore[no-any-return]


def _decoded(body: bytes, kind: Any, hub: str) -> Any:
    if kind is type(None):
        return None
    if kind is bytes:
        return body
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise errors.Unexpected(
            f"{hub} answered something this client does not understand: {error}",
            hint="is it the address of a hub, and of a version near this client's?",
        ) from None


class Operation(Generic[P, T]):
    """One route of the hub, as a function that prepares a request for it."""

    def __init__(self, method: str, path: str, build: Callable[P, Call[T]], events: Mapping[str, Any]) -> None:
        self.method = method
        self.path = path
        self.events = events  # of a stream: what each kind of event is read as, every one a `T`
        self.build = build
        self.name = build.__name__
        self.__doc__ = build.__doc__
        hints = get_type_hints(build)
        (self.answer,) = get_args(hints["return"])
        bodies = [kind for name, kind in hints.items() if name != "return" and _is_body(kind)]
        self.body: Any = bodies[0] if bodies else None

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return signature(self.build).parameters

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        call = self.build(*args, **kwargs)
        target = self.path.format_map({name: segment(value) for name, value in call.path.items()})
        given = {
            name: _text(value) for name, value in call.query.items() if value not in (None, "") and value is not False
        }
        if given:
            target = f"{target}?{urlencode(given)}"
        content = None if call.body is None else msgspec.json.encode(call.body)
        return Request(self.method, target, content, self.answer, self.events)


def operation(method: str, path: str) -> Callable[[Callable[P, Call[T]]], Operation[P, T]]:
    """Makes an operation of a function that builds its call."""
    return lambda build: Operation(method, path, build, {})


def stream(path: str, **events: Any) -> Callable[[Callable[P, Call[T]]], Operation[P, T]]:
    """As `operation`, for a route that tells events for as long as somebody listens."""
    return lambda build: Operation("GET", path, build, events)


def segment(name: str) -> str:
    """A name as one piece of a path, whatever it contains."""
    if name in ("", ".", ".."):
        raise errors.Invalid(f"{name!r} is not a name", code="request.invalid")
    return quote(name, safe="")


def _text(value: Value) -> str:
    return "true" if value is True else str(value)


def _is_body(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
