"""The door dials what it checked, and nothing of this machine or its network unless the operator allowed it."""

import asyncio
import ipaddress
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from drivers.egress.conftest import Names, Trap
from hansa.drivers.egress import BadTarget, Door, EgressRefused, EgressUnreachable, Rule, ourselves
from hansa.kernel import errors

SPELLINGS = ["127.0.0.1", "0x7f.1", "2130706433", "0177.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "127.1",
             "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:0:127.0.0.1", "0.0.0.0", "::", "localhost."]  # fmt: skip
INSIDE = ["169.254.169.254", "10.0.0.1", "192.168.0.1", "172.16.9.9", "100.64.0.1", "fe80::1", "fd00:ec2::254",
          "168.63.129.16", "224.0.0.1", "255.255.255.255"]  # fmt: skip


@pytest.fixture
async def closed_door() -> AsyncIterator[Door]:
    door = Door(Rule())
    yield door
    await door.close()


@pytest.mark.parametrize("host", SPELLINGS)
async def test_this_machine_is_never_called_in_any_spelling(closed_door: Door, listening: Trap, host: str) -> None:
    with pytest.raises(EgressRefused) as caught:
        await closed_door.connect(host, listening.port, timeout=5)
    assert "egress.allow" in caught.value.hint
    assert isinstance(caught.value, errors.Forbidden)
    shown = f"[{host}]" if ":" in host else host
    with pytest.raises(EgressRefused):
        await closed_door.check_url(f"http://{shown}:{listening.port}")
    assert listening.calls == 0


@pytest.mark.parametrize("host", INSIDE)
async def test_this_machine_s_network_is_never_called(closed_door: Door, host: str) -> None:
    with pytest.raises(EgressRefused):
        await closed_door.connect(host, 80, timeout=5)


async def test_an_allowed_address_is_connected_and_the_socket_does_not_block(listening: Trap) -> None:
    door = Door(Rule.of([f"127.0.0.1:{listening.port}"]))
    made = await door.connect("127.1", listening.port, timeout=5)
    with made:
        assert made.getblocking() is False
        assert made.getpeername() == ("127.0.0.1", listening.port)
    await door.close()


async def test_the_caller_s_own_word_opens_this_address_for_this_call(closed_door: Door, listening: Trap) -> None:
    (await closed_door.connect("127.0.0.1", listening.port, timeout=5, own=[("127.0.0.1", listening.port)])).close()
    with pytest.raises(EgressRefused):
        await closed_door.connect("127.0.0.1", listening.port, timeout=5, own=[("127.0.0.1", listening.port + 1)])


async def test_a_name_is_asked_once_and_what_it_said_is_dialled(listening: Trap, names: type[Names]) -> None:
    """A name that first leads to where one may go and then to this machine."""
    resolve = names(good_test=[["127.0.0.2"], ["127.0.0.1"]])
    door = Door(Rule.of(["127.0.0.2"]), resolve=resolve)
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.2", listening.port)
    async with server:
        (await door.connect("good.test", listening.port, timeout=5)).close()
    assert resolve.asked == ["good.test"]
    with pytest.raises(EgressRefused):
        await door.connect("good.test", listening.port, timeout=5)
    assert listening.calls == 0
    await door.close()


async def test_a_name_that_was_good_at_create_is_checked_again_at_the_dial(listening: Trap, names: type[Names]) -> None:
    resolve = names(rebinding_test=[["1.1.1.1"], ["127.0.0.1"]])
    door = Door(Rule(), resolve=resolve, is_ours=lambda address: address.is_loopback)
    await door.check_url(f"http://rebinding.test:{listening.port}")
    with pytest.raises(EgressRefused):
        await door.connect("rebinding.test", listening.port, timeout=5)
    assert listening.calls == 0
    await door.close()


async def test_of_mixed_answers_only_the_permitted_are_dialled(listening: Trap, names: type[Names]) -> None:
    door = Door(Rule.of(["127.0.0.2"]), resolve=names(mixed_test=[["127.0.0.1", "10.0.0.1", "127.0.0.2"]]))
    with pytest.raises(EgressUnreachable):  # nobody listens there, and the listener is not tried instead
        await door.connect("mixed.test", listening.port, timeout=5)
    assert listening.calls == 0
    await door.close()


async def test_one_that_does_not_answer_leaves_time_for_the_next(listening: Trap, names: type[Names]) -> None:
    door = Door(Rule.of(["127.0.0.0/8"]), resolve=names(two_test=[["127.0.0.9", "127.0.0.1"]]))
    (await door.connect("two.test", listening.port, timeout=5)).close()
    await door.close()


async def test_a_name_nobody_knows_and_a_resolver_that_hangs_are_temporary(names: type[Names]) -> None:
    door = Door(Rule(), resolve=names())
    with pytest.raises(EgressUnreachable):
        await door.connect("nowhere.test", 80, timeout=5)
    await door.check_url("http://nowhere.test")  # it may come to be; the dial asks again
    await door.close()
    hang = threading.Event()

    def waits(host: str) -> list[str]:
        hang.wait(30)
        return []

    door = Door(Rule(), resolve=waits)
    try:
        began = asyncio.get_running_loop().time()
        with pytest.raises(EgressUnreachable):
            await door.connect("slow.test", 80, timeout=0.2)
        assert asyncio.get_running_loop().time() - began < 5
    finally:
        hang.set()
        await door.close()


class Hanging:
    """A resolver that answers nothing for names that begin so, and this machine for all others."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.held = 0

    def __call__(self, host: str) -> list[str]:
        if host.startswith("slow"):
            self.held += 1
            self.over.wait(30)
            return []
        return ["127.0.0.1"]


@pytest.fixture
async def hanging() -> AsyncIterator[Hanging]:
    made = Hanging()
    yield made
    made.over.set()


ATTEMPTS = 200


@pytest.mark.parametrize("whose", ["", "mallory"])
async def test_names_that_are_never_answered_hold_up_those_who_ask_for_them(
    listening: Trap, hanging: Hanging, whose: str
) -> None:
    """Also after their callers gave up: the lookup goes on. Where it is not known who asks, the domain is one's own."""
    door = Door(Rule.of(["127.0.0.1"]), resolve=hanging)
    own = ("store.internal", listening.port)
    domain = "bad.test" if not whose else "{}.test"  # whoever asks may ask for any
    given_up = [
        door.connect(f"slow{number}.{domain.format(number)}", 80, timeout=0.3, whose=whose)
        for number in range(ATTEMPTS)
    ]
    for error in await asyncio.gather(*given_up, return_exceptions=True):
        assert isinstance(error, EgressUnreachable)
    assert 0 < hanging.held < ATTEMPTS
    for name, of_whom in (("good.test", ""), ("good.test", "alice"), ("quick.bad.test", "alice")):
        (await door.connect(name, listening.port, timeout=5, whose=of_whom)).close()
    (await door.connect(*own, timeout=5, own=[own], whose=whose)).close()
    hanging.over.set()
    (await door.connect("good.test", listening.port, timeout=5, whose=whose)).close()  # one's own places are free again
    await door.close()


@pytest.mark.parametrize("answer", [[""], ["nonsense"], ["127.0.0.1%lo"], ["fe80::1%1"], []])
async def test_odd_answers_of_a_resolver_lead_nowhere(listening: Trap, names: type[Names], answer: list[str]) -> None:
    door = Door(Rule(), resolve=names(odd_test=[answer]))
    with pytest.raises((EgressRefused, EgressUnreachable)):
        await door.connect("odd.test", listening.port, timeout=5)
    assert listening.calls == 0
    await door.close()


async def test_an_allowed_name_leads_where_the_operator_s_resolver_says(listening: Trap, names: type[Names]) -> None:
    resolve = names(minio_internal=[["127.0.0.1"]], other_internal=[["127.0.0.1"]])
    door = Door(Rule.of([f"minio.internal:{listening.port}"]), resolve=resolve)
    (await door.connect("minio.internal", listening.port, timeout=5)).close()
    with pytest.raises(EgressRefused):
        await door.connect("other.internal", listening.port, timeout=5)
    await door.close()


@pytest.mark.parametrize("url", ["http://a@b.example", "http://b.example?x", "http://b.example#x", "ftp://b.example"])
async def test_urls_that_could_never_be_called_are_refused(closed_door: Door, url: str) -> None:
    with pytest.raises(BadTarget):
        await closed_door.check_url(url)


async def test_the_machine_s_own_addresses_are_known_from_the_kernel() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no route to anywhere")
        own = ipaddress.ip_address(probe.getsockname()[0])
    assert ourselves.leads_home(own)
    assert ourselves._can_be_bound(own)  # what is asked where the kernel does not tell routes
    assert not ourselves._can_be_bound(ipaddress.ip_address("192.0.2.1"))
    assert ourselves.leads_home(ipaddress.ip_address("127.0.0.9"))
    assert ourselves.leads_home(ipaddress.ip_address("::1"))
    assert not ourselves.leads_home(ipaddress.ip_address("192.0.2.1"))


@pytest.mark.skipif(os.geteuid() != 0, reason="a network of its own needs root")
def test_every_address_of_an_interface_is_known_and_no_neighbour_s() -> None:
    """The second address of a network is not the one that packets start from."""
    program = """
import ipaddress
from hansa.drivers.egress.ourselves import leads_home
for one in ("8.8.8.8", "8.8.8.9", "8.8.4.4", "2a00::1", "2a00::2"):
    assert leads_home(ipaddress.ip_address(one)), one
for one in ("8.8.8.10", "1.1.1.1", "2a00::3", "2606:4700::1111"):
    assert not leads_home(ipaddress.ip_address(one)), one
"""
    script = """
ip link set lo up && ip link add d0 type veth peer name d1 && ip link set d0 up && ip link set d1 up
ip addr add 8.8.8.8/24 dev d0 && ip addr add 8.8.8.9/24 dev d0 && ip addr add 8.8.4.4/32 dev lo
ip -6 addr add 2a00::1/64 dev d0 nodad && ip -6 addr add 2a00::2/64 dev d0 nodad
exec "$0" -c "$1"
"""
    source = Path(ourselves.__file__).parents[3]
    done = subprocess.run(
        ["unshare", "--net", "sh", "-eu", "-c", script, sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_own_addresses_are_refused_even_if_they_are_public_or_in_an_allowed_network(
    names: type[Names],
) -> None:
    resolve = names(public_test=[["8.8.8.8"]], private_test=[["10.0.0.7"]])
    door = Door(Rule.of(["10.0.0.0/8"]), resolve=resolve, is_ours=lambda address: True)
    for host in ("8.8.8.8", "public.test", "10.0.0.7", "private.test"):
        with pytest.raises(EgressRefused):
            await door.connect(host, 80, timeout=5)
    await door.close()
