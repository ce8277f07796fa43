"""`/metrics`: what Prometheus collects of a manager or a hub, with the admin's view or a token for this alone."""

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.context import authorization_of, log_caller
from hansa.entrypoints.http.document import ADMIN, METRICS, USER, callable_by
from hansa.entrypoints.http.openapi import answers
from hansa.identity import SignIn, access, same_secret


def add_to(api: FastAPI, registry: CollectorRegistry, sign_in: SignIn, token: str) -> None:
    @api.get(
        "/metrics",
        tags=["system"],
        response_class=Response,
        responses=answers(200, 401, 403, body="text"),
        openapi_extra=callable_by(ADMIN, USER, METRICS),
    )
    async def metrics(request: Request) -> Response:
        """What Prometheus collects. Names of users and of their things are not in it."""
        authorization = authorization_of(request)
        if not (token and same_secret(authorization, f"Bearer {token}")):
            caller = log_caller(await sign_in.caller(authorization, address_of(request)))
            access.require_cluster_view(caller, "the metrics")
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
