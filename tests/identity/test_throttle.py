"""How often may somebody guess, and can guessing lock the admin out?"""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import Basic, SignIn, Throttle, Uids
from hansa.identity.errors import BadCredentials, TooManyTries


class MovableClock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def now(self) -> float:
        return self.at


RIGHT, WRONG = Basic("admin", "right"), Basic("admin", "wrong")


def header(given: Basic) -> str:
    return "Basic " + base64.b64encode(f"{given.user}:{given.password}".encode()).decode()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def sign_in(clock: MovableClock) -> SignIn:
    return SignIn(RIGHT, None, Uids(""), throttle=Throttle(10, clock))


async def guess(sign_in: SignIn, address: str, times: int) -> list[type[Exception]]:
    met: list[type[Exception]] = []
    for _ in range(times):
        with pytest.raises((BadCredentials, TooManyTries)) as refused:
            await sign_in.caller(header(WRONG), address)
        met.append(refused.type)
    return met


async def test_wrong_passwords_are_looked_at_ten_times_then_no_more(sign_in: SignIn) -> None:
    assert await guess(sign_in, "10.0.0.1", 12) == [BadCredentials] * 10 + [TooManyTries] * 2
    with pytest.raises(TooManyTries) as refused:  # or it would tell whether this one is right
        await sign_in.caller(header(RIGHT), "10.0.0.1")
    assert 0 < refused.value.retry_after <= 6
    assert "wait" in refused.value.hint


async def test_time_makes_it_good(sign_in: SignIn, clock: MovableClock) -> None:
    await guess(sign_in, "10.0.0.1", 10)
    with pytest.raises(TooManyTries) as refused:
        await sign_in.caller(header(RIGHT), "10.0.0.1")
    clock.at += refused.value.retry_after + 0.001
    assert await guess(sign_in, "10.0.0.1", 2) == [BadCredentials, TooManyTries]
    clock.at += 60
    assert await guess(sign_in, "10.0.0.1", 11) == [BadCredentials] * 10 + [TooManyTries]
    clock.at += 60
    assert (await sign_in.caller(header(RIGHT), "10.0.0.1")).is_admin


async def test_other_addresses_are_not_affected(sign_in: SignIn) -> None:
    await guess(sign_in, "10.0.0.1", 20)
    assert (await sign_in.caller(header(RIGHT), "10.0.0.2")).is_admin
    assert (await sign_in.caller(header(RIGHT), "")).is_admin


async def test_many_addresses_get_one_guess_each_and_the_admin_still_comes_in(sign_in: SignIn) -> None:
    for number in range(250):
        await guess(sign_in, f"10.1.{number}.1", 1)
    assert await guess(sign_in, "10.2.0.1", 2) == [BadCredentials, TooManyTries]
    assert (await sign_in.caller(header(RIGHT), "10.3.0.1")).is_admin


async def test_one_ipv6_network_is_one_guesser(sign_in: SignIn) -> None:
    for number in range(10):
        await guess(sign_in, f"2001:db8:1:2::{number:x}", 1)
    assert await guess(sign_in, "2001:db8:1:2:ffff::1", 1) == [TooManyTries]
    assert await guess(sign_in, "2001:db8:1:3::1", 1) == [BadCredentials]
    await guess(sign_in, "::ffff:10.9.9.9", 10)
    assert await guess(sign_in, "10.9.9.9", 1) == [TooManyTries]


async def test_a_clock_set_back_locks_nobody_out_for_long(sign_in: SignIn, clock: MovableClock) -> None:
    await guess(sign_in, "10.0.0.1", 10)
    clock.at -= 1_000_000
    with pytest.raises(TooManyTries) as refused:
        await sign_in.caller(header(RIGHT), "10.0.0.1")
    assert refused.value.retry_after <= 60


async def test_who_shares_an_address_with_the_admin_does_not_shut_it(sign_in: SignIn) -> None:
    """Such as a manager that calls this one for many users, one of whom wrote a wrong password."""
    assert (await sign_in.caller(header(RIGHT), "10.0.0.1")).is_admin
    assert set(await guess(sign_in, "10.0.0.1", 100)) == {BadCredentials}
    assert (await sign_in.caller(header(RIGHT), "10.0.0.1")).is_admin
    assert (await guess(sign_in, "10.0.0.1", 101))[-1] is TooManyTries  # but that has an end too


async def test_such_patience_is_not_for_ever(sign_in: SignIn, clock: MovableClock) -> None:
    assert (await sign_in.caller(header(RIGHT), "10.0.0.1")).is_admin
    clock.at += 2 * 86_400
    assert (await guess(sign_in, "10.0.0.1", 11))[-1] is TooManyTries


async def test_a_known_address_comes_in_while_all_others_guess(sign_in: SignIn) -> None:
    assert (await sign_in.caller(header(RIGHT), "10.0.0.1")).is_admin
    await guess(sign_in, "10.0.0.1", 1)
    for number in range(250):
        await guess(sign_in, f"10.1.{number}.1", 1)
    assert (await sign_in.caller(header(RIGHT), "10.0.0.1")).is_admin


def test_memory_is_bounded(clock: MovableClock) -> None:
    throttle = Throttle(10, clock)
    for number in range(10_000):
        throttle.succeeded(f"11.{number // 65536}.{number // 256 % 256}.{number % 256}")
        throttle.failed(f"10.{number // 65536}.{number // 256 % 256}.{number % 256}")
    assert len(throttle) <= 4096


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.floats(0, 20)), max_size=200))
def test_nobody_ever_guesses_faster_than_allowed(tries: list[tuple[str, float]]) -> None:
    clock = MovableClock()
    throttle, looked_at = Throttle(10, clock), dict.fromkeys("abc", 0)
    began = clock.at
    for address, pause in tries:
        clock.at += pause
        try:
            throttle.check(address)
        except TooManyTries:
            continue
        throttle.failed(address)
        looked_at[address] += 1
        assert looked_at[address] <= 10 + (clock.at - began) / 6 + 1
