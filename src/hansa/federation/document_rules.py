"""What must hold of every document, be it configuration or a policy? Its name, its comment, what it was decided on."""

import re

from hansa.federation.documents import DocumentRecord
from hansa.federation.errors import BadDocument, WrongVersion
from hansa.federation.selectors import Selector
from hansa.kernel.errors import Invalid
from hansa.kernel.names import BadName

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_LONGEST_COMMENT = 2000
_RESTLESS = frozenset(
    {"state", "cordoned", "nodes", "nodes_ready", "vms", "services", "jobs_running", "jobs_waiting"}
    | {"cpu", "memory", "disk", "gpu"}
)
_RESTLESS_ENDS = ("_used", "_free")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]")


def check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadName(
            f"{what} name {name[:60]!r} is not valid",
            hint="use 1 to 63 of a-z, 0-9, - and ., starting and ending with a letter or digit",
        )


def check_steady(selector: Selector, why: str, error: type[Invalid]) -> None:
    """That it names nothing that changes by itself from one minute to the next."""
    for term in selector.terms:
        if term.key in _RESTLESS or term.key.endswith(_RESTLESS_ENDS):
            raise error(
                f"{term.key} cannot be asked for here: {why}",
                hint="select by region, zone, version, abilities or labels (metadata.…)",
            )


def check_comment(comment: str) -> None:
    if len(comment) > _LONGEST_COMMENT or _UNPRINTABLE.search(comment):
        raise BadDocument(f"the comment must be text of at most {_LONGEST_COMMENT} characters")


def check_expected(newest: DocumentRecord | None, expected: int | None) -> None:
    """0 expects that there is none."""
    if expected is None:
        return
    number = newest.version if newest is not None else 0
    if expected != number and not (expected == 0 and newest is not None and newest.removed):
        raise WrongVersion(
            f"it was decided on version {expected}, but the newest is {number}",
            hint="look at what changed, and decide again",
            expected=expected,
            newest=number,
        )
