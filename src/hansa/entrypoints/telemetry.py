"""Logs that machines and people can read: one event a line, with the request and job they belong to."""

import logging
import sys
from typing import Any

import structlog

from hansa.bootstrap import log_level
from hansa.settings import LogSettings


def set_up_logs(settings: LogSettings) -> None:
    """JSON for collectors, plain text on a terminal."""
    as_text = settings.form == "text" or (settings.form == "auto" and sys.stderr.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,  # the default shows locals, secrets too
        )
        if as_text
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            log_level.passing,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if not as_text else _unchanged,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),  # `log_level` decides, for it may change
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    log_level.set_level(settings.level)


def _unchanged(_logger: Any, _name: str, event: Any) -> Any:
    return event
