"""Is the embedded store safe, steady and gone when it should be? Real processes, really killed."""

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from hansa.drivers.s3 import EmbeddedStore, S3Store, State, StoreInUse, StoreUnreachable, StoreUnsafe
from hansa.drivers.s3.listening import listening
from hansa.drivers.s3.seaweed_home import _CANDIDATES, RPC_OFFSET, Home, Ports
from hansa.drivers.s3.users import SeaweedUsers
from hansa.kernel.errors import Invalid
from hansa.storage import Keys

PATIENCE = 30.0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_death(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while alive(pid):
        assert time.monotonic() < deadline, f"process {pid} still lives"
        time.sleep(0.05)


def ports_of(folder: Path) -> Ports:
    home = Home(folder, "127.0.0.1")
    try:
        return home.ports()
    finally:
        home.close()


async def test_starts_guarded_and_stops_clean(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    states: list[State] = []
    embedded = await EmbeddedStore.open(folder, on_state=states.append)
    try:
        found = listening(embedded.weed_pid)
        assert found
        assert {address for address, _ in found} == {"127.0.0.1"}
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{embedded.address.endpoint}/healthz")).status_code == 200
            assert (await http.get(f"{embedded.address.endpoint}/")).status_code == 403
        arguments = Path(f"/proc/{embedded.weed_pid}/cmdline").read_bytes()
        assert b"-master.telemetry=false" in arguments
        assert embedded.root_keys.secret_key.encode() not in arguments
        for private in (folder / "keys.json", folder / "config" / "security.toml"):
            assert stat.S_IMODE(private.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert embedded.root_keys.secret_key not in repr(embedded.root_keys)
        assert embedded.state is State.RUNNING
    finally:
        await embedded.close()
    assert not alive(embedded.weed_pid)
    assert states == [State.RUNNING, State.STOPPED]
    assert not [path for path in ports_of(folder).unix_sockets() if path.exists()]
    with pytest.raises(StoreUnreachable):
        await embedded.restarted()
    await embedded.close()


async def test_a_killed_server_comes_back_with_everything(tmp_path: Path) -> None:
    embedded = await EmbeddedStore.open(tmp_path / "store")
    users = SeaweedUsers(embedded.filer, embedded.root_keys)
    keys = Keys.of_user("ann@example.org", "long-enough-secret")
    root, ann = S3Store(embedded.address, embedded.root_keys), S3Store(embedded.address, keys)
    try:
        await root.create_bucket("harbour")
        await users.ensure_user(keys)
        await users.grant(keys.access_key, frozenset({"harbour"}))
        await ann.put("harbour", "k", b"kept")
        seen, first = embedded.starts, embedded.weed_pid
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            assert await embedded.restarted(seen) == seen + 1
        assert embedded.weed_pid != first
        assert await ann.get("harbour", "k") == b"kept"
        await users.grant(keys.access_key, frozenset())  # the same connection works again
    finally:
        await users.close()
        await root.close()
        await ann.close()
        await embedded.close()


async def test_a_folder_keeps_its_address_and_belongs_to_one_manager(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    embedded = await EmbeddedStore.open(folder)
    try:
        address, keys = embedded.address, embedded.root_keys
        with pytest.raises(StoreInUse):
            await EmbeddedStore.open(folder, lock_seconds=0.2)
    finally:
        await embedded.close()
    with socket.create_server(("127.0.0.1", ports_of(folder).filer)):  # somebody takes one of its ports
        moved = await EmbeddedStore.open(folder)
        await moved.close()
    assert moved.address != address
    assert moved.root_keys == keys


@pytest.mark.parametrize(
    ("role", "offset"), [("s3", RPC_OFFSET), ("filer", RPC_OFFSET), ("admin", RPC_OFFSET), ("s3", 0)]
)
async def test_a_port_that_is_taken_for_a_moment_does_not_keep_it_from_starting(
    tmp_path: Path, role: str, offset: int
) -> None:
    """Taken between finding it free and weed's own look, and free again when weed has failed."""
    taker = socket.socket()
    taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    class Contested(EmbeddedStore):
        tries = 0

        def _prepare(self) -> None:
            super()._prepare()
            Contested.tries += 1
            if Contested.tries == 1:
                taker.bind(("127.0.0.1", getattr(self._ports, role) + offset))
                taker.listen()

        async def _stop(self) -> None:
            taker.close()
            await super()._stop()

    with taker:
        store = await Contested.open(tmp_path / "store")
    try:
        assert Contested.tries == 2
        found = listening(store.weed_pid) or set()
        assert store.address.endpoint in {f"http://{host}:{port}" for host, port in found}
    finally:
        await store.close()


async def test_whoever_else_answers_at_its_port_is_not_taken_for_it(tmp_path: Path) -> None:
    """Of two stores that start together both may have found a port free. The other one is healthy already."""
    others: list[asyncio.Server] = []

    async def healthy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    class Contested(EmbeddedStore):
        async def _start(self) -> None:
            if not others:
                others.append(await asyncio.start_server(healthy, "127.0.0.1", self._ports.s3))
            await super()._start()

    store = await Contested.open(tmp_path / "store")
    try:
        found = listening(store.weed_pid) or set()
        assert store.address.endpoint in {f"http://{host}:{port}" for host, port in found}
        assert others[0].sockets[0].getsockname()[1] not in {port for _, port in found}
    finally:
        await store.close()
        for other in others:
            other.close()
            await other.wait_closed()


async def test_a_store_of_another_network_namespace_keeps_its_sockets(tmp_path: Path) -> None:
    """Port numbers that are free here may be in use there, and weed names its Unix sockets by them, in /tmp for all."""
    folder = tmp_path / "store"
    ports = ports_of(folder)
    there = next(path for path in ports.unix_sockets() if "filer-grpc" in path.name)
    try:
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(there))
            other.listen()
            moved = ports_of(folder)
        assert there not in moved.unix_sockets()
    finally:
        there.unlink()
    assert ports_of(folder) == moved


MANAGER = textwrap.dedent(
    """
    import asyncio, pathlib, sys
    from hansa.drivers.s3 import EmbeddedStore

    async def main():
        embedded = await EmbeddedStore.open(pathlib.Path(sys.argv[1]))
        print(embedded.weed_pid, embedded.address.endpoint, flush=True)
        await asyncio.sleep(600)

    asyncio.run(main())
    """
)


async def test_the_store_dies_with_a_killed_manager(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    manager = subprocess.Popen(
        [sys.executable, "-c", MANAGER, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath},
    )
    assert manager.stdout is not None
    try:
        pid, endpoint = (await asyncio.to_thread(manager.stdout.readline)).split()
        assert alive(int(pid))
    finally:
        manager.kill()
        manager.wait(PATIENCE)
        manager.stdout.close()
    # The next manager starts at once: it waits for the old server's end, and serves the same address.
    embedded = await EmbeddedStore.open(folder)
    try:
        assert not alive(int(pid))
        assert embedded.address.endpoint == endpoint
    finally:
        await embedded.close()


async def test_the_store_dies_with_a_killed_guard_and_is_started_again(tmp_path: Path) -> None:
    embedded = await EmbeddedStore.open(tmp_path / "store")
    try:
        seen, weed = embedded.starts, embedded.weed_pid
        guard = int(Path(f"/proc/{weed}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        await asyncio.to_thread(await_death, weed)
        async with asyncio.timeout(PATIENCE):
            await embedded.restarted(seen)
    finally:
        await embedded.close()
    assert not alive(embedded.weed_pid)


async def test_whatever_keeps_it_from_starting_again_it_is_tried_again(tmp_path: Path) -> None:
    class Odd(EmbeddedStore):
        tries = 0

        def _prepare(self) -> None:
            Odd.tries += 1
            if Odd.tries == 2:
                raise RuntimeError("nobody thought of this")
            super()._prepare()

    embedded = await Odd.open(tmp_path / "store")
    try:
        seen = embedded.starts
        os.kill(embedded.weed_pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            await embedded.restarted(seen)
        assert Odd.tries == 3
    finally:
        await embedded.close()


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "filerldb2").write_text("not a database")
    with pytest.raises(StoreUnreachable) as caught:
        await EmbeddedStore.open(folder, start_seconds=15)
    assert "weed.log" in caught.value.hint
    assert caught.value.facts["log"]
    home = Home(folder, "127.0.0.1")
    assert home.try_lock()  # nothing of it lives on
    home.close()


async def test_refuses_to_listen_beyond_this_machine(tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        await EmbeddedStore.open(tmp_path / "store", host="0.0.0.0")


async def test_only_what_lasts_is_taken_for_listening_beyond_this_machine(tmp_path: Path) -> None:
    """Weed itself tries for a moment, on all interfaces, whether its ports are free."""
    home = Home(tmp_path / "store", "127.0.0.1")
    store = EmbeddedStore(home, home.ports(), home.secrets(), 30.0, lambda _: None)
    store.weed_pid = os.getpid()
    try:
        for _ in range(2):
            with socket.create_server(("0.0.0.0", 0)):
                assert not store._listens()
            store._outside.clear()  # a look without it
        with socket.create_server(("0.0.0.0", 0)):
            assert not store._listens()
            with pytest.raises(StoreUnsafe, match="listens beyond this machine"):
                store._listens()
    finally:
        home.close()


def test_no_two_servers_of_a_store_are_given_the_same_port() -> None:
    assert {port + RPC_OFFSET for port in _CANDIDATES}.isdisjoint(_CANDIDATES)


async def test_remembered_ports_that_are_in_each_others_way_are_replaced(tmp_path: Path) -> None:
    """Earlier releases chose such ports now and then, and weed ends at once with them."""
    folder = tmp_path / "store"
    ports = asdict(ports_of(folder))
    clashing = ports | {"s3": ports["volume"] + RPC_OFFSET}
    (folder / "ports.json").write_text(json.dumps(clashing))
    embedded = await EmbeddedStore.open(folder, start_seconds=15)
    try:
        assert embedded.s3_port != clashing["s3"]
    finally:
        await embedded.close()
