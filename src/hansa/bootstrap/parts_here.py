"""Which parts does this process run, a manager, a hub or both, and where is what each keeps in the data folder?"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from hansa.settings import Settings
from hansa.store import sealed, sqlite_url


@dataclass(frozen=True, slots=True)
class Port:
    """Where it listens, and the settings that say so."""

    name: str
    host: str
    number: int
    host_setting: str
    number_setting: str

    @property
    def hint(self) -> str:
        return f"set {self.host_setting} to an address of this machine and {self.number_setting} to a free port"


@dataclass(frozen=True, slots=True)
class Part:
    """`lock` is held while it runs, `has_secrets` says whether its key is needed."""

    name: str
    folder: Path
    database: str
    key: Path
    ports: tuple[Port, ...]
    has_secrets: Callable[[sa.Engine], bool]

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def kept_database(self) -> Path | None:
        """The file of one in the folder."""
        path = self.folder / "hansa.db"
        return path if self.database == sqlite_url(self.folder) else None


def manager(given: Settings) -> Part:
    folder = given.data.absolute()
    ports = [Port("port", given.http.host, given.http.port, "http.host", "http.port")]
    if given.exposed.port is not None:
        ports.append(Port("pages' port", given.http.host, given.exposed.port, "http.host", "exposed.port"))
    url = given.database.url or sqlite_url(folder)
    has_secrets = sealed.any_of_manager if given.driver == "local" else _kept_elsewhere
    return Part("manager", folder, url, folder / "vault.key", tuple(ports), has_secrets)


def _kept_elsewhere(_: sa.Engine) -> bool:
    """Kubernetes has the key, too, and a start puts it back."""
    return False


def hub(given: Settings) -> Part:
    folder, asked = given.data.absolute() / "hub", given.hub
    ports = (
        Port("hub's port", asked.host, asked.port, "hub.host", "hub.port"),
        Port("members' port", asked.members_host, asked.members_port, "hub.members_host", "hub.members_port"),
    )
    url = given.database.url or sqlite_url(folder)
    return Part("hub", folder, url, asked.key_file or folder / "hub.key", ports, sealed.any_of_hub)


def of(given: Settings) -> list[Part]:
    managers = [manager(given)] if given.role != "hub" else []
    return managers + ([hub(given)] if given.role != "manager" else [])
