"""Names that reach the store, the disk or a shell follow a rule."""

from collections.abc import Callable

import pytest

from hansa.kernel import names


@pytest.mark.parametrize("text", ["", "..", "a/b", "A", "a b", "-a", "a-", "x" * 5000, "a\0b", "ä", "a\n"])
@pytest.mark.parametrize("rule", [names.service, names.job, names.volume, names.bucket])
def test_odd_names_are_refused_with_a_hint(rule: Callable[[str], str], text: str) -> None:
    with pytest.raises(names.BadName) as caught:
        rule(text)
    assert caught.value.hint


def test_the_longest_names() -> None:
    assert names.service("x" * 39)
    assert names.job("x" * 63)
    assert names.bucket("x" * 63)
    with pytest.raises(names.BadName):
        names.service("x" * 40)


@pytest.mark.parametrize("key", ["", "/", "a/../b", "..", "a\nb", "k" * 1025])
def test_object_keys_stay_inside_their_bucket(key: str) -> None:
    with pytest.raises(names.BadName):
        names.object_key(key)


@pytest.mark.parametrize("key", ["a", "in/ä b+c.txt", "a..b", "..a/b"])
def test_ordinary_object_keys(key: str) -> None:
    assert names.object_key(key) == key
