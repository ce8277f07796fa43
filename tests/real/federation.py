"""Several real managers that know each other: each a process with its own store, users and data folder.

    with federation("lubeck", "visby", "riga", provider=idp, settings={"lubeck": {"jobs.cpu": "100m"}}) as hansa:
        hansa.lubeck.admin.get(…)
        hansa.gates["visby"].shut("hang")

All are on loopback, each behind a `Gate`, through which the other managers see it. `cut_off_federation` puts each into
a network namespace instead, with its store, and gives the `Network` whose links can be cut; tests still reach every
manager and every store on loopback, also those that are cut off.
"""

import concurrent.futures
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
from botocore.config import Config

from real.gate import Gate, gate
from real.identity_provider import IdentityProvider
from real.manager import ADMIN, ANSWER_SECONDS, ISSUER_GROUP, ROOMY, Manager, free_port, leased_uids
from real.netns import Network, network
from real.nursery import Nursery
from real.postgres import tied_to_us

CLIENT = "hansa-tests"
_PORT = 8080  # every namespace has its own
_SOURCES = Path(__file__).parents[2] / "src"
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
class Cluster(Manager):
    """A manager that may live in a network namespace; tests reach it on loopback all the same."""

    name: str = ""
    host: str = "127.0.0.1"
    inside: tuple[str, ...] = ()  # words before its command
    born: Nursery | None = None  # which starts it more quickly

    def start(self) -> None:
        self.spawn()
        self.await_ready()

    def spawn(self) -> None:
        """By the test's own thread: the kernel ends a process with the thread that started it."""
        assert self._process is None, "the manager runs already"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
        if self.born is not None:
            assert not self.inside
            environment = {**variables, **self._variables()}
            self._process = self.born.start(environment, self.folder, self.folder / "manager.log")
            return
        with (self.folder / "manager.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*tied_to_us(), *self.inside, str(Path(sys.executable).with_name("hansa")), "server"],
                cwd=self.folder,
                env={**variables, "PYTHONPATH": str(_SOURCES), **self._variables()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_ready(self) -> None:
        try:
            self._await_ready()
        except BaseException:
            self.kill()
            raise


@dataclass(slots=True)
class Federation:
    clusters: dict[str, Cluster]
    gates: dict[str, Gate]
    endpoints: dict[str, str]  # as the managers know each other
    provider: IdentityProvider | None
    realm: str
    net: Network | None = None
    _undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _doors: dict[str, str] = field(default_factory=dict)  # to stores in namespaces, by their own address
    _clients: dict[tuple[str, str], httpx.Client] = field(default_factory=dict)

    def __getitem__(self, cluster: str) -> Cluster:
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
            endpoint_url=self._reachable(str(told["endpoint"])),
            aws_access_key_id=told["access_key"],
            aws_secret_access_key=told["secret_key"],
            region_name="us-east-1",
            config=Config(retries={"max_attempts": 2}, proxies={}),
        )

    def _reachable(self, endpoint: str) -> str:
        if self.net is None:
            return endpoint
        if endpoint not in self._doors:
            parts = urlsplit(endpoint)
            assert parts.hostname is not None
            assert parts.port is not None
            home = next(name for name in self.clusters if self.net.address(name) == parts.hostname)
            door = gate((parts.hostname, parts.port), connect_in=self.net.namespace(home))
            self._doors[endpoint] = self._undo.enter_context(door).url
        return self._doors[endpoint]

    def close(self) -> None:
        self._undo.close()
        for client in self._clients.values():
            client.close()


@contextlib.contextmanager
def federation(
    *names: str,
    provider: IdentityProvider | None = None,
    realm: str = "test",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    common: Mapping[str, Any] | None = None,
    born: Nursery | None = None,
) -> Iterator[Federation]:
    """Managers of these names, started; `settings` by name go on top of `common` and of quick defaults."""
    with contextlib.ExitStack() as undo:
        ports = {name: free_port() for name in names}
        gates = {name: undo.enter_context(gate(("127.0.0.1", ports[name]))) for name in names}
        endpoints = {name: gates[name].url for name in names}
        clusters: dict[str, Cluster] = {}
        for name in names:
            given = {
                **member_settings(name, endpoints, provider, realm),
                **(common or {}),
                **(settings or {}).get(name, {}),
                "sandbox.uid_base": undo.enter_context(leased_uids()),
            }
            folder = undo.enter_context(data_folder(name))
            clusters[name] = Cluster(folder, ports[name], given, name=name, born=born)
            undo.callback(clusters[name].close)
        found = Federation(clusters, gates, endpoints, provider, realm)
        undo.callback(found.close)
        start_all(clusters)
        yield found
        stop_all(clusters)


@contextlib.contextmanager
def cut_off_federation(
    *names: str,
    provider: IdentityProvider | None = None,
    realm: str = "test",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    common: Mapping[str, Any] | None = None,
) -> Iterator[Federation]:
    """The same in network namespaces. The identity provider is on each one's own loopback: no cut takes it away."""
    with contextlib.ExitStack() as undo:
        net = undo.enter_context(network(*names))
        endpoints = {name: f"http://{net.address(name)}:{_PORT}" for name in names}
        gates: dict[str, Gate] = {}
        clusters: dict[str, Cluster] = {}
        for name in names:
            home = net.namespace(name)
            if provider is not None:
                undo.enter_context(gate(("127.0.0.1", provider.port), port=provider.port, listen_in=home))
            gates[name] = undo.enter_context(gate((net.address(name), _PORT), connect_in=home))
            given = {
                **member_settings(name, endpoints, provider, realm),
                "http.host": net.address(name),
                "http.port": _PORT,
                "storage.host": net.address(name),
                **(common or {}),
                **(settings or {}).get(name, {}),
                "sandbox.uid_base": undo.enter_context(leased_uids()),
            }
            folder = undo.enter_context(data_folder(name))
            clusters[name] = Cluster(folder, gates[name].port, given, name=name, inside=tuple(net.inside(name)))
            undo.callback(clusters[name].close)
        found = Federation(clusters, gates, endpoints, provider, realm, net)
        undo.callback(found.close)
        start_all(clusters)
        yield found
        stop_all(clusters)


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


def start_all(clusters: Mapping[str, Cluster]) -> None:
    for cluster in clusters.values():
        cluster.spawn()
    for cluster in clusters.values():
        cluster.await_ready()


def stop_all(clusters: Mapping[str, Cluster]) -> None:
    with concurrent.futures.ThreadPoolExecutor(len(clusters)) as threads:
        for done in [threads.submit(cluster.stop) for cluster in clusters.values()]:
            done.result()
