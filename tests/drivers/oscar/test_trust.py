"""Is a cluster found only where the settings say it is?"""

import pytest

from hansa.drivers.oscar import OscarPeers
from hansa.drivers.oscar.trust import Trust
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.services import peers
from hansa.settings import BadSetting

VISBY = "https://visby.example.org/oscar"


@pytest.fixture
def trust() -> Trust:
    return Trust(
        FederationSettings(
            clusters={
                "visby": KnownCluster(endpoint=VISBY + "/"),
                "riga": KnownCluster(endpoint="https://riga.example.org", verify=False),
            },
            allowed_clusters=("https://Shared.example.org:443",),
        ),
        own_id="lubeck",
        own_endpoint="http://127.0.0.1:8080",
    )


def test_the_id_alone_is_enough(trust: Trust) -> None:
    assert trust.address("visby") == peers.Address("visby", VISBY)
    assert trust.address("riga").verify is False
    assert trust.endpoint_of("visby") == VISBY
    assert trust.endpoint_of("nowhere") == ""


@pytest.mark.parametrize("said", [VISBY, "HTTPS://VISBY.example.org:443/oscar/", VISBY + "/"])
def test_a_definition_may_say_the_same(trust: Trust, said: str) -> None:
    assert trust.address("visby", said) == peers.Address("visby", VISBY)


@pytest.mark.parametrize(
    "said",
    [
        "http://visby.example.org/oscar",
        "https://visby.example.org",
        "https://visby.example.org:8443/oscar",
        "https://visby.example.org./oscar",
        "https://visby.example.org.evil.example/oscar",
        "https://visby.example.org/oscar/../evil",
        "https://visby.example.org/OSCAR",
        "https://riga.example.org",
        "https://me:secret-word@visby.example.org/oscar",
        "https://evil.example\\@visby.example.org/oscar",
    ],
)
def test_a_definition_cannot_point_elsewhere(trust: Trust, said: str) -> None:
    with pytest.raises(peers.UntrustedCluster) as refused:
        trust.address("visby", said)
    assert "allowed_clusters" in refused.value.hint
    assert "secret-word" not in str(refused.value)


def test_an_allowed_endpoint_serves_any_id_with_its_certificate_checked(trust: Trust) -> None:
    assert trust.address("anything", "https://shared.example.org/") == peers.Address(
        "anything", "https://shared.example.org"
    )
    assert trust.address("riga", "https://shared.example.org").verify is True


def test_our_own_cluster_is_one_of_them(trust: Trust) -> None:
    assert trust.address("lubeck").endpoint == "http://127.0.0.1:8080"
    assert trust.address("lubeck-two", "http://127.0.0.1:8080/").endpoint == "http://127.0.0.1:8080"


@pytest.mark.parametrize("cluster_id", ["", "nowhere"])
def test_an_unknown_id_is_refused_with_a_way_out(trust: Trust, cluster_id: str) -> None:
    for endpoint in ("", "https://nowhere.example.org"):
        with pytest.raises(peers.UntrustedCluster) as refused:
            trust.address(cluster_id, endpoint)
        assert "federation.clusters" in refused.value.hint


def test_a_setting_that_is_not_plain_stops_the_start() -> None:
    with pytest.raises(BadSetting, match=r"federation\.clusters\.visby\.endpoint"):
        OscarPeers(FederationSettings(clusters={"visby": KnownCluster(endpoint="https://u:p@visby.example.org")}))
    with pytest.raises(BadSetting, match="allowed_endpoints"):
        OscarPeers(FederationSettings(allowed_endpoints=("visby.example.org",)))


def test_the_hub_names_clusters_too_and_the_settings_win() -> None:
    trust = Trust(FederationSettings(clusters={"riga": KnownCluster(endpoint="https://riga.example.org")}))
    odd = trust.learn(
        [
            peers.Address("visby", "https://visby.example.org/", verify=False),
            peers.Address("riga", "https://elsewhere.example.org"),
            peers.Address("odd", "https://user:word@odd.example.org"),
            peers.Address("none", ""),
        ]
    )
    assert list(odd) == ["odd", "none"]
    assert trust.address("visby") == peers.Address("visby", "https://visby.example.org", verify=True, by_hub=True)
    assert trust.address("visby", "https://visby.example.org") == trust.address("visby")
    assert trust.address("riga") == peers.Address("riga", "https://riga.example.org")
    assert trust.endpoint_of("visby") == "https://visby.example.org"
    with pytest.raises(peers.UntrustedCluster):
        trust.address("visby", "https://elsewhere.example.org")
    with pytest.raises(peers.UntrustedCluster):
        trust.address("odd")


def test_an_address_that_the_settings_allow_is_not_the_hubs_word_alone() -> None:
    trust = Trust(FederationSettings(allowed_clusters=("https://visby.example.org",)))
    trust.learn([peers.Address(one, f"https://{one}.example.org") for one in ("visby", "riga")])
    assert [trust.address(one).by_hub for one in ("visby", "riga")] == [False, True]


def test_the_hub_may_call_a_cluster_a_hansa_and_only_the_settings_an_oscar() -> None:
    """An OSCAR is shown tokens of people, so somebody else's word for it could lead them astray."""
    own = KnownCluster(endpoint="https://riga.example.org", kind="oscar")
    trust = Trust(FederationSettings(clusters={"riga": own}))
    trust.learn(
        [
            peers.Address("visby", "https://visby.example.org", kind="oscar"),
            peers.Address("tallinn", "https://tallinn.example.org", kind="hansa"),
            peers.Address("riga", "https://riga.example.org", kind="hansa"),
        ]
    )
    assert [trust.address(one).kind for one in ("visby", "tallinn", "riga")] == ["", "hansa", "oscar"]


def test_a_cluster_that_left_is_a_stranger_again() -> None:
    trust = Trust(FederationSettings())
    trust.learn([peers.Address("visby", "https://visby.example.org")])
    trust.learn([])
    with pytest.raises(peers.UntrustedCluster):
        trust.address("visby")


@pytest.mark.parametrize(
    "told",
    [
        "http://visby.example.org",
        "http://10.77.0.2:8080",
        "http://127.0.0.1:8080",
        "https://127.0.0.1:8080",
        "https://localhost",
        "https://127.1",
        "https://0x7f.1",
        "https://2130706433",
        "https://[::ffff:127.0.0.1]",
        "https://[::1]:8443",
        "https://0.0.0.0:8080",
        "https://169.254.169.254/latest",
        "http://169.254.169.254",
        "https://visby.example.org?a=b",
    ],
)
def test_the_hub_s_word_is_not_enough_for_every_address(told: str) -> None:
    """A hub that was taken over, or one that believes too much, cannot make us send credentials there."""
    trust = Trust(FederationSettings(), own_id="lubeck", own_endpoint="https://lubeck.example.org")
    odd = trust.learn([peers.Address("visby", told)])
    assert odd["visby"]
    with pytest.raises(peers.UntrustedCluster, match="is not called at the address the hub tells of it") as refused:
        trust.address("visby")
    assert "federation.clusters" in refused.value.hint
    with pytest.raises(peers.UntrustedCluster):
        trust.address("visby", told)


def test_plain_http_needs_the_operator_s_own_consent() -> None:
    given = FederationSettings(plain_http=("10.77.0.0/16", ".lab"))
    trust = Trust(given, own_id="lubeck", own_endpoint="http://10.77.0.1:8080")
    odd = trust.learn(
        [
            peers.Address("visby", "http://10.77.3.2:8080"),
            peers.Address("riga", "http://10.78.0.2:8080"),
            peers.Address("stade", "http://stade.lab"),
            peers.Address("bremen", "http://bremen.labs"),
            peers.Address("tallinn", "http://127.0.0.1:8080"),
        ]
    )
    assert list(odd) == ["riga", "bremen", "tallinn"]
    assert trust.address("visby").endpoint == "http://10.77.3.2:8080"
    assert trust.address("stade").endpoint == "http://stade.lab"


def test_on_one_machine_loopback_is_where_the_others_are() -> None:
    trust = Trust(FederationSettings(), own_id="lubeck", own_endpoint="http://127.0.0.1:8080")
    assert trust.learn([peers.Address("visby", "http://127.0.0.1:8081")]) == {}
    assert trust.address("visby").endpoint == "http://127.0.0.1:8081"


def test_what_the_settings_say_of_a_cluster_is_not_asked_of_the_hub() -> None:
    given = FederationSettings(clusters={"riga": KnownCluster(endpoint="http://10.0.0.7:8080", verify=False)})
    trust = Trust(given, own_id="lubeck", own_endpoint="https://lubeck.example.org")
    assert trust.learn([peers.Address("riga", "http://evil.example")]) == {}
    assert trust.address("riga") == peers.Address("riga", "http://10.0.0.7:8080", verify=False)


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://intra.example.org/hooks/team-a", True),
        ("https://intra.example.org/hooks/team-a/jobs?key=..", True),
        ("https://intra.example.org/hooks/team-ab", False),
        ("https://intra.example.org/hooks/team-a/../../admin", False),
        ("https://intra.example.org/hooks/team-a/./jobs", False),
        ("https://intra.example.org/hooks/team-a/%2e%2E/team-b", False),
        ("https://intra.example.org/hooks/team-a/..%2fteam-b", False),
        ("https://intra.example.org/hooks/team-a/..\\team-b", False),
    ],
)
def test_an_endpoint_member_is_below_what_is_allowed(url: str, may: bool) -> None:
    trust = Trust(FederationSettings(allowed_endpoints=("https://intra.example.org/hooks/team-a",)))
    if may:
        trust.require_endpoint(url)
        return
    with pytest.raises(peers.UntrustedCluster, match="may not call that endpoint"):
        trust.require_endpoint(url)
