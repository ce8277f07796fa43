"""Is a request signed as Amazon's own library signs it?"""

import datetime
from unittest import mock

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from hansa.drivers.runs.stager import sigv4

WHEN = datetime.datetime(2026, 11, 17, 9, 30, 5, tzinfo=datetime.UTC)
text = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)
keys = st.text(st.sampled_from("aZ09-_.~ äß日/+&=?#%:*'()"), min_size=1, max_size=30).filter(
    lambda key: not key.startswith("/") and "//" not in key and "/./" not in f"/{key}/" and "/../" not in f"/{key}/"
)


@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE"]),
    key=keys,
    query=st.dictionaries(text, text, max_size=4),
    session=st.sampled_from(["", "a-session-token"]),
)
def test_headers_are_those_of_the_reference(method: str, key: str, query: dict[str, str], session: str) -> None:
    path, asked = sigv4.quoted_path(f"/bucket/{key}"), sigv4.quoted_query(query)
    url = f"http://store.example:9000{path}" + (f"?{asked}" if asked else "")
    request = AWSRequest(method=method, url=url, headers={"X-Amz-Content-SHA256": sigv4.EMPTY})
    request.context["client_config"] = mock.Mock(s3={"payload_signing_enabled": True})
    reference = S3SigV4Auth(Credentials("AK", "SK", session or None), "s3", "us-east-1")
    with mock.patch("botocore.auth.get_current_datetime", return_value=WHEN.replace(tzinfo=None)):
        reference.add_auth(request)
    ours = sigv4.signed(
        method,
        "store.example:9000",
        path,
        asked,
        sigv4.EMPTY,
        region="us-east-1",
        access_key="AK",
        secret_key="SK",
        session_token=session,
        now=WHEN.timestamp(),
    )
    assert ours["authorization"] == request.headers["Authorization"]
    assert ours["x-amz-date"] == request.headers["X-Amz-Date"]
