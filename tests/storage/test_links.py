"""Which links may be asked for."""

import pytest

from hansa.kernel.errors import Invalid
from hansa.storage import link_request
from hansa.storage.links import within


def test_what_is_left_out_gets_a_default() -> None:
    request = link_request(" /in/a.txt/ ", " Upload ", 0, "text/plain", {"X-Note": "1"})
    assert (request.key, request.operation, request.seconds) == ("in/a.txt", "upload", 900)
    assert request.headers == {"X-Note": "1", "Content-Type": "text/plain"}
    assert link_request("a", "download", 1, "text/plain").headers == {}


@pytest.mark.parametrize(
    ("key", "operation", "seconds", "content_type", "headers"),
    [
        ("", "upload", 1, "", {}),
        ("/", "upload", 1, "", {}),
        ("a/../b", "upload", 1, "", {}),
        ("a\0", "upload", 1, "", {}),
        ("a" * 1025, "upload", 1, "", {}),
        ("a", "delete", 1, "", {}),
        ("a", "upload", -1, "", {}),
        ("a", "upload", 604_801, "", {}),
        ("a", "upload", 1, "text\r\nX: y", {}),
        ("a", "upload", 1, "", {"X-Amz-Acl": "public-read"}),
        ("a", "upload", 1, "", {"bad name": "x"}),
        ("a", "upload", 1, "", {"X": "a\nb"}),
        ("a", "upload", 1, "", {f"X{n}": "" for n in range(51)}),
    ],
)
def test_odd_requests_are_refused(
    key: str, operation: str, seconds: int, content_type: str, headers: dict[str, str]
) -> None:
    with pytest.raises(Invalid):
        link_request(key, operation, seconds, content_type, headers)


@pytest.mark.parametrize(
    ("asked", "longest", "revocable", "given"),
    [(900, 86_400, True, 900), (604_800, 86_400, True, 86_400), (604_800, 86_400, False, 900), (60, 30, False, 30)],
)
def test_who_asks_for_more_gets_less(asked: int, longest: int, revocable: bool, given: int) -> None:
    assert within(asked, longest, revocable=revocable) == given
