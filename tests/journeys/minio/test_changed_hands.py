"""A bucket that changed hands opens nothing where buckets lie in a MinIO, either."""

from journeys.attacks.test_changed_hands import (
    test_a_bucket_of_somebody_else_is_not_used_because_they_share_it,
    test_a_service_gets_no_uploads_of_a_bucket_that_became_somebody_elses,
    test_an_upload_spends_nobodys_quota_but_the_service_owners,
    test_outputs_do_not_go_to_a_bucket_that_became_somebody_elses,
)

__all__ = [
    "test_a_bucket_of_somebody_else_is_not_used_because_they_share_it",
    "test_a_service_gets_no_uploads_of_a_bucket_that_became_somebody_elses",
    "test_an_upload_spends_nobodys_quota_but_the_service_owners",
    "test_outputs_do_not_go_to_a_bucket_that_became_somebody_elses",
]
