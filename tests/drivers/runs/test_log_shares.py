"""Which logs go when an owner has too many?"""

from hypothesis import given
from hypothesis import strategies as st

from hansa.drivers.runs.log_shares import LogShares
from hansa.identity import ADMIN_UID
from hansa.resources import NO_LIMIT

BLOCK = 4096


def ended(shares: LogShares, owner: str, *names: str, size: int = BLOCK) -> None:
    for at, name in enumerate(names):
        shares.set(name, owner, size)
        shares.end(name, float(at))


def test_the_oldest_ended_of_the_same_owner_go_first() -> None:
    shares = LogShares(5 * BLOCK)
    ended(shares, "bob", "old-1", "old-2")
    ended(shares, "alice", "a", "b", "c")
    shares.set("runs", "alice", 2 * BLOCK)
    assert shares.left("alice") == 0
    assert shares.make_room("alice", BLOCK + 1) == ["a", "b"]
    assert shares.make_room("alice", 9 * BLOCK) == ["c"]  # what runs stays
    assert shares.left("alice") == 3 * BLOCK
    assert shares.of("bob") == 2 * BLOCK


def test_a_small_log_takes_a_block_and_an_empty_one_nothing() -> None:
    shares = LogShares()
    shares.set("a", "alice", 0)
    assert shares.of("alice") == 0
    shares.grow("a", 1)
    shares.grow("a", 100)
    assert shares.of("alice") == BLOCK
    shares.grow("a", BLOCK)
    assert shares.of("alice") == 2 * BLOCK
    shares.forget("a")
    shares.forget("a")
    shares.grow("a", 1)
    assert shares.of("alice") == 0


def test_those_beyond_go_also_when_nothing_comes() -> None:
    shares = LogShares(2 * BLOCK)
    ended(shares, "alice", "a", "b", "c")
    assert shares.make_room("alice", 0) == ["a"]
    assert shares.make_room("alice", 0) == []


def test_the_admin_is_not_limited() -> None:
    shares = LogShares(BLOCK)
    ended(shares, ADMIN_UID, "a", "b", "c")
    assert shares.left(ADMIN_UID) > NO_LIMIT // 2
    assert shares.make_room(ADMIN_UID, 2**40) == []


def test_what_is_known_is_not_recalled_again() -> None:
    shares = LogShares(3 * BLOCK)
    shares.set("new", "alice", BLOCK)
    shares.recall([("old", "alice", 1.0, BLOCK), ("older", "alice", 0.5, BLOCK), ("new", "alice", 0.1, 9 * BLOCK)])
    assert shares.of("alice") == 3 * BLOCK
    assert shares.make_room("alice", BLOCK) == ["older"]


def test_logs_that_went_are_not_remembered() -> None:
    """An owner who always has one can have had any number of others."""
    shares = LogShares()
    ended(shares, "alice", "kept")
    for number in range(10_000):
        ended(shares, "alice", f"job-{number}")
        shares.forget(f"job-{number}")
        ended(shares, "alice", "again")
    assert len(shares._owners["alice"].ended) < 100


def test_one_that_ran_again_ended_when_it_last_did() -> None:
    shares = LogShares(3 * BLOCK)
    for name, at in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
        shares.set(name, "alice", BLOCK)
        shares.end(name, at)
    assert shares.make_room("alice", 2 * BLOCK) == ["b"]


_STEPS = st.lists(
    st.tuples(st.sampled_from("sgefm"), st.sampled_from("abcd"), st.sampled_from(["x", "y"]), st.integers(0, 9000))
)


@given(_STEPS)
def test_the_sums_are_those_of_what_is_there(steps: list[tuple[str, str, str, int]]) -> None:
    shares, there = LogShares(4 * BLOCK), dict[str, tuple[str, int]]()
    for at, (step, name, owner, size) in enumerate(steps):
        match step:
            case "s":
                shares.set(name, owner, size)
                there[name] = owner, size
            case "g" if name in there:
                shares.grow(name, size)
                there[name] = there[name][0], there[name][1] + size
            case "e":
                shares.end(name, float(at))
            case "f":
                shares.forget(name)
                there.pop(name, None)
            case "m":
                for gone in shares.make_room(owner, size):
                    assert there.pop(gone)[0] == owner
        for one in "xy":
            assert shares.of(one) == sum(-(-size // BLOCK) * BLOCK for who, size in there.values() if who == one)
