"""Four managers that know each other, whose cables can be cut; and services that go with their test."""

from collections.abc import Callable, Generator, Iterator
from typing import Any

import httpx
import pytest

from journeys.federation import stories
from real import netns, parts
from real.federation import Federation, cuttable_federation
from real.identity_provider import IdentityProvider, identity_provider
from real.listener import Listener, listener
from real.manager import PEOPLE
from real.netns import Network

ACCESS_SECONDS = 4  # so that every longer story needs several access tokens
Deploy = Callable[..., str]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Whoever reads of a failure sees the last trouble that a manager wrote into its log, which is gone afterwards."""
    report = yield
    hansa = getattr(item, "funcargs", {}).get("hansa")
    if report.failed and isinstance(hansa, Federation):
        for name, cluster in hansa.clusters.items():
            if (at := (log := cluster.log).rfind("Traceback")) >= 0:
                report.sections.append((f"last trouble in the log of {name}", log[max(0, at - 500) : at + 4000]))
    return report


@pytest.fixture(scope="session")
def provider() -> Iterator[IdentityProvider]:
    """Replaces refresh tokens with every use; those of `steady` stay."""
    parts.require("node")
    parts.require("npm")
    realms = {
        "test": {"access_ttl": ACCESS_SECONDS, "rotate": True},
        "steady": {"access_ttl": ACCESS_SECONDS, "rotate": False},
    }
    with identity_provider(realms=realms, users=PEOPLE) as running:
        yield running


@pytest.fixture(scope="session")
def rogue() -> Iterator[Listener]:
    """Nobody told the managers to trust it."""
    with listener() as listening:
        yield listening


@pytest.fixture(scope="session")
def web(rogue: Listener) -> Iterator[Listener]:
    """lubeck may call it; set `redirect_to` and it sends its visitors to the rogue."""
    with listener() as listening:
        yield listening


@pytest.fixture(scope="session")
def hansa(provider: IdentityProvider, web: Listener, rogue: Listener) -> Iterator[Federation]:
    """lubeck is too small for most jobs, riga for the larger ones, tallinn is choosy about images. That they
    differ so much in what they have is for the story of TOPSIS, which was computed by hand."""
    allowed = {"federation.allowed_endpoints": [web.url], "federation.allowed_clusters": [web.url]}
    settings: dict[str, dict[str, Any]] = {
        "lubeck": {"jobs.cpu": "100m", **allowed},
        "visby": {"jobs.cpu": "40000"},
        "riga": {"jobs.cpu": "1", "jobs.memory": "400Ti"},
        "tallinn": {"jobs.cpu": "30000", "jobs.memory": "300Ti", "images.allowed": ["debian"]},
    }
    names, neighbours = ("lubeck", "visby", "riga", "tallinn"), (web.url, rogue.url)
    with cuttable_federation(*names, provider=provider, settings=settings, neighbours=neighbours) as running:
        yield running


@pytest.fixture
def net(hansa: Federation) -> Network:
    """Their cables: what a story cuts is whole again before its services are deleted."""
    if hansa.net is None:
        parts.give_up("network namespaces", netns.hindrance())
    return hansa.net


@pytest.fixture(autouse=True)
def _mended(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "hansa" in request.fixturenames:
        request.getfixturevalue("hansa").mend()


@pytest.fixture
def alice(hansa: Federation) -> httpx.Client:
    """A user at lubeck, where most stories begin."""
    return hansa.user("alice", "lubeck")


@pytest.fixture
def deploy(hansa: Federation, alice: httpx.Client) -> Iterator[Deploy]:
    """Creates a federated service for alice and gives its name; it is deleted with the test, and its workers too."""
    made: list[tuple[httpx.Client, str]] = []

    def make(members: list[dict[str, Any]], client: httpx.Client = alice, **more: Any) -> str:
        name = more.pop("name", "") or stories.fresh("gray")
        token = more.pop("token", None)
        if token is None:
            token = hansa.refresh_token("alice")
        stories.create(client, stories.federated(name, members, token=token, **more))
        made.append((client, name))
        return str(name)

    yield make
    hansa.mend()
    for client, name in made:
        assert client.delete(f"/system/services/{name}").status_code in (204, 404)
