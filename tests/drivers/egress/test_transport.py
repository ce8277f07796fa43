"""HTTP through the door: the name stays the name, no redirect is followed, nothing is read or awaited without end."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from drivers.egress.conftest import Names, Trap
from hansa.drivers.egress import AnswerTooLarge, Door, DoorTransport, EgressRefused, Rule

MOST = 10_000


@pytest.fixture
async def door(listening: Trap, names: type[Names]) -> AsyncIterator[Door]:
    made = Door(
        Rule.of([f"127.0.0.1:{listening.port}"]),
        resolve=names(good_test=[["127.0.0.1"]], store_localhost_test=[["127.0.0.1"]]),
    )
    yield made
    await made.close()


def over(door: Door, seconds: float = 5.0, **more: object) -> httpx.AsyncClient:
    return DoorTransport(door, most=MOST, seconds=seconds, **more).client()  # type: ignore[arg-type]


async def test_a_call_reaches_the_name_and_says_its_name(door: Door, listening: Trap) -> None:
    async with over(door) as http:
        for _ in range(2):
            answer = await http.post(f"http://good.test:{listening.port}/x", content=b"")
            assert (answer.status_code, answer.content) == (200, b"ok")
    assert f"host: good.test:{listening.port}".encode() in listening.heard[0].lower()
    assert listening.calls == 1, "a connection is used again"


async def test_loopback_is_refused_by_the_real_library_on_top(listening: Trap) -> None:
    """If the library ever dialled by itself, the listener would hear of it."""
    door = Door(Rule())
    async with over(door) as http:
        for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433"):
            with pytest.raises((EgressRefused, httpx.InvalidURL)):
                await http.get(f"http://{host}:{listening.port}/")
    assert listening.calls == 0
    await door.close()


async def test_a_redirect_is_an_answer_and_not_an_order(door: Door, listening: Trap, names: type[Names]) -> None:
    listening.answer = b"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    async with over(door) as http:
        answer = await http.get(f"http://good.test:{listening.port}/")
    assert answer.status_code == 307
    assert listening.calls == 1


async def test_no_proxy_of_the_environment_is_asked(
    door: Door, listening: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with over(door) as http:
        assert (await http.get(f"http://good.test:{listening.port}/")).status_code == 200


@pytest.mark.parametrize("head", [b"", b"content-length: 99999999\r\n"])
async def test_an_endless_answer_is_given_up(door: Door, listening: Trap, head: bytes) -> None:
    listening.answer = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n"
    listening.endless = b"x" * 4096
    async with over(door) as http:
        with pytest.raises(AnswerTooLarge):
            await http.get(f"http://good.test:{listening.port}/")


async def test_endless_headers_are_given_up(door: Door, listening: Trap) -> None:
    listening.answer = b"HTTP/1.1 200 OK\r\n"
    listening.endless = b"x-more: " + b"y" * 4000 + b"\r\n"
    async with over(door) as http:
        with pytest.raises(httpx.HTTPError):
            await http.get(f"http://good.test:{listening.port}/")


@pytest.mark.parametrize("slow", ["silent", "drops of a body", "drops of a head"])
async def test_a_slow_answer_is_given_up_in_time(door: Door, listening: Trap, slow: str) -> None:
    listening.silent = slow == "silent"
    listening.endless, listening.pause = b"x", 0.02
    listening.answer = b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if slow == "drops of a body" else b"x-slow: ")
    began = asyncio.get_running_loop().time()
    async with over(door, seconds=0.4) as http:
        with pytest.raises(httpx.TimeoutException):
            await http.get(f"http://good.test:{listening.port}/")
    assert asyncio.get_running_loop().time() - began < 5


async def test_one_who_is_not_there_is_a_failed_connection(door: Door, listening: Trap, names: type[Names]) -> None:
    door = Door(Rule.of(["127.0.0.3"]))
    async with over(door) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://127.0.0.3:{listening.port}/")
    await door.close()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_tls_is_checked_for_the_name(tmp_path: Path, loop: str) -> None:
    server_side = _certified("good.test", tmp_path)
    trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    named: list[str | None] = []
    server_side.sni_callback = lambda _socket, name, _context: named.append(name)
    body = b"z" * 300_000

    async def story() -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=server_side)
        port = server.sockets[0].getsockname()[1]
        door = Door(Rule.of(["127.0.0.1"]), resolve=lambda host: ["127.0.0.1"])
        async with server:
            async with DoorTransport(door, most=2**20, seconds=10, verify=trusting).client() as http:
                assert (await http.get(f"https://good.test:{port}/")).content == body
                with pytest.raises(httpx.ConnectError, match="certificate"):
                    await http.get(f"https://other.test:{port}/")
            async with DoorTransport(door, most=2**20, seconds=10).client() as http:
                with pytest.raises(httpx.ConnectError, match="certificate"):
                    await http.get(f"https://good.test:{port}/")
            async with DoorTransport(door, most=2**20, seconds=10, verify=False).client() as http:
                assert (await http.get(f"https://other.test:{port}/")).content == body
        await door.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        runner.run(story())
    assert named[0] == "good.test"


def _certified(name: str, folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context
