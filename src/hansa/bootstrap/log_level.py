"""Which lines does this process log? The one thing about logs that can change while it runs.

Logs belong to the process and not to a manager in it, so there is one threshold. `entrypoints/telemetry.py` puts
`passing` in front of everything else that is done to a line.
"""

import logging

import structlog
from structlog.typing import EventDict, WrappedLogger

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "exception": 40, "critical": 50}


class _Threshold:
    least = _LEVELS["info"]


def set_level(name: str) -> None:
    _Threshold.least = _LEVELS[name]
    logging.getLogger().setLevel(max(_Threshold.least, logging.WARNING))  # libraries say much that is not for us


def passing(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    if _LEVELS.get(method, 50) < _Threshold.least:
        raise structlog.DropEvent
    return event
