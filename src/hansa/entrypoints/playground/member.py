"""One cluster's manager in the playground, and how to reach it."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from hansa import settings
from hansa.entrypoints.playground.plan import Place
from hansa.entrypoints.playground.server import Server, reached
from hansa.settings import Settings


@dataclass(frozen=True, slots=True)
class Address:
    """How to reach a manager that is ready."""

    id: str
    url: str
    admin_user: str
    admin_password: str
    s3_url: str


class Member(Server):
    def __init__(self, place: Place, given: Settings, env: Mapping[str, str], lock: int) -> None:
        url = f"http://{reached(given.http.host)}:{place.port}"
        super().__init__(place.id, "the manager", place.log, url, env, lock)
        self.auth = (given.admin.user, settings.admin_password(given))
        self._store = ""

    @property
    def address(self) -> Address:
        return Address(self.name, self.url, *self.auth, self._store)

    async def look(self, http: httpx.AsyncClient) -> None:
        answer = await http.get("/system/config", auth=self.auth)
        if answer.status_code != 200:
            raise self.not_started(f"answers {answer.status_code} to its admin; does another server use {self.url}?")
        self._store = answer.json()["minio_provider"]["endpoint"]  # other ports, perhaps, than the last time
