"""What a valid service is, with plain values only."""

from typing import Any

import msgspec
import pytest

from hansa.services import BadService, Rules, Service, validation

RULES = Rules(
    allowed_images=(),
    default_provider={
        "endpoint": "http://127.0.0.1:9000",
        "verify": True,
        "access_key": "hidden",
        "secret_key": "hidden",
        "region": "us-east-1",
    },
)


def service(**changes: Any) -> Service:
    base = {"name": "gray", "image": "debian", "script": "echo hi"}
    return msgspec.convert({**base, **changes}, Service)


def normal(**changes: Any) -> Service:
    return validation.normalise(service(**changes), RULES)


def test_defaults_are_oscars() -> None:
    made = normal()
    assert (made.cpu, made.memory, made.visibility, made.log_level) == ("0.2", "256Mi", "private", "INFO")
    assert made.storage_providers["minio"]["default"]["access_key"] == "hidden"


def test_paths_are_tidied_and_get_the_services_bucket() -> None:
    made = normal(
        input=[{"storage_provider": "MinIO", "path": " /in/ "}],
        output=[{"storage_provider": "minio.default", "path": "other-bucket/out"}],
    )
    assert (made.input[0].storage_provider, made.input[0].path) == ("minio.default", "gray/in")
    assert made.output[0].path == "other-bucket/out"


def test_equal_inputs_are_one() -> None:
    made = normal(
        input=[
            {"storage_provider": "minio.default", "path": "bucket/in"},
            {"storage_provider": "MinIO", "path": "/bucket/in/"},
            {"storage_provider": "minio", "path": "bucket/in", "suffix": ["jpg"]},
            {"storage_provider": "minio", "path": "bucket/in/deep"},
        ]
    )
    kept = [("bucket/in", ()), ("bucket/in", ("jpg",)), ("bucket/in/deep", ())]
    assert [(io.path, io.suffix) for io in made.input] == kept


def test_a_workers_output_goes_to_the_origins_bucket() -> None:
    made = normal(
        annotations={"oscar.grycap/origin-cluster": "a", "oscar.grycap/origin-service": "origin"},
        input=[{"storage_provider": "minio", "path": "in"}],
        output=[{"storage_provider": "minio", "path": "out"}],
    )
    assert (made.input[0].path, made.output[0].path) == ("gray/in", "origin/out")


def test_windows_line_ends_become_plain_ones() -> None:
    assert normal(script="a\r\nb\rc").script == "a\nb\nc"


def test_unknown_log_levels_mean_info() -> None:
    assert normal(log_level="loud").log_level == "INFO"
    assert normal(log_level="debug").log_level == "DEBUG"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"name": ""}, "name"),
        ({"name": "../x"}, "name"),
        ({"name": "x" * 5000}, "name"),
        ({"cpu": "lots"}, "cpu"),
        ({"cpu": "0"}, "cpu"),
        ({"memory": "-1Gi"}, "memory"),
        ({"memory": ""}, "memory"),
        ({"image": " "}, "image"),
        ({"script": " \n"}, "script"),
        ({"script": "x" * (2**20 + 1)}, "script"),
        ({"visibility": "secret"}, "visibility"),
        ({"input": [{"storage_provider": "s3.x", "path": "a/b"}]}, "input"),
        ({"input": [{"storage_provider": "minio", "path": ""}]}, "path"),
        ({"input": [{"storage_provider": "minio", "path": "gray/../etc"}]}, "path"),
        ({"input": [{"storage_provider": "minio", "path": "a" * 5000}]}, "path"),
        ({"input": [{"storage_provider": "minio", "path": "UPPER/in"}]}, "bucket"),
        ({"output": [{"storage_provider": "s3.mine", "path": "bucket/out"}]}, "storage_providers"),
        ({"output": [{"storage_provider": "ftp", "path": "bucket/out"}]}, "output"),
        ({"output": [{"storage_provider": "onedata.x", "path": "out"}]}, "onedata"),
        (
            {
                "output": [{"storage_provider": "webdav.x", "path": "out"}],
                "storage_providers": {"webdav": {"x": {"login": "me"}}},
            },
            "storage_providers.webdav.x has no hostname",
        ),
        ({"expose": {"api_port": [70000]}}, "api_port"),
        ({"expose": {"api_port": [80], "nodePort": [1, 2]}}, "nodePort"),
        ({"expose": {"auth_type": "magic"}}, "auth_type"),
        ({"volume": {"name": "v", "mount_path": "data"}}, "mount_path"),
        ({"volume": {"name": "v", "mount_path": "/oscar/bin"}}, "reserved"),
        ({"volume": {"mount_path": "/data"}}, "volume"),
        ({"synchronous": {"min_scale": 3, "max_scale": 1}}, "max_scale"),
        ({"environment": {"variables": {"A=B": "x"}}}, "variable"),
        ({"environment": {"variables": {"LD_PRELOAD": "/job/evil.so"}}}, "LD_PRELOAD is for the system's loader"),
        ({"environment": {"secrets": {"GLIBC_TUNABLES": "x"}}}, "GLIBC_TUNABLES is for the system's loader"),
        ({"mount": {"storage_provider": "minio", "path": "b12/x", "options": "a;b"}}, "options"),
        ({"federation": {"topology": "ring"}}, "topology"),
        ({"federation": {"delegation": "fair"}}, "delegation"),
        ({"federation": {"members": [{"type": "oscar", "service_name": "x"}]}}, "cluster_id"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(BadService) as caught:
        normal(**changes)
    assert word in caught.value.message


def test_images_are_checked_against_the_allowed_ones() -> None:
    rules = Rules(("ghcr.io/grycap",), RULES.default_provider)
    validation.normalise(service(image="ghcr.io/grycap/cowsay"), rules)
    with pytest.raises(BadService, match="not allowed"):
        validation.normalise(service(image="evil/miner"), rules)


def test_a_federations_own_store_is_kept_and_a_strangers_is_not() -> None:
    theirs = {"minio": {"default": {"endpoint": "https://origin.example", "access_key": "hidden"}}}
    plain = normal(storage_providers=theirs)
    assert plain.storage_providers["minio"]["default"] == RULES.default_provider
    worker = normal(storage_providers=theirs, annotations={"oscar.grycap/origin-cluster": "a"})
    assert worker.storage_providers["minio"]["default"]["endpoint"] == "https://origin.example"
