"""Which of our own lines does a service want in its logs? Those of its log level and above."""

_LEVELS = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}


def lets_through(wanted: str, level: str) -> bool:
    """A level that we do not know is taken for INFO."""
    return _LEVELS[level] >= _LEVELS.get(wanted.upper(), 20)
