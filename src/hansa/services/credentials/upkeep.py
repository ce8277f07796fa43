"""Rotation by policy and on request, and revocation: what an owner, an admin and a loop may do with a kept token."""

import asyncio
from dataclasses import replace

import msgspec
import structlog

from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError
from hansa.services.credentials import standing
from hansa.services.credentials.borrowing import Borrowing, coordinator
from hansa.services.credentials.errors import Misconfigured, NotCoordinator, NoToken
from hansa.services.credentials.exchanging import Exchanging, Given
from hansa.services.credentials.ports import AuditTrail, Lineages
from hansa.services.credentials.standing import Standing
from hansa.services.errors import ServiceBusy, ServiceNotFound
from hansa.services.ports import Record, Services
from hansa.services.secret_parts import GROUP_KEY, REFRESH_TOKEN
from hansa.services.service import Environment, Service

TOKEN_PATH = f"environment.secrets.{REFRESH_TOKEN}"
KEY_PATH = f"environment.secrets.{GROUP_KEY}"
ROTATION = "rotation policy"  # the actor when a token is exchanged because of its age
_ATTEMPTS = 20
_log = structlog.get_logger("hansa.credentials")


class Upkeep:
    def __init__(
        self,
        records: Services,
        lineages: Lineages,
        exchanging: Exchanging,
        borrowing: Borrowing,
        audit: AuditTrail,
        clock: Clock,
        rotation_days: float,
    ) -> None:
        self._records = records
        self._lineages = lineages
        self._exchanging = exchanging
        self._borrowing = borrowing
        self._audit = audit
        self._clock = clock
        self._days = rotation_days

    async def standing(self, name: str) -> Standing:
        record = self._record(name)
        if borrows(record.service):
            key = self._records.secrets(name).get(KEY_PATH, "")
            access = self._borrowing.known(record.service, key)
            heard = self._borrowing.heard(record.service)
            return standing.of_replica(coordinator(record.service), heard, access.expires if access else None)
        given = self._given(record)
        if given is None:
            return standing.of_none(await self._last_revocation(record))
        try:
            line = await self._exchanging.line(given)
        except Misconfigured as error:
            return standing.of_error(error)
        access = self._exchanging.known(given)
        return standing.of_line(line, self._clock.now(), self._days, access.expires if access else None)

    async def rotate(self, name: str, actor: str) -> Standing:
        """Exchanges the token now; whether its issuer replaces it is the issuer's choice, and told."""
        await self._exchanging.fresh(self._own_token(name), actor=actor, anew=True)
        return await self.standing(name)

    async def rotate_due(self) -> list[str]:
        """Exchanges every token that nobody used for too long; returns whose could be. For a loop."""
        done: list[str] = []
        used: set[str] = set()
        for record in self._records.all():
            given = self._given(record)
            if given is None:
                continue
            used.add(given.mark)
            if borrows(record.service):
                continue
            try:
                line = await self._exchanging.line(given)
                if line.renewed == 0.0:
                    line = replace(line, obtained=min(line.obtained, record.updated))
                if standing.is_due(line, self._clock.now(), self._days):
                    await self._exchanging.fresh(given, actor=ROTATION, anew=True)
                    done.append(record.service.name)
            except HansaError as error:
                _log.warning("token not rotated", service=record.service.name, code=error.code, error=error.message)
            except Exception:  # the others' are exchanged all the same
                _log.exception("token not rotated", service=record.service.name)
        await self._lineages.forget(self._clock.now() - self._days * standing.DAY, frozenset(used))
        return done

    async def revoke(self, name: str, actor: str) -> Standing:
        """The issuer is told, and the token removed here whatever the issuer says."""
        given = self._own_token(name)
        await self._exchanging.revoke(given, actor)
        for attempt in range(_ATTEMPTS):
            record = self._record(name)
            secrets = dict(self._records.secrets(name))
            if secrets.pop(TOKEN_PATH, None) != given.token:
                break  # somebody removed it, or gave another one: that one was not meant
            try:
                fresh = replace(record, service=_without_token(record.service), updated=self._clock.now())
                await self._records.replace(fresh, secrets, record.version)
                break
            except ServiceBusy:
                if attempt == _ATTEMPTS - 1:
                    raise
                await asyncio.sleep(0.01 * attempt)
        return await self.standing(name)

    def _own_token(self, name: str) -> Given:
        record = self._record(name)
        if borrows(record.service):
            raise NotCoordinator(
                f"the token of {name} is kept by its coordinator {coordinator(record.service)}",
                hint="ask there: all replicas use its access tokens",
            )
        given = self._given(record)
        if given is None:
            raise NoToken(f"service {name} has no refresh token", hint="give it environment.secrets.refresh_token")
        return given

    def _record(self, name: str) -> Record:
        record = self._records.get(name)
        if record is None:
            raise ServiceNotFound(f"there is no service {name}")
        return record

    def _given(self, record: Record) -> Given | None:
        return given_in(record.service, self._records.secrets(record.service.name).get(TOKEN_PATH, ""))

    async def _last_revocation(self, record: Record) -> tuple[float, str] | None:
        entries = await self._audit.of(record.service.name, since=record.created)
        return next(((one.at, one.detail) for one in entries if one.action == "token.revoked"), None)


def borrows(service: Service) -> bool:
    """Whether its coordinator keeps the token: a replica never exchanges one of its own accord."""
    return service.is_worker


def given_in(service: Service, token: str) -> Given | None:
    token = token.strip()
    return Given(service.name, service.owner, token) if token else None


def _without_token(service: Service) -> Service:
    kept = {key: text for key, text in service.environment.secrets.items() if key != REFRESH_TOKEN}
    environment = Environment(variables=service.environment.variables, secrets=kept)
    return msgspec.structs.replace(service, environment=environment)
