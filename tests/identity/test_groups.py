"""Which groups do the claims of real issuers name?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import groups_in

EGI, AI4EOSC, OTHER = (f"https://host.test/realms/{name}" for name in ("egi", "ai4eosc", "other"))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("issuer", "claims", "groups"),
    [
        (OTHER, {"group_membership": ["a", "b"]}, {"a", "b"}),
        (OTHER, {"groups": ["a"]}, {"a"}),
        (OTHER, {"groups": ["a"], "group_membership": ["b"]}, {"a", "b"}),
        (OTHER, {"groups": []}, set()),
        (OTHER, {"groups": "single"}, {"single"}),
        (OTHER, {"groups": ["a", 7, None, ""]}, {"a"}),
        (OTHER, {"realm_access": {"roles": ["a"]}}, None),
        (OTHER, {}, None),
        (AI4EOSC, {"realm_access": {"roles": ["a"]}, "groups": ["b"]}, {"a"}),
        (AI4EOSC, {"realm_access": ["a"]}, None),
        (
            EGI,
            {"entitlements": ["urn:mace:egi.eu:group:VO.Example.eu:role=member#aai.egi.eu", "urn:other:x"]},
            {"vo.example.eu"},
        ),
        (EGI, {"entitlements": ["urn:mace:egi.eu:group"]}, set()),
        (EGI, {"groups": ["a"]}, None),
    ],
)
def test_oscars_rule(issuer: str, claims: dict[str, Any], groups: set[str] | None) -> None:
    assert groups_in(claims, issuer) == groups


def test_a_configured_claim_goes_before_the_rule() -> None:
    claims = {"groups": ["a"], "resource_access": {"hansa": {"roles": ["b"]}}, "https://x.test/g": ["c"]}
    assert groups_in(claims, EGI, "resource_access.hansa.roles") == frozenset({"b"})
    assert groups_in(claims, OTHER, "https://x.test/g") == frozenset({"c"})
    assert groups_in(claims, OTHER, "missing.claim") is None


@given(
    st.dictionaries(st.sampled_from(["groups", "group_membership", "entitlements", "realm_access"]), _JSON),
    st.sampled_from([EGI, AI4EOSC, OTHER]),
    st.sampled_from([None, "groups", "realm_access.roles"]),
)
def test_strange_claims_never_break_sign_in(claims: dict[str, Any], issuer: str, claim: str | None) -> None:
    found = groups_in(claims, issuer, claim)
    assert found is None or all(isinstance(group, str) and group for group in found)
