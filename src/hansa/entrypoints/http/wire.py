"""JSON as OSCAR's clients speak it: any Content-Type, keys in any case, unknown keys ignored, null means default.

Doors decode with `decode` and answer with `JsonAnswer`; both are msgspec underneath.
"""

import asyncio
import types
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from hansa.kernel import errors

T = TypeVar("T")
_DEEPEST = 64
_LARGEST = 2**63 - 1
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


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body, or `TooLarge` before more than `limit` bytes were taken in, at once where its length is told."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and (len(told) > 18 or int(told) > limit):
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
    except TimeoutError:
        raise BodyTooSlow(f"the body did not arrive within {_BODY_SECONDS:g} seconds") from None
    except ClientDisconnect:
        raise BadBody("the body ended before it was complete") from None
    return b"".join(chunks)


def _too_large(limit: int) -> errors.TooLarge:
    return errors.TooLarge(
        f"the body is larger than {limit} bytes", hint="upload large inputs to a bucket, or raise http.body_limit"
    )


def decode(body: bytes, kind: type[T]) -> T:
    """The body as `kind`; raises `BadBody` naming the field that is wrong."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(f"the body is not valid JSON: {error}", hint="send one JSON object") from None
    if not isinstance(document, dict):
        raise BadBody("the body must be a JSON object")
    return convert(document, kind)


def decode_native(body: bytes, kind: type[T]) -> T:
    """The body of a native route: exactly as its type says, no other spelling and, for a `Request`, nothing more."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise BadBody(str(error).replace("`$.", "`").replace("`$`", "the body")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(f"the body is not valid JSON: {error}", hint="send one JSON object") from None


def convert(document: dict[str, Any], kind: type[T]) -> T:
    _check_values(document, 0)
    try:
        return msgspec.convert(_fold(document, kind), kind, strict=True)
    except msgspec.ValidationError as error:
        raise BadBody(str(error).replace("`$.", "`").replace("`$`", "the body")) from None


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
