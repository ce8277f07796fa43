"""Every route of a manager, asked for with somebody else's names."""

from typing import Any

from hypothesis import strategies as st

from journeys.attacks.fuzz.definitions import clusters, definitions, members, storage_providers
from journeys.attacks.fuzz.values import JUNK, VICTIMS, addresses, anything, buckets, keys, names, texts

ROUTES = """
POST /job/{service}
POST /run/{service}
POST PUT GET /system/services
GET DELETE /system/services/{name}
GET /system/services/{name}/deployment
GET /system/services/{name}/deployment/logs
POST /system/services/{name}/start
POST /system/services/{name}/stop
POST /system/services/{name}/restart
GET /system/services/{name}/auth
GET POST PUT PATCH DELETE /system/services/{name}/exposed/{path}
GET /v1/node
GET POST /v1/noop
GET /v1/about
GET DELETE /v1/delegations/{job}
GET /v1/delegations/{job}/log
POST /v1/delegations/{job}/publish
GET /v1/delegations/{job}/storage
GET /v1/jobs/{job}
GET /v1/operations/{ident}
GET PUT DELETE /v1/replicas/{name}
GET /v1/replicas/{name}/status
GET /v1/replicas/{name}/jobs
POST /v1/services/{service}/adopted/{job}
POST /v1/services/{name}/access-token
GET DELETE /v1/services/{name}/credentials
POST /v1/services/{name}/credentials/rotate
GET /v1/services/{name}/audit
POST /v1/store/uploads
GET POST DELETE /v1/membership
GET /health
GET /ready
GET /metrics
GET /system/info
GET PUT /system/config
GET /system/status
GET /system/logs
GET DELETE /system/logs/{service}
GET DELETE /system/logs/{service}/{job}
GET POST PUT DELETE /system/federation/{service}
GET POST PUT DELETE /system/replicas/{service}
GET POST PUT /system/buckets
GET DELETE /system/buckets/{bucket}
POST /system/buckets/{bucket}/presign
GET POST /system/volumes
GET DELETE /system/volumes/{volume}
GET /system/quotas/user
GET PUT /system/quotas/user/{user_id}
GET /system/metrics
GET /system/metrics/breakdown
GET /system/metrics/{service}
"""
OPERATIONS = [
    (method, line.split()[-1]) for line in ROUTES.strip().splitlines() for method in line.split() if method.isupper()
]
_OWN_KIND = {
    "service": ("@SERVICE@", "@PAGE@", "fuzz-0"),
    "name": ("@SERVICE@", "@PAGE@", "fuzz-0"),
    "job": ("@JOB@",),
    "bucket": ("@BUCKET@",),
    "volume": ("@VOLUME@",),
    "user_id": ("bob@test", "alice@test"),
    "path": ("", "health", "../../../services/@SERVICE@", "//127.0.0.1:@PORT@/", "proc/self/environ"),
}
_queries = st.dictionaries(
    st.sampled_from(("page", "all", "namespace", "token", "include", "group_by", "include_users", "metric", "user")),
    st.one_of(st.sampled_from(("true", "deployment", "user", "service", "@NAMESPACE@")), names),
    max_size=2,
)
documents = st.one_of(
    st.fixed_dictionaries(
        {"bucket_name": buckets},
        optional={
            "visibility": st.sampled_from(("public", "private", "restricted")),
            "allowed_users": st.just(["alice@test"]),
            "owner": names,
            "bucket_path": names,
        },
    ),
    st.fixed_dictionaries(
        {"object_key": keys, "operation": st.sampled_from(("download", "upload"))},
        optional={"expires_in": st.sampled_from((60, 10**9, -1)), "content_type": texts},
    ),
    st.fixed_dictionaries({"name": names, "size": st.sampled_from(("1Gi", "1Ti"))}, optional={"namespace": names}),
    st.fixed_dictionaries(
        {"members": members}, optional={"storage_providers": storage_providers, "clusters": clusters}
    ),
    st.fixed_dictionaries({"cpu": st.just("1"), "memory": st.just("1Gi")}, optional={"user_id": names}),
    st.builds(lambda drawn: {**drawn, "name": "@SERVICE@"}, definitions()),
    st.fixed_dictionaries({"hub": addresses, "token": texts}),
    anything,
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, dict[str, str], Any]:
    """Method, path with its values, query and JSON body."""
    method, path = draw(st.sampled_from(OPERATIONS))
    while "{" in path:
        kind = path[path.index("{") + 1 : path.index("}")]
        values = _OWN_KIND.get(kind, ()) * 6 + VICTIMS + JUNK
        path = path.replace("{" + kind + "}", draw(st.sampled_from(values)), 1)
    return method, path, draw(_queries), draw(documents) if method in ("POST", "PUT", "DELETE") else None
