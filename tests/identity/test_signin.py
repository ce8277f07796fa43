"""Who gets in with which Authorization header, and what do refusals show?"""

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import Basic, Bearer, Caller, Identity, SignIn, Uids, parse_authorization
from hansa.identity.errors import (
    BadCredentials,
    CredentialsMalformed,
    CredentialsMissing,
    TokenMalformed,
    TokenRefused,
    UnknownIssuer,
)
from hansa.kernel.errors import Unauthenticated

ADMIN = Basic("oscar", "correct horse: staple ñ")
ISSUER = "https://issuer.test"
HOME = Uids(ISSUER)


class OneUser:
    """A verifier that knows the token `good`, of whatever subject it was made for."""

    def __init__(self, subject: str = "alice@test") -> None:
        self._subject = subject

    async def verify(self, token: str) -> Identity:
        if token != "good":
            raise TokenMalformed("the token is not known")
        return Identity(self._subject, ISSUER, "Alice", frozenset({"vo"}), 1e12)


def basic(user: str, password: str, scheme: str = "Basic") -> str:
    return f"{scheme} {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


async def test_the_admin_signs_in_with_basic() -> None:
    caller = await SignIn(ADMIN, None, HOME).caller(basic(ADMIN.user, ADMIN.password))
    assert caller == Caller(kind="admin", uid="cluster_admin", name="cluster_admin", admin_view=True)


@pytest.mark.parametrize("scheme", ["basic", "BASIC", "bAsIc"])
async def test_the_schemes_case_does_not_matter(scheme: str) -> None:
    assert (await SignIn(ADMIN, None, HOME).caller(basic(ADMIN.user, ADMIN.password, scheme))).is_admin
    assert parse_authorization("bEARER abc") == Bearer("abc")


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("oscar", "guessed"),
        ("other", ADMIN.password),
        ("", ""),
        ("oscar", ""),
        ("oscar", ADMIN.password + " "),
    ],
)
async def test_wrong_basic_credentials(user: str, password: str) -> None:
    with pytest.raises(BadCredentials) as refusal:
        await SignIn(ADMIN, OneUser(), HOME).caller(basic(user, password))
    assert password == "" or password not in f"{refusal.value} {refusal.value.hint}"


async def test_an_empty_admin_password_lets_nobody_in() -> None:
    with pytest.raises(BadCredentials):
        await SignIn(Basic("oscar", ""), None, HOME).caller(basic("oscar", ""))


async def test_a_bearer_is_a_user() -> None:
    caller = await SignIn(ADMIN, OneUser(), HOME).caller("Bearer good")
    assert (caller.kind, caller.uid, caller.name) == ("user", "alice@test", "Alice")
    assert caller.groups == {"vo"}
    assert not caller.admin_view
    assert (await SignIn(ADMIN, OneUser(), HOME, ["alice@test"]).caller("Bearer good")).admin_view


async def test_nobody_becomes_the_admin_by_their_subject() -> None:
    with pytest.raises(TokenRefused):
        await SignIn(ADMIN, OneUser("cluster_admin"), HOME).caller("Bearer good")


async def test_without_issuers_there_are_no_users() -> None:
    with pytest.raises(UnknownIssuer) as refusal:
        await SignIn(ADMIN, None, HOME).caller("Bearer good")
    assert refusal.value.hint


@pytest.mark.parametrize("header", [None, "", "   "])
def test_no_credentials(header: str | None) -> None:
    with pytest.raises(CredentialsMissing):
        parse_authorization(header)


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ("Basic", CredentialsMalformed),
        ("Basic ????", CredentialsMalformed),
        ("Basic " + base64.b64encode(b"nocolon").decode(), CredentialsMalformed),
        ("Basic " + base64.b64encode(b"\xff\xfe:x").decode(), CredentialsMalformed),
        ("Basic " + base64.b64encode(b"u:" + b"p" * 4096).decode(), CredentialsMalformed),
        ("Digest secret-part", CredentialsMalformed),
        ("secret-token-without-scheme", CredentialsMalformed),
        ("Bearer", TokenMalformed),
        ("Bearer two words", TokenMalformed),
        ("Bearer a\r\nb", TokenMalformed),
        ("Bearer ñ", TokenMalformed),
        ("Bearer " + "x" * 65536, TokenMalformed),
    ],
)
def test_unreadable_headers_are_refused_and_not_repeated(header: str, error: type[Unauthenticated]) -> None:
    with pytest.raises(error) as refusal:
        parse_authorization(header)
    told = f"{refusal.value} {refusal.value.hint} {refusal.value.facts}"
    assert refusal.value.hint
    assert "secret" not in told
    assert "xxxx" not in told


@given(st.text())
def test_any_header_is_read_or_refused(header: str) -> None:
    with suppress(Unauthenticated):
        assert isinstance(parse_authorization(header), Basic | Bearer)


def test_secrets_do_not_show() -> None:
    assert "staple" not in repr(ADMIN)
    assert "abc" not in repr(Bearer("abc"))
