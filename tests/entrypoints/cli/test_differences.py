"""A dry run names what would change, and only that."""

from typing import Any

from hansa.entrypoints.cli import differences, secrets

STORED: dict[str, Any] = {
    "name": "count", "cluster_id": "lubeck", "cpu": "0.5", "memory": "256Mi", "log_level": "INFO", "token": "ab" * 32,
    "input": [{"storage_provider": "minio.default", "path": "count/in"}],
    "environment": {"variables": {"A": "1"}, "secrets": {"KEY": ""}}, "labels": {"oscar_service": "count"},
    "script": "echo 1\n", "expose": {"api_port": [80], "min_scale": 0},
}  # fmt: skip


def changes(**wanted: Any) -> list[str]:
    return [str(change) for change in differences.between(STORED, {"name": "count", **wanted})]


def test_the_same_in_other_words_is_no_change() -> None:
    assert changes(cpu="500m", memory="0.25Gi", log_level="info", labels={}, enable_gpu=False) == []
    assert changes(input=[{"storage_provider": "MinIO", "path": "/in/"}]) == []
    assert changes(expose={"api_port": [80], "min_scale": 0, "health_path": ""}) == []


def test_changes_are_named() -> None:
    assert changes(cpu="1") == ["cpu: 0.5 → 1"]
    assert changes(script="echo 1\necho 2\n") == ["script: 1 lines → 2 lines"]
    assert changes(environment={"variables": {"A": "2", "B": "3"}}) == [
        "environment.variables.A: 1 → 2",
        "environment.variables.B: nothing → 3",
    ]
    assert changes(output=[{"path": "count/out"}])[0].startswith("output: nothing → ")


def test_secrets_are_named_but_never_shown() -> None:
    shown = changes(
        environment={"secrets": {"KEY": "hush"}}, storage_providers={"s3": {"mine": {"secret_key": "hush2"}}}
    )
    assert shown[0] == "environment.secrets.KEY: set again (its value cannot be compared)"
    assert "hush" not in "".join(shown)


def test_hide_masks_every_secret_wherever_it_stands() -> None:
    hidden = secrets.hide(
        {
            "token": "t", "clusters": {"a": {"auth_user": "u", "auth_password": "p"}},
            "storage_providers": {"minio": {"default": {"access_key": "hidden", "secret_key": "hidden"}}},
            "environment": {"variables": {"A": "1"}, "secrets": {"K": "v", "E": ""}},
            "federation": {"members": [{"headers": {"Authorization": "Bearer x"}}]},
        }
    )  # fmt: skip
    assert hidden == {
        "token": secrets.MASK, "clusters": {"a": {"auth_user": "u", "auth_password": secrets.MASK}},
        "storage_providers": {"minio": {"default": {"access_key": "hidden", "secret_key": "hidden"}}},
        "environment": {"variables": {"A": "1"}, "secrets": {"K": secrets.MASK, "E": ""}},
        "federation": {"members": [{"headers": {"Authorization": secrets.MASK}}]},
    }  # fmt: skip
