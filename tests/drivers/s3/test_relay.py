"""Is the embedded store seen beyond its own address, and only its S3 port?"""

import socket
from pathlib import Path

import pytest

from hansa.drivers.s3 import S3Store, StoreUnreachable, open_embedded
from hansa.drivers.s3.listening import listening


def taken(host: str) -> socket.socket:
    return socket.create_server((host, 0))


async def test_objects_pass_with_their_signatures_and_inner_ports_stay_at_home(tmp_path: Path) -> None:
    with taken("127.0.0.2") as probe:
        port = probe.getsockname()[1]
    opened = await open_embedded(tmp_path / "store", host="127.0.0.2", port=port)
    try:
        assert opened.store.address.endpoint == f"http://127.0.0.2:{port}"
        visitor = S3Store(opened.store.address, opened.keys)
        content = bytes(range(256)) * 20_000
        await visitor.create_bucket("harbour")
        await visitor.put("harbour", "crate", content)
        assert await visitor.get("harbour", "crate") == content
        await visitor.close()
        assert opened.embedded is not None
        assert {host for host, _ in listening(opened.embedded.weed_pid) or ()} == {"127.0.0.1"}
    finally:
        await opened.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)


async def test_a_taken_port_is_said_and_leaves_nothing_running(tmp_path: Path) -> None:
    with taken("127.0.0.2") as other, pytest.raises(StoreUnreachable, match=r"storage\.host|cannot be shown"):
        await open_embedded(tmp_path / "store", host="127.0.0.2", port=other.getsockname()[1])
    again = await open_embedded(tmp_path / "store")  # the folder is free
    await again.close()
