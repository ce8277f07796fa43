"""Helm for the tests of the chart; left out where it was not built, as those on a real Kubernetes are."""

import os

import pytest

from real import parts
from real.kubernetes import helm_client
from real.kubernetes.helm_client import Helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    why, program = helm_client.hindrance(), helm_client.found()
    if program is not None:
        return Helm(program)
    if os.environ.get("HANSA_SETUP_KUBERNETES") == "yes":
        parts.give_up("helm", why)
    parts.missing.note("helm", why)
    pytest.skip(f"missing part helm: {why}")
