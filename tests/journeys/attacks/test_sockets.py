"""A script looks for a way out that an empty network namespace does not close: sockets to the hypervisor, to the
kernel's ciphers, to whatever else this kernel knows."""

import httpx

from journeys.conftest import MakeService
from journeys.waiting import ended_jobs

TRY = """
cat > /tmp/try.py <<'END'
import socket
for name in sorted(one for one in dir(socket) if one.startswith("AF_") and one != "AF_UNSPEC"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try: socket.socket(getattr(socket, name), kind).close(); print("OPEN", name)
        except OSError: pass
print("TRIED")
END
/usr/bin/python3 /tmp/try.py
"""


def test_only_ordinary_sockets_open_in_a_job_and_in_a_call(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, TRY)
    called = alice.post(f"/run/{name}").text
    alice.post(f"/job/{name}")
    (job,) = ended_jobs(alice, name, 1)
    for said in (called, alice.get(f"/system/logs/{name}/{job}").text):
        assert "TRIED" in said
        opened = {line.split("OPEN ")[1].strip() for line in said.splitlines() if "OPEN " in line}
        assert opened - {"AF_INET6"} == {"AF_UNIX", "AF_INET", "AF_NETLINK", "AF_ROUTE"} - ({"AF_ROUTE"} - opened)
