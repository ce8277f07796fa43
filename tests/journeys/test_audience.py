"""A token lets its bearer in where it was made for this cluster, and an ID token nowhere."""

import os
import subprocess
import sys

import pytest

from real.identity_provider import AUDIENCE, IdentityProvider
from real.manager import StartManager, running_manager

WAIVED = "tokens made for any client of this issuer let people in"


def test_without_a_word_on_the_audience_nothing_starts(sign_in_provider: IdentityProvider) -> None:
    issuers = [{"url": sign_in_provider.issuer()}]
    with pytest.raises(RuntimeError) as raised, running_manager({"oidc.issuers": issuers}):
        pass
    assert 'oidc.issuers.0.audience: say for whom tokens are made: audience = "hansa"' in str(raised.value)
    assert 'audience = "*"' in str(raised.value)


def test_a_token_for_another_service_is_refused(
    start_manager: StartManager, sign_in_provider: IdentityProvider
) -> None:
    own = start_manager({"oidc.issuers": [{"url": sign_in_provider.issuer(), "audience": ["hansa", "hansa-two"]}]})
    answer = own.bearer(sign_in_provider.token("alice")).get("/system/config")
    assert answer.status_code == 401
    assert "hansa or hansa-two" in answer.text
    assert WAIVED not in own.log


def test_one_of_several_will_do(start_manager: StartManager, sign_in_provider: IdentityProvider) -> None:
    own = start_manager({"oidc.issuers": [{"url": sign_in_provider.issuer(), "audience": ["hansa", AUDIENCE]}]})
    assert own.bearer(sign_in_provider.token("alice")).get("/system/config").status_code == 200


def test_a_waiver_is_said_at_every_start(start_manager: StartManager, sign_in_provider: IdentityProvider) -> None:
    own = start_manager({"oidc.issuers": [{"url": sign_in_provider.issuer(), "audience": "*"}]})
    assert own.bearer(sign_in_provider.token("alice")).get("/system/config").status_code == 200
    own.restart()
    assert own.log.count(WAIVED) == 2


def test_doctor_says_it_too(sign_in_provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("doctor")
    issuer = sign_in_provider.issuer()
    env = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
    for audience, said in (("*", True), ("hansa", False)):
        (folder / "hansa.toml").write_text(
            f'data = "{folder}"\nhttp.port = 0\n[[oidc.issuers]]\nurl = "{issuer}"\naudience = "{audience}"\n'
        )
        command = [sys.executable, "-m", "hansa", "doctor", "--config", str(folder / "hansa.toml"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
        assert (f"audience {issuer}" in done.stdout) is said, done.stdout + done.stderr


def test_an_id_token_lets_nobody_in(start_manager: StartManager, sign_in_provider: IdentityProvider) -> None:
    """Not even where every audience is taken, or the very client is named."""
    tokens = sign_in_provider.tokens_by_browser("alice")
    for audience in ("*", "hansa-tests"):
        own = start_manager({"oidc.issuers": [{"url": sign_in_provider.issuer(), "audience": audience}]})
        for method, path in (("GET", "/system/services"), ("POST", "/job/x"), ("GET", "/v1/node")):
            answer = own.bearer(tokens["id_token"]).request(method, path)
            assert answer.status_code == 401
            assert tokens["id_token"][:60] not in answer.text
        if audience == "*":
            assert own.bearer(tokens["access_token"]).get("/system/services").status_code == 200
