"""What may a presigned link be asked for? Rules of `POST /system/buckets/{bucket}/presign`, without any I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hansa.kernel import names
from hansa.storage.errors import BadLink

DEFAULT_SECONDS = 900
LONGEST_SECONDS = 604_800  # what signature version 4 allows
_IRREVOCABLE_SECONDS = 900
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_PRINTABLE = re.compile(r"[\x20-\x7e]{0,1000}")
_MOST_HEADERS = 50


@dataclass(frozen=True, slots=True)
class LinkRequest:
    key: str
    operation: Literal["upload", "download"]
    seconds: int
    content_type: str
    headers: Mapping[str, str]  # what the client must send along with an upload


@dataclass(frozen=True, slots=True)
class Link:
    request: LinkRequest
    url: str
    expires: float

    @property
    def method(self) -> str:
        return "PUT" if self.request.operation == "upload" else "GET"


def link_request(
    key: str, operation: str, seconds: int, content_type: str = "", headers: Mapping[str, str] | None = None
) -> LinkRequest:
    """Checked and normalised; 0 seconds mean the default."""
    key = names.object_key(key.strip().strip("/"))
    wanted = operation.strip().lower()
    if wanted not in ("upload", "download"):
        raise BadLink(f"operation {operation[:40]!r} is not known", hint="use upload or download")
    seconds = seconds or DEFAULT_SECONDS
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise BadLink(f"a link cannot be valid for {seconds} s", hint=f"choose between 1 and {LONGEST_SECONDS} seconds")
    if not _PRINTABLE.fullmatch(content_type):
        raise BadLink("the content type is not valid", hint="write for example image/png")
    sent = _checked(headers or {})
    if wanted == "upload" and content_type:
        sent["Content-Type"] = content_type
    return LinkRequest(key, "upload" if wanted == "upload" else "download", seconds, content_type, sent)


def within(seconds: int, longest: int, *, revocable: bool) -> int:
    """How long a link is valid that was asked for. Who asks for more gets less, and reads so in `expires_at`: clients
    of OSCAR may ask for a week. A link that nobody can take back ends soon by itself."""
    return min(seconds, longest if revocable else min(longest, _IRREVOCABLE_SECONDS))


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    if len(headers) > _MOST_HEADERS:
        raise BadLink(f"there are more than {_MOST_HEADERS} extra headers")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not _PRINTABLE.fullmatch(value):
            raise BadLink(f"header {name[:40]!r} is not valid", hint="use plain names and printable values")
        if name.lower().startswith("x-amz-"):
            # S3 refuses such a header unless it was signed, and links sign none but the content type.
            raise BadLink(f"header {name[:40]!r} cannot be part of a link", hint="leave x-amz-* headers out")
    return dict(headers)
