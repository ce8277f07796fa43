"""Which names are possible: of services, buckets, jobs, environment variables. One rule each, refused with a hint."""

import re

from hansa.kernel.errors import Invalid

_SERVICE = re.compile(r"[a-z0-9]([a-z0-9-]{0,37}[a-z0-9])?")
_JOB = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_IP = re.compile(r"\d+\.\d+\.\d+\.\d+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,254}")
_VOLUME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class BadName(Invalid):
    """A name does not follow the rule for its kind."""

    code = "name.invalid"


def _check(form: re.Pattern[str], text: str, what: str, hint: str) -> str:
    if not form.fullmatch(text):
        raise BadName(f"{what} {text[:60]!r} is not valid", hint=hint)
    return text


def service(text: str) -> str:
    return _check(
        _SERVICE,
        text,
        "service name",
        "use 1 to 39 of a-z, 0-9 and -, starting and ending with a letter or digit",
    )


def job(text: str) -> str:
    return _check(_JOB, text, "job name", "use 1 to 63 of a-z, 0-9 and -, starting and ending with a letter or digit")


def volume(text: str) -> str:
    return _check(
        _VOLUME,
        text,
        "volume name",
        "use 1 to 63 of a-z, 0-9 and -, starting and ending with a letter or digit",
    )


def cluster(text: str) -> str:
    return _check(
        _JOB,
        text,
        "cluster id",
        "use 1 to 63 of a-z, 0-9 and -, starting and ending with a letter or digit",
    )


def variable(text: str) -> str:
    return _check(_VARIABLE, text, "variable name", "start with a letter or _, then letters, digits, _, . or -")


def is_bucket(text: str) -> bool:
    return bool(_BUCKET.fullmatch(text)) and ".." not in text and not _IP.fullmatch(text)


def bucket(text: str) -> str:
    if not is_bucket(text):
        raise BadName(f"bucket name {text[:70]!r} is not valid", hint="use 3 to 63 of a-z, 0-9, - and ., as S3 demands")
    return text


def object_key(text: str) -> str:
    """A key inside a bucket: no empty key, no `..` step, no control characters, at most 1024 bytes as S3 demands."""
    steps = text.split("/")
    if not text.strip("/") or len(text.encode()) > 1024 or ".." in steps or any(ord(c) < 32 for c in text):
        raise BadName(
            f"object key {text[:60]!r} is not valid",
            hint="give 1 to 1024 bytes without control characters and without .. as a step",
        )
    return text
