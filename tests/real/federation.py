"""Several real managers that know each other: each a process with its own store, users and data folder.

    with federation("lubeck", "visby", "riga", provider=idp, settings={"lubeck": {"jobs.cpu": "100m"}}) as hansa:
        hansa.lubeck.admin.get(…)
        hansa.gates["visby"].shut("hang")

All are on loopback, each behind a `Gate`, through which the other managers see it. `real.netns` puts them into network
namespaces instead, where links can be cut.
"""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

from real.gate import Gate, gate
from real.identity_provider import IdentityProvider
from real.manager import ADMIN, ANSWER_SECONDS, ISSUER_GROUP, ROOMY, Manager, free_port, leased_uids

CLIENT = "hansa-tests"
# Short, so that tests see in seconds what takes minutes elsewhere.
QUICK: Mapping[str, Any] = {
    "federation.call_timeout": 5,
    "federation.probe_ttl": 0.5,
    "federation.probe_timeout": 1,
    "federation.rescheduler_threshold": 1,
    "federation.handover_patience": 3,
    "federation.lost_after": 4,
    "federation.repair_every": 2,
}


class Signed(httpx.Auth):
    """A user whose access token lives for seconds only: every request carries one that is still good."""

    def __init__(self, provider: IdentityProvider, login: str, realm: str, life: float) -> None:
        self._provider, self._login, self._realm, self._life = provider, login, realm, life
        self._token, self._until = "", 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self.token()}"
        yield request

    def token(self) -> str:
        if time.monotonic() > self._until:
            self._token = self._provider.token(self._login, self._realm)
            self._until = time.monotonic() + self._life / 2
        return self._token


@dataclass(slots=True)
class Federation:
    clusters: dict[str, Manager]
    gates: dict[str, Gate]
    endpoints: dict[str, str]  # as the managers know each other
    provider: IdentityProvider | None
    realm: str
    _clients: dict[tuple[str, str], httpx.Client] = field(default_factory=dict)

    def __getitem__(self, cluster: str) -> Manager:
        return self.clusters[cluster]

    def user(self, login: str, cluster: str, life: float = 3.0) -> httpx.Client:
        """A user at one of the clusters; made known there at once."""
        if (login, cluster) not in self._clients:
            assert self.provider is not None
            client = httpx.Client(
                base_url=self[cluster].url,
                timeout=ANSWER_SECONDS,
                trust_env=False,
                auth=Signed(self.provider, login, self.realm, life),
            )
            self._clients[login, cluster] = client
            assert client.get("/system/config").status_code == 200
        return self._clients[login, cluster]

    def refresh_token(self, login: str) -> str:
        assert self.provider is not None
        scope = "openid profile groups offline_access"
        return str(self.provider.tokens(login, self.realm, scope)["refresh_token"])

    def credentials(self, *clusters: str) -> dict[str, dict[str, Any]]:
        """`clusters` of a definition, with the admin's password of each."""
        return {
            ident: {"endpoint": self.endpoints[ident], "auth_user": ADMIN, "auth_password": self[ident].password}
            for ident in clusters
        }

    def store(self, client: httpx.Client) -> Any:
        """The object store of a cluster with the keys its manager gives this client."""
        told = client.get("/system/config").json()["minio_provider"]
        return boto3.client(
            "s3",
            endpoint_url=told["endpoint"],
            aws_access_key_id=told["access_key"],
            aws_secret_access_key=told["secret_key"],
            region_name="us-east-1",
            config=Config(retries={"max_attempts": 2}, proxies={}),
        )

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@contextlib.contextmanager
def federation(
    *names: str,
    provider: IdentityProvider | None = None,
    realm: str = "test",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    common: Mapping[str, Any] | None = None,
) -> Iterator[Federation]:
    """Managers of these names, started; `settings` by name go on top of `common` and of quick defaults."""
    with contextlib.ExitStack() as undo:
        ports = {name: free_port() for name in names}
        gates = {name: undo.enter_context(gate(("127.0.0.1", ports[name]))) for name in names}
        endpoints = {name: gates[name].url for name in names}
        clusters: dict[str, Manager] = {}
        for name in names:
            given = {
                **member_settings(name, endpoints, provider, realm),
                **(common or {}),
                **(settings or {}).get(name, {}),
                "sandbox.uid_base": undo.enter_context(leased_uids()),
            }
            clusters[name] = Manager(undo.enter_context(data_folder(name)), ports[name], given)
            undo.callback(clusters[name].close)
        found = Federation(clusters, gates, endpoints, provider, realm)
        undo.callback(found.close)
        start_all(clusters)
        yield found
        for manager in clusters.values():
            manager.stop()


def member_settings(
    name: str, endpoints: Mapping[str, str], provider: IdentityProvider | None, realm: str
) -> dict[str, Any]:
    others = {other: {"endpoint": url} for other, url in endpoints.items() if other != name}
    issuers = [{"url": provider.issuer(realm), "groups": [ISSUER_GROUP], "client_id": CLIENT}] if provider else []
    return {
        **ROOMY,
        **QUICK,
        "cluster.id": name,
        "cluster.public_url": endpoints[name],
        "federation.clusters": others,
        "oidc.issuers": issuers,
    }


@contextlib.contextmanager
def data_folder(name: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f"hansa-{name}-"))
    try:
        folder.chmod(0o711)  # jobs run as other users, who have to reach their part of it
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_all(clusters: Mapping[str, Manager]) -> None:
    """One after another: on a small machine that is faster than all at once."""
    for manager in clusters.values():
        manager.start()
