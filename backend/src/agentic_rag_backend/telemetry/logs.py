"""Structured events on stderr, from our code and from libraries alike."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog


def configure_logging(*, level: str, format: Literal["console", "json"]) -> None:
    """Send every event of this process to stderr, one a line; values are escaped, so a document cannot forge a line."""
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
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info if format == "json" else _keep,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("httpx", "httpcore", "openai", "alembic", "sqlalchemy", "dbos", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _keep(logger: structlog.typing.WrappedLogger, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event
