"""Text of others, as it is written down and shown."""

import pytest

from hansa.kernel.plain_text import plain


@pytest.mark.parametrize("character", ["\0", "\x1b", "\r", "\x7f", "\x9b", "\ud800"])
def test_what_controls_something_is_marked(character: str) -> None:
    assert plain(f"a{character}b") == "a\ufffdb"


def test_all_else_stays_up_to_a_length() -> None:
    assert plain("Süd\t1\n船") == "Süd\t1\n船"
    assert plain("abc\0", 3) == "abc"
