"""How did a process end, in words people understand? Pure; jobs, calls and exposed services share it."""

from hansa.drivers.local.launch import Exit, Launch
from hansa.kernel import quantities

_KNOWN = {
    126: "the script could not be run",
    127: "a command was not found",
    137: "signal 9, as when memory runs out",
}


def succeeded(exit: Exit) -> bool:
    """A script that ran out of memory failed, even if its shell went on and ended with 0."""
    return exit.reason == "exit" and exit.code == 0


def in_words(exit: Exit, launch: Launch) -> str:
    """Empty for a good end."""
    if succeeded(exit):
        return ""
    match exit.reason:
        case "oom":
            return f"out of memory: used more than {quantities.show_size(launch.memory)}"
        case "timeout":
            return f"time limit of {launch.seconds:g} s reached"
        case "stopped" | "killed":
            return "it was stopped"
        case "lost":
            return "the sandbox it ran in died"
    code = exit.code or 0
    known = _KNOWN.get(code, f"signal {code - 128}" if code > 128 else "")
    return f"exit code {exit.code}" + (f" ({known})" if known else "")
