"""Does the PyPI client oscar-python work in full on Kubernetes, too? The very same stories."""

import pytest

from journeys.test_oscar_python import *  # noqa: F403 - all of them, with their fixtures

pytestmark = pytest.mark.deep
