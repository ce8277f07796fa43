"""Where can whoever pulls an image get to? To what the door lets it, from a network that holds nothing else."""

import asyncio
import hashlib
import http.server
import io
import json
import os
import secrets
import sys
import tarfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hansa.drivers import egress
from hansa.drivers.local.launch import LaunchFailed
from hansa.drivers.local.podman import PodmanRuntime
from hansa.drivers.local.pulling import cell_for, loopback_port
from real import parts

as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="a network of its own for podman needs root, as podman does here"
)


@pytest.mark.parametrize(
    ("image", "port"),
    [("localhost:5000/a", 5000), ("127.0.0.1:5000/a/b:1", 5000), ("localhost/tool:1", 443), ("127.1:80/a", 80),
     ("busybox", 0), ("library/busybox:1", 0), ("ghcr.io/grycap/cowsay", 0), ("10.0.0.1:5000/a", 0), ("a:1", 0),
     ("localhost:99999/a", 0), ("localhost:x/a", 0), ("localhost", 0)],
)  # fmt: skip
def test_a_registry_on_loopback_is_recognised(image: str, port: int) -> None:
    assert loopback_port(image) == port


async def test_who_waited_for_an_image_is_not_remembered() -> None:
    """Names of images are anybody's to choose."""
    asked: list[str] = []

    class Podman:
        async def succeeds(self, *words: str) -> bool:
            await asyncio.sleep(0)
            asked.append(words[-1])
            return True

    runtime = PodmanRuntime(Podman(), "t", 0, 1.0, None, None)  # type: ignore[arg-type]
    await asyncio.gather(*(runtime._fetch(f"busybox:{number % 50}") for number in range(100)))
    assert len(asked) == 100
    assert not runtime._pulls


@dataclass(slots=True)
class Registry:
    """A registry of one image, which may lead its visitors astray."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    blob_at: str = ""  # where blobs are said to be
    realm: str = ""  # where tokens are said to be had


@contextmanager
def registry() -> Iterator[Registry]:
    blobs, manifest = _image()

    class Answering(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.asked.append(self.path)
            last = self.path.rpartition("/")[2]
            if found.realm:
                self._say(401, b"", **{"WWW-Authenticate": f'Bearer realm="{found.realm}",service="x"'})
            elif self.path == "/v2/":
                self._say(200, b"{}")
            elif "/manifests/" in self.path:
                self._say(200, manifest, **{"Content-Type": "application/vnd.docker.distribution.manifest.v2+json"})
            elif found.blob_at:
                self._say(307, b"", Location=f"{found.blob_at}/{last}")
            elif last in blobs:
                self._say(200, blobs[last], **{"Content-Type": "application/octet-stream"})
            else:
                self._say(404, b"")

        do_HEAD = do_GET

        def _say(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    found = Registry(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, name="registry")
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _image() -> tuple[dict[str, bytes], bytes]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("hello"), io.BytesIO(b""))
    layer = packed.getvalue()
    digest = "sha256:" + hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": {"made": secrets.token_hex(8)}},
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        }
    ).encode()
    named = "sha256:" + hashlib.sha256(config).hexdigest()
    kinds = "application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.container.image.v1+json"
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": kinds[1], "size": len(config), "digest": named},
        "layers": [{"mediaType": kinds[0], "size": len(layer), "digest": digest}],
    }
    return {digest: layer, named: config}, json.dumps(manifest).encode()


@as_root
async def test_inside_there_is_nothing_of_this_machine_but_the_proxy() -> None:
    with registry() as there:
        door = egress.Door(egress.Rule(), resolve=lambda host: ["127.0.0.1"])
        async with cell_for("ghcr.io/x/y", egress.Proxy(door)) as cell:
            said = await _python(
                cell.namespace,
                f"""
import os, socket, urllib.request, urllib.error
def try_(what):
    try: print(what())
    except Exception as error: print(type(error).__name__, error)
for port in ({there.port}, 22, 53):
    try_(lambda: socket.create_connection(("127.0.0.1", port), 2))
try_(lambda: socket.create_connection(("192.0.2.1", 80), 2))
print(sorted(os.listdir("/proc/self/net/dev_snmp6")) if os.path.exists("/proc/self/net/dev_snmp6") else ["lo"])
ask = urllib.request.build_opener(urllib.request.ProxyHandler({{"http": "http://127.0.0.1:3128"}})).open
for host in ("registry.test", "127.0.0.1", "169.254.169.254"):
    try_(lambda: ask(f"http://{{host}}:{there.port}/v2/", timeout=5))
""",
            )
            assert said.count("ConnectionRefusedError") == 3, said
            assert "unreachable" in said, said
            assert said.count("HTTPError HTTP Error 403") == 3, said
            assert "registry.test" in cell.refused()
        await door.close()
        assert there.asked == []


@as_root
async def test_a_registry_on_loopback_is_there_only_if_the_operator_allowed_it() -> None:
    with registry() as there:
        program = f"""
import urllib.request
opened = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
try: print(opened.open("http://127.0.0.1:{there.port}/v2/", timeout=5).status)
except Exception as error: print(error)
"""
        for allow, answer in (((f"127.0.0.1:{there.port}",), "200"), ((), "403")):
            door = egress.Door(egress.Rule.of(allow))
            async with cell_for(f"localhost:{there.port}/x", egress.Proxy(door)) as cell:
                assert answer in await _python(cell.namespace, program)
            await door.close()
        assert there.asked == ["/v2/"]


async def _python(namespace: int, program: str) -> str:
    words = ("nsenter", f"--net=/proc/self/fd/{namespace}", "--", sys.executable, "-I", "-c", program)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, pass_fds=(namespace,), stdout=pipe, stderr=pipe)
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


Pulling = Callable[[egress.Door], AsyncIterator[PodmanRuntime]]


@pytest.fixture
def trusting_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Podman's settings for a registry without TLS, and its policy, of this test alone."""
    settings = tmp_path / ".config" / "containers"
    settings.mkdir(parents=True)
    (settings / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    monkeypatch.setenv("HOME", str(tmp_path))
    return settings / "registries.conf"


@asynccontextmanager
async def pulling(door: egress.Door, home: Path, uid_base: int) -> AsyncIterator[PodmanRuntime]:
    opened = await PodmanRuntime.open(
        instance=f"t-{secrets.token_hex(4)}",
        uid_base=uid_base,
        run_dir=home / "podman",
        way_out=egress.Proxy(door),
        pull_seconds=60,
    )
    try:
        yield opened
    finally:
        await opened.close()
        await door.close()


@as_root
@pytest.mark.slow
async def test_podman_pulls_what_the_door_lets_it_and_follows_nobody_elsewhere(
    trusting_home: Path, home: Path, uid_base: int
) -> None:
    parts.require("podman")
    parts.require("runc")
    with registry() as there, registry() as trap:
        host = f"registry.test:{there.port}"
        trusting_home.write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
        rule = egress.Rule.of([f"registry.test:{there.port}"])
        door = egress.Door(rule, resolve=lambda name: ["127.0.0.1"])
        async with pulling(door, home, uid_base) as runtime:
            lures = [f"http://{at}:{trap.port}" for at in ("127.0.0.1", "trap.test", "localhost", "0x7f.1", "[::1]")]
            for lure in (*lures, "http://169.254.169.254/latest"):
                there.blob_at, there.realm = lure, ""
                with pytest.raises(LaunchFailed):
                    await runtime._fetch(f"{host}/tool:1")
                there.blob_at, there.realm = "", f"{lure}/token"
                with pytest.raises(LaunchFailed):
                    await runtime._fetch(f"{host}/tool:1")
            there.blob_at = there.realm = ""
            with pytest.raises(LaunchFailed, match=r"trap\.test") as refused:
                await runtime._fetch(f"trap.test:{trap.port}/tool:1")
            assert "egress.allow" in refused.value.hint
            with pytest.raises(LaunchFailed):
                await runtime._fetch(f"localhost:{trap.port}/tool:1")
            assert trap.asked == []
            await runtime._fetch(f"{host}/tool:1")
            assert await runtime._podman.succeeds("image", "exists", "--", f"{host}/tool:1")
            await runtime._podman.call("rmi", "--force", f"{host}/tool:1")
