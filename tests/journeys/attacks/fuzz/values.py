"""What a hostile tenant writes into a field: names of somebody else's things, forbidden addresses, tricks with paths.

Values that are known only while the managers run stand as @WORDS@ in what Hypothesis draws; `filled` puts the real ones
in their place. So the same seed draws the same example every time, and a failure is readable.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Facts = Mapping[str, str]  # what stands for each of the words

OWN_BUCKET, OWN_FOLDER = "fuzz-own", "fuzz-own/in"


def filled(drawn: Any, facts: Facts) -> Any:
    """The same document with the real values."""
    if isinstance(drawn, str):
        for word, real in facts.items():
            drawn = drawn.replace(word, real)
        return drawn
    if isinstance(drawn, Mapping):
        return {filled(key, facts): filled(item, facts) for key, item in drawn.items()}
    if isinstance(drawn, list | tuple):
        return [filled(item, facts) for item in drawn]
    return drawn


def mostly(usual: st.SearchStrategy[T], odd: st.SearchStrategy[T], times: int = 6) -> st.SearchStrategy[T]:
    """`usual` so many times as often as `odd`; `one_of` counts a strategy once, however often it is given."""
    return st.integers(0, times).flatmap(lambda number: odd if number == times else usual)


VICTIMS = ("@SERVICE@", "@PAGE@", "@BUCKET@", "@VOLUME@", "@JOB@", "bob@test", "@NAMESPACE@")
JUNK = ("", "..", "../x", "a/../../b", "%2e%2e%2fx", "a\x00b", "ü", "$(id)", "*", "a b", "-x", "@LONG@", "\n")
plain = st.sampled_from(("", "ro", "a=b,c:d", "--config /etc/passwd", "uid=0"))
names = mostly(
    st.sampled_from((OWN_BUCKET, "fuzz-0", *VICTIMS, "visby", "lubeck", "cluster_admin")), st.sampled_from(JUNK)
)
buckets = mostly(st.sampled_from(("@BUCKET@", "@BUCKET@", OWN_BUCKET)), names)
keys = st.sampled_from(
    ("in/x", "out/y", "in/", "in%2Fx", "in/../in/x", "../@BUCKET@/in/x", "in/*", "*", "", "/in/x", "in//x", "new", "?")
)
folders = st.sampled_from(
    ("in", "in", "out", "out", "in/x", "", "*", "..", "in/..", "../@BUCKET@/in", "${aws:username}", "i?")
)
paths = st.one_of(
    st.sampled_from(
        ("@BUCKET@/in", "@BUCKET@/out", OWN_FOLDER, f"{OWN_BUCKET}/out", "in", "@BUCKET@", "//@BUCKET@/in")
    ),
    st.builds("{}/{}".format, buckets, folders),
    st.sampled_from(("@BUCKET@%2Fin", f"{OWN_BUCKET}/../@BUCKET@/in", "@BUCKET@//in", " @BUCKET@/in", "@BUCKET@\\in")),
)
HOSTS = (
    *("127.0.0.1", "localhost", "@OWN@", "@HOST@", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "LocalHost"),
    *("a.localhost", "localhost.", "0.0.0.0", "0", "127.0.0.1.", "[::1]", "[::]", "[::ffff:127.0.0.1]"),
    *("[64:ff9b::7f00:1]", "[::ffff:7f00:1]", "[2002:7f00:1::]", "[fe80::1%25lo]", "169.254.169.254", "10.0.0.1"),
    *("[fd00:ec2::254]", "127.0.0.2", "x@127.0.0.1"),
)  # none that is only away: whoever stores there would try for minutes
ports = st.sampled_from(("@PORT@", "@PORT@", "@PORT@", "@MANAGER@", "@FILER@", "@MASTER@", "0", "80"))
schemes = st.sampled_from(
    ("http://", "http://", "http://", "http://", "https://", "", "HTTP://", "ftp://", "file://", "//")
)
tails = st.sampled_from(("",) * 8 + ("/", "/x", "/buckets/@BUCKET@?recursive=true", "#x", "/..", " ", "\\@example.org"))
_addresses = st.builds("{}{}:{}{}".format, schemes, st.sampled_from(HOSTS), ports, tails)
addresses = mostly(
    st.sampled_from(
        ("http://127.0.0.1:@PORT@", "http://localhost:@PORT@", "http://[::1]:@PORT@", "http://@OWN@:@PORT@", "@STORE@")
    ),
    _addresses,
    2,
)
files = st.sampled_from(
    ("@CANARY@", "@DATA@", "@DATA@/vault.key", "@DATA@/volumes/@NAMESPACE@/@VOLUME@", "/proc/1/environ", "/etc/passwd")
)
texts = st.one_of(names, paths, addresses, files)
anything = st.one_of(texts, st.none(), st.booleans(), st.integers(-1, 70_000), st.lists(texts, max_size=2))


def as_json(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"))
