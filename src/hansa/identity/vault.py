"""How are secrets kept at rest? Sealed with a key that is not in the database (Fernet: AES-CBC and HMAC).

The key file holds one key per line. The first seals; all of them open, so a new key is put on top, everything
is resealed, and then the old line goes.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from hansa.identity.errors import VaultLocked


class Vault:
    def __init__(self, keys: Sequence[str | bytes]) -> None:
        try:
            self._box = MultiFernet([Fernet(key) for key in keys])
        except ValueError:  # its message may repeat the key
            raise VaultLocked("a vault key is missing or not 32 bytes of URL-safe base64") from None
        first = keys[0]
        self._first = first.encode() if isinstance(first, str) else first

    @staticmethod
    def new_key() -> str:
        return Fernet.generate_key().decode()

    @classmethod
    def at(cls, path: Path, *, needed: bool = False) -> "Vault":
        """The vault of a key file. It is made if missing, unless it is `needed`: there are secrets already, and no new
        key opens them."""
        if not path.exists():
            if needed:
                raise VaultLocked(f"the vault's key {path} is missing", hint=_put_back(path))
            _create_once(path)
        if path.stat().st_mode & 0o077:
            raise VaultLocked(f"others may read the vault's key file {path}", hint=f"chmod 600 {path}")
        lines = (line.strip() for line in path.read_text("ascii", "replace").splitlines())
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys:
            raise VaultLocked(f"the vault's key {path} is empty", hint=_put_back(path))
        try:
            return cls(keys)
        except VaultLocked as error:
            raise VaultLocked(f"the vault's key {path} cannot be used: {error}", hint=_put_back(path)) from None

    def seal(self, values: Mapping[str, str], *, purpose: str = "") -> bytes:
        """`purpose` (say, "service 17") ties the seal to its place: it opens nowhere else."""
        return self._box.encrypt(json.dumps([purpose, dict(values)]).encode())

    def open(self, sealed: bytes, *, purpose: str = "") -> dict[str, str]:
        try:
            made_for, values = json.loads(self._box.decrypt(sealed))
        except InvalidToken:
            raise VaultLocked(
                "a sealed secret does not open with the vault's keys",
                hint="put the key it was sealed with back into the key file",
            ) from None
        if made_for != purpose:
            raise VaultLocked(
                f"a sealed secret was made for {made_for!r}, not for {purpose!r}",
                hint="store the secret again",
            )
        return {str(name): str(value) for name, value in values.items()}

    def derived(self, purpose: str) -> bytes:
        """A key for signing that says nothing of the vault's own; another one when a new key is put on top."""
        return hmac.new(self._first, f"hansa {purpose}".encode(), hashlib.sha256).digest()

    def reseal(self, sealed: bytes) -> bytes:
        """The same secret under the first key."""
        try:
            return self._box.rotate(sealed)
        except InvalidToken:
            raise VaultLocked("a sealed secret does not open with the vault's keys") from None

    def __repr__(self) -> str:
        return "Vault(***)"


def _put_back(path: Path) -> str:
    return (
        f"put back the {path.name} of this data folder from a backup: no other key opens the secrets in the database. "
        "A folder that never had any secrets may begin without one"
    )


def _create_once(path: Path) -> None:
    """Written aside and linked into place: two managers starting together both use the one key that won."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(Vault.new_key() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # then another one was first, and its key is as good
            os.link(aside, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # a key lost in a crash would take the secrets sealed with it along
        finally:
            os.close(folder)
    finally:
        aside.unlink(missing_ok=True)
