"""Does a wrong or unknown setting stop the start with one clear line that says what to change, and shows no secret?"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hansa import settings
from hansa.settings import BadSetting, load

SECRET = "geheim-9f3"
SOURCES = Path(__file__).parents[1] / "src"


def told(env: dict[str, str] | None = None, file: Path | None = None) -> str:
    """What the refusal says, with its hint."""
    with pytest.raises(BadSetting) as refusal:
        load(file, env or {})
    text = f"{refusal.value.message} {refusal.value.hint}".strip()
    assert "\n" not in text
    assert SECRET not in text
    return text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hansa.toml"


def test_defaults_work_without_any_setting() -> None:
    given = load(env={})
    assert (given.http.host, given.http.port, given.storage.kind) == ("127.0.0.1", 8080, "embedded")


def test_variables_stand_over_the_file(file: Path) -> None:
    file.write_text('[http]\nport = 9000\nhost = "0.0.0.0"\n[jobs]\ncpu = "2"\n')
    given = load(file, {"HANSA_HTTP__PORT": "9001"})
    assert (given.http.port, given.http.host, given.jobs.cpu) == (9001, "0.0.0.0", "2")


def test_the_file_is_named_by_a_variable_too(file: Path) -> None:
    file.write_text("[http]\nport = 9000\n")
    assert load(env={"HANSA_CONFIG": str(file)}).http.port == 9000


def test_lists_and_tables_are_json() -> None:
    given = load(
        env={
            "HANSA_IMAGES__ALLOWED": '["a", "b"]',
            "HANSA_OIDC__ISSUERS": '[{"url": "https://issuer.example/x/", "audience": "a", "groups": ["vo", " "]}]',
            "HANSA_FEDERATION__CLUSTERS": '{"visby": {"endpoint": "https://visby.example"}}',
            "HANSA_HTTP": '{"port": 9002}',
        }
    )
    assert given.images.allowed == ("a", "b")
    assert (given.oidc.issuers[0].url, given.oidc.issuers[0].groups) == ("https://issuer.example/x", ("vo",))
    assert given.federation.clusters["visby"].endpoint == "https://visby.example"
    assert given.http.port == 9002


def test_variables_of_the_command_line_and_of_a_checkout_are_no_settings() -> None:
    load(env={"HANSA_TOKEN": SECRET, "HANSA_URL": "x", "HANSA_TEST_STRICT": "1", "PATH": "/bin"})
    load(env={"HANSA_SETUP_PACKAGES": "no", "HANSA_SETUP_KUBERNETES": "yes"})


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("HANSA_HTTP__PRT", "HANSA_HTTP__PORT"),
        ("HANSA_HTP__PORT", "HANSA_HTTP__PORT"),
        ("HANSA_HTTP_PORT", "HANSA_HTTP__PORT"),
        ("HANSA_HTTP__PORT__X", "HANSA_HTTP__PORT"),
        ("HANSA_ADMIN__PASSWORT", "HANSA_ADMIN__PASSWORD"),
        ("HANSA_JOBS__TIMELIMIT", "HANSA_JOBS__TIME_LIMIT"),
    ],
)
def test_an_unknown_variable_hears_the_nearest(name: str, nearest: str) -> None:
    assert told({name: SECRET}) == f"{name} is not a setting did you mean {nearest}?"


@pytest.mark.parametrize(
    ("text", "name", "nearest"),
    [
        ("[http]\nprot = 1", "http.prot", "http.port"),
        ("[htp]\nport = 1", "htp", "http"),
        (f"[admin]\npasswort = '{SECRET}'", "admin.passwort", "admin.password"),
    ],
)
def test_an_unknown_name_in_the_file_hears_the_nearest(file: Path, text: str, name: str, nearest: str) -> None:
    file.write_text(text)
    assert told(file=file) == f"{name} is not a setting: did you mean {nearest}?"


def test_what_is_like_nothing_hears_where_they_all_are() -> None:
    assert "docs/reference/settings.md" in told({"HANSA_QQQQQQQQQQQQQQQQQQQQ": "x"})


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("HTTP__PORT", SECRET, "http.port: must be a whole number"),
        ("HTTP__PORT", "99999", "http.port: must be less than or equal to 65535"),
        ("HTTP__PORT", "1" * 5000, "http.port: must be a smaller number"),
        ("HTTP", SECRET, "must be JSON"),
        ("HTTP", "3", "http: must be a table"),
        ("STORAGE__VERIFY", "maybe", "storage.verify: must be true or false"),
        ("STORAGE__KIND", "tape", "storage.kind: must be 'embedded', 'minio' or 's3'"),
        ("STORAGE__KIND", "s3", "storage: kind s3 needs endpoint, access_key and secret_key"),
        ("STORAGE__ENDPOINT", "somewhere", "storage.endpoint: write http://"),
        ("DATABASE__URL", f"mysql://u:{SECRET}@h/n", "database.url: write postgresql://"),
        ("JOBS__CPU", "many", "jobs.cpu: quantity 'many' is not a quantity"),
        ("QUOTAS__DISK", "-1Gi", "quotas.disk: quantity '-1Gi' is not a quantity"),
        ("JOBS__TIME_LIMIT", "0", "jobs.time_limit: must be greater than or equal to 1"),
        ("JOBS__TIME_LIMIT", "soon", "jobs.time_limit: must be a number"),
        ("LOG__LEVEL", "loud", "log.level: must be 'debug'"),
        ("CLUSTER__ID", "Big Cluster", "cluster.id:"),
        ("ADMIN__USER", "a:b", "admin.user:"),
        ("DATA", "", "data: must not be empty"),
        ("IMAGES__ALLOWED", "a,b", "must be JSON"),
        ("IMAGES__ALLOWED", '"a"', "images.allowed: must be a list"),
        ("IMAGES__ALLOWED", "[1]", "images.allowed.0: must be a text"),
        ("IMAGES__ALLOWED", "[" * 100_000, "must be JSON"),
        ("EGRESS__ALLOW", '["10.0.0.1/8"]', "egress.allow: '10.0.0.1/8' is not a network such as 10.0.0.0/8"),
        ("EGRESS__ALLOW", '["0.0.0.0/0"]', "egress.allow: '0.0.0.0/0' is too wide"),
        ("EGRESS__ALLOW", '["minio.internal"]', "a name needs its port"),
        ("EGRESS__ALLOW", '["minio.internal:http"]', "has no valid port"),
        ("OIDC__ISSUERS", '[{"url": "ftp://x"}]', "oidc.issuers.0.url: an issuer is an http(s) address"),
        (
            "OIDC__ISSUERS",
            f'[{{"url": "https://u:{SECRET}@x"}}]',
            "oidc.issuers.0.url: an issuer's address has",
        ),
        ("OIDC__ISSUERS", '[{"url": "http://elsewhere.example", "audience": "a"}]', "needs https"),
        (
            "OIDC__ISSUERS",
            '[{"url": "https://x", "audience": "a", "colour": 1}]',
            "oidc.issuers.0.colour is not a setting",
        ),
        (
            "OIDC__ISSUERS",
            '[{"url": "https://x"}]',
            'oidc.issuers.0.audience: say for whom tokens are made: audience = "',
        ),
        ("OIDC__ISSUERS", '[{"url": "https://x", "audience": []}]', "oidc.issuers.0.audience: say for whom"),
        ("OIDC__ISSUERS", '[{"url": "https://x", "audience": " "}]', "oidc.issuers.0.audience: say for whom"),
        ("OIDC__ISSUERS", '[{"url": "https://x", "audience": ["*", "a"]}]', "name no other beside it"),
        (
            "OIDC__ISSUERS",
            '[{"url": "https://x", "audience": "a"}, {"url": "https://y", "audience": "a", "formerly": ["https://x/"]}]',
            "https://x stands in oidc.issuers twice",
        ),
        ("FEDERATION__CLUSTERS", '{"a": {"endpoint": "ftp://x"}}', "federation.clusters.a.endpoint:"),
        ("FEDERATION__CLUSTERS", '{"a": {}}', "federation.clusters.a.endpoint: is missing"),
    ],
)
def test_a_wrong_value_is_named(name: str, text: str, part: str) -> None:
    assert part in told({f"HANSA_{name}": text})


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[http\n", "is not valid TOML"),
        ("http = 3\n", "http: must be a table"),
        (f"[admin]\npassword = ['{SECRET}']\n", "admin.password: must be a text"),
        (f"[storage]\nsecret_key = {{a = '{SECRET}'}}\n", "storage.secret_key: must be a text"),
        ("data = 5\n", "data: must be a path"),
        ("[jobs]\npage_size = 1.5\n", "jobs.page_size: must be a whole number"),
        ("a = " + "[" * 100_000, "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_explained(file: Path, text: str, part: str) -> None:
    file.write_text(text)
    assert part in told(file=file)


def test_a_file_that_cannot_be_read(tmp_path: Path, file: Path) -> None:
    assert "there is no settings file" in told(file=file)
    assert "cannot be read" in told(file=tmp_path)
    file.write_bytes(b"\xff\xfe")
    assert "is not valid TOML" in told(file=file)
    file.write_text("http = 3\n")
    assert "http: must be a table" in told({"HANSA_HTTP__PORT": "1"}, file)


def test_secrets_are_not_shown() -> None:
    given = load(env={"HANSA_ADMIN__PASSWORD": SECRET, "HANSA_STORAGE__SECRET_KEY": SECRET})
    assert SECRET not in repr(given)
    assert SECRET not in str(given.model_dump())
    assert settings.admin_password(given) == SECRET


def server(folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """`hansa server`, which must not come up."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
    variables = {f"HANSA_{name}": value for name, value in given.items()}
    return subprocess.run(
        [str(Path(sys.executable).with_name("hansa")), "server"],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(SOURCES), "HANSA_DATA": str(folder / "data"), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"HTTP__PORT": "abc"}, "error: setting http.port: must be a whole number"),
        ({"HTTP__PRT": "1"}, "error: HANSA_HTTP__PRT is not a setting"),
        ({"ADMIN__PASSWORT": SECRET}, "error: HANSA_ADMIN__PASSWORT is not a setting"),
        ({"CONFIG": "nowhere.toml"}, "error: there is no settings file nowhere.toml"),
        ({"DATA": __file__}, f"error: the data folder {__file__} cannot be used: File exists"),
        ({"HTTP__HOST": "192.0.2.1", "HTTP__PORT": "0"}, "error: cannot listen on 192.0.2.1 port 0:"),
    ],
)
def test_the_server_says_it_in_one_line_and_does_not_start(tmp_path: Path, given: dict[str, str], said: str) -> None:
    done = server(tmp_path, **given)
    assert done.returncode != 0
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith(said)
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: "))
    assert SECRET not in done.stderr


def test_a_port_that_is_taken_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = server(tmp_path, HTTP__PORT=str(port))
    assert done.returncode != 0
    assert done.stderr.startswith(f"error: cannot listen on 127.0.0.1 port {port}: Address already in use")
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.parametrize("text", ["", "0", "15Mi", "much"])
def test_a_disk_no_run_could_use_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="disk_per_run"):
        load(env={"HANSA_JOBS__DISK_PER_RUN": text})
    assert load(env={"HANSA_JOBS__DISK_PER_RUN": "16Mi"}).jobs.disk_per_run == "16Mi"


def test_a_quantity_may_be_a_number_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hansa.toml"
    path.write_text("[quotas]\ncpu = 1\nmemory = 1073741824\n[jobs]\ncpu = 0.5\n")
    read = load(path, {})
    assert (read.quotas.cpu, read.quotas.memory, read.jobs.cpu) == ("1", "1073741824", "0.5")
    for wrong in ("true", "nan", "[1]", "-1"):
        path.write_text(f"[quotas]\ncpu = {wrong}\n")
        with pytest.raises(BadSetting, match=r"quotas\.cpu"):
            load(path, {})


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("OIDC__ISSUERS", """[{"url": "https://login.example.org", "audience": "hansa"}]"""),
        ("IMAGES__ALLOWED", """["a", "b"]"""),
        ("QUOTAS", """{"cpu": "2"}"""),
    ],
)
def test_what_is_no_json_is_answered_with_an_example_that_fits(name: str, example: str) -> None:
    with pytest.raises(BadSetting) as caught:
        load(None, {f"HANSA_{name}": "https://login.example.org"})
    assert caught.value.hint == f"for example {example}"
    load(None, {f"HANSA_{name}": example})
