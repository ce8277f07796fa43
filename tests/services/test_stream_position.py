"""Is a stream read again from where nothing is lost?"""

from hypothesis import given
from hypothesis import strategies as st

from hansa.services.stream_position import StreamPosition


def test_the_position_stays_before_what_is_under_way() -> None:
    position = StreamPosition(5)
    assert position.done == 5
    position.begin(6, 0)
    first = position.begin(7, 2)
    second = position.begin(9, 1)
    assert position.done == 6
    position.end(second)
    position.end(first)
    assert position.done == 6
    position.end(first)
    assert position.done == 9


def test_without_a_cursor_there_is_none_until_something_is_done() -> None:
    position = StreamPosition(None)
    number = position.begin(3, 1)
    assert position.done is None
    position.end(number)
    assert position.done == 3


@given(st.data())
def test_whatever_ends_first_nothing_under_way_is_passed(data: st.DataObject) -> None:
    position = StreamPosition(0)
    left: list[tuple[int, int]] = []  # number and cursor, once for each part
    for cursor in range(1, data.draw(st.integers(1, 10)) + 1):
        parts = data.draw(st.integers(0, 3))
        left += [(position.begin(cursor, parts), cursor)] * parts
        while len(left) > 0 and data.draw(st.booleans()):
            position.end(left.pop(data.draw(st.integers(0, len(left) - 1)))[0])
        assert position.done == min((each for _, each in left), default=cursor + 1) - 1
