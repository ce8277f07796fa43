"""Does the chart make what its values say, and refuse, in plain words, what cannot be?"""

import json
import re
from typing import Any

import pytest
import yaml

from deploy import chart
from hansa import settings
from real.kubernetes.helm_client import Helm

POSTGRES = {"kind": "postgresql", "url": "postgresql://hansa:secret@db.example.org/hansa"}
VARIANTS: dict[str, dict[str, Any]] = {
    "manager": {},
    "hub": {"role": "hub", "hub": {"membersUrl": "https://hub.example.org:7443"}},
    "both": {"role": "both"},
    "without a volume": {"persistence": {"enabled": False}},
    "hubs": {"role": "hub", "replicas": 3, "persistence": {"enabled": False}, "database": POSTGRES},
    "everything outside": {
        "persistence": {"enabled": False},
        "database": POSTGRES,
        "storage": {"kind": "minio", "endpoint": "https://minio.example.org", "accessKey": "a", "secretKey": "b"},
    },
    "a Secret of one's own": {"existingSecret": "mine", "database": {"kind": "postgresql"}},
    "namespaces that it makes": {"kubernetes": {"reach": "made"}},
    "all namespaces": {"kubernetes": {"reach": "cluster"}},
    "some namespaces": {
        "kubernetes": {"namespaces": ["north"], "tolerations": [{"key": "gpu", "operator": "Exists"}]},
        "settings": {"jobs": {"cpu": "4", "memory": "4Gi", "run_limit": 120}},
    },
    "a member": {"membership": {"hub": "https://hub.example.org:7443", "token": "hansa1.x", "region": "eu"}},
    "signed in elsewhere": {
        "oidc": {
            "issuers": [
                {"url": "https://login.example.org", "audience": "hansa", "groups": ["crew"]},
                {"url": "https://two.example.org", "audience": ["a", "b"], "formerly": ["https://one.example.org"]},
            ],
            "home": "https://login.example.org",
            "usersAdmin": ["captain"],
        }
    },
    "seen from outside": {
        "cluster": {"id": "lubeck", "publicUrl": "https://lubeck.example.org"},
        "ingress": {"enabled": True, "className": "nginx", "hosts": [{"host": "lubeck.example.org"}]},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "gate"}], "hosts": [{"host": "a.org", "port": "store"}]},
    },
}
PASSED_ON = {"resources", "podSecurityContext", "securityContext"}
SECRETS = {  # as the container would be given them
    "HANSA_ADMIN__PASSWORD": "x",
    "HANSA_DATABASE__URL": "postgresql://hansa@db/hansa",
    "HANSA_STORAGE__ACCESS_KEY": "x",
    "HANSA_STORAGE__SECRET_KEY": "x",
    "HANSA_MEMBERSHIP__TOKEN": "x",
    "HANSA_OIDC__ISSUERS": '[{"url":"https://login.example.org","audience":"hansa"}]',
}


def test_helm_has_nothing_to_say_against_it(helm: Helm) -> None:
    told = helm.run("lint", "--strict", str(chart.CHART))
    assert told.ok, told.stdout + told.stderr


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_the_settings_it_writes_are_settings(helm: Helm, values: dict[str, Any], tmp_path: Any) -> None:
    made = chart.rendered(helm, values)
    file = tmp_path / "hansa.toml"
    file.write_text(chart.only(made, "ConfigMap")["data"]["hansa.toml"])
    (container,) = chart.pod_of(made)["containers"]
    given = {one["name"]: SECRETS[one["name"]] for one in container["env"] if one["name"] != "HANSA_CONFIG"}
    read = settings.load(file, given)
    assert read.role == values.get("role", "manager")
    assert read.role == "hub" or (read.driver, read.kubernetes.image) == ("kubernetes", container["image"])


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_every_pod_is_as_restricted_as_can_be(helm: Helm, values: dict[str, Any]) -> None:
    pod = chart.pod_of(chart.rendered(helm, values))
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["enableServiceLinks"] is False  # HANSA_PORT would be taken for a setting
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"requests", "limits"} <= container["resources"].keys()


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_no_secret_stands_where_everybody_reads(helm: Helm, values: dict[str, Any]) -> None:
    for one in chart.rendered(helm, values):
        if one["kind"] != "Secret":
            text = json.dumps(one)
            assert not any(word in text for word in ("hansa:secret@", "hansa1.x"))


def test_a_client_secret_of_an_issuer_is_kept_in_the_secret(helm: Helm) -> None:
    issuer = {"url": "https://login.example.org", "audience": "hansa", "client_id": "h", "client_secret": "whisper"}
    made = chart.rendered(helm, {"oidc": {"issuers": [issuer], "usersAdmin": ["captain"], "home": issuer["url"]}})
    assert chart.settings_of(made)["oidc"] == {"users_admin": ["captain"], "home": issuer["url"]}
    assert "oidc-issuers" in chart.only(made, "Secret")["data"]
    assert "whisper" not in json.dumps([one for one in made if one["kind"] != "Secret"])


def test_one_with_a_volume_never_runs_twice(helm: Helm) -> None:
    made = chart.rendered(helm, {})
    assert chart.only(made, "StatefulSet")["spec"]["replicas"] == 1
    assert chart.only(made, "PersistentVolumeClaim")["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    without = chart.rendered(helm, {"persistence": {"enabled": False}})
    assert chart.only(without, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_several_hubs_roll_one_by_one_and_share_their_key(helm: Helm) -> None:
    made = chart.rendered(helm, VARIANTS["hubs"])
    assert chart.only(made, "Deployment")["spec"]["strategy"]["type"] == "RollingUpdate"
    assert chart.only(made, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert "hub.key" in chart.only(made, "Secret")["data"]
    assert [one["name"] for one in chart.pod_of(made)["initContainers"]] == ["key"]


def test_managers_that_share_their_state_take_over_from_each_other(helm: Helm) -> None:
    """One alone, too: the next of an upgrade is there before it goes, and the lease keeps them apart."""
    for replicas in (1, 2):
        made = chart.rendered(helm, {**VARIANTS["everything outside"], "replicas": replicas})
        assert chart.settings_of(made)["kubernetes"]["shared"] is True
        assert chart.only(made, "Deployment")["spec"]["strategy"]["type"] == "RollingUpdate"
        assert chart.only(made, "Secret")["data"].keys() == {
            *("admin-password", "salt", "database-url", "s3-access-key", "s3-secret-key")
        }
    assert chart.settings_of(chart.rendered(helm, {}))["kubernetes"]["shared"] is False


def test_with_a_secret_of_ones_own_none_is_made(helm: Helm) -> None:
    made = chart.rendered(helm, VARIANTS["a Secret of one's own"])
    assert "Secret" not in chart.kinds(made)
    (container,) = chart.pod_of(made)["containers"]
    named = {one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"] if "valueFrom" in one}
    assert named == {"mine"}


def test_other_settings_win(helm: Helm) -> None:
    made = chart.rendered(helm, {"settings": {"jobs": {"run_limit": 120}, "log": {"level": "debug"}}})
    told = chart.settings_of(made)
    assert told["jobs"]["run_limit"] == 120
    assert told["log"] == {"form": "json", "level": "debug"}


def test_other_settings_make_another_pod(helm: Helm) -> None:
    def mark(values: dict[str, Any]) -> str:
        workload = chart.only(chart.rendered(helm, {"admin": {"password": "x"}, **values}), "StatefulSet")
        return str(workload["spec"]["template"]["metadata"]["annotations"]["checksum/settings"])

    assert mark({}) == mark({})
    assert mark({}) != mark({"settings": {"jobs": {"run_limit": 120}}})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"role": "captain"}, "at '/role': value must be one of 'manager', 'hub', 'both'"),
        ({"rolle": "hub"}, "additional properties 'rolle' not allowed"),
        ({"persistence": {"size": "big"}}, "at '/persistence/size': 'big' does not match pattern"),
        ({"kubernetes": {"namespaces": ["Harbour"]}}, "at '/kubernetes/namespaces/0': 'Harbour' does not match"),
        ({"replicas": 0}, "at '/replicas': minimum: got 0, want 1"),
        ({"ingress": {"enabled": True}}, "at '/ingress/hosts': minItems: got 0, want 1"),
        ({"oidc": {"issuers": [{"url": "https://login.example.org"}]}}, "missing property 'audience'"),
        ({"image": {"tag": "latest"}}, "give a fixed tag"),
        ({"replicas": 2, "role": "both"}, "are two releases"),
        ({"replicas": 2}, "set database.kind=postgresql"),
        ({"replicas": 2, "database": POSTGRES, "persistence": {"enabled": False}}, "set storage.kind=minio or s3"),
        ({"replicas": 2, "role": "hub", "database": POSTGRES}, "set persistence.enabled=false"),
        ({"database": {"kind": "postgresql"}}, "needs database.url, or existingSecret with the key database-url"),
        ({"database": {"url": POSTGRES["url"]}}, "set database.kind=postgresql too"),
        ({"storage": {"kind": "s3"}}, "storage.kind=s3 needs storage.endpoint"),
        ({"storage": {"kind": "s3", "endpoint": "https://s3.example.org"}}, "needs storage.accessKey"),
        ({"existingSecret": "mine", "admin": {"password": "x"}}, "put passwords, keys, tokens"),
        ({"settings": {"admin": {"password": "x"}}}, "would be readable by everybody"),
        ({"settings": {"http": {"port": 9000}}}, "settings.http.port is set by the chart"),
        ({"kubernetes": {"namespaces": [chart.NAMESPACE]}}, "is the manager's own"),
        ({"rbac": {"nodes": False}}, "settings.jobs.cpu and settings.jobs.memory"),
        ({"rbac": {"nodes": False}, "kubernetes": {"reach": "made"}}, "goes with kubernetes.reach=given alone"),
        ({"kubernetes": {"reach": "made", "namespaces": ["north"]}}, "the manager makes namespaces; give none"),
        ({"settings": {"cluster": {"services_namespace": chart.NAMESPACE}}}, "install the manager into another"),
    ],
    ids=lambda one: json.dumps(one)[:40] if isinstance(one, dict) else "",
)
def test_values_that_cannot_be_are_refused_in_plain_words(helm: Helm, values: dict[str, Any], said: str) -> None:
    assert said in chart.refused(helm, values)


def test_every_value_has_a_word_said_about_it() -> None:
    """Right above it; what is Kubernetes' own and only passed on needs one as a whole."""
    silent, before, group = [], "", ""
    for line in (chart.CHART / "values.yaml").read_text().splitlines():
        found = re.match(r"^( *)([A-Za-z]+):(.*)$", line)
        group = found[2] if found and not found[1] else group
        asked = found and (not found[1] if group in PASSED_ON else found[3])
        if asked and not before.strip().startswith("#"):
            silent.append(line)
        before = line
    assert silent == []


def test_the_schema_knows_every_value() -> None:
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    schema = json.loads((chart.CHART / "values.schema.json").read_text())

    def compare(told: dict[str, Any], known: dict[str, Any], path: str) -> None:
        if known.get("additionalProperties") is not False:
            return
        assert set(told) == set(known["properties"]) - {"global"}, path
        for name, value in told.items():
            if isinstance(value, dict):
                compare(value, known["properties"][name], f"{path}.{name}")

    compare(values, schema, "values")


def test_the_chart_is_of_this_version() -> None:
    from hansa import __version__  # noqa: PLC0415

    about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == __version__
