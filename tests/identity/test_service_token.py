"""Whom does a service token speak for?"""

import pytest

from hansa.identity import Caller, looks_like_service_token, new_service_token, same_secret, service_caller
from hansa.identity.errors import BadCredentials


def test_a_new_token_is_64_hex_digits_and_never_the_same() -> None:
    first, second = new_service_token(), new_service_token()
    assert looks_like_service_token(first)
    assert len(bytes.fromhex(first)) == 32
    assert first != second


def test_the_right_token_speaks_for_the_service_as_its_owner() -> None:
    token = new_service_token()
    caller = service_caller(token, service="cowsay", owner="alice@test", expected=token)
    assert caller == Caller(kind="service", uid="alice@test", name="cowsay", service="cowsay", admin_view=False)


@pytest.mark.parametrize("expected", ["", "0" * 64])
def test_a_wrong_token_or_an_unknown_service_is_refused_alike(expected: str) -> None:
    token = new_service_token()
    with pytest.raises(BadCredentials) as refusal:
        service_caller(token, service="cowsay", owner="alice@test", expected=expected)
    assert token not in f"{refusal.value} {refusal.value.hint}"


def test_an_empty_token_is_nobodys() -> None:
    with pytest.raises(BadCredentials):
        service_caller("", service="cowsay", owner="alice@test", expected="")


def test_secrets_of_any_text_can_be_compared() -> None:
    assert same_secret("ñ\udc80", "ñ\udc80")
    assert not same_secret("ñ", "n")
