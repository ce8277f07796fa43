"""Logs that machines and people can read: one event a line, with the request and job they belong to."""

import io
import logging
import sys
from typing import Any, TextIO

import structlog

from hansa.bootstrap import log_level
from hansa.kernel.plain_text import plain
from hansa.settings import LogSettings


def set_up_logs(settings: LogSettings) -> None:
    """JSON for collectors, plain text on a terminal."""
    as_text = settings.form == "text" or (settings.form == "auto" and sys.stderr.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=_traceback,
        )
        if as_text
        else structlog.processors.JSONRenderer()
    )
    written: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info if not as_text else _plainly,
        renderer,
    ]
    structlog.configure(
        processors=[log_level.passing, *written],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),  # `log_level` decides, for it may change
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _write_libraries_alike(written)
    log_level.set_level(settings.level)


def _write_libraries_alike(written: list[Any]) -> None:
    """What libraries log is an event a line, too, and no way around what is done to a stranger's text."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *written,
            ]
        )
    )
    logging.basicConfig(handlers=[handler])
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # each try again; whoever asked says the end


def _plainly(_logger: Any, _name: str, event: Any) -> Any:
    """A stranger's text neither commands the terminal nor makes a line of its own. What is no text is shown by its
    `repr`, which is as plain."""
    return {key: _one_line(value) if isinstance(value, str) else value for key, value in event.items()}


def _one_line(text: str) -> str:
    return plain(text).replace("\n", "\\n")


def _traceback(out: TextIO, info: Any) -> None:
    """Without locals, which the default shows, secrets too."""
    written = io.StringIO()
    structlog.dev.plain_traceback(written, info)
    out.write(plain(written.getvalue()))
