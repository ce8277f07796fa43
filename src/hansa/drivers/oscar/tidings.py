"""What do the answers mean that carry more than a status code: keys, a job away, a token, a peer's abilities?

Nothing of them is taken on trust: wrong types raise `PeerRefused`, and no answer is quoted, as all hold secrets.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from hansa.drivers.oscar import figures
from hansa.drivers.oscar.calls import Answer
from hansa.kernel.plain_text import plain
from hansa.services import peers
from hansa.storage import Keys, StoreAddress

_Status = Literal["Pending", "Running", "Succeeded", "Failed"]
_MOST_CAPABILITIES = 256
_LONGEST_REASON = 1000
_LONGEST_TOKEN = 16 * 1024
# What is told of a store is kept with each job.
_LONGEST_OF_STORE = {
    "endpoint": 2048,
    "region": 64,
    "access_key": 256,
    "secret_key": 256,
    "session_token": 8 * 1024,  # no store takes a longer header
    "reach": 16 * 1024,
}
_LONGEST_LIFE = 86400.0  # seconds for which a token is believed to be good; then it is asked for anew


def storage(answer: Answer) -> tuple[StoreAddress, Keys]:
    """`minio_provider` of `/system/config`, and of the storage of a delegation."""
    provider = _provider(answer)
    endpoint, region, access_key, secret_key = (
        _text(provider, name) for name in ("endpoint", "region", "access_key", "secret_key")
    )
    if not endpoint.startswith(("http://", "https://")) or not access_key or not secret_key:
        raise answer.nonsense("no usable keys for its store")
    verify = provider.get("verify", True)
    keys = Keys(access_key, secret_key, _text(provider, "session_token"))
    return StoreAddress(endpoint, region or "us-east-1", verify is not False), keys


def lent(answer: Answer) -> dict[str, str]:
    """The store of a job's data: with keys, or, if it lends none, with what the job may touch there."""
    provider = _provider(answer)
    reach = _text(provider, "reach")
    if reach and not _text(provider, "access_key"):
        verify = "false" if provider.get("verify") is False else "true"
        place = {"endpoint": _text(provider, "endpoint"), "region": _text(provider, "region"), "verify": verify}
        return {**place, "access_key": "", "reach": reach}
    address, keys = storage(answer)
    return address.with_keys(keys)


def _provider(answer: Answer) -> Mapping[str, Any]:
    provider = answer.document().get("minio_provider")
    if not isinstance(provider, Mapping):
        raise answer.nonsense("without a minio_provider")
    for name, longest in _LONGEST_OF_STORE.items():
        if len(_text(provider, name)) > longest:
            raise answer.nonsense(f"a store whose {name} has more than {longest} characters")
    return provider


def away_job(answer: Answer, now: float) -> peers.AwayJob:
    told = answer.document()
    status: _Status | None = next((known for known in get_args(_Status) if known == told.get("status")), None)
    if status is None:
        raise answer.nonsense("a job in a state we do not know")
    return peers.AwayJob(
        status=status,
        started=figures.moment(told.get("started"), now),
        finished=figures.moment(told.get("finished"), now),
        exit_code=figures.exit_code(told.get("exit_code")),
        reason=plain(_text(told, "reason"), _LONGEST_REASON),
        cpu_seconds=figures.seconds(told.get("cpu_seconds")),
    )


def token(answer: Answer, now: float) -> tuple[str, float]:
    """`access_token` and when it expires by our own clock: the peer says in how many seconds (`expires_in`)."""
    told = answer.document()
    value, seconds = _text(told, "access_token"), figures.number(told.get("expires_in"))
    if not value or len(value) > _LONGEST_TOKEN or not value.isascii() or not value.isprintable() or seconds is None:
        raise answer.nonsense("no usable access token")
    return value, now + min(max(0.0, seconds), _LONGEST_LIFE)


def capabilities(answer: Answer) -> frozenset[str] | None:
    """What a Hansa manager can do; None if this is none."""
    if answer.status != 200 or "json" not in answer.content_type:
        return None
    told = answer.document()
    if told.get("product") != "hansa":
        return None
    named = told.get("capabilities")
    known = named[:_MOST_CAPABILITIES] if isinstance(named, list) else []
    return frozenset(word for word in known if isinstance(word, str))


def _text(part: Mapping[str, Any], key: str) -> str:
    value = part.get(key)
    return value if isinstance(value, str) else ""
