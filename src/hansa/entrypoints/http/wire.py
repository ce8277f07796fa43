"""JSON as OSCAR's clients speak it: any Content-Type, keys in any case, unknown keys ignored, null means default.

Doors decode with `decode` and answer with `JsonAnswer`; both are msgspec underneath.
"""

import types
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from fastapi import Request
from starlette.responses import Response

from hansa.kernel import errors

T = TypeVar("T")
_DEEPEST = 64


class BadBody(errors.Invalid):
    """The body is not what this route expects."""

    code = "request.body-invalid"


class JsonAnswer(Response):
    """Compact JSON, encoded by msgspec."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else msgspec.json.encode(content)


class TextAnswer(Response):
    media_type = "text/plain"


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body, or `TooLarge` before more than `limit` bytes were taken in."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise errors.TooLarge(
                f"the body is larger than {limit} bytes",
                hint="upload large inputs to a bucket, or raise http.body_limit",
            )
        chunks.append(chunk)
    return b"".join(chunks)


def decode(body: bytes, kind: type[T]) -> T:
    """The body as `kind`; raises `BadBody` naming the field that is wrong."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(f"the body is not valid JSON: {error}", hint="send one JSON object") from None
    if not isinstance(document, dict):
        raise BadBody("the body must be a JSON object")
    return convert(document, kind)


def convert(document: dict[str, Any], kind: type[T]) -> T:
    _refuse_nul(document, 0)
    try:
        return msgspec.convert(_fold(document, kind), kind, strict=True)
    except msgspec.ValidationError as error:
        raise BadBody(str(error).replace("`$.", "`").replace("`$`", "the body")) from None


def _refuse_nul(value: Any, depth: int) -> None:
    """No store keeps a NUL character, and nobody means one."""
    if depth > _DEEPEST:
        raise BadBody("the body is nested too deeply")
    if isinstance(value, str):
        if "\0" in value:
            raise BadBody("a text in the body contains a NUL character")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _refuse_nul(key, depth)
            _refuse_nul(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _refuse_nul(inner, depth + 1)


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
