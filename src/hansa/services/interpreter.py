"""Who runs a script? Always /bin/sh, as in OSCAR, whatever the script's first line asks for. Pure."""

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"})
_MOST_TOLD = 80


def warnings(script: str) -> tuple[str, ...]:
    """What the owner of a service should know of a first line that is not followed."""
    first = script.partition("\n")[0].strip()
    if not first.startswith("#!") or _program(first[2:].split()) in _SHELLS:
        return ()
    return (
        f"the script begins with {first[:_MOST_TOLD]!a}, but scripts are run by /bin/sh. Write a shell script "
        "that calls the program.",
    )


def _program(words: list[str]) -> str:
    """The file name of the interpreter; `env` is one that only looks for another."""
    names = [word.rpartition("/")[2] for word in words]
    if names[:1] == ["env"]:
        names = [name for name in names[1:] if not name.startswith("-") and "=" not in name]
    return names[0] if names else ""
