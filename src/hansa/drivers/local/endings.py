"""How did a process end, in words people understand? Pure; jobs, calls and exposed services share it."""

from hansa.drivers.local.launch import Exit, Launch
from hansa.drivers.runs import words


def succeeded(exit: Exit) -> bool:
    """A script that ran out of memory failed, even if its shell went on and ended with 0."""
    return exit.reason == "exit" and exit.code == 0


def in_words(exit: Exit, launch: Launch) -> str:
    """Empty for a good end."""
    if succeeded(exit):
        return ""
    match exit.reason:
        case "oom":
            return words.out_of_memory(launch.memory)
        case "timeout":
            return words.time_limit(launch.seconds)
        case "stopped" | "killed":
            return "it was stopped"
        case "lost":
            return "the sandbox it ran in died"
    return words.exit_code(exit.code or 0)
