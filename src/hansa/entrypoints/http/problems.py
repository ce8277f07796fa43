"""How an error looks on the wire: OSCAR's routes answer text (a few a small JSON), native ones problem+json."""

import json

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from hansa.kernel.errors import HansaError, Kind, Temporary

STATUS = {
    Kind.INVALID: 400,
    Kind.UNAUTHENTICATED: 401,
    Kind.FORBIDDEN: 403,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.TOO_LARGE: 413,
    Kind.BAD_GATEWAY: 502,
    Kind.TOO_SLOW: 408,
    Kind.TOO_MANY: 429,
    Kind.UNAVAILABLE: 503,
    Kind.INTERNAL: 500,
}
_JSON_ERRORS = ("/system/status", "/system/metrics")
_NATIVE = ("/v1", "/member/v1")
_LONGEST = 4000  # characters of what was wrong: it may name something that somebody sent
_log = structlog.get_logger("hansa.http")


async def as_answer(request: Request, error: Exception) -> Response:
    """One handler on the root class serves every subclass."""
    assert isinstance(error, HansaError)
    status = STATUS[error.kind]
    headers: dict[str, str] = {}
    if isinstance(error, Temporary):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if error.kind is Kind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Basic realm="Authorization Required"'
    if status >= 500:
        _log.warning("refused", code=error.code, error=error.message[:_LONGEST], path=request.url.path)
    path = request.url.path
    message = error.message[:_LONGEST]
    text = message + (f" ({error.hint})" if error.hint else "")
    if path.startswith(_NATIVE):
        body = {
            **json.loads(json.dumps(error.facts, default=str)),
            "type": f"/problems/{error.code}",
            "title": (type(error).__doc__ or "").strip().splitlines()[0],
            "status": status,
            "detail": message,
            "hint": error.hint,
        }
        return JSONResponse(body, status, headers, media_type="application/problem+json")
    if path.startswith(_JSON_ERRORS):
        return JSONResponse({"error": text}, status, headers)
    return PlainTextResponse(text, status, headers)


async def as_http_answer(request: Request, error: Exception) -> Response:
    """The framework's own refusals, in OSCAR's manner: a wrong method on a known path is a 404 too."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(_NATIVE):
        body = {"type": "about:blank", "title": str(error.detail), "status": error.status_code}
        return JSONResponse(body, error.status_code, media_type="application/problem+json")
    if error.status_code in (404, 405):
        return PlainTextResponse("404 page not found", 404)
    return PlainTextResponse(str(error.detail), error.status_code)


async def as_validation_answer(request: Request, error: Exception) -> Response:
    """A path or query parameter of the wrong kind."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    text = f"parameter {name}: {first['msg'].lower()}"
    if request.url.path.startswith(_NATIVE):
        body = {
            "type": "/problems/request.invalid",
            "title": "The request is not valid.",
            "status": 400,
            "detail": text,
        }
        return JSONResponse(body, 400, media_type="application/problem+json")
    if request.url.path.startswith(_JSON_ERRORS):
        return JSONResponse({"error": text}, 400)
    return PlainTextResponse(text, 400)
