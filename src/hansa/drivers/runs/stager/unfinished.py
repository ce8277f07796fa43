"""Which upload in parts did not come to its end? It is noted beside the files of the run, and whoever carries them once
more aborts it: the store would keep its parts for good, where nobody sees them.

The note lies in a folder of the script, so it is no proof: `moving` aborts only what the plan lets the run write.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass

from . import beneath

_NOTE = ".unfinished-upload"
_LARGEST = 16_384


@dataclass(frozen=True, slots=True)
class Unfinished:
    store: int  # which of the plan's stores
    bucket: str
    key: str
    begun: str  # how the store calls it


def keep(job: int, upload: Unfinished) -> None:
    with contextlib.suppress(OSError):  # on a disk that the script filled there is no room for it
        beneath.write(job, _NOTE, json.dumps(asdict(upload)).encode())


def kept(job: int) -> Unfinished | None:
    try:
        fd = beneath.open_beneath(job, _NOTE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        told = json.loads(os.read(fd, _LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(fd)
    match told:
        case {"store": int(store), "bucket": str(bucket), "key": str(key), "begun": str(begun)}:
            return Unfinished(store, bucket, key, begun)
    return None


def forget(job: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(_NOTE, dir_fd=job)
