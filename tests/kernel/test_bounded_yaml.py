"""Is YAML that would keep us busy for ever refused at once, and ordinary YAML read as before?"""

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel import bounded_yaml

LAUGHS = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
BOMBS = {
    "lists": LAUGHS,
    "maps": "a0: &a0 {x: 1, y: 2}\n"
    + "".join(f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}, z: *a{n - 1}}}\n" for n in range(1, 30)),
    "merges": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)),
    "one long text": f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]",
    "keys": "a0: &a0 [1, 1, 1]\n"
    + "".join(f"a{n}: &a{n} {{? *a{n - 1} : 1, b: *a{n - 1}, c: *a{n - 1}}}\n" for n in range(1, 30)),
    "itself": "&a [*a]",
    "itself in a map": "a: &a {b: {c: *a}}",
    "deep": "[" * 5000 + "]" * 5000,
    "deep in blocks": "".join("  " * n + "a:\n" for n in range(300)),
    "long": "a" * (bounded_yaml.LARGEST_TEXT + 1),
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_at_once(text: str) -> None:
    began = time.process_time()
    with pytest.raises(yaml.YAMLError):
        bounded_yaml.load(text)
    assert time.process_time() - began < 5


def test_ordinary_aliases_work() -> None:
    base = "base: &base {image: busybox, list: &list [1, 2]}\nuse: {<<: *base, again: *list}\nfew: [*list, *list]"
    assert bounded_yaml.load(base) == yaml.safe_load(base)


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(trees)
def test_what_it_takes_it_reads_as_anybody_does(tree: object) -> None:
    text = yaml.safe_dump(tree)
    assert bounded_yaml.load(text) == yaml.safe_load(text)
