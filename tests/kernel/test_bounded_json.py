"""Is a document counted right on its bytes, whatever its strings hold?"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel.bounded_json import DEEPEST, is_light

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a",\\[]{}\n', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='a",\\[{', max_size=3), inner),
    max_leaves=20,
)


def parts(value: Any) -> int:
    """Strings, keys, lists, objects, and the commas between."""
    if isinstance(value, str):
        return 1
    if isinstance(value, list):
        return 1 + max(0, len(value) - 1) + sum(map(parts, value))
    if isinstance(value, dict):
        return 1 + max(0, len(value) - 1) + len(value) + sum(map(parts, value.values()))
    return 0


@given(_JSON)
def test_parts_are_counted(document: Any) -> None:
    body = json.dumps([document], ensure_ascii=False).encode()
    assert is_light(body, parts([document]))
    assert not is_light(body, parts([document]) - 1)


@pytest.mark.parametrize("inner", [b"a" * 300_000, b'\\"' * 150_000, b"\\\\" * 150_001, b"x" + b"\\n" * 150_000])
def test_a_long_string_is_one_part(inner: bytes) -> None:
    body = b'{"script":"' + inner + b'","more":[[],[]]}'
    assert is_light(body, 9)
    assert not is_light(body, 8)


@pytest.mark.parametrize("broken", [b"", b'"', b'{"a', b'{"a\\', b'"' + b"\\" * 65537, b"]]]]", b'"' * 99_999])
def test_what_is_no_json_is_counted_to_its_end(broken: bytes) -> None:
    assert is_light(broken, 100_000)


def test_depth_is_limited() -> None:
    assert is_light(b"[" * DEEPEST + b"]" * DEEPEST, 1000)
    assert not is_light(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), 1000)
