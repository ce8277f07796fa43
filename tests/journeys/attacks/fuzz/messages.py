"""What a hostile tenant sends to a service: events of stores, wrapped and forged, and bodies that are none."""

from typing import Any

from hypothesis import strategies as st

from journeys.attacks.fuzz.values import OWN_BUCKET, as_json, buckets, keys, mostly, names
from journeys.events import minio_event

_people = st.sampled_from(("bob@test", "bob@test", "bob@test", "cluster_admin", "admin", ""))
_provided = st.sampled_from(
    ("minio.default", "default", "minio", "", "minio.far", "far", "visby", "lubeck", "s3.far", "webdav.far", "@BUCKET@")
)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    event = minio_event(draw(mostly(buckets, st.just(OWN_BUCKET), 2)), draw(mostly(st.just("in/x"), keys, 1)))
    record = event["Records"][0]
    record["eventSource"] = draw(st.sampled_from(("minio:s3", "minio:s3", "aws:s3", "OneTrigger")))
    if draw(st.booleans()):
        person = draw(_people)
        record["requestParameters"] = {"principalId": person, "sourceIPAddress": "10.0.0.1"}
        record["userIdentity"] = {"principalId": person}
    return event


_wrapped = st.builds(
    lambda provider, event: {"storage_provider": provider, "event": as_json(event)},
    _provided,
    st.one_of(events(), st.builds(lambda event: {"storage_provider": "minio.far", "event": as_json(event)}, events())),
)
bodies = st.one_of(
    st.builds(as_json, events()),
    st.builds(as_json, _wrapped),
    st.sampled_from(
        ("", "{", "null", "[]", '{"Records":[]}', '{"Records":null}', '{"event":{}}', "@DEEP@", "aGVsbG8=")
    ),
)
headers = st.fixed_dictionaries(
    {},
    optional={
        "X-Delegated-Job-ID": st.sampled_from(("@JOB@", "fuzz-job", "fuzz-job", "../x", "")),
        "X-Hansa-Permit": st.sampled_from(("@ZEROS@", "x")),
        "X-Hansa-Origin": st.sampled_from(("visby", "lubeck", "http://127.0.0.1:@PORT@")),
        "X-Hansa-Path": names.filter(lambda name: name.isascii() and name.isprintable()),
        "X-Forwarded-User": st.sampled_from(("bob@test", "admin")),
        "X-Forwarded-Uri": st.just("/?token=@ZEROS@"),
        "Cookie": st.just("oscar_service_bobs_page_auth=@ZEROS@"),
    },
)
