"""How did a process end, in words people understand? Pure; jobs, calls and exposed services share it."""

import signal

from hansa.drivers.local.launch import Exit, Launch
from hansa.drivers.runs import words

_FILE_TOO_LARGE = 128 + signal.SIGXFSZ


def succeeded(exit: Exit) -> bool:
    """A script that ran out of memory failed, even if its shell went on and ended with 0."""
    return exit.reason == "exit" and exit.code == 0


def in_words(exit: Exit, launch: Launch, *, full: bool = False) -> str:
    """Empty for a good end. `full`: there was no room on its disk any more when it ended."""
    if succeeded(exit):
        return ""
    match exit.reason:
        case "oom":
            return words.out_of_memory(launch.memory)
        case "disk":
            return words.out_of_disk(launch.disk)
        case "timeout":
            return words.time_limit(launch.seconds)
        case "stopped" | "killed":
            return "it was stopped"
        case "lost":
            return "the sandbox it ran in died"
    if exit.code == _FILE_TOO_LARGE and launch.largest_file:
        return words.file_too_large(launch.largest_file)
    return words.exit_code(exit.code or 0) + (f"; {words.disk_full(launch.disk)}" if full else "")
