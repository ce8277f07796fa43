"""How did a script end, in words people understand? The same ones, whatever engine ran it."""

from hansa.kernel import quantities

MORE_DISK = "a service asks for more disk with ephemeral_storage_request"
_KNOWN = {
    126: "the script could not be run",
    127: "a command was not found",
    137: "signal 9, as when memory runs out",
}


def exit_code(code: int) -> str:
    known = _KNOWN.get(code, f"signal {code - 128}" if code > 128 else "")
    return f"exit code {code}" + (f" ({known})" if known else "")


def out_of_memory(memory: int) -> str:
    return f"out of memory: used more than {quantities.show_size(memory)}"


def time_limit(seconds: float) -> str:
    return f"time limit of {seconds:g} s reached"


def moving_limit(seconds: float) -> str:
    return f"its files were not moved within {seconds:g} s, the longest time that this cluster gives any job"


def out_of_disk(disk: int) -> str:
    return f"out of disk: the run's files, or a volume that it mounts, exceeded their limit ({_size(disk)} for files)"


def disk_full(disk: int) -> str:
    return f"its disk of {_size(disk)} is full"


def disk_too_small(needed: int, disk: int) -> str:
    return f"the input needs {_size(needed)}, the service's disk limit is {_size(disk)}"


def file_too_large(most: int) -> str:
    return f"a file became larger than {_size(most)}, the most its disk or memory can hold"


def _size(count: int) -> str:
    return quantities.show_size(count)
