"""Do we and a real manager, a process of its own, understand each other?"""

import base64
import secrets
from collections.abc import Iterator

import msgspec
import pytest

from drivers.oscar.conftest import OpenPeer
from hansa.drivers.oscar import OscarPeer
from hansa.services import Service, peers
from hansa.services.service import Environment
from real.manager import ADMIN, Manager, running_manager


@pytest.fixture(scope="module")
def visby() -> Iterator[Manager]:
    with running_manager(
        {"jobs.page_size": 2, "federation.clusters": {"lubeck": {"endpoint": "http://127.0.0.1:9"}}}
    ) as running:
        yield running


@pytest.fixture
def peer(visby: Manager, open_peer: OpenPeer) -> OscarPeer:
    return open_peer(visby.url, timeout=20.0)


@pytest.fixture
def admin(visby: Manager) -> peers.Credentials:
    return peers.Credentials("Basic " + base64.b64encode(f"{ADMIN}:{visby.password}".encode()).decode())


def worker(name: str, script: str = "cat $INPUT_FILE_PATH") -> Service:
    return Service(
        name=name,
        cluster_id="visby",
        cpu="100m",
        memory="64Mi",
        image="debian",
        script=script,
        token=secrets.token_hex(32),
        environment=Environment(variables={"A": "1"}, secrets={"word": "sesame"}),
        annotations={
            "oscar.grycap/federation-worker": "true",
            "oscar.grycap/origin-cluster": "lubeck",
            "oscar.grycap/origin-service": "origin",
        },
    )


async def test_the_life_of_a_replica(peer: OscarPeer, admin: peers.Credentials) -> None:
    first = worker("peer-life")
    assert await peer.read("peer-life", admin) is None
    await peer.create(first, admin)
    before = await peer.read("peer-life", admin)
    assert before is not None
    assert (before["cpu"], before["token"]) == ("0.1", first.token)
    with pytest.raises(peers.PeerRefused) as refused:
        await peer.create(first, admin)
    assert refused.value.status in (400, 409)
    assert first.token not in str(refused.value)

    await peer.update(msgspec.structs.replace(first, memory="128Mi", script="true"), admin)
    changed = await peer.read("peer-life", admin)
    assert changed is not None
    assert (changed["memory"], changed["script"]) == ("128Mi", "true")

    await peer.put_back(before, admin, blanks=True)
    again = await peer.read("peer-life", admin)
    assert again is not None
    assert {**again, "environment": {}} == {**before, "environment": {}}

    await peer.remove("peer-life", admin)
    await peer.remove("peer-life", admin)
    assert await peer.read("peer-life", admin) is None


async def test_wrong_credentials(peer: OscarPeer, admin: peers.Credentials) -> None:
    wrong = peers.Credentials("Basic " + base64.b64encode(b"admin:wrong-word").decode())
    for asked in (peer.read("any", wrong), peer.status(wrong, 10), peer.storage_keys(wrong), peer.remove("any", wrong)):
        with pytest.raises(peers.PeerRefused) as refused:
            await asked
        assert refused.value.status == 401
        assert "wrong-word" not in str(refused.value)


async def test_a_bad_definition_is_refused_with_the_managers_reason(peer: OscarPeer, admin: peers.Credentials) -> None:
    with pytest.raises(peers.PeerRefused, match="cpu") as refused:
        await peer.create(msgspec.structs.replace(worker("peer-bad"), cpu="lots"), admin)
    assert refused.value.status == 400


async def test_its_status(peer: OscarPeer, admin: peers.Credentials) -> None:
    seen = await peer.status(admin, 10)
    assert seen.nodes_count == len(seen.nodes) == 1
    assert 0 < seen.nodes[0].cpu <= seen.capacity_cpu
    assert 0 < seen.nodes[0].memory <= seen.capacity_memory
    assert 0 < seen.seconds < 10


async def test_its_store(peer: OscarPeer, admin: peers.Credentials) -> None:
    address, keys = await peer.storage_keys(admin)
    assert address.endpoint.startswith("http://127.0.0.1:")
    assert keys.well_formed


async def test_jobs_are_handed_over_once_and_counted(peer: OscarPeer, admin: peers.Credentials) -> None:
    service = worker("peer-jobs", "sleep 0.1")
    await peer.create(service, admin)
    token = peers.Credentials(f"Bearer {service.token}")
    try:
        for number in range(5):  # three pages
            job = peers.Handover(
                service="peer-jobs",
                job=f"peer-jobs-{number}",
                body=b"\x00\xffbinary",
                from_service="origin",
                origin="lubeck",
                path=("lubeck",),
                permit="5a" * 32,
            )
            for _ in range(2):
                await peer.hand_over(job, token)
        seen = await peer.history("peer-jobs", admin, 10)
        assert seen.pending <= 5
        with pytest.raises(peers.PeerRefused) as refused:
            await peer.hand_over(job, peers.Credentials("Bearer " + "0" * 64))
        assert refused.value.status == 401
    finally:
        await peer.remove("peer-jobs", admin)


async def test_a_job_for_a_service_it_does_not_have(peer: OscarPeer) -> None:
    job = peers.Handover("nobody", "nobody-1", b"", "origin", "lubeck", ("lubeck",), "5a" * 32)
    with pytest.raises(peers.PeerRefused) as refused:
        await peer.hand_over(job, peers.Credentials("Bearer " + "0" * 64))
    assert refused.value.status in (401, 404)


@pytest.fixture
def says_what_it_is(visby: Manager) -> None:
    if visby.anonymous.get("/v1/about").status_code == 404:
        pytest.skip("this manager has no /v1/about yet")


@pytest.mark.usefixtures("says_what_it_is")
async def test_what_it_is(peer: OscarPeer) -> None:
    assert await peer.capabilities()
    assert "delegation-permits" in await peer.capabilities()


@pytest.mark.usefixtures("says_what_it_is")
async def test_secrets_outlive_being_put_back(peer: OscarPeer, admin: peers.Credentials) -> None:
    """Read, they are blank; a blank that comes back means: as it was."""
    await peer.create(worker("peer-secrets"), admin)
    try:
        before = await peer.read("peer-secrets", admin)
        assert before is not None
        assert before["environment"]["secrets"] == {"word": ""}
        await peer.put_back(before, admin, blanks=True)
        assert await peer.read("peer-secrets", admin) == before
    finally:
        await peer.remove("peer-secrets", admin)
