"""Several real managers that know each other: each a process with its own store, users and data folder.

    with cuttable_federation("lubeck", "visby", "riga", provider=idp, settings={"riga": {"jobs.cpu": "1"}}) as hansa:
        hansa["lubeck"].admin.get(…)
        hansa.gates["visby"].shut("hang")
        hansa.net.cut("riga")
        hansa.mend()

Each of a `cuttable_federation` is in a network namespace, with its store, and behind a `Gate`, through which the other
managers see it. In a `cut_off_federation` nothing but cables is between them. Tests reach every manager and every store
on loopback, also those that are cut off. So does every manager the identity provider: no cut takes it away.

A `federation` is on loopback, behind gates: for managers that share a part of the test's, a store or whoever starts
them. So is a `cuttable_federation` where namespaces cannot be made, and has no `net` then: who is not root can still
tell most stories. Where nothing may be missing (`real.parts`) that is a failure.
"""

import concurrent.futures
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
from botocore.config import Config

from real import netns, nursery, parts
from real.gate import Gate, gate
from real.identity_provider import AUDIENCE, IdentityProvider
from real.manager import ADMIN, ANSWER_SECONDS, ISSUER_GROUP, ROOMY, Manager, free_port, leased_uids
from real.netns import Network

CLIENT = "hansa-tests"
_PORT, _INNER_PORT = 8080, 8081  # every namespace has its own; the inner one is the manager's behind its gate
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

    def start(self) -> None:
        self.spawn()
        self.await_ready()

    def spawn(self) -> None:
        """By the test's own thread: the kernel ends a process with the thread that started it."""
        assert self._process is None, "the manager runs already"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
        environment = {**variables, **self._variables()}
        self._process = nursery.started(environment, self.folder, self.folder / "manager.log", self.inside)

    def await_ready(self) -> None:
        try:
            self._await_ready()
        except BaseException:
            self.kill()
            raise


@dataclass(slots=True)
class Federation:
    clusters: dict[str, Cluster]
    gates: dict[str, Gate]  # through which the other managers see it
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

    def mend(self) -> None:
        """Every gate is open and every cable whole."""
        for one in self.gates.values():
            one.open()
        if self.net is not None:
            self.net.heal_all()

    def close(self) -> None:
        self._undo.close()
        for client in self._clients.values():
            client.close()


@dataclass(frozen=True, slots=True)
class _Site:
    """Where a manager listens, and what leads there."""

    endpoint: str  # for the other managers
    port: int  # of our loopback, for tests
    gate: Gate | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    inside: tuple[str, ...] = ()


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
        sites = {name: _on_loopback(undo) for name in names}
        found = _started(undo, sites, None, provider, realm, settings or {}, common or {})
        yield found
        stop_all(found.clusters)


@contextlib.contextmanager
def cuttable_federation(
    *names: str,
    provider: IdentityProvider | None = None,
    realm: str = "test",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    common: Mapping[str, Any] | None = None,
    neighbours: Sequence[str] = (),
) -> Iterator[Federation]:
    """The same in network namespaces, if they can be made; `neighbours` are addresses on our loopback which every
    manager is to find on its own."""
    with contextlib.ExitStack() as undo:
        if netns.hindrance() and not parts.strict():
            yield undo.enter_context(
                federation(*names, provider=provider, realm=realm, settings=settings, common=common)
            )
            return
        net = undo.enter_context(netns.network(*names))
        seen = _ports(provider, neighbours)
        sites = {name: _in_namespace(undo, net, name, seen, gated=True) for name in names}
        found = _started(undo, sites, net, provider, realm, settings or {}, common or {})
        yield found
        stop_all(found.clusters)


@contextlib.contextmanager
def cut_off_federation(
    *names: str,
    provider: IdentityProvider | None = None,
    realm: str = "test",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    common: Mapping[str, Any] | None = None,
) -> Iterator[Federation]:
    """The same without gates, and in namespaces or not at all."""
    with contextlib.ExitStack() as undo:
        net = undo.enter_context(netns.network(*names))
        sites = {name: _in_namespace(undo, net, name, _ports(provider), gated=False) for name in names}
        found = _started(undo, sites, net, provider, realm, settings or {}, common or {})
        yield found
        stop_all(found.clusters)


def _ports(provider: IdentityProvider | None, neighbours: Sequence[str] = ()) -> list[int]:
    found = [urlsplit(url).port for url in ([provider.base] if provider is not None else []) + list(neighbours)]
    return [port for port in found if port is not None]


def _on_loopback(undo: contextlib.ExitStack) -> _Site:
    port = free_port()
    before = undo.enter_context(gate(("127.0.0.1", port)))
    return _Site(before.url, port, before)


def _in_namespace(undo: contextlib.ExitStack, net: Network, name: str, seen: Sequence[int], *, gated: bool) -> _Site:
    home, address = net.namespace(name), net.address(name)
    for port in seen:
        undo.enter_context(gate(("127.0.0.1", port), port=port, listen_in=home))
    listens = ("127.0.0.1", _INNER_PORT) if gated else (address, _PORT)
    before = None
    if gated:
        before = undo.enter_context(gate(listens, host=address, port=_PORT, listen_in=home, connect_in=home))
    door = undo.enter_context(gate(listens, connect_in=home))
    given = {"http.host": listens[0], "http.port": listens[1], "storage.host": address}
    return _Site(f"http://{address}:{_PORT}", door.port, before, given, tuple(net.inside(name)))


def _started(
    undo: contextlib.ExitStack,
    sites: Mapping[str, _Site],
    net: Network | None,
    provider: IdentityProvider | None,
    realm: str,
    settings: Mapping[str, Mapping[str, Any]],
    common: Mapping[str, Any],
) -> Federation:
    endpoints = {name: site.endpoint for name, site in sites.items()}
    clusters: dict[str, Cluster] = {}
    for name, site in sites.items():
        given = {
            **member_settings(name, endpoints, provider, realm),
            **site.settings,
            **common,
            **settings.get(name, {}),
            "sandbox.uid_base": undo.enter_context(leased_uids()),
        }
        if "storage.endpoint" in given:  # all have the same one
            for other in given["federation.clusters"].values():
                other["shares_store"] = True
        folder = undo.enter_context(data_folder(name))
        clusters[name] = Cluster(folder, site.port, given, name=name, inside=site.inside)
        undo.callback(clusters[name].close)
    gates = {name: site.gate for name, site in sites.items() if site.gate is not None}
    found = Federation(clusters, gates, endpoints, provider, realm, net)
    undo.callback(found.close)
    start_all(clusters)
    return found


def member_settings(
    name: str, endpoints: Mapping[str, str], provider: IdentityProvider | None, realm: str
) -> dict[str, Any]:
    others = {other: {"endpoint": url} for other, url in endpoints.items() if other != name}
    issuers = []
    if provider:
        trusted = {"url": provider.issuer(realm), "audience": AUDIENCE, "groups": [ISSUER_GROUP], "client_id": CLIENT}
        issuers.append(trusted)
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
