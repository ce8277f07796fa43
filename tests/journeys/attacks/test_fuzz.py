"""One tenant does whatever the wire lets them write, beside another: nothing of the other's is read, changed or used
up, and nothing is called that the manager must not call for a tenant.

HANSA_TEST_FUZZ_EXAMPLES looks longer. Every run draws the same examples; another HANSA_TEST_FUZZ_SEED draws others.
"""

import os
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis import HealthCheck, given

from hansa.services import fdl_fields
from journeys.attacks.fuzz import definitions, routes
from journeys.attacks.fuzz.scene import Scene, scene
from journeys.attacks.fuzz.scripts import HOSTILE
from journeys.attacks.fuzz.steps import Step, steps
from journeys.attacks.whose_manager import WHOSE_MANAGER, as_user
from real.identity_provider import IdentityProvider
from real.manager import Manager

EXAMPLES = int(os.environ.get("HANSA_TEST_FUZZ_EXAMPLES", "100"))
SEED = int(os.environ.get("HANSA_TEST_FUZZ_SEED", "0"))
ROUND = 10  # examples that are drawn afresh; in a longer run most are variants of the one before


@pytest.fixture(scope="module", params=WHOSE_MANAGER)
def neighbours(request: pytest.FixtureRequest, sign_in_provider: IdentityProvider) -> Iterator[Scene]:
    with scene(sign_in_provider, as_user(request.param)) as made:
        yield made


@pytest.mark.slow
@pytest.mark.timeout(600 + 20 * EXAMPLES)
def test_whatever_a_tenant_writes_a_neighbour_loses_nothing(neighbours: Scene, request: pytest.FixtureRequest) -> None:
    ordinary = "not root" in request.node.name  # a few of other examples are enough: most of the walls are the same
    first, examples = (500_000, EXAMPLES // 4) if ordinary else (0, EXAMPLES)
    for number in range(examples // ROUND):

        @hypothesis.seed(SEED * 1_000_000 + first + number)
        @hypothesis.settings(max_examples=ROUND, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(steps)
        def holds(drawn: list[Step]) -> None:
            neighbours.play(drawn)

        holds()
    if EXAMPLES >= 100 and not ordinary:
        assert all(neighbours.alice.ran[script] > 0 for script in HOSTILE), neighbours.alice.ran


def test_the_fuzzer_knows_every_field_of_the_wire() -> None:
    assert set(definitions.FIELDS) == set(fdl_fields.SERVICE)


def test_the_fuzzer_knows_every_route(manager: Manager) -> None:
    document = manager.anonymous.get("/openapi.json").json()
    known = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert set(routes.OPERATIONS) == known
