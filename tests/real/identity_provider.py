"""A real OpenID Connect provider for tests: node's `oidc-provider` with Keycloak's addresses, on loopback.

    with identity_provider(realms={"test": {"access_ttl": 3}}) as provider:
        token = provider.token("alice", realm="test")

Installed once into `.cache/` of the repository (stamped by the lock file), started on a free port, stopped
with the block. Works the same in pytest and in plain scripts. `tests/real/oidc/idp.mjs` says what it can do.
"""

import base64
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any, BinaryIO

import httpx

_HERE = Path(__file__).parent / "oidc"
_CACHE = Path(__file__).parents[2] / ".cache" / "identity-provider"
_CLIENT = "hansa-tests"
_CALLBACK = "http://127.0.0.1/callback"
AUDIENCE = "urn:hansa:test"  # of every access token, unless a realm says otherwise
_INSTALL_SECONDS, _START_SECONDS, _STOP_SECONDS, _ANSWER_SECONDS = 300, 60, 10, 30

USERS: Mapping[str, Mapping[str, Any]] = {
    "alice": {"password": "alice-pw", "name": "Alice", "groups": ["vo-test", "vo-one"]},
    "bob": {"password": "bob-pw", "name": "Bob", "groups": ["vo-test"]},
    "carol": {"password": "carol-pw", "name": "Carol"},  # in no group
}


class IdentityProvider:
    """One running provider process."""

    def __init__(self, process: subprocess.Popen[bytes], base: str, users: Mapping[str, Mapping[str, Any]]) -> None:
        self.base = base
        self._process = process
        self._users = users
        self._http = httpx.Client(base_url=base, timeout=_ANSWER_SECONDS, trust_env=False)

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    def issuer(self, realm: str = "test") -> str:
        return f"{self.base}/realms/{realm}"

    def tokens(self, user: str, realm: str = "test", scope: str = "openid profile groups") -> dict[str, Any]:
        """The token endpoint's whole answer; ask for `offline_access` to get a refresh token."""
        return self.grant(realm, "password", username=user, password=self._users[user]["password"], scope=scope)

    def token(self, user: str, realm: str = "test", scope: str = "openid profile groups") -> str:
        """An access token (a JWT)."""
        return str(self.tokens(user, realm, scope)["access_token"])

    def tokens_by_browser(self, user: str, realm: str = "test", scope: str = "openid profile") -> dict[str, Any]:
        """What a client gets whose user signed in on the provider's own page, the `id_token` among it."""
        verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "client_id": _CLIENT,
            "response_type": "code",
            "scope": scope,
            "redirect_uri": _CALLBACK,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        with httpx.Client(base_url=self.base, timeout=_ANSWER_SECONDS, trust_env=False) as browser:
            page = browser.get(f"/realms/{realm}/protocol/openid-connect/auth", params=asked).headers["location"]
            sent = browser.post(page, data={"username": user, "password": self._users[user]["password"]})
            while not sent.headers["location"].startswith(_CALLBACK):
                sent = browser.get(sent.headers["location"])
        code = httpx.URL(sent.headers["location"]).params["code"]
        return self.grant(realm, "authorization_code", code=code, redirect_uri=_CALLBACK, code_verifier=verifier)

    def refresh(self, refresh_token: str, realm: str = "test") -> dict[str, Any]:
        return self.grant(realm, "refresh_token", refresh_token=refresh_token)

    def burn(self, refresh_token: str, realm: str = "test") -> None:
        """Uses a replaced refresh token once more: the provider takes its whole line for stolen."""
        form = {"client_id": _CLIENT, "grant_type": "refresh_token", "refresh_token": refresh_token}
        answer = self._http.post(f"/realms/{realm}/protocol/openid-connect/token", data=form)
        if answer.status_code != 400:
            raise RuntimeError(f"the token was still good: {answer.status_code}")

    def grant(self, realm: str, grant_type: str, **form: str) -> dict[str, Any]:
        answer = self._http.post(
            f"/realms/{realm}/protocol/openid-connect/token",
            data={"client_id": _CLIENT, "grant_type": grant_type, **form},
        )
        return _checked(answer)

    def published_keys(self, realm: str = "test") -> list[dict[str, Any]]:
        keys = _checked(self._http.get(f"/realms/{realm}/protocol/openid-connect/certs"))["keys"]
        return list(keys)

    def rotate_keys(self, realm: str = "test", *, keep_old: bool = True) -> str:
        """Sign with a new key from now on; the old one stays published or goes. The new key's id."""
        answer = self._http.post(f"/control/rotate/{realm}", params={"keep": "1" if keep_old else "0"})
        return str(_checked(answer)["kid"])

    def asked(self, ending: str, realm: str = "test") -> int:
        """How often a path of the realm was asked, by its end: `certs`, `userinfo`, …"""
        counts = _checked(self._http.get("/control/counts"))
        mine = f"/realms/{realm}/"
        return sum(count for path, count in counts.items() if path.startswith(mine) and path.endswith(ending))

    def stop(self) -> None:
        """Ends the process; stopping twice is fine."""
        self._http.close()
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def identity_provider(
    realms: Mapping[str, Mapping[str, Any]] | None = None,
    users: Mapping[str, Mapping[str, Any]] = USERS,
    port: int = 0,
) -> Iterator[IdentityProvider]:
    program = _installed()
    settings = {"port": port, "realms": realms or {"test": {}}, "users": users}
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            ["node", "--no-warnings", program.name],
            cwd=program.parent,
            env={"PATH": os.environ.get("PATH", ""), "IDP_CONFIG": json.dumps(settings)},
            stdin=subprocess.PIPE,  # its end tells the provider that we are gone, however we went
            stdout=subprocess.PIPE,
            stderr=complaints,
        )
        try:
            base = _ready(process, complaints)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        provider = IdentityProvider(process, base, users)
        try:
            yield provider
        finally:
            provider.stop()


def _ready(process: subprocess.Popen[bytes], complaints: BinaryIO) -> str:
    """The base address, once the provider says that it listens."""
    lines: Queue[bytes] = Queue()
    assert process.stdout is not None
    stdout = process.stdout
    # A thread, because a pipe's readline knows no time limit; it ends with the first line or the process.
    threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
    try:
        words = lines.get(timeout=_START_SECONDS).decode().split()
    except Empty:
        words = []
    if words[:1] != ["READY"]:
        complaints.seek(0)
        raise RuntimeError(f"the identity provider did not start: {complaints.read().decode()[-2000:]}")
    return words[1]


def _installed() -> Path:
    """The provider's program beside its packages; installs them when the lock file is new."""
    lock_file = _HERE / "package-lock.json"
    home = _CACHE / hashlib.sha256(lock_file.read_bytes()).hexdigest()[:16]
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes start together; one installs, the others wait
        if not home.exists():
            _install(home)
        # Node finds packages by the program's own place, so the program is copied there, once per version.
        source = _HERE / "idp.mjs"
        program = home / f"idp-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.mjs"
        if not program.exists():
            shutil.copyfile(source, program.with_suffix(".new"))
            program.with_suffix(".new").rename(program)
    return program


def _install(home: Path) -> None:
    fresh = Path(tempfile.mkdtemp(dir=_CACHE, prefix="installing-"))
    try:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copyfile(_HERE / name, fresh / name)
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=fresh,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"npm ci failed: {done.stderr.decode()[-2000:]}")
        fresh.rename(home)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _checked(answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code != 200:
        raise RuntimeError(f"{answer.request.url.path} answered {answer.status_code}: {answer.text[:500]}")
    body: dict[str, Any] = answer.json()
    return body
