"""Is what a tenant's process answers read as it is meant, and is what costs more than it says refused?"""

from collections.abc import Iterable

import pytest

from hansa.entrypoints.http.exposed.answers import MOST_EARLY, MOST_LINES, Answer, NoAnswer
from hansa.entrypoints.http.protocol import LARGEST_HEAD

OK = b"HTTP/1.1 200 OK\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def read(*data: bytes, method: str = "GET", ends: bool = False) -> Answer:
    answer = Answer(method)
    for part in data:
        answer.feed(part)
    if ends:
        answer.end()
    return answer


def single(data: bytes) -> Iterable[bytes]:
    return (bytes([byte]) for byte in data)


def test_an_answer_with_a_length() -> None:
    answer = read(OK + b"A: b\r\nContent-Length: 4\r\n\r\nbo", b"dy")
    assert (answer.status, answer.headers) == (200, [(b"A", b"b"), (b"Content-Length", b"4")])
    assert (answer.take(), answer.take()) == (b"body", b"")
    assert (answer.is_complete, answer.is_last) == (True, False)


@pytest.mark.parametrize(
    "data", [CHUNKED + b"2\r\nbo\r\n2;x=y\r\ndy\r\n0\r\nt: r\r\n\r\n", OK + b"content-length:4\r\n\r\nbody"]
)
def test_whatever_the_cuts_are(data: bytes) -> None:
    answer = read(*single(data))
    assert (answer.status, answer.take(), answer.is_complete) == (200, b"body", True)
    assert (b"t", b"r") not in answer.headers


def test_pieces_that_came_together_go_on_as_one() -> None:
    answer = Answer("GET")
    assert answer.feed(CHUNKED + b"1\r\na\r\n" * 300) == 300
    assert answer.take() == b"a" * 300
    assert not answer.is_complete


def test_one_that_ends_with_the_connection() -> None:
    answer = read(OK + b"\r\nbody", ends=True)
    assert (answer.take(), answer.is_complete, answer.is_last) == (b"body", True, True)


@pytest.mark.parametrize("data", [b"", EARLY, OK, OK + b"content-length: 5\r\n\r\nbody", CHUNKED + b"4\r\nbody\r\n"])
def test_one_that_ends_too_soon(data: bytes) -> None:
    answer = read(data) if data else Answer("GET")
    with pytest.raises(NoAnswer, match="closed the connection"):
        answer.end()


def test_what_a_head_announces_does_not_come() -> None:
    answer = read(OK + b"content-length: 5\r\n\r\n", b"", method="HEAD")
    assert (answer.status, answer.take(), answer.is_complete) == (200, b"", True)
    for status in (b"204 No Content", b"304 Not Modified"):
        assert read(b"HTTP/1.1 " + status + b"\r\n\r\n").is_complete


def test_lines_may_end_as_the_system_ends_them() -> None:
    answer = read(b"HTTP/1.0 200 OK\nA: b\n\nbody", ends=True)
    assert (answer.headers, answer.take()) == ([(b"A", b"b")], b"body")


def test_what_announces_an_answer_is_left_out_and_has_a_number() -> None:
    answer = read(EARLY * MOST_EARLY + OK + b"content-length: 2\r\n\r\nok")
    assert (answer.status, answer.headers, answer.take()) == (200, [(b"content-length", b"2")], b"ok")
    with pytest.raises(NoAnswer, match="announced"):
        read(EARLY * (MOST_EARLY + 1))


@pytest.mark.parametrize(
    "data",
    [
        OK + b"a: b\r\n" * (MOST_LINES + 1) + b"\r\n",
        OK + b"a: " + b"b" * LARGEST_HEAD,
        CHUNKED + b"1\r\na\r\n0\r\n" + b"t: r\r\n" * (MOST_LINES + 1),
        CHUNKED + b"1;" + b"x" * LARGEST_HEAD,
    ],
    ids=["lines", "long", "trailer", "chunk"],
)
def test_so_has_what_is_said_beside_it(data: bytes) -> None:
    with pytest.raises(NoAnswer, match="more than"):
        read(*(data[at : at + 4096] for at in range(0, len(data), 4096)))


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"HTTP/1.1 099 x\r\n\r\n",
        b"HTTP/1.1 999 x\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        OK + b"a: b\0c\r\n\r\n",
        OK + b"a: b\rc\r\n\r\n",
        OK + b"a b: c\r\n\r\n",
        OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
        CHUNKED + b"x\r\n",
    ],
)
def test_what_is_no_answer(data: bytes) -> None:
    with pytest.raises(NoAnswer):
        read(data)


@pytest.mark.parametrize("more", [OK, b"more", b"\r\n" + OK])
def test_more_than_the_answer_is_not_taken_for_the_next(more: bytes) -> None:
    answer = read(OK + b"content-length: 2\r\n\r\nok" + more)
    assert (answer.take(), answer.is_complete, answer.is_last) == (b"ok", True, True)


@pytest.mark.parametrize("head", [OK + b"connection: close\r\n", b"HTTP/1.0 200 OK\r\n"])
def test_who_closes_is_asked_no_more(head: bytes) -> None:
    assert read(head + b"content-length: 2\r\n\r\nok").is_last
