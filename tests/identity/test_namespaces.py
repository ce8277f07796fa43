"""Does every user get OSCAR's namespace, and nobody another's?"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.identity import claim_namespace, format_uid, owner_hash, user_namespace
from hansa.identity.errors import NoNamespaceLeft

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,16}[a-z0-9])?")
_OWNERS = st.text(min_size=1, max_size=80).filter(lambda owner: owner != "cluster_admin")
_PREFIXES = st.from_regex(r"[a-z]([a-z0-9-]{0,11}[a-z0-9])?", fullmatch=True)
EGI = "62bb11b40398f73778b66f344d282242debb8ee3ebb106717a123ca213162926"


@pytest.mark.parametrize(
    ("owner", "namespace"),
    [
        (f"{EGI}@egi.eu", "oscar-svc-62bb11b4"),
        (EGI, "oscar-svc-62bb11b4"),
        ("alice", "oscar-svc-alice-52"),
        ("a", "oscar-svc-a-86f7e4"),
        ("cluster_admin", "oscar-svc"),
        ("", "oscar-svc"),
        ("Alice@Example.Test", "oscar-svc-alice-ex"),
        ("abcdefg", "oscar-svc-abcdefg"),  # no room for a hash, and no dash at the end
        ("abcdefg/h", "oscar-svc-abcdefg"),
        ("@@@", f"oscar-svc-{owner_hash('@@@')[:8]}"),
    ],
)
def test_the_rule(owner: str, namespace: str) -> None:
    assert user_namespace("oscar-svc", owner) == namespace


@given(_PREFIXES, _OWNERS)
def test_every_name_is_a_short_label_under_its_prefix(prefix: str, owner: str) -> None:
    namespace = user_namespace(prefix, owner)
    assert _LABEL.fullmatch(namespace)
    assert namespace.startswith(prefix + "-")
    assert namespace == user_namespace(prefix, owner)


@given(_PREFIXES, st.lists(_OWNERS | st.sampled_from([f"{EGI}{n}" for n in range(30)]), unique=True))
def test_no_two_owners_share_a_claimed_namespace(prefix: str, owners: list[str]) -> None:
    holders: dict[str, str] = {prefix: "cluster_admin"}
    for owner in owners:
        namespace = claim_namespace(prefix, owner, holders.get)
        assert _LABEL.fullmatch(namespace)
        assert holders.setdefault(namespace, owner) == owner
        assert claim_namespace(prefix, owner, holders.get) == namespace
    assert len(holders) == len(owners) + 1


def test_the_first_owner_gets_oscars_name_and_the_second_another() -> None:
    assert claim_namespace("oscar-svc", "alice", lambda _: None) == "oscar-svc-alice-52"
    other = claim_namespace("oscar-svc", "alice", {"oscar-svc-alice-52": "alice2"}.get)
    assert other.startswith("oscar-svc-")
    assert other != "oscar-svc-alice-52"


def test_a_full_prefix_is_refused_with_a_hint() -> None:
    with pytest.raises(NoNamespaceLeft) as refusal:
        claim_namespace("oscar-svc", "alice", lambda _: "somebody else")
    assert "services_namespace" in refusal.value.hint
    with pytest.raises(NoNamespaceLeft):
        user_namespace("a-prefix-of-17-ch", "alice")
    assert user_namespace("a-prefix-of-17-ch", "cluster_admin") == "a-prefix-of-17-ch"


@pytest.mark.parametrize(
    ("subject", "short"),
    [
        (f"{EGI}@egi.eu", EGI),
        ("alice@test", "alice"),
        ("Jane.Doe@host", "Jane.Doe"),
        ("ALICE@test", "ALICE@test"),  # nothing in lower case before the @
        ("no-at-sign", "no-at-sign"),
        ("a@b@c", "a"),
    ],
)
def test_short_uids(subject: str, short: str) -> None:
    assert format_uid(subject) == short


@given(st.text())
def test_a_short_uid_begins_the_subject(subject: str) -> None:
    assert subject.startswith(format_uid(subject))
