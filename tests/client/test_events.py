"""Events are the same however the stream was cut, and strangers cannot fill the memory."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.client import errors
from hansa.client.events import Event, Reader

SAID = (
    b": welcome\n\n"
    b"event: cluster\nid: 1\ndata: {\"a\":\ndata: 1}\n\n"
    b"data: x\r\n\r\n"
    b"event: lost\n\n"  # without data it is none
    b"retry: 5\rdata:y\rid: 3\r\r"
    b"data:  two spaces\nfuture: 1\n\n"
    b"data: not whole"
)  # fmt: skip
HEARD = [
    Event("cluster", b'{"a":\n1}', "1"),
    Event("message", b"x", "1"),
    Event("message", b"y", "3"),
    Event("message", b" two spaces", "3"),
]


@given(st.lists(st.integers(0, len(SAID)), max_size=12))
def test_any_cut_gives_the_same(cuts: list[int]) -> None:
    reader, places = Reader(), sorted({0, *cuts, len(SAID)})
    pieces = [SAID[begin:end] for begin, end in pairwise(places)]
    assert [event for piece in pieces for event in reader.feed(piece)] == HEARD


def test_byte_by_byte() -> None:
    reader = Reader()
    assert [event for byte in SAID for event in reader.feed(bytes([byte]))] == HEARD


@pytest.mark.parametrize("piece", [b"x" * 2**20, b"data: " + b"x" * 2**20 + b"\n"])
def test_an_event_has_an_end(piece: bytes) -> None:
    reader = Reader()
    for _ in range(60):
        reader.feed(piece)
    with pytest.raises(errors.Unexpected):
        reader.feed(piece * 8)
