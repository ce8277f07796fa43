"""Which services wait for an upload? Asked for each upload of anybody, so those of a bucket are known beforehand."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from hansa.services.ports import Record
from hansa.services.service import Service, provider_of, split_path

Folders = Mapping[str, tuple[str, ...]]
"""By bucket, how the keys of its uploads begin: each ends with "/"."""


def input_folders(service: Service) -> list[tuple[str, str]]:
    """(bucket, folder) pairs whose uploads start jobs, with the copies that USER isolation makes. A worker's data
    lives at its origin, which hands it jobs: its folders here mean nothing."""
    if service.is_replica:
        return []
    folders = [split_path(io.path) for io in service.input if provider_of(io)[0] == "minio"]
    if service.isolated_by_user:
        folders += [(bucket, folder) for bucket in service.bucket_list for _, folder in folders[:1]]
    return list(dict.fromkeys(folders))


def outermost(folders: Iterable[tuple[str, str]]) -> Folders:
    """Without those that are in another one: an upload is one upload, however many inputs it matches."""
    found: dict[str, tuple[str, ...]] = {}
    for bucket, pairs in groupby(sorted((bucket, f"{folder}/") for bucket, folder in folders), key=lambda one: one[0]):
        kept: list[str] = []
        for _, prefix in pairs:  # in order, so that whatever holds a folder comes before it
            if not kept or not prefix.startswith(kept[-1]):
                kept.append(prefix)
        found[bucket] = tuple(kept)
    return found


class Listening:
    """The folders of each service as it is now."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Service, Folders]] = {}
        self._sorted: Sequence[Record] = ()
        self._by_bucket: dict[str, list[Record]] = {}

    def of_bucket(self, bucket: str, records: Sequence[Record]) -> Sequence[Record]:
        """Those of all `records` that have a folder in it. They are sorted anew when one of them is another than
        before, which is seen at once: the others are the very same."""
        return self._sort(records).get(bucket, ())

    def buckets(self, records: Sequence[Record]) -> list[str]:
        """All in which one of these has a folder."""
        return list(self._sort(records))

    def _sort(self, records: Sequence[Record]) -> Mapping[str, Sequence[Record]]:
        if records != self._sorted:
            self._by_bucket = {}
            for record in records:
                for each in self.folders(record.service):
                    self._by_bucket.setdefault(each, []).append(record)
            self._sorted = records
        return self._by_bucket

    def folders(self, service: Service) -> Folders:
        known = self._known.get(service.name)
        if known is None or known[0] is not service:
            known = self._known[service.name] = (service, outermost(input_folders(service)))
        return known[1]

    def forget_others(self, names: Iterable[str]) -> None:
        """Only these services are there."""
        self._known = {name: self._known[name] for name in names if name in self._known}
