"""A refresh token buys access tokens, once each, and what the issuer rotates is kept."""

import os
from urllib.parse import parse_qs

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer
from hansa.entrypoints.cli import oidc, profile_files, profiles
from hansa.entrypoints.cli.profiles import Profile
from hansa.kernel import errors


def issuer(server: SmallServer, **answer: object) -> None:
    server.on("GET /realm/.well-known/openid-configuration", {"token_endpoint": f"{server.url}/token"})
    server.on("POST /token", dict(answer))


def login(server: SmallServer, hansa: Hansa) -> None:
    server.on("GET /system/info", {"version": "1"})
    ran = hansa(
        "login", server.url, "--name", "c", "--refresh-token", "r1", "--issuer", f"{server.url}/realm",
        "--client-id", "cli",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "r1" not in ran.out + ran.err


def test_rotation_is_kept_and_a_fresh_token_is_used_again(server: SmallServer, hansa: Hansa) -> None:
    issuer(server, access_token="a1", expires_in=3600, refresh_token="r2")
    login(server, hansa)
    stored = profiles.load(profile_files.own(os.environ)).known["c"]
    assert (stored.refresh_token, stored.token) == ("r2", "a1")
    assert hansa("version", "-c", "c").code == 0
    (bought,) = server.calls("POST")
    assert parse_qs(bought.body.decode()) == {
        "grant_type": ["refresh_token"], "refresh_token": ["r1"], "client_id": ["cli"]
    }  # fmt: skip
    assert {seen.headers["authorization"] for seen in server.seen if seen.path == "/system/info"} == {"Bearer a1"}


def test_a_token_that_ran_out_is_bought_anew(server: SmallServer, hansa: Hansa) -> None:
    issuer(server, access_token="a1", expires_in=1, refresh_token="r2")
    server.on("POST /token", {"access_token": "a2", "expires_in": 3600})
    login(server, hansa)
    assert hansa("version", "-c", "c").code == 0
    stored = profiles.load(profile_files.own(os.environ)).known["c"]
    assert (stored.refresh_token, stored.token) == ("r2", "a2")
    assert [parse_qs(seen.body.decode())["refresh_token"] for seen in server.calls("POST")][-1] == ["r2"]


def test_an_issuer_that_refuses(server: SmallServer) -> None:
    issuer(server, error="invalid_grant", error_description="Token is not active")
    profile = Profile(name="c", url="x", refresh_token="r1", issuer=f"{server.url}/realm", client_id="cli")
    with pytest.raises(errors.Unauthenticated, match="Token is not active"):
        oidc.renew(profile, 0)


def test_a_refresh_token_never_travels_in_the_clear() -> None:
    profile = Profile(name="c", url="x", refresh_token="r1", issuer="http://issuer.example", client_id="cli")
    with pytest.raises(errors.Invalid, match="not https"):
        oidc.renew(profile, 0)
