"""Where do a manager's credentials outlive it? In one file that only its user may read, replaced as a whole.

A key that waits for its first certificate has a file of its own: should the manager die after it asked, it asks again
with the same key, and the token it used is not lost.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from hansa.kernel.errors import HansaError, Kind

_FORMAT = 1
_LARGEST = 2**20
T = TypeVar("T", bound=msgspec.Struct)


class CredentialsUnusable(HansaError):
    """The file with this manager's credentials for its hub cannot be used."""

    code, kind = "federation.credentials-unusable", Kind.INTERNAL


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """All a member needs. Times are by this machine's clock: the hub's may differ."""

    format: int = _FORMAT
    hub: str
    trust_domain: str
    cluster: str
    incarnation: int
    roots: str  # PEM
    chain: str  # PEM
    key: str  # PEM
    issued: float
    until: float

    def __repr__(self) -> str:
        return f"Credentials({self.cluster} at {self.hub})"


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was sent to be signed, with which token."""

    format: int = _FORMAT
    token: str  # its id only
    cluster: str
    key: str  # PEM
    request: str  # PEM

    def __repr__(self) -> str:
        return f"Asking({self.cluster} with {self.token})"


class Keeping:
    def __init__(self, folder: Path) -> None:
        self._credentials = folder / "hub-credentials.json"
        self._asking = folder / "hub-asking.json"

    def credentials(self) -> Credentials | None:
        return _read(self._credentials, Credentials)

    def asking(self) -> Asking | None:
        try:
            return _read(self._asking, Asking)
        except CredentialsUnusable:
            return None  # nothing depends on it but a token

    def keep(self, credentials: Credentials) -> None:
        """Durable when it returns."""
        _write(self._credentials, credentials)
        self._asking.unlink(missing_ok=True)

    def keep_asking(self, asking: Asking) -> None:
        _write(self._asking, asking)

    def forget(self) -> None:
        self._credentials.unlink(missing_ok=True)
        self._asking.unlink(missing_ok=True)


def _read(path: Path, kind: type[T]) -> T | None:
    hint = f"remove {path} and join the federation again with a new token"
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise CredentialsUnusable(f"others may read {path}", hint=f"chmod 600 {path}")
            data = file.read(_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CredentialsUnusable(f"{path} cannot be read: {error.strerror}", hint="see to its permissions") from None
    try:
        found = msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:  # its text may quote the file
        raise CredentialsUnusable(f"{path} does not hold credentials", hint=hint) from None
    if getattr(found, "format", 0) != _FORMAT:
        raise CredentialsUnusable(f"{path} was written by another version of Hansa", hint=hint)
    return found


def _write(path: Path, content: msgspec.Struct) -> None:
    """Written aside and renamed into place: whoever reads finds the old or the new, never half of one."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(msgspec.json.encode(content))
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            with suppress(FileNotFoundError):
                aside.unlink()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise CredentialsUnusable(
            f"{path} cannot be written: {error.strerror}", hint="see to the data folder: its disk may be full"
        ) from None
