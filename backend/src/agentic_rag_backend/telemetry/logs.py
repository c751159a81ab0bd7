"""Structured log events.

Modules log with `get_logger`. A command or server calls `configure_logging`, which writes the events of the whole process to
stderr. A program that embeds the package configures structlog, ``logging`` or nothing. In the last case the package is silent.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

import structlog

# A library must not print. Without a handler, ``logging`` prints warnings to stderr.
logging.getLogger("agentic_rag_backend").addHandler(logging.NullHandler())


class EventLogger:
    """Logger of a module; its methods are those of structlog's bound logger, such as ``info("job_started", job=id)``.

    Events go through structlog's configuration if the process has one. Otherwise they go to the ``logging`` logger of the
    module, as one line of ``key=value`` pairs.
    """

    def __init__(self, name: str) -> None:
        self._configured = structlog.get_logger(name)
        self._standard = structlog.wrap_logger(
            logging.getLogger(name),
            processors=[structlog.stdlib.filter_by_level, structlog.contextvars.merge_contextvars, _to_standard_logging],
            wrapper_class=structlog.stdlib.BoundLogger,
        )

    def __getattr__(self, method: str) -> Any:
        return getattr(self._configured if structlog.is_configured() else self._standard, method)


def get_logger(name: str) -> EventLogger:
    """Return the logger of the module ``name``. Importing it configures nothing."""
    return EventLogger(name)


def configure_logging(*, level: str, format: Literal["console", "json"]) -> None:
    """Write every event of this process to stderr, one per line. Values are escaped, so document text cannot forge a line."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info if format == "json" else _keep_event,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("httpx", "httpcore", "httpx2", "httpcore2", "openai", "alembic", "mcp", "sqlalchemy", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _keep_event(
    logger: structlog.typing.WrappedLogger, name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return event


def _to_standard_logging(
    logger: structlog.typing.WrappedLogger, name: str, event: structlog.typing.EventDict
) -> tuple[tuple[str], dict[str, Any]]:
    """Return the arguments of a ``logging`` call. ``repr`` escapes the values; ``logging`` formats the traceback."""
    exc_info = event.pop("exc_info", None)
    message = " ".join([str(event.pop("event")), *(f"{key}={value!r}" for key, value in event.items())])
    return (message,), {"exc_info": exc_info}
