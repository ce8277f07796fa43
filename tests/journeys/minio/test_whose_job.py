"""An event that names somebody else as its sender changes nothing where MinIO sends events, too."""

from journeys.attacks.test_whose_job import *  # noqa: F403 - its tests, and what they ask for
