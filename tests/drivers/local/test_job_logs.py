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


@pytest.mark.parametrize("count", range(6))
def test_only_the_last_lines_are_cut_if_no_others_are_wanted(count: int) -> None:
    lines = [b"%d" % number for number in range(count)]
    cutter = LineCutter(most=3)
    assert cutter.feed(b"\n".join([*lines, b"rest"])) == lines[-3:]
    assert cutter.rest == b"rest"


class TestShares:
    """What the logs of one owner may take together."""

    @pytest.fixture
    def book(self, tmp_path: Path) -> LogBook:
        return LogBook(tmp_path / "logs", LIMIT, most=5 * LIMIT)

    @staticmethod
    def fill(book: LogBook, name: str, owner: str = "alice", lines: int = 7) -> None:
        log = book.open(name, owner=owner)
        log.feed((b"x" * 900 + b"\n") * lines)
        log.close()

    @staticmethod
    def taken(book: LogBook) -> int:
        return sum(path.stat().st_blocks * 512 for path in book.path("x").parent.parent.rglob("*.*"))

    async def test_the_oldest_go_and_say_so_and_others_stay(self, book: LogBook) -> None:
        self.fill(book, "his", "bob")
        for number in range(12):
            self.fill(book, f"job-{number}")
            await asyncio.sleep(0.001)
        assert self.taken(book) <= 7 * LIMIT
        gone = await book.read("job-0", timestamps=False)
        most = "the logs of one owner may take 40Ki (jobs.logs_per_owner)"
        assert gone == f"hansa: this log was dropped for newer ones: {most}\n"
        stamped = await book.read("job-0", timestamps=True)
        assert stamped is not None
        assert re.match(r"\d{4}-\d\d-\d\dT", stamped)
        for kept in ("his", "job-11"):
            assert (await book.read(kept, timestamps=False) or "").count("x" * 900) == 7
        await book.remove("job-0")
        assert await book.read("job-0", timestamps=False) is None

    async def test_what_runs_is_cut_when_nothing_is_left_to_go(self, book: LogBook) -> None:
        running = [book.open(f"job-{number}", owner="alice") for number in range(8)]
        for log in running:
            log.feed((b"x" * 900 + b"\n") * 7)
        last, other = running[-1], book.open("his", owner="bob")
        last.feed(b"more\n")
        other.feed(b"heard\n")
        for log in (*running, other):
            log.close()
        said = await book.read("job-7", timestamps=False) or ""
        assert "more" not in said
        assert re.search(r"hansa: \d+ bytes dropped: the logs of one owner may take 40Ki", said)
        assert await book.read("his", timestamps=False) == "heard\n"
        assert self.taken(book) <= 8 * LIMIT

    async def test_silent_jobs_count_too(self, book: LogBook) -> None:
        for number in range(40):
            log = book.open(f"job-{number}", owner="alice")
            log.say("INFO", "the script ended well")
            log.close()
        assert self.taken(book) <= 5 * LIMIT + 4096

    async def test_a_log_from_elsewhere_counts(self, book: LogBook) -> None:
        for number in range(12):
            await book.keep(f"job-{number}", "2026-01-01T00:00:00Z word\n" * 250, owner="alice")
        assert self.taken(book) <= 6 * LIMIT
        assert "dropped" in (await book.read("job-0", timestamps=False) or "")

    async def test_those_of_a_former_life_are_counted(self, book: LogBook, tmp_path: Path) -> None:
        before = LogBook(tmp_path / "logs", LIMIT)
        for number in range(12):
            self.fill(before, f"job-{number}")
        await book.recall([(f"job-{number}", "alice", float(number)) for number in range(13)])
        assert self.taken(book) <= 5 * LIMIT
        assert "dropped" in (await book.read("job-0", timestamps=False) or "")
        assert "x" in (await book.read("job-11", timestamps=False) or "")
