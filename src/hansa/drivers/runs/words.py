"""How did a script end, in words people understand? The same ones, whatever engine ran it."""

from hansa.kernel import quantities

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
