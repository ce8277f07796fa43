"""A manager's line to a real hub over real TLS: whom it believes, what it keeps, what it makes of refusals."""

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from hansa.drivers.hub import CredentialsUnusable, HubLine, Limits
from hansa.entrypoints.http.hub.tls import MembersTls
from hansa.federation import JoinToken, acting, errors, member, syncing
from hansa.identity import authority
from hansa.messages.clusters import Facts
from hansa.messages.members import Heartbeat
from real.hub_door import ADMIN, HubDoor, hub_door, served
from real.relay import relay

pytestmark = pytest.mark.asyncio(loop_scope="module")
FACTS = Facts(name="Visby", endpoint="https://visby.example.org")
OpenLine = Callable[..., HubLine]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HubDoor]:
    async with hub_door(tmp_path_factory.mktemp("hub")) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HubDoor]:
    """The hub of another federation, whose trust domain has the same name."""
    async with hub_door(tmp_path_factory.mktemp("other")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def new_line(tmp_path: Path) -> AsyncIterator[OpenLine]:
    lines: list[HubLine] = []

    def make(name: str = "one", **given: Any) -> HubLine:
        lines.append(HubLine(tmp_path / name, **given))
        return lines[-1]

    yield make
    for one in lines:
        await one.close()


def cluster() -> str:
    return f"c{secrets.token_hex(4)}"


def beat(line: HubLine, number: int) -> Heartbeat:
    held = line.held()
    assert held is not None
    return Heartbeat(incarnation=held.incarnation, number=number, run="mark", whole=True)


async def test_joins_reports_asks_renews_and_leaves(door: HubDoor, new_line: OpenLine, tmp_path: Path) -> None:
    line: member.Line = new_line()
    name = cluster()
    assert line.held() is None
    joined = await line.join(door.members + "/", await door.token(), name, FACTS)
    assert (joined.cluster, joined.incarnation, joined.state) == (name, 1, "ready")
    held = line.held()
    assert held is not None
    assert (held.hub, held.cluster, held.incarnation) == (door.members, name, 1)
    assert held.until - held.issued == pytest.approx(24 * 3600, abs=2)

    heard = await line.heartbeat(beat(line, 1))  # type: ignore[arg-type]
    assert (heard.number, heard.state) == (1, "ready")
    told = await line.desired(0, 0)
    assert told is not None
    assert told.roots == door.hub.trust.roots
    assert await line.desired(told.generation, 0.05) is None

    before = door.hub.registry.get(name)
    assert before is not None
    serials = before.record.serials
    await line.renew()
    after = acting.get(door.hub, name).record
    assert after.serials[:-1] == serials
    assert (await line.heartbeat(beat(line, 2))).number == 2  # type: ignore[arg-type]
    shown = acting.get(door.hub, name).sections["certificate"][1].decode().strip('"')
    assert shown == after.serials[-1]

    again = new_line()  # as after a restart
    assert again.held() == line.held()
    assert (await again.heartbeat(beat(again, 3))).number == 3
    await again.leave("mark")
    assert acting.get(door.hub, name).record.state == "left"
    with pytest.raises(errors.NotAMember):
        await line.heartbeat(beat(line, 4))  # type: ignore[arg-type]
    await line.forget()
    assert line.held() is None
    assert not any((tmp_path / "one").iterdir())


async def test_a_lost_answer_costs_neither_token_nor_name(door: HubDoor, new_line: OpenLine) -> None:
    port = int(door.members.rpartition(":")[2])
    name, token = cluster(), await door.token()
    async with relay(port) as way:
        line = new_line()
        way.deafen(2)  # the roots are read first
        with pytest.raises(errors.HubUnreachable):
            await line.join(f"https://127.0.0.1:{way.port}", token, name, FACTS)
        assert acting.get(door.hub, name).record.incarnation == 1  # it was heard
        again = new_line()  # the manager died meanwhile
        joined = await again.join(f"https://127.0.0.1:{way.port}", token, name, FACTS)
        assert joined.incarnation == 1
        assert (await again.heartbeat(beat(again, 1))).number == 1
    with pytest.raises(errors.BadToken, match="used already"):
        await new_line("thief").join(door.members, token, name, FACTS)
    with pytest.raises(errors.BadToken, match="used already"):
        await again.join(door.members, token, cluster(), FACTS)


async def test_lost_answers_to_renewals_lock_nobody_out(door: HubDoor, new_line: OpenLine) -> None:
    port = int(door.members.rpartition(":")[2])
    async with relay(port) as way:
        line, name = new_line(), cluster()
        await line.join(f"https://127.0.0.1:{way.port}", await door.token(), name, FACTS)
        for number in range(1, 5):
            way.deafen(1)
            with pytest.raises(errors.HubUnreachable):
                await line.renew()
            assert (await line.heartbeat(beat(line, number))).number == number
            await line.close()  # the next renewal makes a connection of its own again
        assert len(acting.get(door.hub, name).record.serials) == 3
        await line.renew()
        assert (await line.heartbeat(beat(line, 9))).number == 9


async def test_bad_tokens(door: HubDoor, other: HubDoor, new_line: OpenLine) -> None:
    line, name = new_line(), cluster()
    good = JoinToken.read(await door.token(cluster=name))
    with pytest.raises(errors.BadToken, match="not known"):
        await line.join(door.members, replace(good, secret=secrets.token_urlsafe(32)).text, name, FACTS)
    with pytest.raises(errors.BadToken, match="not known"):
        await line.join(door.members, replace(good, id="0" * 16).text, name, FACTS)
    with pytest.raises(errors.BadToken, match=f"for cluster {name}"):
        await line.join(door.members, good.text, cluster(), FACTS)
    with pytest.raises(errors.BadToken, match="not a token"):
        await line.join(door.members, "hansa1.nonsense", name, FACTS)
    with pytest.raises(errors.WrongHub):
        await line.join(other.members, good.text, name, FACTS)
    door.move(hours=2)
    try:
        with pytest.raises(errors.BadToken, match="time is over"):
            await line.join(door.members, good.text, name, FACTS)
    finally:
        await door.now()
    assert line.held() is None
    await line.join(door.members, good.text, name, FACTS)  # none of these used it up


async def test_two_at_once_with_one_token(door: HubDoor, new_line: OpenLine) -> None:
    token = await door.token()
    names = [cluster() for _ in range(4)]
    tries = [new_line(name).join(door.members, token, name, FACTS) for name in names]
    ends = await asyncio.gather(*tries, return_exceptions=True)
    lost = [one for one in ends if isinstance(one, errors.BadToken)]
    assert len(lost) == len(names) - 1, ends
    assert sum(door.hub.registry.get(name) is not None for name in names) == 1


async def test_the_same_at_once_from_one_key(door: HubDoor, new_line: OpenLine) -> None:
    """As a manager that is impatient: both are answered, and both certificates are good."""
    token, name = await door.token(), cluster()
    one = new_line("same")
    await one.join(door.members, token, name, FACTS)
    first = acting.get(door.hub, name).record.serials
    assert len(first) == 1
    await one.heartbeat(beat(one, 1))
    with pytest.raises(errors.BadToken):  # the key of a join that was answered is not kept
        await new_line("same").join(door.members, token, name, FACTS)


@contextlib.asynccontextmanager
async def in_the_middle(posing: HubDoor, roots: dict[str, str]) -> AsyncIterator[tuple[str, list[str]]]:
    """Shows anything it likes, has certificates of its own only, and writes down what it is told."""
    told: list[str] = []
    api = FastAPI(redirect_slashes=False, openapi_url=None)

    @api.api_route("/{path:path}", methods=["GET", "POST"])
    async def anything(request: Request) -> Response:
        told.append(f"{request.method} {request.url.path} {(await request.body()).decode()}")
        return JSONResponse(roots)

    async with served(api, MembersTls(posing.hub)) as port:
        yield f"https://127.0.0.1:{port}", told


async def test_a_man_in_the_middle_does_not_see_the_token(door: HubDoor, other: HubDoor, new_line: OpenLine) -> None:
    token, name = await door.token(), cluster()
    genuine = {"trust_domain": "hansa", "roots": door.hub.trust.roots}
    own = {"trust_domain": "hansa", "roots": other.hub.trust.roots}
    both = {"trust_domain": "hansa", "roots": other.hub.trust.roots + door.hub.trust.roots}
    for shown in (genuine, own, both, {"trust_domain": "hansa", "roots": "nothing"}):
        async with in_the_middle(other, shown) as (url, told):
            with pytest.raises(errors.WrongHub):
                await new_line().join(url, token, name, FACTS)
            assert told == ["GET /member/v1/roots "]


async def test_an_impostor_later_on_hears_nothing(door: HubDoor, other: HubDoor, new_line: OpenLine) -> None:
    line, name = new_line(), cluster()
    port = int(door.members.rpartition(":")[2])
    async with relay(port) as way:
        await line.join(f"https://127.0.0.1:{way.port}", await door.token(), name, FACTS)
        await line.close()
        async with in_the_middle(other, {}) as (url, told):
            way.targets = (int(url.rpartition(":")[2]),)
            for call in (line.heartbeat(beat(line, 1)), line.desired(0, 0), line.renew(), line.leave("")):
                with pytest.raises(errors.WrongHub):
                    await call
            assert told == []
        way.targets = (port,)
        assert (await line.heartbeat(beat(line, 1))).number == 1


async def test_a_certificate_of_another_federation_is_refused(
    door: HubDoor, other: HubDoor, new_line: OpenLine, tmp_path: Path
) -> None:
    line, name = new_line(), cluster()
    await line.join(other.members, await other.token(), name, FACTS)
    await line.close()
    await new_line("ours").join(door.members, await door.token(), name, FACTS)
    kept = (tmp_path / "one" / "hub-credentials.json").read_text()
    moved = kept.replace(other.members, door.members)
    (tmp_path / "one" / "hub-credentials.json").write_text(moved)
    with pytest.raises(errors.WrongHub):  # neither do they believe the hub ...
        await new_line().heartbeat(beat(line, 1))
    theirs, ours = (one.hub.trust.roots.replace("\n", "\\n") for one in (other, door))
    (tmp_path / "one" / "hub-credentials.json").write_text(moved.replace(f'"roots":"{theirs}"', f'"roots":"{ours}"'))
    strange = new_line()
    with pytest.raises(errors.HubUnreachable):
        await strange.heartbeat(beat(line, 1))
    with pytest.raises(errors.CertificateRefused):  # ... nor the hub them; once may be an accident
        await strange.heartbeat(beat(line, 1))


async def test_credentials_change_under_calls_and_none_fails(door: HubDoor, new_line: OpenLine) -> None:
    line, name = new_line(), cluster()
    await line.join(door.members, await door.token(), name, FACTS)
    told = await line.desired(0, 0)
    assert told is not None
    waiting = asyncio.create_task(line.desired(told.generation, 20))
    number = 0
    for _ in range(3):
        calls = [asyncio.create_task(line.heartbeat(beat(line, number + step))) for step in (1, 2, 3, 4)]
        number += 4
        await line.renew()
        await line.trust(line.roots + authority.new_root("hansa", now=door.hub.clock.now(), seconds=60).certificate)
        await asyncio.gather(*calls)
    await acting.cordon(door.hub, ADMIN, name, on=True)
    await syncing.learn(door.hub)
    async with asyncio.timeout(20):
        changed = await waiting  # on the connection with which it began
    assert changed is not None
    assert changed.cordoned


async def test_roots_that_cannot_be_read_are_not_taken(door: HubDoor, new_line: OpenLine) -> None:
    line = new_line()
    await line.join(door.members, await door.token(), cluster(), FACTS)
    before = line.roots
    with pytest.raises(errors.HubRefused):
        await line.trust("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
    with pytest.raises(errors.HubRefused):
        await line.trust("")
    assert line.roots == before
    assert (await line.heartbeat(beat(line, 1))).number == 1


async def test_what_refusals_become(door: HubDoor, new_line: OpenLine) -> None:
    line, name = new_line(), cluster()
    with pytest.raises(errors.NotAMember):
        await line.heartbeat(Heartbeat(incarnation=1, number=1))
    await line.join(door.members, await door.token(), name, FACTS)
    with pytest.raises(errors.ClusterExists):
        await new_line("second").join(door.members, await door.token(), name, FACTS)
    with pytest.raises(errors.BadFacts):
        await new_line("third").join(door.members, await door.token(), cluster(), Facts(endpoint="ftp://x"))
    with pytest.raises(errors.HubRefused) as refused:
        await new_line("fourth").join(door.members, await door.token(), "Not A Name", FACTS)
    assert refused.value.facts["problem"] == "name.invalid"
    await acting.remove(door.hub, ADMIN, name, force=True)
    for call in (line.heartbeat(beat(line, 1)), line.desired(0, 0), line.renew(), line.leave("")):
        with pytest.raises(errors.WasRemoved):
            await call
    with pytest.raises(errors.HubUnreachable):
        await line.fetch_roots("https://127.0.0.1:1")
    with pytest.raises(errors.HubUnreachable):
        await line.fetch_roots(door.people.replace("http:", "https:"))
    with pytest.raises(errors.HubRefused):
        await line.fetch_roots(door.people)  # plain HTTP: it answers, and is no hub for members


async def test_everything_is_bounded(other: HubDoor, new_line: OpenLine) -> None:
    forever = asyncio.Event()
    api = FastAPI(redirect_slashes=False, openapi_url=None)

    @api.get("/long/member/v1/roots")
    async def long() -> Response:
        return Response(b"x" * 400_000)

    @api.get("/late/member/v1/roots")
    async def late() -> Response:
        await forever.wait()
        return Response()

    @api.get("/away/member/v1/roots")
    async def away() -> Response:
        return Response(status_code=307, headers={"Location": "https://example.org"})

    @api.get("/down/member/v1/roots")
    async def down() -> Response:
        return Response(status_code=503, headers={"Retry-After": "7"})

    @api.get("/tiny/member/v1/roots")
    async def tiny() -> Response:
        return StreamingResponse(_bytes(5000))

    async with served(api, MembersTls(other.hub)) as port:
        with pytest.raises(errors.HubUnreachable, match="floods us"):
            await new_line("patient", limits=Limits(call=60)).fetch_roots(f"https://127.0.0.1:{port}/tiny")
        line = new_line(limits=Limits(call=0.5))
        url = f"https://127.0.0.1:{port}"
        with pytest.raises(errors.HubRefused, match="more than we take"):
            await line.fetch_roots(f"{url}/long")
        with pytest.raises(errors.HubRefused, match="elsewhere"):
            await line.fetch_roots(f"{url}/away")
        with pytest.raises(errors.HubUnreachable) as down_now:
            await line.fetch_roots(f"{url}/down")
        assert down_now.value.retry_after == 7
        with pytest.raises(errors.HubUnreachable, match="did not answer within"):
            await line.fetch_roots(f"{url}/late")
        forever.set()


async def _bytes(many: int) -> AsyncIterator[bytes]:
    for _ in range(many):
        yield b" "


async def test_the_file(door: HubDoor, new_line: OpenLine, tmp_path: Path) -> None:
    line, file = new_line(), tmp_path / "one" / "hub-credentials.json"
    await line.join(door.members, await door.token(), cluster(), FACTS)
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    good = file.read_bytes()
    for bad, why in (
        (b"{", "does not hold"),
        (good.replace(b'"format":1', b'"format":2'), "another version"),
        (b"[]", "does not hold"),
    ):
        file.write_bytes(bad)
        with pytest.raises(CredentialsUnusable, match=why) as refused:
            new_line()
        assert "PRIVATE" not in f"{refused.value} {refused.value.hint}"
    file.write_bytes(good)
    file.chmod(0o640)
    with pytest.raises(CredentialsUnusable, match="others may read"):
        new_line()
    file.chmod(0o600)
    assert new_line().held() == line.held()
