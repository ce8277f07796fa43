"""Is a cluster found only where the settings say it is?"""

import pytest

from hansa.drivers.oscar import OscarPeers
from hansa.drivers.oscar.trust import Trust
from hansa.services import peers
from hansa.settings import BadSetting, FederationSettings, KnownCluster

VISBY = "https://visby.example.org/oscar"


@pytest.fixture
def trust() -> Trust:
    return Trust(
        FederationSettings(
            clusters={
                "visby": KnownCluster(endpoint=VISBY + "/"),
                "riga": KnownCluster(endpoint="https://riga.example.org", verify=False),
            },
            allowed_endpoints=("https://Shared.example.org:443",),
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
    assert "allowed_endpoints" in refused.value.hint
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
    assert odd == ["odd", "none"]
    assert trust.address("visby") == peers.Address("visby", "https://visby.example.org", verify=False)
    assert trust.address("visby", "https://visby.example.org") == trust.address("visby")
    assert trust.address("riga").endpoint == "https://riga.example.org"
    assert trust.endpoint_of("visby") == "https://visby.example.org"
    with pytest.raises(peers.UntrustedCluster):
        trust.address("visby", "https://elsewhere.example.org")
    with pytest.raises(peers.UntrustedCluster):
        trust.address("odd")


def test_a_cluster_that_left_is_a_stranger_again() -> None:
    trust = Trust(FederationSettings())
    trust.learn([peers.Address("visby", "https://visby.example.org")])
    trust.learn([])
    with pytest.raises(peers.UntrustedCluster):
        trust.address("visby")
