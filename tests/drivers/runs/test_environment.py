"""Does a script find what OSCAR's scripts expect, and nothing it must not see?"""

import subprocess
from pathlib import Path

import pytest
import yaml

from contracts.orders import order
from hansa.drivers.runs import environment
from hansa.drivers.runs.environment import Places
from hansa.services import ClusterRef, Federation, Member, events
from hansa.services.service import Environment, Expose

PLACES = Places(job="/job", config="/oscar/config")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("in/a.txt", "a.txt"),
        ("a.txt", "a.txt"),
        ("in/folder/", "folder"),
        ("in/..", "event-file"),
        ("/", "event-file"),
        ("in/" + "ä" * 150 + ".tar.gz", "ä" * 96 + ".tar.gz"),
    ],
)
def test_the_input_file_is_named_after_its_key(key: str, name: str) -> None:
    given = events.ObjectInput("bucket", key, "default", "")
    assert environment.input_name(given) == name
    assert len(name.encode()) <= 255


def test_names_that_are_ours_cannot_be_taken() -> None:
    made = order(
        "true",
        environment=Environment(variables={"OSCAR_SERVICE_NAME": "forged", "MINE": "1"}),
        expose=Expose(api_port=(80,)),
    )
    variables = environment.service_variables(made, PLACES, "node-1")
    assert variables["OSCAR_SERVICE_NAME"] == "tool"
    assert variables["OSCAR_SERVICE_BASE_PATH"] == "/system/services/tool/exposed"
    assert (variables["MINE"], variables["RESOURCE_ID"]) == ("1", "node-1")


@pytest.mark.parametrize("value", ["plain", 'it\'s $HOME `id` "x"', "two\nlines\\", "", "日本", "a\0b"])
def test_a_call_survives_the_shell(tmp_path: Path, value: str) -> None:
    name, text = environment.call_file({"EVENT": value})
    (tmp_path / name).write_text(text)
    (tmp_path / "script.sh").write_text('printf %s "$EVENT"')
    places = Places(job=str(tmp_path), config="")
    told = subprocess.run(environment.command(places), cwd=tmp_path, capture_output=True, check=True, timeout=10)
    assert told.stdout.decode() == value.replace("\0", "")


def test_the_definition_shows_no_secret() -> None:
    service = order(
        "true",
        environment=Environment(secrets={"API_KEY": "s1"}),
        storage_providers={
            "minio": {"far": {"endpoint": "http://far", "access_key": "s2", "secret_key": "s3"}},
            "webdav": {"w": {"hostname": "dav", "login": "s4", "password": "s5"}},
            "rucio": {"r": {"host": "h", "refresh_token": "s6", "odd_new_field": "s7"}},
        },
        clusters={"there": ClusterRef(endpoint="http://c", auth_user="u", auth_password="s8")},
        federation=Federation(members=(Member(headers={"X-Key": "s9"}),)),
    ).service
    text = environment.definition_text(service)
    for number in range(1, 10):
        assert f"s{number}" not in text
    shown = yaml.safe_load(text)
    assert shown["storage_providers"]["minio"]["far"]["endpoint"] == "http://far"
    assert shown["environment"]["secrets"] == {"API_KEY": ""}
