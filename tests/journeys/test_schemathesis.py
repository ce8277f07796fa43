"""Is the OpenAPI document true, and does nothing it allows, or forbids, make a manager stumble?

Schemathesis reads the document of a running manager and calls every route with what it allows and with what it does
not, in all its phases. HANSA_TEST_SCHEMATHESIS_EXAMPLES=200 looks longer, HANSA_TEST_SCHEMATHESIS_SEED elsewhere.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeys.bad_input import stumble
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

EXAMPLES = os.environ.get("HANSA_TEST_SCHEMATHESIS_EXAMPLES", "")
SEED = os.environ.get("HANSA_TEST_SCHEMATHESIS_SEED", "20260901")
# Seconds for one run: half a minute on a machine of its own, many times that on a busy one.
LIMIT = 400 * max(1, int(EXAMPLES or 0) // 5)
# Few jobs at a time, and short ones: what is created here runs whatever somebody made up.
SMALL = {"jobs.cpu": "500m", "jobs.memory": "512Mi", "jobs.time_limit": 2, "jobs.run_limit": 2, "log.level": "debug"}
UNTRUE = (
    "unsupported_method",  # a wrong method on a known path is a 404 on OSCAR's routes
    "allow_header_conformance",  # so there is no Allow header either
    "negative_data_rejection",  # unknown fields are ignored, and quantities are told more narrowly than they are taken
    "ensure_resource_availability",  # who changes a service names it in the body: it need not be the one made before
    "positive_data_acceptance",  # an allowed body may still name a bucket that is not there, or contain a NUL
)
EVERYTHING = "examples,coverage,fuzzing,stateful"


@pytest.fixture(scope="module")
def own(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    with running_manager({**trusting(sign_in_provider), **SMALL}) as running:
        yield running


def run(own: Manager, folder: Path, *options: str, phases: str = EVERYTHING, examples: int = 4) -> None:
    print(f"seed {SEED}; HANSA_TEST_SCHEMATHESIS_SEED={SEED} repeats this run")
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{own.url}/openapi.json",
        *options,
        *("--checks", "all", "--exclude-checks", ",".join(UNTRUE)),
        # an exposed service answers for itself, and with 502 when it does not
        *("--exclude-path-regex", "/exposed/"),
        *("--phases", phases, "--max-examples", EXAMPLES or str(examples), "--seed", SEED),
        *("--request-timeout", "20", "--continue-on-failure", "--warnings", "off"),
        *("--generation-database", "none", "--no-color"),
    ]
    quiet = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(command, cwd=folder, env=quiet, capture_output=True, text=True, timeout=LIMIT, check=False)
    print(done.stdout[-20_000:])
    assert done.returncode == 0, f"schemathesis says {done.returncode}; see above. {done.stderr[-2000:]}"
    assert not stumble(own.log)
    assert own.anonymous.get("/ready").status_code == 200


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.timeout(LIMIT + 60)
def test_a_user_finds_the_document_true(own: Manager, sign_in_provider: IdentityProvider, tmp_path: Path) -> None:
    run(own, tmp_path, "--header", f"Authorization: Bearer {sign_in_provider.token('alice')}")


@pytest.mark.slow
@pytest.mark.timeout(LIMIT + 60)
def test_the_admin_finds_the_document_true(own: Manager, tmp_path: Path) -> None:
    # Without the one route that forbids most images: nothing could be created after it.
    without_config = ("--exclude-operation-id", "change_config_system_config_put")
    phases = EVERYTHING if EXAMPLES else "examples,fuzzing,stateful"
    run(own, tmp_path, "--auth", f"admin:{own.password}", *without_config, phases=phases, examples=3)


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.timeout(LIMIT + 60)
def test_the_admin_changes_what_only_the_admin_may(own: Manager, tmp_path: Path) -> None:
    admins_own = ("--include-path-regex", "/system/(config|quotas|logs$)")
    try:
        run(own, tmp_path, "--auth", f"admin:{own.password}", *admins_own, phases="coverage,fuzzing", examples=2)
    finally:
        own.admin.put("/system/config", json={"allowed_image_repositories": []})


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.timeout(LIMIT + 60)
def test_nobody_gets_in(own: Manager, tmp_path: Path) -> None:
    run(own, tmp_path, phases="examples,fuzzing", examples=1)


def test_every_operation_says_who_may_call_it_and_what_it_answers(own: Manager) -> None:
    document = own.anonymous.get("/openapi.json").json()
    assert set(document["components"]["securitySchemes"]) >= {"admin", "user", "service-token"}
    open_to_all = []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            where = f"{method} {path}"
            assert operation.get("description") or operation.get("summary"), where
            given = {name["name"] for name in operation.get("parameters", []) if name["in"] == "path"}
            assert given == {part[1:-1] for part in path.split("/") if part.startswith("{")}, where
            assert "422" not in operation["responses"], where
            if "requestBody" in operation and method in ("post", "put", "delete"):
                assert "413" in operation["responses"], where
            if operation.get("security"):
                assert "401" in operation["responses"], where
            elif path not in ("/v1/noop", "/v1/about"):
                open_to_all.append(where)
    assert sorted(open_to_all) == ["get /health", "get /ready"]
