"""Answers about everybody: made once for many who ask, never without what somebody changed."""

import asyncio
import itertools
from collections.abc import Callable

import pytest

from hansa.federation.whole_answers import LARGE, WholeAnswers


class Counting:
    def __init__(self) -> None:
        self.count = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def __call__(self) -> bytes:
        self.count += 1
        said = b"%d" % self.count
        await self.goes_on.wait()
        return said


def always(edition: object) -> Callable[[], object]:
    return lambda: edition


async def test_in_a_large_federation_those_who_ask_at_once_get_the_same() -> None:
    clock = [100.0]
    answers, make = WholeAnswers(lambda: clock[0]), Counting()
    assert [await answers.get("all", LARGE, always(1), make) for _ in range(3)] == [b"1"] * 3
    clock[0] += 0.6
    assert await answers.get("all", LARGE, always(1), make) == b"2"


async def test_who_comes_while_it_is_made_waits_for_it() -> None:
    answers, make = WholeAnswers(lambda: 100.0), Counting()
    make.goes_on.clear()
    asking = [asyncio.create_task(answers.get("all", LARGE, always(1), make)) for _ in range(3)]
    await asyncio.sleep(0)
    make.goes_on.set()
    assert await asyncio.gather(*asking) == [b"1"] * 3


async def test_one_who_leaves_takes_nothing_from_the_others() -> None:
    answers, make = WholeAnswers(lambda: 100.0), Counting()
    make.goes_on.clear()
    first, second = (asyncio.create_task(answers.get("all", LARGE, always(1), make)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    make.goes_on.set()
    assert await second == b"2"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_what_somebody_changed_is_seen_at_once() -> None:
    answers, make = WholeAnswers(lambda: 100.0), Counting()
    assert await answers.get("all", LARGE, always((1, "a")), make) == b"1"
    assert await answers.get("all", LARGE, always((2, "a")), make) == b"2"
    assert await answers.get("other", LARGE, always((2, "a")), make) == b"3"


async def test_what_somebody_changed_while_it_was_made_is_in_the_next() -> None:
    edition = [1]
    answers, make = WholeAnswers(lambda: 100.0), Counting()
    make.goes_on.clear()
    asking = asyncio.create_task(answers.get("all", LARGE, lambda: edition[0], make))
    await asyncio.sleep(0)
    edition[0] = 2
    make.goes_on.set()
    assert await asking == b"1"
    assert await answers.get("all", LARGE, lambda: edition[0], make) == b"2"


async def test_many_who_wait_for_a_slow_answer_are_not_told_one_after_another() -> None:
    """Each change makes another edition, and what is made takes longer than an answer stays fresh."""
    clock = itertools.count(100.0, 1.0)
    editions = itertools.count()
    answers, make = WholeAnswers(lambda: next(clock)), Counting()
    make.goes_on.clear()
    asking = [asyncio.create_task(answers.get("all", LARGE, lambda: next(editions), make)) for _ in range(20)]
    await asyncio.sleep(0)
    make.goes_on.set()
    assert await asyncio.gather(*asking) == [b"1"] + [b"2"] * 19


async def test_a_small_federation_is_always_told_the_newest() -> None:
    answers, make = WholeAnswers(lambda: 100.0), Counting()
    assert [await answers.get("all", LARGE - 1, always(1), make) for _ in range(2)] == [b"1", b"2"]
