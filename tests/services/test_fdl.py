"""FDL files become the JSON that OSCAR's managers take, whatever dialect they were written in."""

import json
from typing import Any

import pytest

from hansa.kernel import errors
from hansa.services import fdl, fdl_fields


def one(body: str, **files: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The only service of an FDL whose fields are `body`, and the warnings."""
    indented = "\n".join(f"      {line}" for line in body.strip().splitlines())
    parsed = fdl.parse(f"functions:\n  oscar:\n  - lubeck:\n{indented}\n", files.__getitem__)
    (definition,) = parsed.definitions
    json.dumps(definition.service)  # whatever was read can travel
    return definition.service, parsed.warnings


FULL = """
functions:
  oscar:
  - lubeck:
      name: plants
      cpu: 1.0
      memory: 1Gi
      image: ghcr.io/grycap/plants
      script: script.sh
      log_level: CRITICAL
      input:
      - storage_provider: minio.default
        path: plants/in
      output:
      - storage_provider: minio.default
        path: plants/out
        suffix: [json]
      environment:
        Variables:
          SIZE: 010
          ANSWER: yes
          WHEN: 2026-01-02
          EMPTY:
  - visby:
      name: plants
      cpu: '0.5'
      image: ghcr.io/grycap/plants
      script: script.sh
storage_providers:
  s3:
    mine: {access_key: AK, secret_key: SK, region: eu-west-1}
clusters:
  visby: {endpoint: 'https://visby.example', auth_user: oscar, auth_password: pw, ssl_verify: true}
"""


def test_a_file_with_several_services() -> None:
    parsed = fdl.parse(FULL, {"script.sh": "#!/bin/sh\r\necho hi\r\n"}.__getitem__)
    first, second = parsed.definitions
    assert parsed.warnings == ()
    assert (first.cluster_id, first.name, second.cluster_id) == ("lubeck", "plants", "visby")
    assert first.service["cpu"] == "1.0"
    assert first.service["script"] == "#!/bin/sh\necho hi\n"
    assert first.service["environment"] == {
        "variables": {"SIZE": "010", "ANSWER": "yes", "WHEN": "2026-01-02", "EMPTY": ""}
    }
    assert [d.service["cluster_id"] for d in parsed.definitions] == ["lubeck", "visby"]
    for definition in parsed.definitions:
        assert definition.service["storage_providers"]["s3"]["mine"]["secret_key"] == "SK"
        assert definition.service["clusters"]["visby"]["ssl_verify"] is True


def test_numbers_are_written_as_the_author_wrote_them() -> None:
    service, _ = one("name: a\ncpu: 2\nmemory: 268435456\nlabels: {tier: 1.50}")
    assert (service["cpu"], service["memory"], service["labels"]) == ("2", "268435456", {"tier": "1.50"})


def test_old_forms_of_expose() -> None:
    service, warnings = one("name: a\nexpose:\n  api_port: 80\n  nodePort: 0\n  min_scale: '1'\n  set_auth: yes")
    assert service["expose"] == {"api_port": [80], "nodePort": [], "min_scale": 1, "set_auth": True}
    assert warnings == ()
    assert one("name: a\nexpose: {API_Port: [80, 81]}")[0]["expose"] == {"api_port": [80, 81]}


def test_legacy_replicas_travel_as_they_are() -> None:
    service, warnings = one(
        "name: a\nreplicas:\n- {type: oscar, cluster_id: visby, service_name: a, priority: 0}\n"
        "delegation: random\nrescheduler_threshold: '30'"
    )
    assert service["replicas"][0]["cluster_id"] == "visby"
    assert (service["delegation"], service["rescheduler_threshold"]) == ("random", 30)
    assert any("old form of federation.members" in line for line in warnings)
    assert one("name: a\nrescheduler_threshold: ''")[0]["rescheduler_threshold"] == 0


def test_unknown_fields_warn_with_the_nearest_name_and_are_kept() -> None:
    service, warnings = one("name: a\nmemroy: 1Gi\nexpose: {apiport: 80}\nzzz: 1")
    assert (service["memroy"], service["zzz"]) == ("1Gi", 1)
    assert "functions.oscar[0].lubeck: unknown field memroy; did you mean memory?" in warnings
    assert "functions.oscar[0].lubeck.expose: unknown field apiport; did you mean api_port?" in warnings
    assert "functions.oscar[0].lubeck: unknown field zzz" in warnings


def test_providers_of_the_file_win_over_those_of_the_service() -> None:
    parsed = fdl.parse(
        "functions: {oscar: [{c: {name: a, storage_providers: "
        "{minio: {mine: {endpoint: e1}, own: {endpoint: e2}}}, clusters: {x: {endpoint: old}}}}]}\n"
        "storage_providers: {minio: {mine: {endpoint: e3, verify: no}}}\nclusters: {x: {endpoint: new}}",
        str,
    )
    service = parsed.definitions[0].service
    assert service["storage_providers"] == {
        "minio": {"mine": {"endpoint": "e3", "verify": False}, "own": {"endpoint": "e2"}}
    }
    assert service["clusters"] == {"x": {"endpoint": "new"}}


def test_a_script_may_stand_in_the_file_itself() -> None:
    service, _ = one("name: a\nscript: |\n  #!/bin/sh\n  echo here")
    assert service["script"] == "#!/bin/sh\necho here\n"


def test_anchors_merge() -> None:
    parsed = fdl.parse(
        "x: &base {image: busybox, cpu: 1}\n"
        "functions:\n  oscar:\n  - c: {<<: *base, name: a}\n  - c: {<<: *base, name: b}",
        str,
    )
    assert [d.service["cpu"] for d in parsed.definitions] == ["1", "1"]
    assert parsed.warnings == ("unknown top-level field x",)


def test_other_tools_in_the_same_file_are_left_alone() -> None:
    parsed = fdl.parse("functions:\n  aws: [{lambda: {name: z}}]\n  oscar: [{c: {name: a}}]", str)
    assert [d.name for d in parsed.definitions] == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no FDL"),
        ("a: [", "line 1"),
        ("functions: {}", "lists no service"),
        ("functions:\n  oscar:\n  - lubeck:\n    name: a", "holds no service"),
        ("functions: {oscar: [{c: {image: a}}]}", "has no name"),
        ("functions: {oscar: [{c: {name: a}}, {c: {name: a}}]}", "twice"),
        ("functions: {oscar: [{c: {name: a, enable_gpu: maybe}}]}", "enable_gpu should be true or false"),
        ("functions: {oscar: [{c: {name: a, cpu: [1]}}]}", "cpu should be a text, not a list"),
        (
            "functions: {oscar: [{c: {name: a, expose: {api_port: http}}}]}",
            "api_port should be a whole number",
        ),
        ("functions: {oscar: [{c: {name: a, environment: {variables: [A]}}}]}", "should be a map"),
        ("functions: &f {oscar: [{c: {name: a, kserve: *f}}]}", "nested without end"),
        (
            "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
            + "functions: {oscar: [{c: {name: a, kserve: *a11}}]}",
            "with its aliases (*) written out",
        ),
        ("functions: !!python/object:os.system {}", "not valid YAML"),
        ("functions: {oscar: [{c: {name: a, script: empty.sh}}]}", "is empty"),
    ],
)
def test_refusals_name_the_place(text: str, message: str) -> None:
    with pytest.raises(fdl.BadFdl) as caught:
        fdl.parse(text, lambda _: " \n")
    assert message in str(caught.value)
    assert caught.value.kind is errors.Kind.INVALID


def test_members_get_the_addresses_we_know_but_no_password() -> None:
    service, _ = one("name: a\nfederation:\n  members:\n  - {type: oscar, cluster_id: visby}\n  - {cluster_id: riga}")
    known: dict[str, dict[str, Any]] = {
        "visby": {"endpoint": "https://visby.example", "ssl_verify": True},
        "other": {"endpoint": "x"},
    }
    assert fdl.Definition("c", service).with_clusters(known).service["clusters"] == {
        "visby": {
            "auth_user": "",
            "auth_password": "",
            "endpoint": "https://visby.example",
            "ssl_verify": True,
        }
    }
    assert "clusters" not in fdl.Definition("c", {"name": "a"}).with_clusters(known).service


def test_every_field_of_the_managers_service_is_known_here() -> None:
    service = pytest.importorskip("hansa.services.service")
    assert set(service.Service.__struct_fields__) <= set(fdl_fields.SERVICE)
