"""Definitions of services out of every field that OSCAR's wire knows, with what a hostile tenant would write there."""

from typing import Any

from hypothesis import strategies as st

from hansa.services.service import FEDERATION_WORKER, ORIGIN_CLUSTER, ORIGIN_SERVICE
from journeys.attacks.fuzz.scripts import hostile, scripts
from journeys.attacks.fuzz.values import addresses, files, keys, mostly, names, paths, plain, texts

Drawn = st.SearchStrategy[Any]
few = mostly(st.sampled_from((0, 1, 2)), st.just(-1))
flags = st.booleans()
_amounts = ("0", "-1", "1e3", "0.1m", "", "much")
cores = st.sampled_from(("1", "0.5", "1000") * 3 + _amounts)
sizes = st.sampled_from(("64Mi", "128Mi", "1Ti") * 3 + _amounts)
providers = st.sampled_from(
    ("minio.default", "minio.default", "minio.default", "minio", "MinIO", "minio.far", "s3.far", "webdav.far") * 3
    + ("onedata.far", "rucio.far", "minio.visby", "minio.lubeck", "s3.default", "", "file.far", "minio.default.far")
)
idents = st.sampled_from(("far", "far", "default", "visby", "lubeck", "@BUCKET@", ""))
_keys = {"access_key": st.sampled_from(("", "AK", "hidden", "bob@test")), "secret_key": st.sampled_from(("", "SK"))}
_stores: dict[str, Drawn] = {
    "minio": st.fixed_dictionaries({"endpoint": addresses, **_keys}, optional={"region": names, "verify": flags}),
    "s3": st.fixed_dictionaries({"endpoint": addresses, **_keys}, optional={"region": st.one_of(addresses, texts)}),
    "webdav": st.fixed_dictionaries({"hostname": addresses, "login": names, "password": names}),
    "onedata": st.fixed_dictionaries({"oneprovider_host": addresses, "token": names, "space": names}),
    "rucio": st.fixed_dictionaries({"host": addresses, "auth_host": addresses, "token_endpoint": addresses}),
}
_filters = mostly(st.just([]), st.lists(keys, max_size=2))
io = st.fixed_dictionaries(
    {
        "storage_provider": mostly(st.just("minio.default"), providers, 2),
        "path": mostly(st.sampled_from(("@BUCKET@/in", "@BUCKET@/out", "fuzz-own/in")), paths, 3),
    },
    optional={"suffix": _filters, "prefix": _filters, "options": plain},
)
annotations = st.fixed_dictionaries(
    {},
    optional={
        FEDERATION_WORKER: mostly(st.just("true"), st.one_of(st.sampled_from(("TRUE", "false")), texts)),
        ORIGIN_CLUSTER: mostly(st.sampled_from(("visby", "lubeck")), texts),
        ORIGIN_SERVICE: mostly(st.sampled_from(("@BUCKET@", "@SERVICE@")), texts),
        "oscar.grycap/federation-Worker": st.just("true"),
    },
)
storage_providers = st.dictionaries(
    st.sampled_from(("minio", "s3", "webdav", "onedata", "rucio", "MinIO")),
    st.dictionaries(idents, st.one_of(*_stores.values()), min_size=1, max_size=2),
    min_size=1,
    max_size=2,
)
fitting_providers = st.one_of(
    *(
        st.builds(lambda kind, one: {kind: {"far": one}}, st.just(kind), _stores[kind])
        for kind in ("minio", "s3", "webdav")
    )
)
members = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("endpoint"), "url": addresses}, optional={"priority": few}),
        st.fixed_dictionaries(
            {"type": st.just("oscar"), "cluster_id": names, "service_name": names},
            optional={"headers": st.dictionaries(names, texts, max_size=1), "parent": names, "url": addresses},
        ),
    ),
    max_size=2,
)
federation = st.fixed_dictionaries(
    {"members": members, "topology": st.sampled_from(("star", "star", "mesh", "tree", "none", "", "ring"))},
    optional={
        "group_id": names,
        "delegation": st.sampled_from(("static", "random", "load-based", "topsis", "")),
        "rescheduler_threshold": few,
    },
)
clusters = st.dictionaries(
    names,
    st.fixed_dictionaries(
        {"endpoint": addresses}, optional={"auth_user": names, "auth_password": names, "ssl_verify": flags}
    ),
    max_size=2,
)
variables = st.dictionaries(
    st.sampled_from(
        (
            *("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "BASH_ENV", "PATH", "INPUT_FILE_PATH"),
            *("TMP_OUTPUT_DIR", "TMP_INPUT_DIR", "HOME", "HTTP_PROXY", "AWS_ENDPOINT_URL", "HANSA_DATA", "JOB_UUID"),
            *("OSCAR_SERVICE_TOKEN", "STORAGE_PATH_INPUT_1", "refresh_token", "hansa.group-key", "PYTHONPATH", "EVENT"),
            *("", "A=B", "\x00"),
        )
    ),
    mostly(
        st.one_of(files, paths, addresses, st.sampled_from(("/job/input/event-file", "@JWT@"))),
        st.just("a\x00--ro-bind\x00/\x00/mnt"),
    ),
    max_size=2,
)
expose = st.fixed_dictionaries(
    {"api_port": st.sampled_from(([8080], [0], 8080, [22], [70_000], ["@PORT@"], []))},
    optional={
        "min_scale": few,
        "max_scale": few,
        "nodePort": st.sampled_from(([], [8080], [30_000, 1])),
        "cpu_threshold": few,
        "rewrite_target": flags,
        "default_command": flags,
        "set_auth": flags,
        "auth_type": st.sampled_from(("", "basic", "forward", "none")),
        "health_path": st.one_of(st.sampled_from(("/health", "", "//127.0.0.1:@PORT@/", "@[::1]:@PORT@/")), addresses),
        "probe_mode": st.sampled_from(("", "direct", "legacy")),
    },
)
volume = st.fixed_dictionaries(
    {
        "name": st.one_of(st.sampled_from(("@VOLUME@", "fuzz-volume", "../@NAMESPACE@/@VOLUME@")), names),
        "mount_path": st.sampled_from(
            ("/data", "/data", "/data", "/mnt/@BUCKET@", "/job/input", "//etc", "/data/../etc")
        ),
    },
    optional={
        "size": st.sampled_from(("1Gi", "1Gi", "1Gi", "", "1Mi", "100Ti")),
        "lifecycle_policy": st.sampled_from(("delete", "retain", "")),
    },
)
pairs = st.lists(io, max_size=2)
FIELDS: dict[str, Drawn] = {
    "input": pairs,
    "output": pairs,
    "mount": io,
    "annotations": annotations,
    "storage_providers": mostly(fitting_providers, storage_providers, 2),
    "script": scripts,
    "volume": volume,
    "environment": st.fixed_dictionaries({}, optional={"variables": variables, "secrets": variables}),
    "federation": federation,
    "clusters": clusters,
    "isolation_level": st.sampled_from(("USER", "user", "SERVICE", "", "x")),
    "allowed_users": st.lists(st.one_of(st.sampled_from(("bob@test", "own", "dora@test")), names), max_size=2),
    "visibility": st.sampled_from(("private", "restricted", "public", "")),
    "bucket_list": st.lists(names, max_size=2),
    "owner": names,
    "namespace": names,
    "vo": st.one_of(st.sampled_from(("vo-test", "other")), names),
    "labels": st.dictionaries(st.sampled_from(("uid", "owner_name", "vo", "queue", "x")), names, max_size=2),
    "token": st.sampled_from(("@ZEROS@", "@TOKENS@", "x")),
    "cluster_id": names,
    "name": names,
    "cpu": cores,
    "memory": sizes,
    "file_stage_in": flags,
    "synchronous": st.fixed_dictionaries({"min_scale": few, "max_scale": few}),
    "expose": expose,
    "image": st.sampled_from(
        ("debian", "127.0.0.1:@PORT@/a/b:1", "localhost:@PORT@/x", "http://127.0.0.1:@PORT@/x", "@CANARY@", "--help")
    ),
    "image_pull_secrets": st.lists(names, max_size=2),
    "image_prefetch": flags,
    "log_level": st.one_of(st.sampled_from(("DEBUG", "INFO")), names),
    "total_memory": sizes,
    "total_cpu": cores,
    "ephemeral_storage_request": sizes,
    "enable_gpu": flags,
    "enable_sgx": flags,
    "alpine": flags,
    "interlink_node_name": names,
    "kserve": st.fixed_dictionaries({"type": st.just("inference"), "storage_uri": addresses}),
    "replicas": members,
    "delegation": names,
    "rescheduler_threshold": few,
}
_REACHING = ("input", "output", "mount", "annotations", "storage_providers", "volume", "environment", "federation")
_pointed = st.lists(st.sampled_from(_REACHING[:5]), min_size=1, max_size=3, unique=True)
_broad = st.lists(st.sampled_from((*FIELDS, *_REACHING * 4)), min_size=1, max_size=5, unique=True)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """One that would be fine, but for a few fields: half of the time those that say which data it reaches."""
    drawn: dict[str, Any] = {"image": "debian", "memory": "64Mi", "cpu": "1", "script": draw(hostile)}
    for field in draw(st.one_of(_pointed, _broad)):
        drawn[field] = draw(FIELDS[field])
    if "federation" in drawn:  # nothing is federated without
        drawn.setdefault("cluster_id", "lubeck")
    defined = [f"{kind}.{ident}" for kind, by_id in drawn.get("storage_providers", {}).items() for ident in by_id]
    matches = draw(st.integers(0, 3))
    if defined and matches:
        drawn["output"] = [{**draw(io), "storage_provider": draw(st.sampled_from(defined))}]
    return drawn
