"""Which issuers can be configured? (The model lives in `hansa.kernel.issuer`.)"""

import pytest
from pydantic import ValidationError

from drivers.oidc.trusted import trusted
from hansa.kernel.issuer import IssuerSettings


@pytest.mark.parametrize(
    "url",
    ["https://host/realms/a", "https://host/realms/a/", "http://127.0.0.1:8080/realms/a", "http://localhost"],
)
def test_addresses_that_are_fine(url: str) -> None:
    assert trusted(url).url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host",
        "ftp://host",
        "https://",
        "http://keycloak.example.test/realms/a",
        "https://user:secret@host/",
        "https://host/?a=b",
        "https://host/#a",
    ],
)
def test_addresses_that_are_not(url: str) -> None:
    with pytest.raises(ValidationError):
        trusted(url)


def test_a_trusted_network_may_do_without_tls() -> None:
    assert trusted("http://keycloak.example.test", allow_http=True).label == ("http://keycloak.example.test")


def test_groups_are_trimmed_and_the_name_is_for_people() -> None:
    issuer = trusted("https://host", name="Harbour", groups=(" a ", "", "b"))
    assert issuer.groups == ("a", "b")
    assert issuer.label == "Harbour"
    with pytest.raises(ValidationError):
        IssuerSettings.model_validate({"url": "https://host", "group": ["a"]})
