"""One other manager over HTTP, Hansa or OSCAR's own: implements the port `hansa.services.peers.Peer`.

Each method is one bounded call (`calls.py`) whose answer is read by `statuses`, `listings` or `tidings`. No call is
repeated here: whether trying again is safe, and with which credentials, is for the caller to know.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hansa.drivers.oscar import addresses, definitions, headers, listings, quoting, statuses, tidings
from hansa.drivers.oscar.calls import Answer, Line, Question
from hansa.drivers.oscar.limits import Limits
from hansa.drivers.oscar.listings import Listing
from hansa.kernel.clock import Clock
from hansa.services import Service, peers
from hansa.storage import Keys, StoreAddress

_NO_ABOUT = (200, 401, 403, 404, 405)  # how managers answer that do not know `/v1/about`
_SERVICES = ("system", "services")
_DELEGATIONS = ("v1", "delegations")
_REPLICAS = ("v1", "replicas")
_OF_NAME = b"X-Delegated-Job-ID"  # named if only the name of a job is wrong; routes of OSCAR's tell no codes


class Abilities:
    """What is remembered of the manager at one address."""

    def __init__(self) -> None:
        self.known = False
        self.names: frozenset[str] | None = None  # None for OSCAR's own manager
        self._asked = 0.0

    def fresh(self, seconds: float) -> bool:
        return self.known and time.monotonic() - self._asked < seconds

    def keep(self, names: frozenset[str] | None) -> None:
        self.known, self.names, self._asked = True, names, time.monotonic()

    def drop(self) -> None:
        self.known = False


class OscarPeer:
    def __init__(self, address: peers.Address, line: Line, limits: Limits, abilities: Abilities, clock: Clock) -> None:
        self.address = address
        self._line = line
        self._limits = limits
        self._abilities = abilities
        self._clock = clock

    async def capabilities(self) -> frozenset[str]:
        """One that is down stays what it was."""
        if not self._abilities.fresh(self._limits.kind_fresh):
            try:
                self._abilities.keep(await self._inquire())
            except peers.PeerUnreachable:
                if not self._abilities.known:
                    raise
        return self._abilities.names or frozenset()

    def doubt(self) -> None:
        self._abilities.drop()

    async def read(
        self, service: str, credentials: peers.Credentials, *, settled: bool = False
    ) -> dict[str, Any] | None:
        answer = await self._ask(
            *("GET", *_place(credentials), service),
            credentials=credentials,
            params={"settled": "true"} if settled else None,
            most=self._limits.definition_answer,
            parts=self._limits.definition_parts,
        )
        return None if answer.missing else await _good(answer, 200).reading(definitions.read)

    async def create(self, service: Service, credentials: peers.Credentials) -> None:
        written, secrets = definitions.for_sending(service), definitions.secrets_of(service)
        _good(await self._send("POST", _SERVICES, written, credentials, secrets), 201)

    async def update(self, service: Service, credentials: peers.Credentials) -> None:
        await self._replace(definitions.for_sending(service), credentials, definitions.secrets_of(service))

    async def put_back(self, definition: Mapping[str, Any], credentials: peers.Credentials, *, blanks: bool) -> None:
        before = definitions.for_putting_back(definition)
        if not blanks:
            before = definitions.without_blank_secrets(before)
        await self._replace(before, credentials, definitions.secrets_in(before))

    async def remove(self, service: str, credentials: peers.Credentials) -> None:
        answer = await self._ask("DELETE", *_place(credentials), service, credentials=credentials)
        if answer.missing:
            return
        if answer.status == 500 and await self.read(service, credentials) is None:
            return  # OSCAR on Knative says so of a service that is not there
        _good(answer, 200, 204)

    async def status(self, credentials: peers.Credentials, timeout: float) -> peers.PeerStatus:
        begun = time.perf_counter()
        where = (*_REPLICAS, credentials.replica) if credentials.replica else ("system",)
        answer = await self._ask(
            *("GET", *where, "status"),
            credentials=credentials,
            timeout=timeout,
            most=self._limits.status_answer,
            parts=self._limits.many_parts,
        )
        seconds = time.perf_counter() - begun
        return await _good(answer, 200).reading(lambda good: statuses.read(good, seconds))

    async def history(self, service: str, credentials: peers.Credentials, timeout: float) -> peers.PeerHistory:
        """Pages are read while there is time; what was read by then counts."""
        where = (*_REPLICAS, service, "jobs") if credentials.replica else ("system", "logs", service)
        listing, page = Listing(), ""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        for number in range(self._limits.pages):
            try:
                answer = await self._ask(
                    *("GET", *where),
                    credentials=credentials,
                    params={"page": page} if page else None,
                    timeout=max(0.001, end - loop.time()),
                    most=self._limits.page_answer,
                    parts=self._limits.many_parts,
                )
                page = await _good(answer, 200).reading(listing.add)
            except (peers.PeerUnreachable, peers.PeerRefused):
                if number == 0:
                    raise
                break
            if not page:
                break
        return listing.sum()

    async def listed_job(self, service: str, job: str, credentials: peers.Credentials) -> peers.AwayJob | None:
        page, seen = "", {""}
        for _ in range(self._limits.pages):
            answer = await self._ask(
                *("GET", "system", "logs", service),
                credentials=credentials,
                params={"page": page} if page else None,
                most=self._limits.page_answer,
                parts=self._limits.many_parts,
            )
            document = await _good(answer, 200).reading(Answer.document)
            if (found := listings.away_job(document, job, self._clock.now())) is not None:
                return found
            following = document.get("next_page")
            if not isinstance(following, str) or following in seen:
                break
            page = following
            seen.add(page)
        return None

    async def listed_log(self, service: str, job: str, credentials: peers.Credentials) -> str:
        answer = await self._ask(
            *("GET", "system", "logs", service, job),
            credentials=credentials,
            most=self._limits.log_answer,
            cut=True,
        )
        return _good(answer, 200).body.decode(errors="replace")

    async def change_members(
        self, service: str, verb: str, request: Mapping[str, Any], credentials: peers.Credentials
    ) -> dict[str, Any]:
        method = {"add": "POST", "update": "PUT", "remove": "DELETE"}[verb]
        answer = await self._ask(
            *(method, "system", "federation", service),
            credentials=credentials,
            headers={"Content-Type": "application/json"},
            content=msgspec.json.encode(request),
        )
        return await _good(answer, 200).reading(Answer.document)

    async def hand_over(self, job: peers.Handover, credentials: peers.Credentials) -> None:
        sent = headers.of_handover(job, credentials)
        secrets = (job.permit, *job.headers.values())
        answer = await self._ask("POST", "job", job.service, headers=sent, content=job.body, secrets=secrets)
        if answer.status == 409 and _OF_NAME in answer.body:
            raise peers.NameTaken(answer.trouble().message, status=409)
        _good(answer, 201)

    async def run(self, job: peers.Handover, credentials: peers.Credentials, timeout: float) -> tuple[bytes, bool]:
        answer = await self._ask(
            *("POST", "run", job.service),
            headers=headers.of_handover(job, credentials),
            content=job.body,
            timeout=timeout,
            most=self._limits.run_answer,
            own_words=False,  # OSCAR's own manager passes on what the program there says
            secrets=(job.permit, *job.headers.values()),
        )
        if answer.status == 502:  # how a manager tells that the script itself failed
            return answer.body, False
        return _good(answer, 200).body, True

    async def storage_keys(self, credentials: peers.Credentials) -> tuple[StoreAddress, Keys]:
        return tidings.storage(_good(await self._ask("GET", "system", "config", credentials=credentials), 200))

    async def away_job(self, job: str, permit: str) -> peers.AwayJob | None:
        answer = await self._ask("GET", *_DELEGATIONS, job, credentials=_permit(permit))
        if answer.status == 404 and answer.problem:
            return None
        return tidings.away_job(_good(answer, 200), self._clock.now())

    async def away_log(self, job: str, permit: str, *, timestamps: bool) -> str:
        answer = await self._ask(
            *("GET", *_DELEGATIONS, job, "log"),
            credentials=_permit(permit),
            params={"timestamps": "true"} if timestamps else None,
            most=self._limits.log_answer,
            cut=True,
        )
        return _good(answer, 200).body.decode("utf-8", "replace")

    async def cancel(self, job: str, permit: str) -> None:
        answer = await self._ask("DELETE", *_DELEGATIONS, job, credentials=_permit(permit))
        if not (answer.status == 404 and answer.problem):
            _good(answer, 200, 202, 204)

    async def may_publish(self, job: str, permit: str) -> bool:
        answer = await self._ask("POST", *_DELEGATIONS, job, "publish", credentials=_permit(permit))
        if answer.status in (409, 410) and answer.problem:
            return False
        _good(answer, 200, 204)
        return True

    async def origin_storage(self, job: str, permit: str) -> dict[str, str]:
        answer = await self._ask("GET", *_DELEGATIONS, job, "storage", credentials=_permit(permit))
        return tidings.lent(_good(answer, 200))

    async def adopt(self, wanted: peers.Adoption, key: str, event: bytes) -> dict[str, str]:
        sent = {
            "Authorization": f"ReplicaKey {key}",
            "Content-Type": "application/octet-stream",
            "X-Hansa-Permit": wanted.permit,
        }
        answer = await self._ask(
            *("POST", "v1", "services", wanted.service, "adopted", wanted.job),
            headers=sent | ({"X-Hansa-Caller": wanted.caller} if wanted.caller else {}),
            params={"member": wanted.member} | ({"of": wanted.of} if wanted.of else {}),
            content=event,
            secrets=(key, wanted.permit, *(quoting.secrets_in(wanted.caller) if wanted.caller else ())),
        )
        return tidings.lent(_good(answer, 200))

    async def fresh_token(self, service: str, group_key: str) -> tuple[str, float]:
        shown = peers.Credentials(f"GroupKey {group_key}")
        answer = await self._ask("POST", "v1", "services", service, "access-token", credentials=shown)
        return tidings.token(_good(answer, 200), self._clock.now())

    async def _inquire(self) -> frozenset[str] | None:
        """The names of what it can do; None for OSCAR's own manager."""
        answer = await self._ask("GET", "v1", "about")
        names = tidings.capabilities(_good(answer, *_NO_ABOUT))
        if names is None:
            # A proxy without a manager behind it knows no `/v1/about` either; taking a Hansa for an OSCAR would last.
            health = await self._ask("GET", "health")
            if not _good(health, 200).body.strip().lower().startswith(b"ok"):
                raise health.nonsense("as no manager does when asked for its health")
        return names

    async def _replace(
        self, definition: dict[str, Any], credentials: peers.Credentials, secrets: Iterable[str]
    ) -> None:
        where = (*_REPLICAS, credentials.replica) if credentials.replica else _SERVICES
        _good(await self._send("PUT", where, definition, credentials, secrets), 200, 204)

    async def _send(
        self,
        method: str,
        where: Iterable[str],
        definition: Mapping[str, Any],
        credentials: peers.Credentials,
        secrets: Iterable[str],
    ) -> Answer:
        sent = {"Authorization": credentials.authorization, "Content-Type": "application/json"}
        content = msgspec.json.encode(definition)
        return await self._ask(method, *where, headers=sent, content=content, secrets=secrets)

    async def _ask(
        self,
        method: str,
        *steps: str,
        credentials: peers.Credentials | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        timeout: float | None = None,
        most: int | None = None,
        cut: bool = False,
        own_words: bool = True,
        parts: int | None = None,
        secrets: Iterable[str] = (),
    ) -> Answer:
        shown = {"Authorization": credentials.authorization} if credentials is not None else {}
        return await self._line.ask(
            Question(
                whom=f"cluster {self.address.cluster_id} at {self.address.endpoint}",
                method=method,
                url=addresses.below(self.address.endpoint, *steps),
                verify=self.address.verify,
                timeout=timeout or self._limits.call_timeout,
                most=most or self._limits.small_answer,
                cut=cut,
                own_words=own_words,
                parts=parts or self._limits.parts,
                headers={**shown, **(headers or {})},
                content=content,
                params=params,
                secrets=tuple(secrets),
            )
        )


def _good(answer: Answer, *statuses: int) -> Answer:
    if answer.status not in statuses:
        raise answer.trouble()
    return answer


def _place(credentials: peers.Credentials) -> tuple[str, ...]:
    """Where a service is found: by somebody who may see it, or by the key of this one replica."""
    return _REPLICAS if credentials.replica else _SERVICES


def _permit(permit: str) -> peers.Credentials:
    return peers.Credentials(f"Permit {permit}")
