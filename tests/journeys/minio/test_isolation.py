"""Nobody leaves their sandbox, or reads another's objects, where these lie in a MinIO."""

from journeys.test_isolation import *  # noqa: F403 - its tests, and what they ask for
