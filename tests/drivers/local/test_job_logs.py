"""Are logs complete, timed, bounded, and readable while a job still runs?"""

import asyncio
import re
import time
from pathlib import Path

import pytest

from hansa.drivers.local.job_logs import LineCutter, LogBook

LIMIT = 8 * 1024


@pytest.fixture
def book(tmp_path: Path) -> LogBook:
    return LogBook(tmp_path / "logs", LIMIT)


async def read(book: LogBook, *, timestamps: bool = False) -> str:
    text = await book.read("job-1", timestamps=timestamps)
    assert text is not None
    return text


async def test_it_is_live_to_the_last_half_line(book: LogBook) -> None:
    log = book.open("job-1")
    log.feed(b"first\nsec")
    assert await read(book) == "first\nsec\n"
    log.feed(b"ond\n")
    assert await read(book) == "first\nsecond\n"
    log.close()
    assert await read(book) == "first\nsecond\n"


async def test_lines_reach_the_disk_without_a_reader(book: LogBook) -> None:
    log = book.open("job-1")
    log.feed(b"line\n")
    async with asyncio.timeout(5):
        while not book.path("job-1").read_bytes():
            await asyncio.sleep(0.02)
    log.close()


async def test_every_line_has_the_time_it_came(book: LogBook) -> None:
    log = book.open("job-1")
    log.feed(b"one\n\ntwo with spaces \n")
    log.close()
    lines = (await read(book, timestamps=True)).splitlines()
    stamps = [re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) (.*)", line) for line in lines]
    assert [stamp and stamp.group(2) for stamp in stamps] == ["one", "", "two with spaces "]
    assert await read(book) == "one\n\ntwo with spaces \n"


async def test_what_is_too_much_is_dropped_and_said_so(book: LogBook) -> None:
    log = book.open("job-1")
    for number in range(3000):
        log.feed(b"line %d\n" % number)
    log.say("ERROR", "what we say ourselves is kept")
    log.close()
    text = await read(book, timestamps=True)
    assert len(text) < LIMIT + 300
    lines = (await read(book)).splitlines()
    assert lines[:2] == ["line 0", "line 1"]
    assert lines[-2] == "hansa ERROR: what we say ourselves is kept"
    assert re.fullmatch(r"hansa: \d+ bytes dropped: the limit of a log is 8Ki", lines[-1])


async def test_one_endless_line_is_bounded_too(book: LogBook) -> None:
    log = book.open("job-1")
    for _ in range(100):
        log.feed(b"x" * 10_000)
    log.close()
    assert len(await read(book)) < LIMIT + 300


async def test_a_flood_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    log = LogBook(tmp_path, 10 * 2**20).open("job-1")
    chunk = b"y\n" * 32_768
    longest = 0.0
    for _ in range(40):
        began = time.process_time()
        log.feed(chunk)
        longest = max(longest, time.process_time() - began)
    log.close()
    assert longest < 0.1


async def test_bytes_that_are_no_text_are_replaced(book: LogBook) -> None:
    log = book.open("job-1")
    log.feed("grün ".encode() + b"\xff\xfe\n")
    log.close()
    assert await read(book) == "grün \ufffd\ufffd\n"


async def test_a_second_attempt_goes_on_where_the_first_one_stopped(book: LogBook) -> None:
    log = book.open("job-1")
    log.feed(b"first\n")
    log.close()
    with book.path("job-1").open("ab") as file:
        file.write(b"2026-01-01T00:00:00Z torn")
    log = book.open("job-1")
    log.feed(b"second\n")
    log.close()
    assert await read(book) == "first\ntorn\nsecond\n"


@pytest.mark.parametrize(
    ("level", "heard"),
    [("DEBUG", ["DEBUG", "INFO", "ERROR"]), ("INFO", ["INFO", "ERROR"]), ("CRITICAL", []), ("odd", ["INFO", "ERROR"])],
)
async def test_our_own_lines_follow_the_level_of_the_service(book: LogBook, level: str, heard: list[str]) -> None:
    log = book.open("job-1", level)
    for each in ("DEBUG", "INFO", "ERROR"):
        log.say(each, "words")
    log.close()
    assert (await read(book)).splitlines() == [f"hansa {each}: words" for each in heard]


async def test_a_log_that_is_not_there(book: LogBook) -> None:
    assert await book.read("job-1", timestamps=False) is None
    await book.remove("job-1")


def test_lines_are_cut_where_they_end_or_get_too_long() -> None:
    cutter = LineCutter(longest=4)
    assert cutter.feed(b"ab\ncd") == [b"ab"]
    assert cutter.feed(b"efghij") == [b"cdef"]
    assert cutter.feed(b"\n\n") == [b"ghij", b""]
    assert cutter.feed(b"rest") == []
    assert cutter.finish() == [b"rest"]
    assert cutter.finish() == []
