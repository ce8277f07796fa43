"""JSON as OSCAR's clients speak it: any Content-Type, keys in any case, unknown keys ignored, null means default.

Doors decode with `decode` and answer with `JsonAnswer`; both are msgspec underneath.
"""

import asyncio
import types
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from hansa.entrypoints.http import in_flight
from hansa.kernel import bounded_json, errors
from hansa.services import LARGEST_DEFINITION

T = TypeVar("T")
_DEEPEST = 64
_LARGEST = 2**63 - 1
_LONGEST_COMPLAINT = 500  # characters; a field somebody made up is named in it
_BODY_SECONDS = 300.0  # a megabyte takes this long on the slowest link worth serving


class BadBody(errors.Invalid):
    """The body is not what this route expects."""

    code = "request.body-invalid"


class BodyTooSlow(errors.HansaError):
    """The body did not arrive in time."""

    code, kind = "request.body-too-slow", errors.Kind.TOO_SLOW


class JsonAnswer(Response):
    """Compact JSON, encoded by msgspec."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else msgspec.json.encode(content)


class TextAnswer(Response):
    media_type = "text/plain"


WARNING = "X-Hansa-Warning"


def warned(answer: Response, notes: Iterable[str]) -> Response:
    """What whoever asked should know, although it was done: OSCAR's answers have no place for it."""
    for note in notes:
        answer.headers.append(WARNING, note)
    return answer


async def read_body(request: Request, limit: int, sender: str) -> bytes:
    """The whole body, or `TooLarge` before more than `limit` bytes were taken in, at once where its length is told.
    `sender` is who is counted for it while the request lasts; of a stranger that is the address."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and (len(told) > 18 or int(told) > limit):
        raise _too_large(limit)
    claim = in_flight.claim_of(request.scope)
    claim.begin(sender, int(told) if told.isdecimal() else 0)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                claim.more(len(chunk))
                chunks.append(chunk)
    except TimeoutError:
        raise BodyTooSlow(f"the body did not arrive within {_BODY_SECONDS:g} seconds") from None
    except ClientDisconnect:
        raise BadBody("the body ended before it was complete") from None
    return b"".join(chunks)


def _too_large(limit: int) -> errors.TooLarge:
    return errors.TooLarge(
        f"the body is larger than {limit} bytes",
        hint="upload large inputs and programs to a bucket; of jobs, http.body_limit decides",
    )


async def read_document(request: Request, kind: type[T], sender: str, limit: int = LARGEST_DEFINITION) -> T:
    """What a route of OSCAR's is asked with: read and decoded."""
    return decode(await read_body(request, limit, sender), kind)


def decode(body: bytes, kind: type[T]) -> T:
    """The body as `kind`; raises `BadBody` naming the field that is wrong, or `TooLarge` if it has too many."""
    _check_parts(body, bounded_json.MOST_PARTS)
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(f"the body is not valid JSON: {error}", hint="send one JSON object") from None
    if not isinstance(document, dict):
        raise BadBody("the body must be a JSON object")
    return convert(document, kind)


def decode_native(body: bytes, kind: type[T], most: int = bounded_json.MOST_PARTS) -> T:
    """The body of a native route: exactly as its type says, no other spelling and, for a `Request`, nothing more. It
    may have so many parts."""
    _check_parts(body, most)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise BadBody(_in_words(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(f"the body is not valid JSON: {error}", hint="send one JSON object") from None


def _check_parts(body: bytes, most: int) -> None:
    """What is shorter cannot have as many."""
    match bounded_json.too_much(body, most) if len(body) > most else "":
        case "depth":
            raise BadBody("the body is nested too deeply", hint=f"at most {_DEEPEST} levels")
        case "parts":
            raise errors.TooLarge(f"the body has more than {most} parts", hint="send less at a time")


def convert(document: dict[str, Any], kind: type[T]) -> T:
    _check_values(document, 0)
    try:
        return msgspec.convert(_fold(document, kind), kind, strict=True)
    except msgspec.ValidationError as error:
        raise BadBody(_in_words(error)) from None


def _in_words(error: msgspec.ValidationError) -> str:
    """Without what was sent, where it is long."""
    return str(error).replace("`$.", "`").replace("`$`", "the body")[:_LONGEST_COMPLAINT]


def _check_values(value: Any, depth: int) -> None:
    """No store keeps a NUL character or a number of more than 64 bits, and nobody means one."""
    if depth > _DEEPEST:
        raise BadBody("the body is nested too deeply", hint=f"at most {_DEEPEST} levels")
    if isinstance(value, str):
        if "\0" in value:
            raise BadBody("a text in the body contains a NUL character")
    elif isinstance(value, int):
        if not -_LARGEST <= value <= _LARGEST:
            raise BadBody("a number in the body has more than 64 bits")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_values(key, depth)
            _check_values(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_values(inner, depth + 1)


@cache
def _fields(kind: type) -> dict[str, tuple[str, Any]]:
    hints = get_type_hints(kind)
    return {name.lower(): (name, hints[name]) for name in kind.__struct_fields__}  # type: ignore[attr-defined]


def _fold(value: Any, kind: Any) -> Any:
    """Keys spelled as the struct spells them, at every depth; null fields dropped so that defaults apply."""
    kind = _without_none(kind)
    origin = get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        known = _fields(kind)
        folded: dict[str, Any] = {}
        for key, inner in value.items():
            field = known.get(key.lower())
            # the exact spelling wins over another case of the same key, wherever it stands
            if field is None or inner is None or (field[0] in folded and key != field[0]):
                continue
            folded[field[0]] = _fold(_legacy(field[0], inner), field[1])
        return folded
    if origin is tuple and isinstance(value, list):
        return [_fold(inner, get_args(kind)[0]) for inner in value]
    if origin is dict and isinstance(value, dict):
        return {key: _fold(inner, get_args(kind)[1]) for key, inner in value.items()}
    return value


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        inner = [arg for arg in get_args(kind) if arg is not type(None)]
        return inner[0] if len(inner) == 1 else kind
    return kind


def _legacy(field: str, value: Any) -> Any:
    """Shapes older clients send: a single port, thresholds as text."""
    if field in ("api_port", "nodePort") and isinstance(value, int) and not isinstance(value, bool):
        return [value]
    if field == "rescheduler_threshold" and isinstance(value, str):
        return int(value) if value.strip().isdigit() else 0
    return value
