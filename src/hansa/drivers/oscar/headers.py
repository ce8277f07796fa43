"""Which headers go along? Those a member's definition asks for, never in place of ours or of the transport's."""

import re
from collections.abc import Mapping

from hansa.services import peers

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_VALUE = re.compile(r"[\x20-\x7e\t]{0,8192}")
_OF_TRANSPORT = frozenset(
    {"host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "te", "trailer",
     "upgrade", "expect", "accept-encoding"}
)  # fmt: skip
_OURS = ("authorization", "proxy-authorization", "x-delegated-", "x-hansa-")


def of_endpoint(given: Mapping[str, str]) -> dict[str, str]:
    """For a web server of the user's: all that can be sent, also their own Authorization."""
    for name, value in given.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise peers.PeerRefused(
                f"the member's header {name[:40]!r} cannot be sent",
                status=400,
                hint="names are words, values are printable ASCII without line breaks",
            )
    return {name: value.strip() for name, value in given.items() if name.lower() not in _OF_TRANSPORT}


def of_member(given: Mapping[str, str]) -> dict[str, str]:
    """For another manager: what is ours to say is left out."""
    return {name: value for name, value in of_endpoint(given).items() if not name.lower().startswith(_OURS)}


def of_handover(job: peers.Handover, credentials: peers.Credentials) -> dict[str, str]:
    """OSCAR's two headers, and ours, which OSCAR's own manager ignores."""
    return {
        **of_member(job.headers),
        "Authorization": credentials.authorization,
        "X-Delegated-Job-ID": job.job,
        "X-Delegated-From": job.origin,
        "X-Hansa-Permit": job.permit,
        "X-Hansa-Origin": job.origin,
        "X-Hansa-Service": job.from_service,
        "X-Hansa-Path": ",".join(job.path),
    }
