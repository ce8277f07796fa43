"""Answers in OSCAR's shapes that more than one route gives."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hansa import services
from hansa.entrypoints.http.shapes import Credentials
from hansa.kernel import clock
from hansa.services import Deployment, Failure, Job, JobPage, Record, Service, Services
from hansa.storage import Standing

_NO_VOLUME = Standing()


def summary(state: Deployment) -> dict[str, Any]:
    """The `deployment` part of a service."""
    shown: dict[str, Any] = {"state": state.state}
    if state.reason:
        shown["reason"] = state.reason
    if state.since is not None:
        shown["last_transition_time"] = clock.rfc3339(state.since)
    shown |= {
        "active_instances": state.active,
        "affected_instances": state.affected,
        "resource_kind": state.kind,
    }
    return shown


def deployment(state: Deployment, service: Service) -> dict[str, Any]:
    shown: dict[str, Any] = {"service_name": service.name}
    if service.namespace:
        shown["namespace"] = service.namespace
    return shown | summary(state)


def warnings(failures: Sequence[Failure]) -> str:
    """OSCAR's words for a change that did not reach every member."""
    return f"Updated with federation warnings: [{'; '.join(f'{one.member}: {one.reason}' for one in failures)}]"


def credentials(service: str, standing: services.credentials.Standing) -> Credentials:
    """How a service stands with its refresh token, which no answer shows."""

    def moment(at: float | None) -> str | None:
        return None if at is None else clock.rfc3339(at)

    return Credentials(
        service=service,
        state=standing.state,
        since=moment(standing.since),
        sentence=standing.sentence,
        hint=standing.hint,
        source=standing.source,
        issuer=standing.issuer,
        rotates=standing.rotates,
        obtained=moment(standing.obtained),
        renewed=moment(standing.renewed),
        rotation_due=moment(standing.rotation_due),
        access_expires=moment(standing.access_expires),
    )


def job(one: Job) -> dict[str, Any]:
    """A job in a listing: unknown times are left out, and nothing is null."""
    shown: dict[str, Any] = {"status": one.status.value, "creation_time": clock.rfc3339(one.created)}
    if one.started is not None:
        shown["start_time"] = clock.rfc3339(one.started)
    if one.finished is not None:
        shown["finish_time"] = clock.rfc3339(one.finished)
    return shown


def job_page(listed: JobPage) -> dict[str, Any]:
    """One page of a service's jobs, and how to ask for the next."""
    body: dict[str, Any] = {"jobs": {one.name: job(one) for one in listed.jobs}}
    if listed.next_page:
        body["next_page"] = listed.next_page
        body["remaining_jobs"] = listed.remaining
    return body


class ServiceViews:
    """Services as bytes, made once for each record and kind of viewer, and again when its volume changes: a listing of
    a thousand is a join."""

    def __init__(
        self,
        records: Services,
        deployment_of: Callable[[Record], Deployment],
        volume_of: Callable[[str, str], Standing],
        uploads_wait: Callable[[str], str],
    ) -> None:
        self._records = records
        self._deployment_of = deployment_of
        self._volume_of = volume_of
        self._uploads_wait = uploads_wait
        self._made: dict[tuple[str, bool], tuple[Record, Standing, bytes]] = {}

    def of(self, record: Record, *, full: bool, deployment: bool = False) -> bytes:
        key = (record.service.name, full)
        service = record.service
        volume = self._volume_of(service.namespace, service.volume.name) if service.volume is not None else _NO_VOLUME
        made = self._made.get(key)
        # a service deleted and made again counts its versions anew
        if made is None or made[0] is not record or made[1] != volume:
            secrets = self._records.secrets(record.service.name) if full else {}
            shown = services.wire_view.definition(record, full=full, secrets=secrets, volume=volume)
            made = (record, volume, msgspec.json.encode(shown))
            self._made[key] = made
            self._forget_missing()
        more = b""
        if full and (why := self._uploads_wait(service.name)):
            more += b',"uploads_status":' + msgspec.json.encode({"waiting": True, "reason": why})
        if deployment:
            more += b',"deployment":' + msgspec.json.encode(summary(self._deployment_of(record)))
        return made[2][:-1] + more + b"}" if more else made[2]

    def _forget_missing(self) -> None:
        """Drops what was made for services that are gone, now and then."""
        if len(self._made) <= 2 * len(self._records.all()) + 100:
            return
        for key in [key for key in self._made if self._records.get(key[0]) is None]:
            del self._made[key]
