"""A worker's secrets as they were before its coordinator's latest change, so that taking the change back is exact.

Secrets are shown to nobody, so whoever puts an earlier definition back can only send blanks for them. The definition
carries the mark of the operation that made it: by that we know that the blanks mean the earlier secrets.
"""

from collections.abc import Mapping

from hansa.services.service import Service

OPERATION = "hansa/operation"  # annotation: which operation made or changed this worker last
_FORMER = "former."
_MARK = "former operation"


def meant(coming: Service, kept: Mapping[str, str]) -> dict[str, str]:
    """What blanks in a definition that comes now stand for."""
    mark = coming.annotations.get(OPERATION, "")
    if coming.is_worker and mark and kept.get(_MARK) == mark:
        return {path.removeprefix(_FORMER): text for path, text in kept.items() if path.startswith(_FORMER)}
    return _current(kept)


def remember(before: Service, coming: Service, kept: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """The new secrets together with those they replace; of services that are no workers only the new ones."""
    was, is_now = before.annotations.get(OPERATION, ""), coming.annotations.get(OPERATION, "")
    if not (coming.is_worker and was):
        return dict(secrets)
    if was == is_now:  # the owner changed it: what came before the operation stays what it was
        former = {path: text for path, text in kept.items() if path.startswith(_FORMER) or path == _MARK}
    else:
        former = {_MARK: was, **{_FORMER + path: text for path, text in _current(kept).items()}}
    return {**secrets, **former}


def _current(kept: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in kept.items() if not path.startswith(_FORMER) and path != _MARK}
