"""Text of others, as it is written down and shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel.plain_text import escaped, one_line, plain

CONTROLS = ["\0", "\x1b", "\r", "\x7f", "\x85", "\x9b", "\ud800"]
TURNING = ["\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
UNSEEN = ["\u2028", "\u2029", "\u2060", "\ufeff", "\ufffb", "\U000e0041"]


@pytest.mark.parametrize("character", [*CONTROLS, *TURNING, *UNSEEN])
def test_what_controls_something_is_marked(character: str) -> None:
    assert plain(f"a{character}b") == "a\ufffdb"
    assert one_line(f"a{character}b") == "a b"


def test_all_else_stays_up_to_a_length() -> None:
    assert plain("Süd\t1\n船") == "Süd\t1\n船"
    assert plain("شالوم می\u200cخواهم 👩\u200d🚀") == "شالوم می\u200cخواهم 👩\u200d🚀"  # joined letters and pictures
    assert plain("abc\0", 3) == "abc"


def test_one_line_has_no_room_for_a_second_one() -> None:
    assert one_line(" no\r\n  room\u2028here\x85 ") == "no room here"
    assert one_line("abcdef", 3) == "abc"


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_says_the_same_and_shows_nothing_but_plain_text(value: object) -> None:
    written = escaped(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(written) == value
    assert plain(written) == written


@pytest.mark.parametrize("character", [*CONTROLS, *TURNING, *UNSEEN])
def test_json_names_what_controls_something(character: str) -> None:
    written = escaped(json.dumps({character: f"é{character}"}, ensure_ascii=False))
    assert character not in written
    assert json.loads(written) == {character: f"é{character}"}
