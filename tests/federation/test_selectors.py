"""Does a selector mean what it says, refuse what it cannot mean, and come back as it was written?"""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation import known_clusters
from federation.known_clusters import record
from hansa.federation import Known, errors
from hansa.federation.selector_keys import KEYS, LABEL, OPERATORS, key_of
from hansa.federation.selectors import Selector, Term, parse
from hansa.messages.clusters import Abilities, Coordinates, Cost
from hansa.messages.members import Totals

LUBECK = Known(
    record(
        "lubeck",
        region="eu",
        zone="b",
        version="1.10.0",
        endpoint="https://lubeck.example:8443/?a=b",
        metadata={"tier": "gold", "team/owner": "sea trade"},
        coordinates=Coordinates(latitude=53.9, longitude=-10.7),
        abilities=Abilities(live_migration=True, gpus=("A100", "T4"), max_vms=20),
        cost=Cost(cpu_hour=0.025),
        speaks=("links.v1",),
    ),
    totals=Totals(cpu=16000, cpu_used=12000, memory=64 * 2**30, memory_used=32 * 2**30, gpu=2, nodes=4, nodes_ready=3),
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " , ",
        "region=eu gpu>0 status=ready zone!=a name~Lub* metadata.tier=gold",
        "cpu_free>=4000m memory_free>8Gi version>=1.2 cordoned=false",
        "region=eu,gpu>0,,state==ready",
        "cpu_free=4 cpu=16 cpu>15.9999 cpu<16000.5m",
        "region in (us, eu) zone not in (a c)",
        "not region=us, not cordoned",
        'metadata.team/owner="sea trade" metadata.none!=gold',
        'endpoint="https://lubeck.example:8443/?a=b"',
        "version<2 version>1.9 version=1.10 version~1.* version!=1.1",
        "gpu_model=A100 gpu_model~A* gpu_model!=H100 speaks in (links.v1, odd)",
        "longitude<-10 latitude>=53.9 cpu_hour<0.03 cpu_hour=25m",
        "live_migration not snapshots max_vms>=20 nodes_ready<4 kind=hansa",
        "name  =  Lubeck",
        "id!~v* memory_used=32Gi storage_used=0",
    ],
)
def test_what_holds_of_lubeck(text: str) -> None:
    assert parse(text).matches(LUBECK)


@pytest.mark.parametrize(
    "text",
    [
        "region=us",
        "region=eu gpu>2",
        "not region=eu",
        "cordoned",
        "metadata.none=gold",
        "metadata.none~*",
        "zone in (a, c)",
        "gpu_model!=A100",
        "gpu_model!~T?",
        "version>=1.10.1",
        "version<1.10-rc1",
        "cpu_free>4",
        "cpu_free>3999.9m memory_free>=33Gi",
        "name~lub*",
        "state in (unreachable left)",
    ],
)
def test_what_does_not(text: str) -> None:
    assert not parse(text).matches(LUBECK)


def test_what_an_admin_said_counts() -> None:
    known = Known(record("visby", region="eu", overrides={"region": "north", "metadata": {"tier": "tin"}}))
    assert parse("region=north metadata.tier=tin").matches(known)
    assert not parse("region=eu").matches(known)


def test_what_is_not_told_is_in_no_order() -> None:
    silent = Known(record(version="", coordinates=None))
    assert not parse("version<9").matches(silent)
    assert not parse("latitude<90").matches(silent)
    assert parse("version!=1.0 latitude!=0").matches(silent)


@pytest.mark.parametrize(
    ("text", "position", "part", "hint"),
    [
        ("region=eu regoin=us", 11, "no key 'regoin'", "did you mean region?"),
        ("statsu=ready", 1, "no key 'statsu'", "did you mean status?"),
        ("metadata=3", 1, "no key 'metadata'", "metadata.<label>"),
        ("status=redy", 1, "state: 'redy' is none of its values", "ready, degraded"),
        ("gpu>many", 1, "gpu: quantity 'many'", "500m"),
        ("gpu>", 5, "the value of gpu is missing: the end", "gpu="),
        ("region= gpu>0", 12, "a space or comma is missing before '>0'", "quotes"),
        ("region", 7, "after region stands no operator", "use one of ="),
        ("region>eu", 7, "region cannot be asked with >", "use one of ="),
        ("cordoned in (true)", 1, "cordoned cannot be asked with in", "use one of ="),
        ("cordoned=yes", 1, "neither true nor false", "true or false"),
        ('name="open', 6, "the value of name is missing", "close the quotes"),
        ("zone in (a, b", 14, "the value of zone is missing: the end", "zone"),
        ("zone in ()", 10, "the value of zone is missing", "zone"),
        ("=3", 1, "'=3' is no key", "region=eu"),
        ("zone=a)", 7, "before ')'", "quotes"),
        ("version>new", 1, "'new' is no version", "1.2"),
        ("gpu>-1", 1, "gpu: quantity '-1'", ""),
        (" ".join(["gpu>0"] * 33), 193, "more than 32 terms", "split"),
        (f"zone in ({'a ' * 101})", 210, "more than 100 values", "split"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(text: str, position: int, part: str, hint: str) -> None:
    with pytest.raises(errors.BadSelector) as caught:
        parse(text)
    assert caught.value.facts["position"] == position
    assert part in caught.value.message
    assert hint in caught.value.hint


def test_a_very_long_one_is_not_read() -> None:
    with pytest.raises(errors.BadSelector, match="2000"):
        parse("name=" + "x" * 3000)


def _values(sort: str, choices: tuple[str, ...]) -> st.SearchStrategy[str]:
    match sort:
        case "choice":
            return st.sampled_from(choices)
        case "flag":
            return st.sampled_from(["true", "false"])
        case "cpu" | "bytes" | "count":
            return st.sampled_from(["0", "1", "500m", "8Gi", "2k", "1.5"])
        case "number":
            return st.sampled_from(["0", "-1.5", "20m"])
        case "version":
            return st.sampled_from(["1.2", "v2.0.0-rc1", "0"])
    return st.text(max_size=8)


@st.composite
def terms(draw: Any) -> Term:
    name = draw(st.sampled_from([*KEYS, f"{LABEL}tier", f"{LABEL}a.b/c-d"]))
    key = key_of(name)
    assert key is not None
    sign = draw(st.sampled_from(OPERATORS[key.sort]))
    values = st.text(max_size=8) if "~" in sign else _values(key.sort, key.choices)
    texts = draw(st.lists(values, min_size=1, max_size=3 if sign == "in" else 1))
    return Term(name, sign, tuple(texts), draw(st.booleans()))


@given(st.lists(terms(), max_size=5).map(tuple))
def test_what_is_written_is_read_the_same(written: tuple[Term, ...]) -> None:
    read = parse(str(Selector(written)))
    assert read.terms == written
    assert parse(str(read)) == read
    assert str(parse(str(read))) == str(read)


@given(st.lists(terms(), max_size=4), known_clusters.facts, known_clusters.totals, st.booleans())
def test_all_terms_must_hold_and_not_is_the_opposite(
    asked: list[Term], facts: Any, totals: Any, cordoned: bool
) -> None:
    known = Known(record(told=facts, cordoned=cordoned), totals=totals)
    each = [parse(str(term)).matches(known) for term in asked]
    assert parse(str(Selector(tuple(asked)))).matches(known) == all(each)
    for term, held in zip(asked, each, strict=True):
        opposite = Term(term.key, term.sign, term.values, not term.negated)
        assert parse(str(opposite)).matches(known) != held


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(errors.BadSelector):
        read = parse(text)
        assert parse(str(read)) == read
